//! Walks a parsed shell command. Checks every word, redirection and substitution, and tracks
//! working directories and variables.
//!
//! Both branches of a condition are followed: a variable keeps all its values, and the previous
//! directory remains possible after a `cd`.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use brush_parser::{
    ParserOptions,
    ast::{
        AndOr, Assignment, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem,
        CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind, IoFileRedirectTarget,
        IoHereDocument, IoRedirect, Pipeline, Program, RedirectList, SimpleCommand,
        SubshellCommand, UnexpandedArithmeticExpr,
    },
};

use super::{
    CommandChecker, expansion::ExpandedWord, invocation::Invocation, program_table,
    simple_command::LIST_READERS,
};
use crate::path::AbsPath;

/// Maximum values of a variable.
const MAX_VALUES: usize = 32;
/// Maximum possible working directories.
const MAX_DIRS: usize = 32;

/// State of the shell that runs a command.
#[derive(Clone, Debug, Default)]
pub(super) struct ShellState {
    /// Possible working directories.
    pub(super) dirs: Vec<PathBuf>,
    first_dirs: Vec<PathBuf>,
    variables: HashMap<String, Vec<String>>,
    /// Variables that are references to others: `declare -n`.
    pub(super) references: HashSet<String>,
    /// Standard input, if known.
    pub(super) stdin: Option<String>,
    /// Output of `echo` and `printf` so far.
    pub(super) printed: String,
    /// Whether the output is used other than as text.
    pub(super) output_used: bool,
    /// Whether another program reads the files that the output names.
    pub(super) list_used: bool,
    /// Whether the input is a pipe or file.
    pub(super) is_fed: bool,
}

impl ShellState {
    pub(super) fn new(dirs: Vec<PathBuf>) -> Self {
        Self {
            first_dirs: dirs.clone(),
            dirs,
            ..Self::default()
        }
    }

    /// Returns the possible values of a variable.
    pub(super) fn values(&self, name: &str) -> Option<Vec<String>> {
        if self.references.contains(name) {
            return Some(self.pointed_at(name));
        }
        self.variables.get(name).cloned()
    }

    /// Returns the values of the variables that a variable names.
    pub(super) fn pointed_at(&self, name: &str) -> Vec<String> {
        let names = self.variables.get(name).into_iter().flatten();
        let values = names.filter_map(|name| self.variables.get(name)).flatten();
        values.take(MAX_VALUES).cloned().collect()
    }

    /// Returns the characters at which words are split, in addition to blanks.
    fn separators(&self) -> String {
        self.values("IFS").unwrap_or_default().concat()
    }

    /// Adds possible values of a variable.
    pub(super) fn assign(&mut self, name: &str, values: impl IntoIterator<Item = String>) {
        let known = self.variables.entry(name.to_owned()).or_default();
        for value in values {
            if !known.contains(&value) {
                known.insert(0, value);
            }
        }
        known.truncate(MAX_VALUES);
    }

    /// Changes the directory like `cd`; `None` if the directory is unknown.
    pub(super) fn enter(&mut self, folder: Option<&str>) {
        let Some(folder) = folder else {
            let first = self.first_dirs.clone();
            self.add_dirs(first);
            return;
        };
        let mut entered = Vec::new();
        let mut left = Vec::new();
        for dir in &self.dirs {
            let Some(target) = AbsPath::new(&dir.join(folder)) else {
                continue;
            };
            if !target.as_path().is_dir() {
                left.push(dir.clone());
            }
            entered.push(target.as_path().to_path_buf());
        }
        self.dirs.clear();
        self.add_dirs(entered);
        self.add_dirs(left);
    }

    fn add_dirs(&mut self, dirs: Vec<PathBuf>) {
        for dir in dirs {
            if self.dirs.len() < MAX_DIRS && !self.dirs.contains(&dir) {
                self.dirs.push(dir);
            }
        }
    }
}

/// Parses a script.
pub(super) fn parse(text: &str) -> Result<Program, &'static str> {
    let options = ParserOptions::default();
    let tokens = brush_parser::uncached_tokenize_str(text, &options.tokenizer_options())
        .map_err(|_| "it is not valid shell syntax")?;
    brush_parser::parse_tokens(&tokens, &options).map_err(|_| "it cannot be parsed")
}

