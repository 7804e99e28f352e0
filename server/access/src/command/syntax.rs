//! Shell commands as the check sees them.

use std::{
    cell::OnceCell,
    ops::Range,
    path::{Path, PathBuf},
    rc::Rc,
};

use crate::Denial;

/// A command.
#[derive(Debug)]
pub(super) enum Command {
    Simple(Simple),
    /// `&&` after a command: the next one runs only if that succeeds.
    And,
    /// `||` after a command, and `&&` after `!`.
    Or,
    /// `&` after commands, which run in a subshell.
    Background,
    /// Another branch of a condition begins.
    Branch,
    /// Stages of a pipeline. Each runs in a subshell.
    Pipeline(Vec<Command>),
    /// A compound command: a list, and its redirections.
    Group {
        body: Vec<Command>,
        redirects: Vec<Redirect>,
        is_subshell: bool,
    },
    /// `for` and `select`.
    For {
        name: String,
        words: Vec<Word>,
        body: Vec<Command>,
        redirects: Vec<Redirect>,
    },
    /// A function. It runs when it is called.
    Function {
        name: String,
        body: Rc<Body>,
    },
    /// Words that are expanded and not used as paths: tests and the words of `case`.
    Test(Vec<Word>),
    /// The words of an arithmetic expression.
    Arithmetic(Vec<Word>),
}

impl Command {
    /// Returns whether it usually succeeds, whatever it is given.
    pub(super) fn is_expected(&self) -> bool {
        let Self::Simple(Simple { words, .. }) = self else {
            return false;
        };
        let text = |at: usize| words.get(at).and_then(Word::plain).unwrap_or_default();
        EXPECTED.contains(&&*text(0)) || text(0) == "mkdir" && text(1) == "-p"
    }
}

/// Commands that usually succeed.
const EXPECTED: [&str; 7] = ["cd", "pushd", "echo", "export", "set", "true", ":"];

/// The body of a function.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) command: Command,
    /// Whether it uses its arguments in other ways than by their numbers.
    pub(super) computes_arguments: bool,
}

impl Body {
    pub(super) fn new(command: Command, text: &str) -> Self {
        Self {
            command,
            computes_arguments: COMPUTES_ARGUMENTS.split('|').any(|it| text.contains(it)),
        }
    }
}

/// Texts in a function that uses its arguments in other ways than `$1` and `"$@"`.
const COMPUTES_ARGUMENTS: &str = "shift|getopts|eval|set |${!|${#|${1|${@|${*|$#|BASH_ARG|local -n|declare -n|printf -v|:=|=~|trap|function|()";

/// A simple command.
#[derive(Debug, Default)]
pub(super) struct Simple {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
}

/// An assignment to a variable or an array.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) values: Vec<Word>,
    /// Whether the value follows the one that the variable has: `name+=value`.
    pub(super) appends: bool,
}

/// What a redirection does with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedirectKind {
    Read,
    Write,
    ReadWrite,
    /// A here-document or a here-string.
    Text,
    /// `2>&1`.
    Duplicate,
}

/// A redirection.
#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) kind: RedirectKind,
    /// Whether it is of the standard output: not `2>file`.
    pub(super) is_output: bool,
    /// The body of a here-document follows the line, so it is set later.
    pub(super) target: Rc<OnceCell<Word>>,
}

impl Redirect {
    /// Returns whether the standard output goes to the target.
    pub(super) fn writes_output(&self) -> bool {
        self.is_output && !matches!(self.kind, RedirectKind::Read | RedirectKind::Text)
    }
}

/// A word and its place in the text.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
    pub(super) span: Range<usize>,
    /// The word as written, if it contains a backslash: a separator for shells of Windows.
    pub(super) with_backslashes: Option<String>,
}

impl Word {
    /// Returns its text; `None` if it has expansions or is a pattern.
    pub(super) fn plain(&self) -> Option<String> {
        let text = |part: &Part| match part {
            Part::Text { text, is_quoted } => {
                // Also the command `[`, and the place of a name for `xargs` and `find`.
                let is_pattern = text != "[" && text.replace("{}", "").contains(PATTERNS);
                let is_plain = *is_quoted || !is_pattern;
                is_plain.then(|| text.clone())
            }
            _ => None,
        };
        self.parts.iter().map(text).collect()
    }
}

/// Characters of patterns and of words with several values.
const PATTERNS: [char; 5] = ['*', '?', '[', '{', '('];

