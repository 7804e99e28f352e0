//! The command lines that agents run.

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

    /// Returns a line for a POSIX shell.
    pub(super) fn shell_line(&self, arguments: &[String]) -> String {
        let words = std::iter::once(&self.0).chain(arguments);
        words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// Returns a line for a POSIX shell that does nothing if the program is missing.
    pub(super) fn guarded(&self, arguments: &[String]) -> String {
        let program = quoted(&self.0);
        let line = self.shell_line(arguments);
        format!("command -v {program} >/dev/null || exit 0; exec {line}")
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