impl CommandChecker<'_> {
    pub(super) fn program(&mut self, program: &Program, state: &mut ShellState) {
        for list in &program.complete_commands {
            self.list(list, state);
        }
    }

    fn list(&mut self, list: &CompoundList, state: &mut ShellState) {
        for item in &list.0 {
            self.pipeline(&item.0.first, state);
            for next in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
                self.pipeline(pipeline, state);
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, state: &mut ShellState) {
        if let [command] = pipeline.seq.as_slice() {
            self.command(command, state);
            return;
        }
        // Each stage is a subshell that reads the output of the previous one. A stage that is not
        // understood is taken to pass on its input.
        let mut passed = state.stdin.clone();
        let last_reader = pipeline.seq.iter().rposition(reads_lists);
        for (index, command) in pipeline.seq.iter().enumerate() {
            let mut stage = state.clone();
            let is_last = index + 1 == pipeline.seq.len();
            stage.list_used = (is_last && state.list_used) || last_reader > Some(index);
            stage.is_fed |= index > 0;
            stage.stdin = passed.clone();
            stage.printed.clear();
            self.command(command, &mut stage);
            if is_last {
                state.printed.push_str(&stage.printed);
            } else if !stage.printed.is_empty() {
                passed = Some(stage.printed);
            }
        }
    }

    fn command(&mut self, command: &Command, state: &mut ShellState) {
        if self.is_exhausted() {
            return;
        }
        match command {
            Command::Simple(simple) => self.simple(simple, state),
            Command::Compound(compound, redirects) => {
                self.with_redirects(redirects.as_ref(), state, |checker, state| {
                    checker.compound(compound, state);
                });
            }
            Command::Function(function) => {
                let body = &function.body;
                self.with_redirects(body.1.as_ref(), state, |checker, state| {
                    checker.compound(&body.0, state);
                });
            }
            Command::ExtendedTest(test, redirects) => {
                self.with_redirects(redirects.as_ref(), state, |checker, state| {
                    checker.test(&test.expr, state);
                });
            }
        }
    }

    /// Checks the redirections of a compound command and runs it with the resulting input.
    fn with_redirects(
        &mut self,
        redirects: Option<&RedirectList>,
        state: &mut ShellState,
        run: impl FnOnce(&mut Self, &mut ShellState),
    ) {
        let outer = (state.stdin.clone(), state.is_fed);
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect, state);
        }
        run(self, state);
        (state.stdin, state.is_fed) = outer;
    }

    fn compound(&mut self, compound: &CompoundCommand, state: &mut ShellState) {
        match compound {
            CompoundCommand::Arithmetic(command) => self.arithmetic(&command.expr, state),
            CompoundCommand::ArithmeticForClause(command) => {
                let expressions = [&command.initializer, &command.condition, &command.updater];
                for expression in expressions.into_iter().flatten() {
                    self.arithmetic(expression, state);
                }
                self.list(&command.body.list, state);
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list, state),
            CompoundCommand::Subshell(subshell) => self.subshell(subshell, state),
            CompoundCommand::ForClause(command) => {
                for word in command.values.iter().flatten() {
                    let fields = self.expand(&word.value, state);
                    for field in &fields {
                        self.check_word(field, &state.dirs, "a loop would use this path");
                    }
                    state.assign(
                        &command.variable_name,
                        fields.iter().map(ExpandedWord::text),
                    );
                }
                self.list(&command.body.list, state);
            }
            CompoundCommand::CaseClause(command) => {
                self.expand(&command.value.value, state);
                for case in &command.cases {
                    for pattern in &case.patterns {
                        self.expand(&pattern.value, state);
                    }
                    if let Some(list) = &case.cmd {
                        self.list(list, state);
                    }
                }
            }
            CompoundCommand::IfClause(command) => {
                self.list(&command.condition, state);
                self.list(&command.then, state);
                for clause in command.elses.iter().flatten() {
                    if let Some(condition) = &clause.condition {
                        self.list(condition, state);
                    }
                    self.list(&clause.body, state);
                }
            }
            CompoundCommand::WhileClause(command) | CompoundCommand::UntilClause(command) => {
                self.list(&command.0, state);
                self.list(&command.1.list, state);
            }
            CompoundCommand::Coprocess(command) => {
                self.command(&command.body, &mut state.clone());
            }
        }
    }

    fn subshell(&mut self, subshell: &SubshellCommand, state: &mut ShellState) {
        let mut inner = state.clone();
        self.list(&subshell.list, &mut inner);
        state.printed = inner.printed;
    }

    /// The output of a process substitution is read as a file.
    fn process_substitution(&mut self, subshell: &SubshellCommand, state: &ShellState) {
        let mut inner = state.clone();
        inner.output_used = true;
        self.list(&subshell.list, &mut inner);
    }

    /// Arithmetic reads no file, but may contain command substitutions.
    fn arithmetic(&mut self, expression: &UnexpandedArithmeticExpr, state: &ShellState) {
        self.expand_text(&expression.value, state);
    }

    /// A test reads no file, but may contain command substitutions.
    fn test(&mut self, test: &ExtendedTestExpr, state: &ShellState) {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.test(left, state);
                self.test(right, state);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner, state);
            }
            ExtendedTestExpr::UnaryTest(_, word) => self.tested(&word.value, state),
            ExtendedTestExpr::BinaryTest(_, left, right) => {
                self.tested(&left.value, state);
                self.tested(&right.value, state);
            }
        }
    }

    fn tested(&mut self, raw: &str, state: &ShellState) {
        if self.checks_all_words {
            self.check_raw_word(raw, state, "a test would access this path");
        } else {
            self.expand(raw, state);
        }
    }

    /// Expands a word and checks it as a path.
    fn check_raw_word(&mut self, raw: &str, state: &ShellState, how: &str) {
        for field in self.expand(raw, state) {
            self.check_word(&field, &state.dirs, how);
        }
    }

    fn add_written_word(&mut self, raw: &str, state: &ShellState) {
        for field in self.expand(raw, state) {
            self.add_written(&field, &state.dirs);
        }
    }

    fn redirect(&mut self, redirect: &IoRedirect, state: &mut ShellState) {
        match redirect {
            IoRedirect::File(number, kind, target) => match target {
                IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                    let how = match kind {
                        IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => {
                            "a redirection would read it"
                        }
                        IoFileRedirectKind::ReadAndWrite => "a redirection would open it",
                        _ => "a redirection would write it",
                    };
                    let feeds = matches!(
                        kind,
                        IoFileRedirectKind::Read
                            | IoFileRedirectKind::ReadAndWrite
                            | IoFileRedirectKind::DuplicateInput
                    );
                    state.is_fed |=
                        feeds && number.is_none_or(|it| it == 0) && word.value != "/dev/null";
                    if !matches!(
                        kind,
                        IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput
                    ) {
                        self.add_written_word(&word.value, state);
                        self.guard_redirection(&word.value, state);
                    }
                    self.check_raw_word(&word.value, state, how);
                }
                IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                    self.process_substitution(subshell, state);
                }
                IoFileRedirectTarget::Fd(_) => {}
            },
            IoRedirect::OutputAndError(word, _) => {
                self.add_written_word(&word.value, state);
                self.guard_redirection(&word.value, state);
                self.check_raw_word(&word.value, state, "a redirection would write it");
            }
            IoRedirect::HereString(_, word) => {
                let texts: Vec<String> = self
                    .expand(&word.value, state)
                    .iter()
                    .map(ExpandedWord::text)
                    .collect();
                state.stdin = Some(texts.join("\n"));
                state.is_fed = true;
            }
            IoRedirect::HereDocument(_, document) => {
                state.stdin = Some(self.here_document(document, state));
                state.is_fed = true;
            }
        }
    }

    fn here_document(&mut self, document: &IoHereDocument, state: &ShellState) -> String {
        let body = &document.doc.value;
        if !document.requires_expansion {
            return body.clone();
        }
        self.expand_text(body, state)
            .first()
            .map_or_else(String::new, ExpandedWord::text)
    }

    fn simple(&mut self, command: &SimpleCommand, state: &mut ShellState) {
        let outer = (state.stdin.clone(), state.is_fed);
        let prefix = command.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = command.suffix.iter().flat_map(|suffix| &suffix.0);
        let mut words = Vec::new();
        let runs = command.word_or_name.is_some();
        for item in prefix {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => {
                    let values = self.assign(assignment, state);
                    // A program may read files named in its environment.
                    for field in values.iter().filter(|_| runs) {
                        self.check_word(
                            field,
                            &state.dirs,
                            "the command would get it in its environment",
                        );
                    }
                }
                item => self.item(item, state, &mut words),
            }
        }
        if let Some(name) = &command.word_or_name {
            words.extend(self.expand_all(&name.value, state));
        }
        for item in suffix {
            self.item(item, state, &mut words);
        }
        self.invoke(&Invocation::new(words, &state.separators()), state);
        (state.stdin, state.is_fed) = outer;
    }

    fn item(
        &mut self,
        item: &CommandPrefixOrSuffixItem,
        state: &mut ShellState,
        words: &mut Vec<Vec<ExpandedWord>>,
    ) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect, state),
            CommandPrefixOrSuffixItem::Word(word) => {
                words.extend(self.expand_all(&word.value, state));
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                self.assign(assignment, state);
                words.push(self.expand(&word.value, state));
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.process_substitution(subshell, state);
            }
        }
    }

    fn assign(&mut self, assignment: &Assignment, state: &mut ShellState) -> Vec<ExpandedWord> {
        let name = match &assignment.name {
            AssignmentName::VariableName(name) => name,
            AssignmentName::ArrayElementName(name, index) => {
                self.expand_text(index, state);
                name
            }
        };
        let words: Vec<&str> = match &assignment.value {
            AssignmentValue::Scalar(word) => vec![&word.value],
            AssignmentValue::Array(elements) => elements
                .iter()
                .map(|(_, word)| word.value.as_str())
                .collect(),
        };
        let mut fields = Vec::new();
        for word in words {
            fields.extend(self.expand(word, state));
        }
        let mut values: Vec<String> = fields.iter().map(ExpandedWord::text).collect();
        if assignment.append {
            let before = state.values(name).unwrap_or_default();
            let appended: Vec<String> = before
                .iter()
                .flat_map(|before| values.iter().map(move |value| format!("{before}{value}")))
                .collect();
            values.extend(appended);
        }
        for value in &values {
            self.check_assigned(name, value, state);
        }
        state.assign(name, values);
        fields
    }

    /// Some variables contain commands that programs run.
    fn check_assigned(&mut self, name: &str, value: &str, state: &ShellState) {
        if program_table::COMMAND_VARIABLES
            .iter()
            .any(|end| name.ends_with(end))
        {
            self.script(value.trim_start_matches(['|', '!', '-', ' ']), state);
        } else if matches!(name, "PS0" | "PS1" | "PS2" | "PS4") {
            self.expand_text(value, state);
        } else {
            self.check_embedded(value, state);
        }
    }

    /// Applies `cd`, `pushd` and similar commands.
    pub(super) fn change_dir(&self, invocation: &Invocation, state: &mut ShellState) {
        let operand = invocation
            .operands()
            .find(|field| !field.text().starts_with('-') || field.text() == "-");
        if matches!(invocation.program(0).as_str(), "popd" | "pop-location") {
            state.enter(None);
            return;
        }
        match operand.map(ExpandedWord::known) {
            None => {
                let home = self.home.as_deref().and_then(Path::to_str);
                state.enter(home);
            }
            Some(Some(folder)) if folder != "-" => state.enter(Some(&folder)),
            Some(_) => state.enter(None),
        }
    }
}

/// Returns whether a stage of a pipeline reads the files that its input names.
fn reads_lists(command: &Command) -> bool {
    let Command::Simple(simple) = command else {
        return true;
    };
    let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
    let words = suffix.filter_map(|item| match item {
        CommandPrefixOrSuffixItem::Word(word) => Some(word),
        _ => None,
    });
    simple
        .word_or_name
        .iter()
        .chain(words)
        .any(|word| LIST_READERS.contains(&word.value.as_str()))
}
