//! Collects paths, commands and texts from the arguments of a tool call.

use serde_json::{Map, Value};
use sightline_access::starts_with_command;

use super::{
    super::{
        arguments::{self, Kind},
        patches,
        written_path::{MAX_PATH, MAX_TEXT, quote, shortened},
    },
    ToolCall,
};

/// First words of statements of SQL that may read or write a file.
const SQL_VERBS: &str = "attach backup bulk copy create describe explain export from import insert install load pragma restore select summarize with";
/// Words of SQL before the name of a file.
const SQL_FILES: &str = "attach copy database describe disk dumpfile from infile insert into join load location outfile program summarize to";

/// Collects the arguments of a call.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) call: ToolCall,
    /// The tool applies patches, and runs no commands.
    pub(super) is_patch: bool,
    /// The tool writes to a terminal.
    pub(super) is_terminal: bool,
    /// The tool runs code.
    pub(super) runs_code: bool,
    /// The tool gives a text to the model: a skill, or a command of the agent such as `/review`.
    pub(super) is_prompt: bool,
    /// The tool searches in the content of files, so its pattern is no path.
    pub(super) is_search: bool,
    /// Length of an argument for paths that is too long to check, in bytes.
    pub(super) too_long: Option<usize>,
}

impl Collector {
    /// Collects from an object that is the value of an argument of kind `above`.
    pub(super) fn add_fields(&mut self, above: Kind, fields: &Map<String, Value>) {
        let named = |wanted| {
            let mut fields = fields.iter();
            fields.find_map(|(name, value)| (arguments::kind(name) == wanted).then_some(value))
        };
        if let (Some(Value::String(program)), Some(operands)) =
            (named(Kind::Command), named(Kind::Operands))
        {
            let operands = match operands {
                Value::Array(operands) => command_line(operands),
                operands => plain(operands),
            };
            self.call
                .commands
                .push(format!("{program} {}", operands.unwrap_or_default()));
        }
        for (name, value) in fields {
            self.possible_path(name, &['/', '.']);
            let words = arguments::words(name);
            let kind = match arguments::kind(name) {
                Kind::Input if self.is_terminal => Kind::Command,
                Kind::Input if self.runs_code => Kind::Code,
                Kind::Operands | Kind::Command if self.is_prompt => Kind::Content,
                // `files: [{ "name": PATH }]`
                Kind::Other | Kind::Input => above,
                kind => kind,
            };
            let is_list = words.last().is_some_and(|word| word.ends_with('s'));
            self.add(kind, is_list, value);
        }
    }

    pub(super) fn add(&mut self, kind: Kind, is_list: bool, value: &Value) {
        match value {
            Value::Object(fields) => self.add_fields(kind, fields),
            Value::Array(elements) => {
                // The words of one command.
                if kind == Kind::Command
                    && !is_list
                    && let Some(line) = command_line(elements)
                {
                    self.add_words(elements, line);
                } else {
                    for element in elements {
                        self.add(kind, false, element);
                    }
                }
            }
            Value::String(text) => self.add_text(kind, text),
            _ => {}
        }
    }

    pub(super) fn add_words(&mut self, words: &[Value], line: String) {
        if let [Value::String(program), .., Value::String(patch)] = words
            && program == "apply_patch"
        {
            self.call.paths.extend(patches::files(patch));
            return;
        }
        self.call.commands.push(line);
        // `bash -c TEXT`: the text is a command too.
        if let [.., Value::String(flag), Value::String(script)] = words
            && flag.starts_with('-')
        {
            self.add_text(Kind::Command, script);
        }
    }

