//! The commands of our own program that agents may run, and commands of other programs that would
//! remove or replace it.

use sightline_base::words::is_one_of;

use crate::{
    Agent,
    install::{SWITCH_VARIABLES, VARIABLES},
};

/// Name of our program, of its packages and of our entries.
pub const PROGRAM: &str = "sightline";

/// What agents may run: a command, and after it more words or none. Everything else is for the user,
/// also commands that do not exist yet.
const ALLOWED: &[(&str, Rest)] = &[
    ("access", Rest::Any),
    ("agents check", Rest::Any),
    ("agents status", Rest::Any),
    ("checkpoint create", Rest::Any),
    ("checkpoint diff", Rest::Any),
    ("checkpoint list", Rest::Any),
    ("checkpoint preview", Rest::Any),
    ("checkpoint show", Rest::Any),
    ("checkpoint stats", Rest::Any),
    ("checkpoint verify", Rest::Any),
    ("compact plan", Rest::Any),
    ("completions", Rest::Any),
    ("config", Rest::Options),
    ("demo", Rest::Any),
    ("doctor", Rest::Any),
    ("environment", Rest::Any),
    // The command that it runs is judged separately.
    ("exec", Rest::Any),
    ("help", Rest::Any),
    ("history truncate", Rest::Any),
    ("hook", Rest::Any),
    ("list", Rest::Any),
    ("man", Rest::Any),
    // What the servers printed may contain secrets, so `mcp log` is for the user.
    ("mcp list", Rest::Any),
    ("mcp", Rest::ReadOnly),
    ("read", Rest::Any),
    ("schema", Rest::Any),
    ("task export", Rest::Any),
    ("task list", Rest::Any),
    ("task resume", Rest::Any),
    ("task show", Rest::Any),
    ("tokens", Rest::Any),
    ("usage", Rest::Any),
];
/// First names of other commands. After a program that may not run its words, only known names count.
const FOR_USERS: &str = "gateway helix-config init request ui uninstall";
/// Options that make any command print something only.
const PRINTING: &[&str] = &["--help", "-h", "--version", "-V"];
/// Programs that install and remove other programs.
const PACKAGE_MANAGERS: &str = "apt apt-get brew bun cargo code dnf dpkg npm pacman pip pip3 pipx pnpm rpm scoop uv winget yarn";
/// Their subcommands that remove or replace a program.
const REMOVALS: &str = "add erase i install purge r remove rm un uninstall unlink upgrade --remove --purge --uninstall-extension -r";
/// Words before one that names a folder or a package of a project, not what is installed or removed.
const OF_PROJECT: &str = "--cwd --dir --filter --manifest-path --package --prefix --requirement --workspace -C -F \
     -p -r -w workspace";
/// Subcommands of agents that remove, replace or switch off an entry.
const ENTRY_CHANGES: &str = "add add-json delete disable remove rm uninstall unlink";

/// Options with which agents read other settings, or none.
const SWITCHES: &[(Agent, &[&str])] = &[
    (
        Agent::Claude,
        &["--settings", "--setting-sources", "--bare", "--safe-mode"],
    ),
    (Agent::Codex, &["--profile", "-p", "--ignore-user-config"]),
    (Agent::Qwen, &["--bare", "--safe-mode"]),
    (Agent::Opencode, &["--pure"]),
    (Agent::Cline, &["--config", "--data-dir"]),
    (Agent::Copilot, &["--config-dir"]),
];
/// Variables that move the home directory.
const HOMES: &[&str] = &["HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"];
/// Variables with other settings of agents.
const SETTINGS: [&str; 2] = ["CLINE_SANDBOX", "OPENCODE_CONFIG_CONTENT"];

/// The words after an allowed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Any,
    /// Options and their values. Other words are commands below it.
    Options,
    /// As `Options`, with `--read-only` among them.
    ReadOnly,
}

/// Returns the commands of our program that agents may run.
pub fn allowed() -> impl Iterator<Item = &'static str> {
    ALLOWED.iter().map(|(command, _)| *command)
}

