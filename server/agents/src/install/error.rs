//! Why a configuration file cannot be edited.

/// A file that cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not valid.
    #[error("the file is not valid {format}, line {line}: {message}")]
    Syntax {
        /// `JSON` or `TOML`.
        format: &'static str,
        /// The line, from 1.
        line: usize,
        /// The parser's message.
        message: String,
    },
    /// The agent reads JSON without comments only, and ignores the file.
    #[error(
        "invalid JSON, line {line}: {agent} ignores the file (comments are not allowed, nor are trailing commas)"
    )]
    Ignored {
        /// The agent's name for users.
        agent: &'static str,
        /// The line, from 1.
        line: usize,
    },
    /// This is not an object; names from the top.
    #[error("{} is not an object", object(.0))]
    NotAnObject(Vec<String>),
    /// This is not an array.
    #[error("`{0}` is not an array")]
    NotAnArray(&'static str),
    /// The table is written inline, so no table can be added below it.
    #[error("`{0}` is an inline table; write it as [{0}.NAME] tables")]
    InlineTable(&'static str),
    /// An entry with our name starts another program.
    #[error("`{0}` is there, but does not start `sightline mcp`; rename or remove it")]
    NotOurs(String),
    /// The file was not written by this program.
    #[error(
        "the file is there, but `sightline agents install` did not write it; rename or remove it"
    )]
    NotOurFile,
    /// A name is written twice in one object.
    #[error("`{0}` is written twice; remove one of them")]
    DuplicateName(String),
    /// The edit would change something else.
    #[error("the entry cannot be changed without changing others; change it by hand")]
    OtherChange,
    /// Why requests to models cannot go through the gateway.
    #[error("{0}")]
    Refused(String),
}

/// Names what is not an object.
fn object(names: &[String]) -> String {
    match names {
        [] => "the file".to_owned(),
        names => format!("`{}`", names.join(".")),
    }
}