    pub(super) fn add_text(&mut self, kind: Kind, text: &str) {
        if text.is_empty() || kind == Kind::Excluded {
            return;
        }
        if kind != Kind::Content || self.is_patch {
            self.call.paths.extend(patches::files(text));
            self.call.possible_paths.extend(patches::diff_files(text));
        }
        match kind {
            Kind::Command if self.is_patch && text.trim_start().starts_with(patches::START) => {}
            // `cat a{enter}`
            Kind::Command => self.call.commands.push(text.replace("{enter}", "\n")),
            Kind::Code => {
                self.call.codes.push(text.to_owned());
                self.possible_path(text, &['/', '.']);
            }
            Kind::Base => {
                self.call.folders.push(text.to_owned());
                self.possible_path(text, &['/', '.']);
            }
            Kind::Path | Kind::Folder => {
                let text = &*shortened(text);
                if text.len() > MAX_TEXT {
                    self.too_long = Some(text.len());
                }
                // A list, if it has several lines.
                if !is_remote(text) && !text.trim().contains('\n') {
                    self.call.paths.push(text.to_owned());
                }
                if kind == Kind::Folder {
                    self.call.folders.push(text.to_owned());
                }
                self.call.possible_paths.push(text.to_owned());
                // `source` is code in notebooks.
                if calls_with_text(text) || text.trim().contains('\n') && starts_with_command(text)
                {
                    self.call.codes.push(text.to_owned());
                }
            }
            Kind::Setting => {
                if !self.is_search {
                    self.possible_path(text, &['/']);
                }
                self.add_sql(text);
            }
            // Single words are more often names of branches, issues or buttons.
            Kind::Operands | Kind::Other | Kind::Input => {
                self.possible_path(text, &['/', '.', '%']);
                self.add_by_form(text);
            }
            Kind::Content | Kind::Excluded => {}
        }
    }

    /// Adds what a text looks like, whatever its name: a folder from which paths start, a command line, or code.
    fn add_by_form(&mut self, text: &str) {
        if text.len() <= MAX_PATH && text.contains('/') && !text.contains('\n') {
            self.call.folders.push(text.to_owned());
        }
        if starts_with_command(text) || calls_with_text(text) {
            self.call.codes.push(text.to_owned());
        }
        self.add_sql(text);
    }

    /// Adds the files that a statement of SQL reads: `COPY t FROM 'FILE'`, `readfile('FILE')`.
    fn add_sql(&mut self, text: &str) {
        let first = text
            .split(|c: char| !c.is_ascii_alphabetic())
            .find(|word| !word.is_empty());
        let is_word =
            |list: &str, word: &str| list.split(' ').any(|it| it.eq_ignore_ascii_case(word));
        if !first.is_some_and(|first| is_word(SQL_VERBS, first)) {
            return;
        }
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(['\'', '"']) {
            let quote = rest.as_bytes()[before.len()];
            let Some((literal, after)) = after.split_once(char::from(quote)) else {
                return;
            };
            let before = before.trim_end();
            let is_argument = before.ends_with(['(', '[', ',']);
            let word = before
                .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next();
            if is_argument || word.is_some_and(|word| is_word(SQL_FILES, word)) {
                self.call.possible_paths.push(literal.to_owned());
            }
            rest = after;
        }
    }

    /// Adds a text that is a path only if it has one of these characters.
    pub(super) fn possible_path(&mut self, text: &str, signs: &[char]) {
        let text = &*shortened(text);
        if text.len() <= MAX_PATH && text.contains(signs) && !text.contains('\n') {
            self.call.possible_paths.push(text.to_owned());
        }
    }
}

/// Returns whether a text looks like code that calls something, with a string in it: `open('a')`, `$(cat "a")`.
fn calls_with_text(text: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "_$.!?]".contains(c);
    let mut calls = text.match_indices('(');
    text.contains(['\'', '"', '`']) && calls.any(|(at, _)| text[..at].ends_with(is_name))
}

/// Returns whether the text is a URL of another machine.
fn is_remote(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.eq_ignore_ascii_case("file") && scheme.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// Returns the command line with these words. `None` if one of them is a list or an object.
fn command_line(words: &[Value]) -> Option<String> {
    let words: Option<Vec<String>> = words
        .iter()
        .map(|word| Some(quote(&plain(word)?)))
        .collect();
    Some(words?.join(" "))
}

/// Returns a value that is not a list or an object as text.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
        value => Some(value.to_string()),
    }
}