/// Returns why agents may not run a program with these words, the first of which is its name. `None` if
/// they may. A word is `None` if it is not known. `is_certain`: the program runs; otherwise these are words
/// of another one, which may run them.
pub fn refusal(words: &[Option<&str>], is_certain: bool) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let program = program.map(name)?;
    let has = |list: &str| arguments.iter().flatten().any(|word| is_one_of(word, list));
    let names_us = || {
        words.windows(2).any(|pair| {
            pair[1].is_some_and(is_our_package)
                && !pair[0].is_some_and(|word| is_one_of(word, OF_PROJECT))
        })
    };
    if program == PROGRAM {
        return own_refusal(arguments, is_certain);
    }
    if is_one_of(&program, PACKAGE_MANAGERS) && has(REMOVALS) && names_us() {
        return Some(format!(
            "`{}` would remove or replace the program that hides files from agents. The user can run it at a \
             terminal",
            line(words)
        ));
    }
    if matches!(&*program, "env" | "sudo" | "doas") {
        return moved_refusal(words);
    }
    let agent = agent_of(&program)?;
    let options = SWITCHES.iter().filter(|(known, _)| *known == agent);
    let mut options = options.flat_map(|(_, options)| *options);
    if options.any(|option| {
        arguments
            .iter()
            .flatten()
            .any(|word| is_option(word, option))
    }) || has("config") && has("set add remove unset")
        || agent == Agent::Codex && overrides_hooks(arguments)
    {
        return Some(format!(
            "`{}` would start {} with other settings, perhaps without the hooks that hide files from agents. The \
             user can run it at a terminal",
            line(words),
            agent.title()
        ));
    }
    let switches_off = has("hook hooks") && has("disable");
    (has(ENTRY_CHANGES) && (names_us() || switches_off)).then(|| {
        format!(
            "`{}` would disconnect {} from Sightline, which hides files from agents. The user can run it at a \
             terminal",
            line(words),
            agent.title()
        )
    })
}

