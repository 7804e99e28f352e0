//! The command line: the server, and its features without an editor.
//!
//! Each feature builds the params of its request and calls the same handler the
//! wire does. Exit code: 0 done, 1 a negative answer, 2 bad use, 3 failure.

mod attached;
mod checkpoints;
mod conversations;
mod demo;
mod doctor;
mod helix;
mod man;
mod offline;
mod progress_bar;

use std::{
    borrow::Cow,
    io::{self, IsTerminal, PipeReader, PipeWriter, Write},
    path::PathBuf,
};

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::json;
use sightline_core::error::Error;
use sightline_protocol::{emit, error::ErrorKind};

use crate::{logging, main_loop, signals, version};

/// Done.
pub const DONE: i32 = 0;
/// A negative answer: denied, nothing to show.
pub const NEGATIVE: i32 = 1;
/// Bad use.
pub const BAD_USE: i32 = 2;
/// Failure.
pub const FAILURE: i32 = 3;

/// Gives any AI agent the editor's line of sight, and nothing it must not see.
///
/// Started by an editor (plainly, or with --stdio) this is a language server.
/// The commands below are the same features for hooks, scripts and editors that
/// can only run programs. Where a server runs for the workspace, `environment`,
/// `access` and `read` ask it; the others, and all without one, use the disk.
#[derive(Parser)]
#[command(
    name = "sightline",
    version,
    long_version = version::LONG_VERSION,
    after_help = AFTER_HELP
)]
struct Arguments {
    /// Serve LSP on standard input and output, whatever else is said (the
    /// default when input is no terminal).
    #[arg(long)]
    #[allow(dead_code, reason = "looked for before the arguments are parsed")]
    stdio: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

const AFTER_HELP: &str = "\
Exit code: 0 done, 1 a negative answer (denied, nothing to show), 2 bad use, 3 failure.
The workspace is the nearest folder upwards with a .clineignore or a .git, else the
current one; --root names another.

Examples:
  sightline environment --files         the block an agent would get now
  sightline access .env src/main.rs     may an agent see these?
  sightline access --command 'cat .env' may it run this?
  sightline tokens --model gpt-4o *.md  how much of its context do these take?
  sightline task list                   the conversations that are stored
  sightline checkpoint create           the workspace as it is, to come back to
  sightline demo                        a session with the real server, to look at";

#[derive(Subcommand)]
enum Command {
    /// Print the <environment_details> block.
    Environment {
        #[command(flatten)]
        workspace: Workspace,
        #[command(flatten)]
        live: attached::Attached,
        /// Add the file list, the workspace configuration and the tools found.
        #[arg(long)]
        files: bool,
        /// The agent's mode.
        #[arg(long, value_enum, default_value_t = ModeArgument::Act)]
        mode: ModeArgument,
        /// Entries of the file list at most.
        #[arg(long, value_name = "N", default_value_t = 200)]
        max_files: u32,
        /// A task, for its recently modified files (which stay undelivered).
        #[arg(long, value_name = "ID")]
        task: Option<String>,
    },
    /// Tell whether an agent may see paths, or run a command. Advice for
    /// commands, a boundary for paths.
    #[command(arg_required_else_help = true)]
    Access {
        #[command(flatten)]
        workspace: Workspace,
        #[command(flatten)]
        live: attached::Attached,
        /// Paths to judge.
        #[arg(value_name = "PATH", required_unless_present = "command")]
        paths: Vec<String>,
        /// A shell command line to judge.
        #[arg(long, value_name = "CMD")]
        command: Option<String>,
    },
    /// List files as an agent may see them.
    List {
        #[command(flatten)]
        workspace: Workspace,
        /// The folder to list.
        #[arg(value_name = "DIR", default_value = ".")]
        directory: String,
        /// Only the folder itself.
        #[arg(long)]
        flat: bool,
        /// Stop after this many entries.
        #[arg(long, value_name = "N", default_value_t = 200)]
        limit: u32,
    },
    /// Print a file, if an agent may see it.
    Read {
        #[command(flatten)]
        workspace: Workspace,
        #[command(flatten)]
        live: attached::Attached,
        /// The file.
        #[arg(value_name = "FILE")]
        file: String,
        /// First line, from 1.
        #[arg(long, value_name = "LINE")]
        start: Option<u64>,
        /// Last line, inclusive.
        #[arg(long, value_name = "LINE")]
        end: Option<u64>,
        /// Cut after this many bytes.
        #[arg(long, value_name = "N")]
        max_bytes: Option<u64>,
    },
    /// Count the tokens of files or of standard input.
    Tokens(conversations::Tokens),
    /// Decide what of a conversation is sent.
    #[command(subcommand)]
    History(conversations::History),
    /// StoredTask conversations.
    #[command(subcommand)]
    Task(conversations::Task),
    /// Replace the older part of a conversation by a summary.
    #[command(subcommand)]
    Compact(conversations::Compact),
    /// Checkpoints of the workspace: taken, compared, restored.
    #[command(subcommand)]
    Checkpoint(checkpoints::Checkpoint),
    /// Print a JSON schema: protocol, settings, methods, a type or a method.
    Schema {
        /// What to print; without it, the names there are.
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Put the server beside those Helix starts already: print what belongs into
    /// languages.toml and config.toml, or merge it in.
    HelixConfig(helix::HelixConfig),
    /// Check what the server needs on this machine, and say what to do.
    Doctor {
        #[command(flatten)]
        workspace: Workspace,
    },
    /// Play an editor session against the real server and show what it answers.
    Demo {
        /// A folder to play in, read-only; a scratch copy of a small sample when absent.
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// Print completions for a shell.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print a manual page, or write all of them into a folder.
    Man(man::Man),
}

/// Where to look, and how to print.
#[derive(clap::Args)]
struct Workspace {
    /// The workspace folder.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The data directory.
    #[arg(long, value_name = "DIR")]
    storage: Option<PathBuf>,
    /// Print the result object of the protocol.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModeArgument {
    Act,
    Plan,
}

/// Runs the program; its exit code.
pub fn main() -> i32 {
    signals::ignore_file_size_signal();
    // Editors append this to whatever else they were told to pass.
    if std::env::args_os()
        .skip(1)
        .any(|argument| argument == "--stdio")
    {
        return serve();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no mistakes.
            let _ = error.print();
            return if error.use_stderr() { BAD_USE } else { DONE };
        }
    };
    logging::start();
    let Some(command) = arguments.command else {
        if io::stdin().is_terminal() {
            let _ = Arguments::command().print_help();
            return DONE;
        }
        return serve();
    };
    run(command).unwrap_or_else(|error| {
        complain(&error.message);
        match error.kind {
            ErrorKind::AccessDenied => NEGATIVE,
            ErrorKind::InvalidParams => BAD_USE,
            _ => FAILURE,
        }
    })
}

fn serve() -> i32 {
    logging::start();
    let options = main_loop::Options {
        watch_parent: true,
        ..main_loop::Options::default()
    };
    match streams() {
        Ok((input, output)) => main_loop::serve(input, output, options),
        Err(error) => {
            complain(&format!("the standard streams cannot be had: {error}"));
            FAILURE
        }
    }
}

/// The standard streams as they are: the library's own ones hold lines back.
#[cfg(unix)]
fn streams() -> io::Result<(PipeReader, PipeWriter)> {
    use std::os::fd::AsFd;
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

/// The standard streams as they are: the library's own ones hold lines back.
#[cfg(windows)]
fn streams() -> io::Result<(PipeReader, PipeWriter)> {
    use std::os::windows::io::AsHandle;
    let input = io::stdin().as_handle().try_clone_to_owned()?;
    let output = io::stdout().as_handle().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

fn run(command: Command) -> Result<i32, Error> {
    match command {
        Command::Environment {
            workspace,
            live,
            files,
            mode,
            max_files,
            task,
        } => {
            let params = json!({
                "includeFiles": files,
                "maxFiles": max_files,
                "mode": match mode { ModeArgument::Act => "act", ModeArgument::Plan => "plan" },
                "taskId": task,
                "consume": false,
            });
            let method = "sightline/environmentDetails";
            let (result, from) = live.call(&workspace, method, params)?;
            if from == attached::AnsweredBy::Disk && !live.offline {
                complain("no server runs for this workspace; this is from the disk");
            }
            print_result(&workspace, &result, |result| {
                format!("{}\n", text_of(result))
            })?;
            Ok(DONE)
        }
        Command::Access {
            workspace,
            live,
            paths,
            command,
        } => offline::access(&workspace, &live, &paths, command),
        Command::List {
            workspace,
            directory,
            flat,
            limit,
        } => {
            let params = json!({
                "path": offline::absolute(&directory)?,
                "recursive": !flat,
                "limit": limit,
            });
            // The entries may be very many, and only their text is printed.
            #[derive(Deserialize)]
            struct Text<'a> {
                #[serde(borrow)]
                text: Cow<'a, str>,
            }
            let params = conversations::without_nulls(params);
            let result = offline::call_text(&workspace, "sightline/listFiles", &params)?;
            if workspace.json {
                print_raw(&result)?;
            } else {
                let Text { text } = serde_json::from_str(&result).map_err(internal)?;
                print(&format!("{text}\n"))?;
            }
            Ok(DONE)
        }
        Command::Read {
            workspace,
            live,
            file,
            start,
            end,
            max_bytes,
        } => {
            let params = json!({
                "path": offline::absolute(&file)?,
                "startLine": start,
                "endLine": end,
                "maxBytes": max_bytes,
            });
            let (result, _) = live.call(&workspace, "sightline/readFile", params)?;
            print_result(&workspace, &result, |result| text_of(result).to_owned())?;
            Ok(DONE)
        }
        Command::Tokens(arguments) => conversations::tokens(arguments),
        Command::History(command) => conversations::history(command),
        Command::Task(command) => conversations::task(command),
        Command::Compact(command) => conversations::compact(command),
        Command::Checkpoint(command) => checkpoints::run(command),
        Command::Schema { name } => schema(name.as_deref()),
        Command::HelixConfig(arguments) => helix::run(&arguments),
        Command::Doctor { workspace } => doctor::run(&workspace),
        Command::Demo { folder } => demo::run(folder.as_deref()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "sightline", &mut script);
            print(&String::from_utf8_lossy(&script))?;
            Ok(DONE)
        }
        Command::Man(arguments) => man::run(&arguments, Arguments::command()),
    }
}

fn schema(name: Option<&str>) -> Result<i32, Error> {
    let Some(name) = name else {
        print(&format!(
            "{}\n",
            emit::schema_names().map_err(internal)?.join("\n")
        ))?;
        return Ok(DONE);
    };
    let Some(schema) = emit::schema(name).map_err(internal)? else {
        return Err(Error::invalid(format!(
            "there is no schema {name:?}; `sightline schema` lists the names"
        )));
    };
    print(&schema)?;
    Ok(DONE)
}

fn text_of(result: &serde_json::Value) -> &str {
    result["text"].as_str().unwrap_or_default()
}

fn print_result(
    workspace: &Workspace,
    result: &serde_json::Value,
    text: impl Fn(&serde_json::Value) -> String,
) -> Result<(), Error> {
    if workspace.json {
        return print(&format!("{result}\n"));
    }
    print(&text(result))
}

/// Prints a result as it is: messages in it stay as they were written.
fn print_raw(result: &str) -> Result<(), Error> {
    print(&format!("{result}\n"))
}

fn print(text: &str) -> Result<(), Error> {
    print_to(io::stdout().lock(), text.as_bytes())
}

/// Writes to standard output. A reader that has had enough is no failure.
fn print_to(mut output: impl Write, bytes: &[u8]) -> Result<(), Error> {
    let written = output.write_all(bytes).and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::storage(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "sightline: {message}");
}

fn internal(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, error.to_string())
}
