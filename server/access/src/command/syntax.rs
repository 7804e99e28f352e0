//! Shell commands as the check sees them.

use std::{cell::OnceCell, ops::Range, rc::Rc};

/// A command.
#[derive(Debug)]
pub(super) enum Command {
    Simple(Simple),
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
    /// Words that are expanded and not used as paths: tests and the words of `case`.
    Test(Vec<Word>),
    /// The words of an arithmetic expression.
    Arithmetic(Vec<Word>),
}

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
    pub(super) appends: bool,
    pub(super) values: Vec<Word>,
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
    /// The body of a here-document follows the line, so it is set later.
    pub(super) target: Rc<OnceCell<Word>>,
}

/// A word and its place in the text.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
    pub(super) span: Range<usize>,
    /// The word as written, if it contains a backslash: a separator for shells of Windows.
    pub(super) with_backslashes: Option<String>,
}

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
        is_indirect: bool,
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
    /// The text in `$'…'`.
    AnsiC(String),
    Unknown,
}