/// Returns the agent that a program or a package is, such as `claude-code`.
fn agent_of(program: &str) -> Option<Agent> {
    Agent::ALL.into_iter().find(|agent| {
        let rest = program.strip_prefix(agent.name());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

/// Returns why agents may not run an agent with variables that make it read other settings.
fn moved_refusal(words: &[Option<&str>]) -> Option<String> {
    let at = words
        .iter()
        .position(|word| word.is_some_and(|word| agent_of(&name(word)).is_some()))?;
    let moves = |word: &str| {
        let (variable, _) = word.split_once('=')?;
        let is_known = HOMES.contains(&variable)
            || is_one_of(variable, VARIABLES)
            || SETTINGS.contains(&variable)
            || SWITCH_VARIABLES.iter().any(|(_, known)| *known == variable);
        is_known.then(|| variable.to_owned())
    };
    let clears = |word: &str| {
        let unset = word.trim_start_matches("--unset=").trim_start_matches("-u");
        let is_clear = [
            "-i",
            "-",
            "--ignore-environment",
            "-H",
            "--set-home",
            "--login",
        ];
        (is_clear.contains(&word) || HOMES.contains(&unset)).then(|| word.to_owned())
    };
    let mut before = words[..at].iter().flatten();
    let variable = before.find_map(|word| moves(word).or_else(|| clears(word)))?;
    Some(format!(
        "`{variable}` would start {} with other settings, perhaps without the hooks that hide files from agents. \
         The user can run it at a terminal",
        words[at].unwrap_or_default()
    ))
}

/// Returns whether a word is an option, in any of the spellings that agents accept.
fn is_option(word: &str, option: &str) -> bool {
    let plain = |text: &str| text.replace('-', "").to_lowercase();
    let name = word.split('=').next().unwrap_or(word);
    name.starts_with('-') && (name == option || option.len() > 2 && plain(name) == plain(option))
}

/// Returns whether words of Codex switch hooks off: `-c features.hooks=false`, `--disable hooks`.
fn overrides_hooks(arguments: &[Option<&str>]) -> bool {
    let is_switch = |word: &str| {
        word.starts_with("-c") || word.starts_with("--config") || word.starts_with("--disable")
    };
    let mut before = Some("");
    arguments.iter().any(|word| {
        let follows = before.is_none_or(is_switch);
        before = *word;
        word.is_none_or(|word| {
            (follows || is_switch(word)) && (word.contains("hooks") || word.contains("features"))
                || word == "disable"
        })
    })
}

fn own_refusal(arguments: &[Option<&str>], is_certain: bool) -> Option<String> {
    // `cargo run -p NAME -- COMMAND`
    let end = arguments.iter().position(|word| *word == Some("--"));
    let arguments = match end.filter(|_| !is_certain) {
        Some(end) => &arguments[end + 1..],
        None => arguments,
    };
    if may_run(arguments) || !is_certain && !is_command(arguments) {
        return None;
    }
    let words: Vec<Option<&str>> = std::iter::once(Some(PROGRAM))
        .chain(arguments.iter().copied())
        .collect();
    Some(format!(
        "`{0}` is for the user, not for agents. The user can run it at a terminal: {0}",
        line(&words)
    ))
}

/// Returns whether words begin with a known command of our program. `...` may be any.
fn is_command(arguments: &[Option<&str>]) -> bool {
    let is_option = |word: &&&str| word.starts_with('-');
    let first = arguments.iter().flatten().find(|word| !is_option(word));
    let mut known = ALLOWED
        .iter()
        .filter_map(|(command, _)| command.split(' ').next());
    first.is_some_and(|first| {
        is_one_of(first, FOR_USERS) || *first == "..." || known.any(|known| known == *first)
    }) || super::serves_editor(arguments.iter().copied())
}

/// Returns whether our program, started with these arguments by an agent, needs a person at a terminal.
/// Servers do not: editors and agents start them.
pub fn needs_person(arguments: &[&str]) -> bool {
    let words: Vec<Option<&str>> = arguments.iter().copied().map(Some).collect();
    let is_server = match words.as_slice() {
        [] => true,
        [Some("mcp"), rest @ ..] => rest.first() == Some(&Some("wrap")) || are_options(rest),
        words => super::serves_editor(words.iter().copied()),
    };
    !is_server && !may_run(&words)
}

/// Returns whether agents may run our program with these arguments. Without a command it is a server,
/// which restores and deletes on request.
fn may_run(arguments: &[Option<&str>]) -> bool {
    // `--color WHEN` is the only option before a command.
    let arguments = match arguments {
        [Some("--color"), _, rest @ ..] => rest,
        [Some(color), rest @ ..] if color.starts_with("--color=") => rest,
        arguments => arguments,
    };
    if arguments.first() != Some(&Some("exec")) {
        if prints(arguments) {
            return true;
        }
        if super::serves_editor(arguments.iter().copied()) {
            return false;
        }
    }
    ALLOWED.iter().any(|(command, rest)| {
        let names: Vec<Option<&str>> = command.split(' ').map(Some).collect();
        let more = arguments.strip_prefix(&*names);
        more.is_some_and(|more| match rest {
            Rest::Any => true,
            Rest::Options => are_options(more),
            Rest::ReadOnly => are_options(more) && more.contains(&Some("--read-only")),
        })
    })
}

/// Returns whether an option directly after the names of a command makes it print something only.
fn prints(arguments: &[Option<&str>]) -> bool {
    let is_name = |word: &str| {
        word.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    let mut words = arguments.iter();
    let after = words.find(|word| word.is_none_or(|word| word.starts_with('-') || !is_name(word)));
    matches!(after, Some(Some(word)) if PRINTING.contains(word))
}

/// Returns whether all words are options or their values.
fn are_options(words: &[Option<&str>]) -> bool {
    let mut takes_value = false;
    words.iter().all(|word| {
        let is_option = word.is_some_and(|word| word.starts_with("--") && word.len() > 2);
        let fits = is_option || takes_value;
        takes_value = is_option && word.is_some_and(|word| !word.contains('='));
        fits
    })
}

/// Returns whether a word names our package: `sightline@1`, `tap/sightline`, `publisher.sightline`, or its
/// repository.
fn is_our_package(word: &str) -> bool {
    let word = word.to_lowercase();
    let scope = word.strip_prefix('@').unwrap_or(&word);
    let name = scope.split(['@', '=', '<', '>', '~', '[']).next();
    name.and_then(|name| name.trim_end_matches(".git").rsplit(['/', '.', ':']).next())
        == Some(PROGRAM)
}

/// Returns the name of a program, without folder, version and extension.
fn name(word: &str) -> String {
    let word = word.to_lowercase();
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    // `npx NAME@VERSION`
    let name = name.split('@').next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name).to_owned()
}

/// Returns words as a command line.
fn line(words: &[Option<&str>]) -> String {
    let words = words.iter().map(|word| word.unwrap_or("..."));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{needs_person, refusal};

    fn refuses(line: &str) -> bool {
        let words: Vec<Option<&str>> = line
            .split(' ')
            .map(|word| Some(word).filter(|word| *word != "$x"))
            .collect();
        refusal(&words, true).is_some()
    }

    #[test]
    fn only_listed_commands_of_our_program_run() {
        for line in [
            "sightline --version",
            "sightline --help",
            "sightline exec rm --help",
            "sightline agents uninstall --help",
            "/opt/bin/sightline access .env",
            "Sightline.exe read a --json",
            "sightline --color never checkpoint list",
            "sightline checkpoint create --label x",
            "sightline read $x",
            "sightline mcp --root . --tools a,b --read-only",
            "sightline config --json",
            "sightline task show uninstall",
            "sightline task export a --format markdown",
            "sightline access --command uninstall",
            "sightline mcp list --json",
            "sightline usage --since 2026-11-30",
        ] {
            assert!(!refuses(line), "{line}");
        }
        for line in [
            "sightline uninstall --data --yes",
            "sightline agents uninstall --yes",
            "sightline agents install --only mcp --yes",
            "sightline agents",
            "sightline $x",
            "sightline checkpoint $x",
            "sightline checkpoint restore last -y",
            "sightline checkpoint prune --yes",
            "sightline checkpoint delete a",
            "sightline task delete a",
            "sightline init",
            "sightline config set a b",
            "sightline mcp remove a",
            "sightline mcp add a -- b",
            "sightline mcp adopt a",
            "sightline mcp trust a",
            "sightline mcp enable a",
            "sightline mcp wrap -- cat .env",
            "sightline mcp supervise --parent 1 -- cat .env",
            "sightline mcp --read-only trust a",
            "sightline mcp --root . add a",
            "sightline new-command",
            "sightline",
            "sightline --color never",
            "sightline --stdio",
            "sightline access --stdio",
            "sightline mcp",
            "sightline mcp --root .",
            "sightline uninstall --yes --help",
            "sightline@1 uninstall",
            "sightline --color never uninstall",
            "sightline uninstall -- --help",
            "/opt/bin/sightline uninstall",
        ] {
            assert!(refuses(line), "{line}");
        }
    }

    /// After a program that may not run its words.
    #[test]
    fn words_of_other_programs_count_if_they_are_our_commands() {
        let refuses = |line: &str| {
            let words: Vec<Option<&str>> = line.split(' ').map(Some).collect();
            refusal(&words, false).is_some()
        };
        for line in [
            "sightline agents uninstall",
            "sightline -- checkpoint prune",
            "sightline --release -- uninstall --yes",
            "sightline init",
            "sightline mcp",
            "sightline --stdio",
            "sightline ...",
        ] {
            assert!(refuses(line), "{line}");
        }
        for line in [
            "sightline",
            "sightline .",
            "sightline -- --help",
            "sightline -- access .env",
            "sightline add lodash",
            "sightline run build",
        ] {
            assert!(!refuses(line), "{line}");
        }
    }

    #[test]
    fn below_an_agent_only_listed_commands_and_servers_need_no_person() {
        let needs = |line: &str| needs_person(&line.split_whitespace().collect::<Vec<_>>());
        for line in [
            "",
            "--stdio",
            "mcp",
            "mcp --root . --tools a",
            "mcp wrap -- npx server --stdio",
            "checkpoint list",
            "hook",
        ] {
            assert!(!needs(line), "{line}");
        }
        for line in [
            "checkpoint undo --yes",
            "mcp remove a",
            "init",
            "new-command",
        ] {
            assert!(needs(line), "{line}");
        }
    }

    #[test]
    fn removals_of_our_program_and_entries_are_for_the_user() {
        for line in [
            "cargo uninstall sightline",
            "cargo install sightline --version 0.0.1",
            "npm rm -g sightline",
            "pip uninstall -y sightline",
            "uv tool uninstall sightline",
            "brew uninstall sightline",
            "claude mcp remove sightline",
            "gemini mcp remove -s user sightline",
            "codex mcp add sightline -- true",
            "gemini hooks disable --all",
            "brew uninstall tap/sightline",
            "cargo install --git https://example.com/sightline.git",
            "code --uninstall-extension publisher.sightline",
        ] {
            assert!(refuses(line), "{line}");
        }
        for line in [
            "cargo install ripgrep",
            "cargo build -p sightline",
            "npm install lodash",
            "npm run sightline",
            "claude mcp list",
            "claude mcp remove github",
            "git rm sightline",
            "cargo add sightline-core",
            "cargo add serde -p sightline",
            "pip install -r sightline/requirements.txt",
            "npm install @sightline-labs/ui",
            "yarn workspace sightline add lodash",
        ] {
            assert!(!refuses(line), "{line}");
        }
    }

    #[test]
    fn agents_are_not_started_with_other_settings() {
        for line in [
            "claude --settings {} -p x",
            "claude -p x --settings=/tmp/a.json",
            "claude --setting-sources user",
            "claude --bare -p x",
            "claude --safe-mode",
            "claude config set disableAllHooks true",
            "claude-code@latest --settings x",
            "/opt/bin/claude config add -g hooks x",
            "codex -c features.hooks=false exec x",
            "codex exec -cfeatures.hooks=false x",
            "codex --config=features={} x",
            "codex --disable hooks",
            "codex features disable hooks",
            "codex exec --ignore-user-config x",
            "codex -p other",
            "qwen --safeMode",
            "qwen --bare -p x",
            "opencode run --pure x",
            "cline --config /tmp/x do",
            "env CLAUDE_CONFIG_DIR=/tmp/x claude -p x",
            "env HOME=/tmp claude",
            "sudo CODEX_HOME=/tmp codex exec x",
            "env OPENCODE_PURE=1 opencode run x",
            "env QWEN_CODE_SAFE_MODE=1 qwen -p x",
            "env CLINE_PLUGIN_IMPORT_TIMEOUT_MS=1 cline x",
            "env -i claude -p x",
            "env -u HOME claude -p x",
            "env --unset=HOME claude",
            "sudo -H claude -p x",
        ] {
            assert!(refuses(line), "{line}");
        }
        for line in [
            "claude -p x",
            "claude -p x --model opus --allowedTools Bash",
            "claude config list",
            "claude config get theme",
            "claude mcp list",
            "codex exec x",
            "codex exec -c model=x do",
            "codex features list",
            "gemini -p x",
            "qwen -p x",
            "opencode run x",
            "cline config",
            "env HOME=/tmp npm test",
            "env DEBUG=1 claude -p x",
        ] {
            assert!(!refuses(line), "{line}");
        }
    }

    #[test]
    fn a_refusal_names_the_command_for_a_terminal() {
        let words = ["sightline", "agents", "uninstall", "--yes"].map(Some);
        assert_eq!(
            refusal(&words, true).as_deref(),
            Some(
                "`sightline agents uninstall --yes` is for the user, not for agents. The user can run it at a \
                 terminal: sightline agents uninstall --yes"
            )
        );
    }
}
