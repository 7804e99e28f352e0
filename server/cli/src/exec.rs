//! `sightline exec`: runs a command that cannot open denied files.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    process::Command,
};

use sightline_exec::{CannotHide, HiddenPath, hidden_paths};

use sightline_base::{escape::one_line, path::Roots};
use sightline_engine::{error::Error, session::Snapshot};
use sightline_protocol::error::ErrorKind;

use super::{Workspace, offline, print_message};

/// Nothing was run, because files cannot be hidden.
const CANNOT_HIDE: i32 = 125;
/// As of shells: the command cannot be executed.
const NOT_EXECUTABLE: i32 = 126;
/// As of shells: the command was not found.
const NOT_FOUND: i32 = 127;

#[derive(clap::Args)]
pub(super) struct Exec {
    /// Workspace folder.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Take the only argument as a command line for `sh -c`.
    #[arg(long)]
    shell: bool,
    /// Command and its arguments.
    #[arg(
        value_name = "CMD",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

/// Replaces this process by the command. Returns an exit code if that fails.
pub(super) fn run(exec: Exec) -> i32 {
    let mut command = match command_words(&exec).and_then(|words| prepare(exec.root, &words)) {
        Ok(command) => command,
        Err(error) => {
            print_message(&format!("nothing was run: {}", error.message));
            return CANNOT_HIDE;
        }
    };
    let error = execute(&mut command);
    let program = one_line(&command.get_program().to_string_lossy()).into_owned();
    print_message(&match error.kind() {
        io::ErrorKind::NotFound if !program.contains('/') => {
            format!("{program}: command not found")
        }
        _ => format!("cannot run {program}: {error}"),
    });
    if error.kind() == io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_EXECUTABLE
    }
}

fn command_words(exec: &Exec) -> Result<Vec<OsString>, Error> {
    match &exec.command[..] {
        [line] if exec.shell => Ok(vec!["sh".into(), "-c".into(), line.clone()]),
        _ if exec.shell => Err(Error::invalid(
            "--shell takes one argument, the command line; quote it".to_owned(),
        )),
        words => Ok(words.to_vec()),
    }
}

/// Hides the denied files from this process, unless the user's settings show them to the command.
fn prepare(root: Option<PathBuf>, words: &[OsString]) -> Result<Command, Error> {
    let workspace = Workspace {
        root,
        storage: None,
        json: false,
    };
    let session = offline::session(&workspace)?.snapshot();
    if is_visible_to(&session, words) {
        return Ok(command(words));
    }
    let unavailable = |error: CannotHide| Error::new(ErrorKind::Unsupported, error.to_string());
    let roots = match workspace.root {
        Some(_) => session.roots().to_vec(),
        // A repository in a project hides what the project denies, too.
        None => offline::roots_above(&offline::current()?),
    };
    let secrets = session.settings.access.secrets;
    let rules = session
        .access
        .get()
        .updated(Roots::new(roots).into(), Vec::new(), secrets);
    let hidden = hidden_paths(&rules.view().0).map_err(unavailable)?;
    hidden_from(words, &hidden).map_err(unavailable)
}

#[cfg(not(target_os = "macos"))]
fn hidden_from(words: &[OsString], hidden: &[HiddenPath]) -> Result<Command, CannotHide> {
    sightline_exec::hide(hidden)?;
    Ok(command(words))
}

/// Never tried.
#[cfg(target_os = "macos")]
fn hidden_from(words: &[OsString], hidden: &[HiddenPath]) -> Result<Command, CannotHide> {
    let mut command = Command::new("/usr/bin/sandbox-exec");
    command
        .arg("-p")
        .arg(sightline_exec::macos_profile(hidden))
        .args(words);
    Ok(command)
}

fn command(words: &[OsString]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Replaces this process by a command. Returns why that failed.
#[cfg(unix)]
pub(super) fn execute(command: &mut Command) -> io::Error {
    std::os::unix::process::CommandExt::exec(command)
}

#[cfg(not(unix))]
pub(super) fn execute(_: &mut Command) -> io::Error {
    io::Error::from(io::ErrorKind::Unsupported)
}

/// Returns whether the words start with those of an entry of `access.visibleTo`. A command line
/// must be one simple command without quotes.
fn is_visible_to(session: &Snapshot, words: &[OsString]) -> bool {
    let words: Option<Vec<&str>> = match words {
        [shell, option, line] if shell == OsStr::new("sh") && option == OsStr::new("-c") => {
            line.to_str().and_then(simple_words)
        }
        words => words.iter().map(|word| word.to_str()).collect(),
    };
    let entries = session.settings.access.visible_to.iter();
    let mut entries = entries.map(|entry| entry.split_whitespace().collect::<Vec<_>>());
    words.is_some_and(|words| entries.any(|entry| !entry.is_empty() && words.starts_with(&entry)))
}

/// Splits a line that every shell splits at its blanks and nowhere else: without quotes, lists,
/// pipes, substitutions, redirections and patterns.
fn simple_words(line: &str) -> Option<Vec<&str>> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _-./:=@%+,".contains(&byte);
    line.bytes()
        .all(is_plain)
        .then(|| line.split(' ').filter(|word| !word.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_simple_commands_are_visible_to() {
        assert_eq!(
            simple_words("npm  run dev -- --port=3000").map(|words| words.len()),
            Some(5)
        );
        for line in [
            "npm run dev; cat .env",
            "npm run dev | tee x",
            "npm run dev && cat .env",
            "npm run dev\ncat .env",
            "npm run dev $(cat .env)",
            "npm run dev `cat .env`",
            "npm run dev < .env",
            "npm run dev &",
            "npm run 'dev'",
            "npm run dev *",
            "npm run dev {a,b}",
            "npm run dev ~",
            "(npm run dev)",
            "npm run dev # x",
            "! npm run dev",
            "npm run dev\\ncat",
        ] {
            assert_eq!(simple_words(line), None, "{line}");
        }
    }
}
