//! The command lines that agents run.

use crate::hook::quote;

/// Behind the test of a guarded line, before the line. Written by earlier versions.
const GUARD: &str = " >/dev/null || exit 0; exec ";
/// Behind the line of a hook that need not run.
const IGNORE_FAILURE: &str = " || exit 0";
/// Behind the line of a hook that must run, before the quoted answer if it does not.
const ANSWER_FAILURE: &str = " || printf '%s' '";

/// Begins a line for PowerShell.
pub(super) const CALL: &str = "& ";
/// Behind a line for PowerShell.
const SUCCEED: &str = "; exit 0";
/// In a line for PowerShell, before the quoted answer if the program does not run.
const OTHERWISE: &str = "; if (-not $?) { '";

/// The shell that an agent runs a line with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shell {
    /// A POSIX shell; on Windows, that of Git.
    Posix,
    /// PowerShell.
    PowerShell,
}

/// How agents start this program: by its absolute path, or by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(String);

impl Program {
    /// Creates it from a name or an absolute path.
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// Returns the name or path.
    pub fn path(&self) -> &str {
        &self.0
    }

    /// Returns whether a word is the name or a path of this program, also of another version.
    pub(super) fn is_named(&self, word: &str) -> bool {
        let name = |path: &str| path.rsplit(['/', '\\']).next().map(str::to_owned);
        name(word).is_some_and(|found| {
            matches!(found.as_str(), "sightline" | "sightline.exe") || Some(found) == name(&self.0)
        })
    }

    /// Returns whether this is a name that the agent looks up on its `PATH`.
    pub fn is_bare(&self) -> bool {
        !self.0.contains(['/', '\\'])
    }

    /// Returns whether a line only runs a hook or the MCP server of this program.
    pub fn is_own_line(&self, line: &str) -> bool {
        ["hook", "mcp"].iter().any(|command| {
            let words = [(*command).to_owned()];
            program_of(self, line, &words).is_some_and(|found| found == self.0)
        })
    }

    /// Returns a line for a shell that runs a hook. If the program is missing or fails, the line
    /// prints `refusal`; agents would run the tool otherwise. Its exit code is always 0, because agents
    /// stop prompts at others. `refusal` has no quotes.
    pub(super) fn hook_line(
        &self,
        shell: Shell,
        arguments: &[&str],
        refusal: Option<&str>,
    ) -> String {
        let words = arguments.iter().copied().map(quoted);
        let arguments = words.collect::<Vec<_>>().join(" ");
        match (shell, refusal) {
            (Shell::Posix, Some(refusal)) => {
                format!("{} {arguments}{ANSWER_FAILURE}{refusal}'", quoted(&self.0))
            }
            (Shell::Posix, None) => format!("{} {arguments}{IGNORE_FAILURE}", quoted(&self.0)),
            (Shell::PowerShell, refusal) => {
                let program = self.0.replace('\'', "''");
                let answer =
                    refusal.map_or_else(String::new, |refusal| format!("{OTHERWISE}{refusal}' }}"));
                format!("{CALL}'{program}' {arguments}{answer}{SUCCEED}")
            }
        }
    }
}

/// Returns the program of a line that runs only this program with arguments that begin with `words`,
/// as written by this or an earlier version.
pub(super) fn program_of(program: &Program, line: &str, words: &[String]) -> Option<String> {
    let line = line.trim();
    if let Some(line) = line.strip_prefix(CALL) {
        return program_of_call(program, line.strip_suffix(SUCCEED)?, words);
    }
    let line = match (line.strip_suffix(IGNORE_FAILURE), line.strip_suffix('\'')) {
        (Some(line), _) => line,
        // Nothing follows the quoted answer.
        (None, Some(rest)) => match rest.rsplit_once(ANSWER_FAILURE) {
            Some((line, answer)) if !answer.contains('\'') => line,
            _ => line,
        },
        (None, None) => line,
    };
    let line = match line.split_once(GUARD) {
        // The guard tests the program of the line, and nothing else.
        Some((test, line)) => {
            let rest = line.strip_prefix(test.strip_prefix("command -v ")?)?;
            rest.starts_with(' ').then_some(line)?
        }
        None => line,
    };
    let (word, arguments) = split(program, line)?;
    runs_only(arguments, words).then_some(word)
}

/// [`program_of`] for a line of PowerShell, without its begin and end.
fn program_of_call(program: &Program, line: &str, words: &[String]) -> Option<String> {
    let line = match line.split_once(OTHERWISE) {
        // Nothing follows the quoted answer.
        Some((line, answer)) => {
            let answer = answer.strip_suffix("' }")?;
            (!answer.contains('\'')).then_some(line)?
        }
        None => line,
    };
    let (word, arguments) = line.strip_prefix('\'')?.rsplit_once("' ")?;
    let is_one_word = !word.replace("''", "").contains('\'');
    let word = word.replace("''", "'");
    (is_one_word && program.is_named(&word) && runs_only(arguments, words)).then_some(word)
}

/// Returns whether arguments begin with `words`, and no other command follows.
fn runs_only(arguments: &str, words: &[String]) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_".contains(c);
    arguments
        .strip_prefix(words.join(" ").as_str())
        .is_some_and(|rest| {
            rest.chars().all(is_plain) && (rest.is_empty() || rest.starts_with(' '))
        })
}

/// Splits a line into our program, without quotes, and its arguments.
fn split<'a>(program: &Program, line: &'a str) -> Option<(String, &'a str)> {
    let line = line.trim();
    let (word, arguments) = match line.strip_prefix('\'') {
        // A quote in the path is written as `'\''`.
        Some(rest) => {
            let (word, arguments) = rest.rsplit_once("' ")?;
            let is_one_word = !word.replace(r"'\''", "").contains('\'');
            (is_one_word.then(|| word.replace(r"'\''", "'"))?, arguments)
        }
        None if line.starts_with('"') => {
            let (word, arguments) = line.strip_prefix('"')?.split_once("\" ")?;
            let is_one_word = !word.contains(['"', '\\', '$', '`']);
            (is_one_word.then(|| word.to_owned())?, arguments)
        }
        None => {
            let (word, arguments) = line.split_once(' ')?;
            (
                word.chars().all(is_plain).then(|| word.to_owned())?,
                arguments,
            )
        }
    };
    program
        .is_named(&word)
        .then(|| (word, arguments.trim_start()))
}

/// Returns whether a shell reads a character as it is.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c)
}

fn quoted(word: &str) -> String {
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    quote(word)
}
