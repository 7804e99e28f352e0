//! Output of commands: results on stdout, messages and errors on stderr.

use std::{
    ffi::OsString,
    io::{self, Write},
};

use anstream::ColorChoice;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;
use sightline_agents::wiring::own_arguments;
use sightline_engine::error::Error;
use sightline_protocol::error::ErrorKind;

use super::{DONE, Workspace};

/// When to use colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// At a terminal, unless `NO_COLOR` is set; in pipes with `FORCE_COLOR` or `CLICOLOR_FORCE`.
    Auto,
    /// Also in pipes and files.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Applies the choice to all output.
    pub(super) fn apply(self) {
        let choice = match self {
            Self::Auto if is_forced() => ColorChoice::Always,
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// Returns whether `FORCE_COLOR` asks for colors in pipes. `NO_COLOR` precedes it; `CLICOLOR` and
/// `CLICOLOR_FORCE` are known to the library.
fn is_forced() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("FORCE_COLOR")
        && std::env::var_os("FORCE_COLOR").is_none_or(|value| value != "0")
        && !is_set("NO_COLOR")
}

impl From<Color> for clap::ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto if is_forced() => Self::Always,
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

fn options(written: &[OsString]) -> impl Iterator<Item = &str> {
    own_arguments(written.iter().skip(1).map(|argument| argument.to_str()))
}

/// Returns whether `--json` is given, also if the arguments cannot be parsed.
pub(super) fn wants_json(written: &[OsString]) -> bool {
    options(written).any(|argument| argument == "--json")
}

/// Returns the value of `--color`, which also applies to help and errors of the argument parser.
pub(super) fn color_of(written: &[OsString]) -> Color {
    let mut rest = options(written);
    let mut color = Color::Auto;
    while let Some(argument) = rest.next() {
        let value = match argument {
            "--color" => rest.next(),
            _ => argument.strip_prefix("--color="),
        };
        let known = value.and_then(|value| Color::from_str(value, false).ok());
        color = known.unwrap_or(color);
    }
    color
}

/// Prints a result as JSON.
pub(super) fn print_json(result: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(result).map_err(internal)?;
    print(&format!("{text}\n"))
}

/// Prints a result as JSON, with sorted fields.
pub(super) fn print_sorted_json(result: &impl Serialize) -> Result<(), Error> {
    print_json(&serde_json::to_value(result).map_err(internal)?)
}

pub(super) fn print(text: &str) -> Result<(), Error> {
    print_to(io::stdout().lock(), text.as_bytes())
}

/// Prints text with colors, which are stripped if stdout is not a terminal.
pub(super) fn print_styled(text: &str) -> Result<(), Error> {
    print_to(anstream::stdout().lock(), text.as_bytes())
}

/// Prints a result as JSON, or as text with colors. Returns the exit code of success.
pub(super) fn print_as<R: Serialize>(
    workspace: &Workspace,
    result: &R,
    text: impl FnOnce(&R) -> String,
) -> Result<i32, Error> {
    if workspace.json {
        print_json(result)?;
    } else {
        print_styled(&text(result))?;
    }
    Ok(DONE)
}

/// Writes to an output stream. A closed pipe is not an error.
pub(super) fn print_to(mut output: impl Write, bytes: &[u8]) -> Result<(), Error> {
    let written = output.write_all(bytes).and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::storage(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

pub(super) fn print_message(message: &str) {
    let _ = writeln!(io::stderr(), "sightline: {message}");
}

/// Prints an error as a message, or with `--json` as an object on one line.
pub(super) fn print_error(error: &Error, is_json: bool) {
    let message = in_words_of_the_command_line(&error.message);
    if !is_json {
        return print_message(&message);
    }
    let mut fields = json!({ "kind": error.kind, "message": message });
    if let Some(path) = &error.path {
        fields["path"] = json!(path);
    }
    if let Some(rule) = &error.rule {
        fields["rule"] = json!(rule);
    }
    let _ = writeln!(io::stderr(), "{}", json!({ "error": fields }));
}

/// Returns the message of the argument parser, without the usage.
pub(super) fn usage_message(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let end = text.find("\n\n").unwrap_or(text.len());
    let lines = text[..end].lines().map(str::trim);
    let message = lines.collect::<Vec<_>>().join(" ");
    message
        .strip_prefix("error: ")
        .unwrap_or(&message)
        .to_owned()
}

/// Removes the names of the protocol from a message: the user ran a command.
pub(super) fn in_words_of_the_command_line(message: &str) -> String {
    let message = match message.split_once(": ") {
        Some((method, rest)) if method.starts_with("sightline/") && !method.contains(' ') => rest,
        _ => message,
    };
    message
        .replace(
            "`confirmLarge`, or --confirm-large on the command line",
            "--confirm-large",
        )
        .replace("malformed params", "malformed JSON")
        .replace(
            "; list the checkpoints to see their ids",
            " (use the name of a turn, at least 4 digits of an id, or `last`); `sightline checkpoint list` shows all",
        )
        .replace(
            "; list the tasks to see their ids",
            "; `sightline task list` shows all",
        )
}

pub(super) fn internal(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_before_the_arguments_are_parsed() {
        let written =
            |text: &str| -> Vec<OsString> { text.split(' ').map(OsString::from).collect() };
        assert!(wants_json(&written("sightline list --json")));
        assert!(!wants_json(&written("sightline read -- --json")));
        for (text, color) in [
            ("sightline list", Color::Auto),
            ("sightline --color never list", Color::Never),
            ("sightline list --color=always", Color::Always),
            ("sightline list --color", Color::Auto),
            ("sightline list --color=pink", Color::Auto),
            ("sightline read -- --color=never", Color::Auto),
        ] {
            assert_eq!(color_of(&written(text)), color, "{text}");
        }
    }

    #[test]
    fn messages_do_not_name_the_protocol() {
        for (message, shown) in [
            (
                "sightline/readFile: missing field `path`",
                "missing field `path`",
            ),
            ("cannot read a: b", "cannot read a: b"),
            (
                "confirm the size (`confirmLarge`, or --confirm-large on the command line)",
                "confirm the size (--confirm-large)",
            ),
        ] {
            assert_eq!(in_words_of_the_command_line(message), shown);
        }
    }
}
