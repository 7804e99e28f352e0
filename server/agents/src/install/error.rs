//! Why a configuration file cannot be edited.

/// A file that cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The text is not valid.
    Syntax {
        /// `JSON` or `TOML`.
        format: &'static str,
        /// The line, from 1.
        line: usize,
        /// The parser's message.
        message: String,
    },
    /// The agent reads JSON without comments only, and ignores the file.
    Ignored {
        /// The agent's name for users.
        agent: &'static str,
        /// The line, from 1.
        line: usize,
    },
    /// This is not an object; names from the top.
    NotAnObject(Vec<String>),
    /// This is not an array.
    NotAnArray(&'static str),
    /// The table is written inline, so no table can be added below it.
    InlineTable(&'static str),
    /// An entry with our name starts another program.
    NotOurs(String),
    /// The file was not written by this program.
    NotOurFile,
    /// A name is written twice in one object.
    DuplicateName(String),
    /// The edit would change something else.
    OtherChange,
    /// Why requests to models cannot go through the gateway.
    Refused(String),
}

impl std::fmt::Display for EditError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Syntax {
                format,
                line,
                message,
            } => write!(f, "the file is not valid {format}, line {line}: {message}"),
            Self::Ignored { agent, line } => write!(
                f,
                "invalid JSON, line {line}: {agent} ignores the file (comments are not allowed, nor are trailing commas)"
            ),
            Self::NotAnObject(names) if names.is_empty() => {
                f.write_str("the file is not an object")
            }
            Self::NotAnObject(names) => write!(f, "`{}` is not an object", names.join(".")),
            Self::NotAnArray(name) => write!(f, "`{name}` is not an array"),
            Self::InlineTable(name) => {
                write!(
                    f,
                    "`{name}` is an inline table; write it as [{name}.NAME] tables"
                )
            }
            Self::NotOurs(name) => write!(
                f,
                "`{name}` is there, but does not start `sightline mcp`; rename or remove it"
            ),
            Self::NotOurFile => {
                f.write_str("the file is there, but `sightline agents install` did not write it; rename or remove it")
            }
            Self::DuplicateName(name) => {
                write!(f, "`{name}` is written twice; remove one of them")
            }
            Self::OtherChange => f.write_str(
                "the entry cannot be changed without changing others; change it by hand",
            ),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for EditError {}
