//! The command line: runs the features of Sightline without an editor, or in its running server.
//!
//! Each command builds the params of a request and calls the same handler as the server.
//! Exit codes: 0 success, 1 negative result, 2 usage error, 3 failure.
//!
//! Modules:
//!
//! - `requests`: runs requests in the running server of the workspace, or in this process
//! - `output`, `progress_bar`: what commands print
//! - `access`, `exec`: checks paths and commands; runs commands that cannot open denied files
//! - `checkpoints`: commands of checkpoints
//! - `conversations`: tokens, history, tasks and compaction
//! - `hook`: answers coding agents (`access_check`: asks for what `agents/judge` needs; `session`:
//!   block and checkpoints; `seen_files`: what a session has read and written)
//! - `agents`: connects coding agents (`installer`), tells what keeps entries from running (`status`)
//!   and runs them (`check`)
//! - `log`: prints what agents were refused
//! - `mcp`: serves tools to coding agents
//! - `gateway`: starts the gateway
//! - `page`: serves the page of `sightline ui`
//! - `help`: the commands in groups
//! - `helix`: edits the Helix configuration
//! - `init`: writes a `.clineignore`
//! - `config`, `doctor`, `uninstall`: settings and their origins; the requirements; deletes all data
//! - `completions`, `man`, `schema`, `demo`: scripts of shells, manual pages, schemas, a sample session

#![cfg_attr(
    not(all(feature = "hub", feature = "page")),
    allow(dead_code, unused_imports, reason = "parts that are left out use it")
)]

mod access;
mod agents;
mod checkpoints;
mod completions;
mod config;
mod conversations;
mod demo;
mod doctor;
mod exec;
mod gateway;
mod helix;
mod help;
mod hook;
mod init;
mod log;
mod man;
mod mcp;
mod output;
#[cfg(feature = "page")]
mod page;
mod progress_bar;
mod requests;
mod schema;
mod uninstall;

use std::{
    ffi::OsString,
    io::{self, IsTerminal},
    path::PathBuf,
};

use checkpoints::confirm_below_agent;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use output::{
    Color, internal, print, print_as, print_error, print_json, print_message, print_sorted_json,
    print_styled, print_to,
};
use requests::{AnsweredBy, Place, Requests, offline};
use sightline_access::deny_moved_secrets;
use sightline_agents::wiring::serves_editor;
use sightline_base::path::AbsPath;
use sightline_context::listing::format::CUT_SHORT;
use sightline_engine::error::Error;
use sightline_local::process::{logging, signals, version};
use sightline_protocol::{
    environment::{EnvironmentDetailsParams, Mode},
    error::ErrorKind,
    files::{ListFilesParams, ReadFileParams},
    method::ListFiles,
};

/// Success.
pub const DONE: i32 = 0;
/// Negative result: denied, or nothing to undo.
pub const NEGATIVE: i32 = 1;
/// Usage error.
pub const BAD_USE: i32 = 2;
/// Failure.
pub const FAILURE: i32 = 3;

/// Language server for AI coding agents: editor context, file access control and checkpoints.
///
/// Editors start this program as a language server, with --stdio or without arguments.
/// The commands below offer the same features to hooks, scripts and editors that can only
/// run programs. `environment`, `access`, `read` and most `checkpoint` commands use the
/// running server of the workspace, if there is one; other commands use the disk.
#[derive(Parser)]
#[command(
    name = "sightline",
    version,
    long_version = version::LONG_VERSION,
    after_help = AFTER_HELP
)]
struct Arguments {
    /// Run the language server on standard input and output. All other arguments are
    /// ignored. This is the default if standard input is not a terminal.
    #[arg(long)]
    #[allow(dead_code, reason = "checked before the arguments are parsed")]
    stdio: bool,
    /// When to use colors.
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    #[allow(dead_code, reason = "read before the arguments are parsed")]
    color: Color,
    #[command(subcommand)]
    command: Option<Command>,
}

const AFTER_HELP: &str = "\
Exit codes: 0 success, 1 negative result (denied, nothing to undo), 2 usage error, 3 failure.
The workspace is the git repository that contains the current folder, else the topmost
folder above it with a .clineignore, else the folder itself; --root selects another one.

Examples:
  sightline demo                        run a demo session with the real server
  sightline agents install              show how agents would be connected
  sightline init                        write a .clineignore
  sightline ui                          show turns, hidden files and agents in a browser
  sightline checkpoint list             show turns and checkpoints, newest first
  sightline checkpoint restore last     go back to the last checkpoint, after a preview
  sightline checkpoint undo             undo that
  sightline access .env src/main.rs     check whether an agent may see these files
  sightline environment --files         print the block an agent would get now";

