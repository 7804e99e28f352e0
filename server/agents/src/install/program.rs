//! The command lines that agents run.

/// Behind the test of a guarded line, before the line.
const GUARD: &str = " >/dev/null || exit 0; exec ";

/// How agents start this program: its name, if the search path has it, else its path.
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

    /// Returns a line for a POSIX shell.
    pub(super) fn shell_line(&self, arguments: &[String]) -> String {
        let words = std::iter::once(&self.0).chain(arguments);
        words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// Returns a line for a POSIX shell that does nothing if the program is missing.
    pub(super) fn guarded(&self, arguments: &[String]) -> String {
        let program = quoted(&self.0);
        let line = self.shell_line(arguments);
        format!("command -v {program}{GUARD}{line}")
    }
}

/// Returns whether a line runs only this program, with arguments that begin with `words`: as
/// written by [`Program::shell_line`] or [`Program::guarded`].
pub(super) fn runs(program: &Program, line: &str, words: &[String]) -> bool {
    let line = match line.split_once(GUARD) {
        // The guard tests the program of the line, and nothing else.
        Some((test, line)) => match test.strip_prefix("command -v ") {
            Some(word)
                if line
                    .strip_prefix(word)
                    .is_some_and(|rest| rest.starts_with(' ')) =>
            {
                line
            }
            _ => return false,
        },
        None => line,
    };
    let Some(arguments) = arguments(program, line) else {
        return false;
    };
    // No other command follows.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_".contains(c);
    arguments
        .strip_prefix(words.join(" ").as_str())
        .is_some_and(|rest| {
            rest.chars().all(is_plain) && (rest.is_empty() || rest.starts_with(' '))
        })
}

/// Splits a line into our program and its arguments, and returns these.
fn arguments<'a>(program: &Program, line: &'a str) -> Option<&'a str> {
    let line = line.trim();
    let (word, arguments) = match line.strip_prefix('\'') {
        // A quote in the path is written as `'\''`.
        Some(rest) => rest.rsplit_once("' ")?,
        None => line.split_once(' ')?,
    };
    let is_quoted = line.starts_with('\'');
    let is_one_word = if is_quoted {
        !word.replace(r"'\''", "").contains('\'')
    } else {
        word.chars().all(is_plain)
    };
    (is_one_word && program.is_named(word)).then(|| arguments.trim_start())
}

/// Returns whether a shell reads a character as it is.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c)
}

fn quoted(word: &str) -> String {
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