/// A part of a word.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Text {
        text: String,
        is_quoted: bool,
    },
    /// `$name`, `${name}` or `${name OPERATOR argument}`.
    Variable {
        name: String,
        operator: String,
        argument: Vec<Part>,
        is_quoted: bool,
    },
    /// A command substitution.
    Command {
        body: Rc<Vec<Command>>,
        is_quoted: bool,
    },
    /// A process substitution.
    Process(Rc<Vec<Command>>),
    /// `~` and `~+`.
    Tilde(String),
}

/// How a line of an output contains the path of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// In a way that is not known, perhaps only a part of it.
    #[default]
    Unknown,
    /// Among other text.
    Within,
    /// The line is the path.
    Path,
    /// The line is the path after `./`.
    Dotted,
    /// The line is an end of the path, at least the name of the file.
    End,
}

impl Form {
    /// Returns the form of paths below a folder that is written like this.
    pub(super) fn below(folder: &str) -> Self {
        match folder == "." || folder.starts_with("./") {
            true => Self::Dotted,
            false => Self::Path,
        }
    }

    /// Returns the form in a line with other text.
    pub(super) fn with_more(self) -> Self {
        match self {
            Self::Unknown | Self::End => Self::Unknown,
            Self::Within | Self::Path | Self::Dotted => Self::Within,
        }
    }

    /// Returns the form of a word of the line, or of its end.
    pub(super) fn of_word(self) -> Self {
        match self {
            Self::Within | Self::Path | Self::Dotted => Self::Path,
            Self::Unknown | Self::End => self,
        }
    }
}

/// A denied file, found in a directory or in a list of names.
#[derive(Clone, Debug)]
pub(super) struct DeniedName {
    /// The path as a program prints it.
    pub(super) path: String,
    pub(super) place: PathBuf,
    pub(super) is_dir: bool,
    pub(super) denial: Denial,
    /// How the command can leave it out.
    pub(super) fix: Option<Rc<Fix>>,
    /// How a line of the output contains it.
    pub(super) form: Form,
}

impl DeniedName {
    pub(super) fn new(path: String, place: PathBuf, is_dir: bool, denial: Denial) -> Self {
        Self {
            path,
            place,
            is_dir,
            denial,
            fix: None,
            form: Form::default(),
        }
    }

    /// A folder that cannot be searched for denied files.
    pub(super) fn unsearched(path: &str, place: PathBuf) -> Self {
        let reason = "which is too large to check for denied files; name smaller folders, or set access.recursiveReaders to \"allow\"";
        Self::new(
            path.to_owned(),
            place,
            false,
            Denial::new(reason.to_owned()),
        )
    }

    /// A file that a guard protects.
    pub(super) fn of_guard(place: &Path) -> Self {
        let path = place.to_string_lossy().into_owned();
        Self::new(path, place.to_owned(), false, Denial::of_guard())
    }

    /// Returns whether this is a known file, not a folder that may contain denied files.
    pub(super) fn is_file(&self) -> bool {
        self.denial.rule.is_some()
    }
}

/// Texts that make a program leave out a file or folder, with `{}` for a name or a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exclusion {
    /// By its name: a file, and a folder.
    pub(super) name: (&'static str, &'static str),
    /// By its path.
    pub(super) path: (&'static str, &'static str),
    /// By a path with characters that mean something in a pattern.
    pub(super) literal: &'static str,
}

/// How a command can leave out the denied files below one of its operands.
#[derive(Clone, Debug, Default)]
pub(super) struct Fix {
    /// Where to insert options in the command line.
    pub(super) at: usize,
    /// Quotes around that place, from the inner to the outer ones.
    pub(super) quotes: String,
    /// The text before the first option.
    pub(super) opening: &'static str,
    pub(super) exclusion: Exclusion,
    /// Bytes of the path of a file that are the operand.
    pub(super) skipped: usize,
    /// What patterns of paths have in place of the operand. `None`: they cannot name its files.
    pub(super) base: Option<String>,
}

/// Where the text of a script is in the command line.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) at: usize,
    /// Quotes around it, from the inner to the outer ones.
    pub(super) quotes: String,
}

impl Place {
    /// Returns the place of a script that is a word in quotes.
    pub(super) fn inside(&self, text: &str, word: &Range<usize>, script: &str) -> Option<Self> {
        let raw = text.get(word.clone())?;
        let quote = raw.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let inner = raw.strip_prefix(quote)?.strip_suffix(quote)?;
        (inner == script).then(|| Self {
            at: word.start + 1,
            quotes: format!("{quote}{}", self.quotes),
        })
    }
}