/// The last line of a truncated list.
const LIST_CUT_SHORT: &str = "\n\n(Cut short. List a directory above, or raise --limit.)";

#[derive(Subcommand)]
enum Command {
    /// Print the <environment_details> block.
    Environment {
        #[command(flatten)]
        place: Place,
        /// Include the file list, workspace configuration and detected tools.
        #[arg(long)]
        files: bool,
        /// Mode of the agent.
        #[arg(long, value_enum, default_value_t = ModeArgument::Act)]
        mode: ModeArgument,
        /// Maximum number of entries in the file list.
        #[arg(long, value_name = "N", default_value_t = 200)]
        max_files: u32,
        /// Task whose recently modified files are included. They are not marked as
        /// delivered.
        #[arg(long, value_name = "ID")]
        task: Option<String>,
    },
    /// Check whether agents may see paths or run a command. Path checks are enforced; the
    /// command check is advisory.
    #[command(arg_required_else_help = true)]
    Access {
        #[command(flatten)]
        place: Place,
        /// Paths to check.
        #[arg(value_name = "PATH", required_unless_present = "command")]
        paths: Vec<String>,
        /// Shell command line to check.
        #[arg(long, value_name = "CMD")]
        command: Option<String>,
    },
    /// List the files that agents may see.
    List {
        #[command(flatten)]
        workspace: Workspace,
        /// Directory to list.
        #[arg(value_name = "DIR", default_value = ".")]
        directory: String,
        /// List the directory itself, not its subdirectories.
        #[arg(long)]
        flat: bool,
        /// Maximum number of entries.
        #[arg(long, value_name = "N", default_value_t = 200)]
        limit: u32,
    },
    /// Run a command that cannot open denied files which git does not track (Linux). Its exit
    /// code is that of the command, or 125 if the files cannot be hidden and nothing was run.
    Exec(exec::Exec),
    /// Forward requests of coding agents to the model APIs of their providers. Listens on
    /// loopback, prints its address as JSON, and runs until it is stopped.
    Gateway(gateway::Gateway),
    /// Run a coding agent whose requests to its models go through a gateway, which ends with it.
    Run(gateway::run::Run),
    /// Show the tokens of requests through the gateway, by day, agent and model, with their cost
    /// where the price is known.
    Usage(gateway::usage::Usage),
    /// Print a file that agents may see.
    Read {
        #[command(flatten)]
        place: Place,
        /// File to print.
        #[arg(value_name = "FILE")]
        file: String,
        /// First line, starting at 1.
        #[arg(long, value_name = "LINE")]
        start: Option<u64>,
        /// Last line, inclusive.
        #[arg(long, value_name = "LINE")]
        end: Option<u64>,
        /// Truncate after this many bytes.
        #[arg(long, value_name = "N")]
        max_bytes: Option<u64>,
    },
    /// Count the tokens of files or of standard input.
    Tokens(conversations::Tokens),
    /// Choose which part of a conversation to send.
    #[command(subcommand)]
    History(conversations::History),
    /// Manage stored conversations.
    #[command(subcommand)]
    Task(conversations::Task),
    /// Replace the older part of a conversation with a summary.
    #[command(subcommand)]
    Compact(conversations::Compact),
    /// Create, compare and restore checkpoints of the workspace.
    #[command(subcommand)]
    Checkpoint(checkpoints::Checkpoint),
    /// Print a JSON schema: protocol, settings, methods, a type or a method.
    Schema {
        /// Schema to print; by default, lists the names.
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Write a .clineignore for the workspace, with the lines of other agents' rule files.
    Init(init::Init),
    /// Connect coding agents: their hooks, MCP tools and plugins.
    #[command(subcommand)]
    Agents(agents::Agents),
    /// Add the server to Helix's configuration: print the entries for languages.toml and
    /// config.toml, or merge them.
    HelixConfig(helix::HelixConfig),
    /// Check the requirements of the server on this machine and suggest fixes.
    Doctor {
        #[command(flatten)]
        workspace: Workspace,
    },
    /// List what agents were refused, and what was hidden from them, newest first.
    ///
    /// Of commands, it keeps the first word and a hash. With `log.commands = "full"` in your
    /// settings, it keeps the whole command.
    Log(log::Log),
    /// Answer an event of a coding agent, given as JSON on standard input. Configured as a
    /// hook of the agent. The exit code is always 0; a refusal is part of the answer.
    Hook(hook::Hook),
    /// Serve tools for coding agents with the Model Context Protocol, on standard input and
    /// output.
    Mcp(mcp::Mcp),
    /// Delete all data of Sightline: shows it and asks.
    Uninstall(uninstall::Uninstall),
    /// Show the settings in effect without an editor, where each comes from, and the configuration files.
    Config {
        #[command(flatten)]
        workspace: Workspace,
    },
    /// Show turns, what agents see, what is hidden and whether everything works, in a browser.
    ///
    /// Prints the address of a page on this machine, which other users cannot open, and serves it until
    /// Ctrl-C, or until no page has been open for 30 minutes.
    #[cfg(feature = "page")]
    Ui(page::Ui),
    /// Run a request of the protocol, and print its result as JSON.
    Request(requests::named::Request),
    /// Run a demo session with the real server, in a temporary copy of a sample project.
    Demo,
    /// Print a shell completion script.
    Completions {
        /// Shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print a manual page, or write all of them to a directory.
    Man(man::Man),
}

#[derive(clap::Args, Clone)]
struct Workspace {
    /// Workspace folder.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Data directory.
    #[arg(long, value_name = "DIR")]
    storage: Option<PathBuf>,
    /// Print the protocol's result object as JSON.
    #[arg(long)]
    json: bool,
}

impl Workspace {
    fn new(root: Option<PathBuf>, storage: Option<PathBuf>) -> Self {
        Self {
            root,
            storage,
            json: false,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum ModeArgument {
    Act,
    Plan,
}

/// Denies the tokens of agents whose folders are moved by variables of the environment.
fn deny_moved_tokens() {
    let Ok(locations) = agents::locations(PathBuf::new()) else {
        return;
    };
    let tokens: Vec<(AbsPath, &str)> = locations
        .moved_tokens()
        .into_iter()
        .filter_map(|(folder, file)| Some((AbsPath::new(&folder)?, file)))
        .collect();
    deny_moved_secrets(&tokens);
}

/// Runs the program. `serve` serves an editor on standard input and output. Returns the exit code.
pub fn main(serve: fn() -> i32) -> i32 {
    signals::ignore_file_size_signal();
    deny_moved_tokens();
    // Agents take an exit code of the argument parser as a refusal.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|command| command == "hook")
        && !std::env::args_os().any(|argument| argument == "--help" || argument == "-h")
    {
        return hook::main(arguments);
    }
    let written: Vec<OsString> = std::env::args_os().collect();
    let is_subcommand = |name: &str| Arguments::command().find_subcommand(name).is_some();
    if let Some(line) = exec::AgentLine::new(&written, is_subcommand) {
        logging::start();
        return line.run();
    }
    if let Some(code) = exec::run_agent_terminal(&written) {
        return code;
    }
    if serves_editor(written.iter().skip(1).map(|argument| argument.to_str())) {
        return serve();
    }
    let is_json = output::wants_json(&written);
    let color = output::color_of(&written);
    color.apply();
    let matches = help::grouped(Arguments::command())
        .color(color.into())
        .try_get_matches_from(written);
    let parsed = matches.and_then(|matches| {
        let arguments = Arguments::from_arg_matches(&matches)?;
        Ok((arguments, matches))
    });
    let (arguments, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) if is_json && error.use_stderr() => {
            print_error(&Error::invalid(output::usage_message(&error)), true);
            return BAD_USE;
        }
        Err(error) => {
            // Help and version are not errors.
            let _ = error.print();
            return if error.use_stderr() { BAD_USE } else { DONE };
        }
    };
    logging::start();
    let Some(command) = arguments.command else {
        if io::stdin().is_terminal() {
            let _ = help::grouped(Arguments::command())
                .color(color.into())
                .print_help();
            return DONE;
        }
        return serve();
    };
    let is_about_checkpoints = matches!(command, Command::Checkpoint(_));
    let is_confirmed = match command {
        // Asks if it removes or replaces entries.
        Command::Agents(_) => Ok(true),
        _ if is_dry_run(&matches) => Ok(true),
        _ => confirm_below_agent(""),
    };
    let done = match is_confirmed {
        Ok(true) => run(command),
        Ok(false) => Ok(NEGATIVE),
        Err(error) => Err(error),
    };
    done.unwrap_or_else(|error| {
        print_error(&error, is_json);
        record(&matches, &error);
        match error.kind {
            ErrorKind::AccessDenied => NEGATIVE,
            _ if is_about_checkpoints && checkpoints::is_negative(&error) => NEGATIVE,
            ErrorKind::InvalidParams => BAD_USE,
            _ => FAILURE,
        }
    })
}

/// Adds the refusal of a command to the log of decisions.
fn record(matches: &ArgMatches, error: &Error) {
    let Some((name, below)) = matches.subcommand() else {
        return;
    };
    let storage = below.try_get_one::<PathBuf>("storage").ok().flatten();
    let refusal = error.refusal("cli", name);
    offline::record(storage.map(PathBuf::as_path), refusal.as_slice());
}

/// Returns whether a command only shows what it would do.
fn is_dry_run(matches: &ArgMatches) -> bool {
    let flag = matches.try_get_one::<bool>("dry_run");
    let is_set = flag.is_ok_and(|flag| flag == Some(&true));
    is_set
        || matches
            .subcommand()
            .is_some_and(|(_, below)| is_dry_run(below))
}

fn run(command: Command) -> Result<i32, Error> {
    match command {
        Command::Environment {
            place,
            files,
            mode,
            max_files,
            task,
        } => {
            let params = EnvironmentDetailsParams {
                include_files: files,
                max_files,
                mode: match mode {
                    ModeArgument::Act => Mode::Act,
                    ModeArgument::Plan => Mode::Plan,
                },
                task_id: task,
                consume: false,
                ..EnvironmentDetailsParams::default()
            };
            let (details, from) = place.requests().environment_details(params)?;
            if from == AnsweredBy::Disk && !place.offline {
                print_message("no server is running for this workspace; reading from disk");
            }
            if place.workspace.json {
                print_sorted_json(&details)?;
            } else {
                print(&format!("{}\n", details.text))?;
            }
            Ok(DONE)
        }
        Command::Access {
            place,
            paths,
            command,
        } => access::run(&place, &paths, command),
        Command::Exec(exec) => Ok(exec::run(exec)),
        Command::Gateway(arguments) => gateway::run(&arguments),
        Command::Run(arguments) => gateway::run::run(&arguments),
        Command::Usage(arguments) => gateway::usage::run(&arguments),
        Command::List {
            workspace,
            directory,
            flat,
            limit,
        } => {
            let params = ListFilesParams {
                path: Some(offline::absolute(&directory)?),
                recursive: !flat,
                limit,
                work_done_token: None,
            };
            let listed = Requests::offline(&workspace).call::<ListFiles>(params)?;
            if workspace.json {
                print_json(&listed)?;
            } else {
                // The sentence for agents names a tool of theirs. A name has no line break.
                let cut_short = format!("\n\n{CUT_SHORT}");
                print(&(listed.text.replace(&cut_short, LIST_CUT_SHORT) + "\n"))?;
            }
            Ok(DONE)
        }
        Command::Read {
            place,
            file,
            start,
            end,
            max_bytes,
        } => {
            let params = ReadFileParams {
                path: offline::absolute(&file)?,
                start_line: start,
                end_line: end,
                max_bytes,
                task_id: None,
            };
            let (read, _) = place.requests().read_file(params)?;
            if place.workspace.json {
                print_sorted_json(&read)?;
            } else {
                print(&read.text)?;
                if read.changed_on_disk {
                    print_message(
                        "this is the unsaved text of the editor; the file on disk has changed too",
                    );
                }
            }
            Ok(DONE)
        }
        Command::Tokens(arguments) => conversations::tokens(arguments),
        Command::History(command) => conversations::history(command),
        Command::Task(command) => conversations::task(command),
        Command::Compact(command) => conversations::compact(command),
        Command::Checkpoint(command) => checkpoints::run(command),
        Command::Schema { name } => schema::run(name.as_deref()),
        Command::Init(arguments) => init::run(&arguments),
        Command::Agents(command) => agents::run(command),
        Command::HelixConfig(arguments) => helix::run(&arguments),
        // Runs before the arguments are parsed.
        Command::Hook(_) => Ok(DONE),
        Command::Mcp(arguments) => mcp::run(arguments),
        Command::Log(arguments) => log::run(arguments),
        Command::Doctor { workspace } => doctor::run(&workspace),
        Command::Config { workspace } => config::run(&workspace),
        Command::Uninstall(arguments) => uninstall::run(&arguments),
        #[cfg(feature = "page")]
        Command::Ui(arguments) => page::run(arguments),
        Command::Request(request) => requests::named::run(request),
        Command::Demo => demo::run(),
        Command::Completions { shell } => completions::run(shell, Arguments::command()),
        Command::Man(arguments) => man::run(&arguments, Arguments::command()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use sightline_agents::wiring::commands;

    use super::Arguments;

    #[test]
    fn commands_that_agents_may_run_exist() {
        let mut program = Arguments::command();
        program.build();
        for names in commands::allowed() {
            let found = names
                .split(' ')
                .try_fold(&program, |command, name| command.find_subcommand(name));
            assert!(found.is_some(), "{names}");
        }
    }
}
