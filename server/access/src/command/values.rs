//! Values of variables and arguments: each command is checked with one value of each, and the body of a function
//! with the words of a call.
//!
//! Values are not words: after `for p in KEY TODO`, `grep -r "$p"` has no folder, so it reads the current one.

use std::collections::{BTreeSet, HashMap};

use super::{
    Checker, Scope, State,
    expand::{Field, Output, expand_whole},
    programs,
    syntax::{Assignment, Command, Part, Redirect, Word},
};

/// Maximum combinations of values that are checked one by one. With more, the values are words of one command.
const MAX_CHOICES: usize = 16;

/// Variables of the arguments of scripts and functions.
const ARGUMENTS: [&str; 11] = ["@", "*", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// One value of each variable.
type Choice = HashMap<String, Vec<Field>>;

impl Checker<'_> {
    /// Checks a command, with one value of each variable at a time.
    pub(super) fn command(&mut self, command: &Command, state: &mut State) -> Output {
        self.nested(|checker| {
            let choices = choices(command, state);
            if choices.is_empty() {
                return checker.nested_command(command, state);
            }
            let start = state.clone();
            let mut output = Output::default();
            for (at, choice) in choices.into_iter().enumerate() {
                if checker.judge.is_exhausted() {
                    break;
                }
                let mut inner = start.clone();
                inner.variables.extend(choice.clone());
                output.append(checker.nested_command(command, &mut inner));
                state.merge(&start, inner, &choice, at == 0);
            }
            output
        })
    }

    /// Assigns the values of a variable, and returns them.
    pub(super) fn assign(&mut self, assignment: &Assignment, state: &mut State) -> Vec<Field> {
        let mut scope = Scope {
            checker: self,
            state,
        };
        let mut values: Vec<Field> = Vec::new();
        for word in &assignment.values {
            values.extend(expand_whole(word, &mut scope));
        }
        for value in &values {
            let text = value.text();
            if programs::is_command_variable(&assignment.name) {
                self.script(
                    text.trim_start_matches(['|', '!', '-', ' ']),
                    &mut state.clone(),
                );
            } else if matches!(assignment.name.as_str(), "PS0" | "PS1" | "PS2" | "PS4") {
                self.script(&format!(": \"{text}\""), &mut state.clone());
            } else {
                self.embedded(&text, state);
            }
        }
        if let Some(known) = state.variables.get(&assignment.name)
            && assignment.appends
        {
            values = appended(known, values);
            let chars = values.iter().map(|value| value.units.len()).sum();
            self.judge.spend(chars);
        }
        state.assign(&assignment.name, values.iter().cloned());
        values
    }

    /// Runs the functions that are called where the check does not see it, if at all.
    pub(super) fn run_uncalled(&mut self, state: &mut State) {
        let functions = self.functions.clone();
        for (name, bodies) in functions {
            let is_called = self.called.contains(&name);
            for body in bodies.iter().filter(|_| !is_called) {
                self.command(&body.command, state);
            }
        }
    }

    /// `set`, `shift` and `unset`.
    pub(super) fn change_arguments(
        &mut self,
        name: &str,
        rest: &[Field],
        state: &mut State,
    ) -> Output {
        let first = rest.first().map(Field::text).unwrap_or_default();
        let values = match name {
            "unset" => {
                for word in rest {
                    state.assign(&word.text(), [Field::default()]);
                }
                return Output::default();
            }
            // It may run often, or not.
            "shift" => state.variables.get("@").cloned().unwrap_or_default(),
            _ if first == "--" => self.listed_values(rest[1..].to_vec(), state),
            _ if !first.starts_with(['-', '+']) => self.listed_values(rest.to_vec(), state),
            _ => return Output::default(),
        };
        for name in ARGUMENTS {
            state.assign(name, values.iter().cloned());
        }
        Output::default()
    }

    /// Runs a function with its arguments, if there is one. `None` if these may also be read like the operands of a
    /// program: it may be one, or use them in a way that is not followed.
    pub(super) fn call(
        &mut self,
        name: &str,
        arguments: &[Field],
        state: &mut State,
    ) -> Option<Output> {
        let bodies = self.functions.get(name)?.clone();
        // One that calls itself does the same with other arguments.
        if self.calls.iter().any(|known| known == name) {
            return None;
        }
        self.called.insert(name.to_owned());
        self.calls.push(name.to_owned());
        let outer = ARGUMENTS.map(|name| state.variables.get(name).cloned());
        state.set_arguments(arguments);
        let mut output = Output::default();
        for body in &bodies {
            output.append(self.command(&body.command, state));
        }
        for (name, values) in ARGUMENTS.into_iter().zip(outer) {
            state.variables.remove(name);
            let restored = values.map(|it| (name.to_owned(), it));
            state.variables.extend(restored);
        }
        self.calls.pop();
        let is_followed = bodies.iter().all(|body| !body.computes_arguments)
            && are_certain(arguments)
            && !programs::is_known(name);
        is_followed.then_some(output)
    }
}

/// Returns the combinations of values that a command can get; none if it has one or too many.
fn choices(command: &Command, state: &State) -> Vec<Choice> {
    let is_several = |name: &str| state.variables.get(name).is_some_and(|it| it.len() > 1);
    let runs = match command {
        Command::Simple(simple) => !simple.words.is_empty(),
        Command::Pipeline(_) => true,
        _ => false,
    };
    let mut names = BTreeSet::new();
    if runs && state.variables.keys().any(|name| is_several(name)) {
        of_command(command, &mut names);
    }
    let mut choices = vec![Choice::new()];
    for name in names.into_iter().filter(|name| is_several(name)) {
        let values = &state.variables[name];
        if choices.len() * values.len() > MAX_CHOICES {
            return Vec::new();
        }
        let with = |choice: &Choice, value: &Field| {
            let mut choice = choice.clone();
            choice.insert(name.to_owned(), vec![value.clone()]);
            choice
        };
        choices = choices
            .iter()
            .flat_map(|choice| values.iter().map(move |value| with(choice, value)))
            .collect();
    }
    if choices.len() > 1 {
        choices
    } else {
        Vec::new()
    }
}

/// Returns whether it is known which argument each word is.
fn are_certain(arguments: &[Field]) -> bool {
    let is_certain =
        |word: &Field| !word.has_unknown() && !word.has_glob() && !word.span.is_empty();
    // Values of one word have the same place.
    let mut places: Vec<usize> = arguments.iter().map(|word| word.span.start).collect();
    places.dedup();
    arguments.len() <= ARGUMENTS.len() - 2
        && arguments.len() == places.len()
        && arguments.iter().all(is_certain)
}

/// Returns the values of `name+=value`; with too many of them, only the new ones.
pub(super) fn appended(known: &[Field], values: Vec<Field>) -> Vec<Field> {
    if known.len() * values.len() > MAX_CHOICES {
        return values;
    }
    let join = |start: &Field, end: &Field| Field {
        units: [&start.units[..], &end.units].concat(),
        ..end.clone()
    };
    let pairs = known
        .iter()
        .flat_map(|start| values.iter().map(move |end| join(start, end)));
    pairs.collect()
}

impl State {
    /// Sets the arguments of a script or function.
    pub(super) fn set_arguments(&mut self, arguments: &[Field]) {
        for (at, name) in ARGUMENTS.into_iter().enumerate() {
            let values = match at {
                0 | 1 => arguments.to_vec(),
                _ => arguments.get(at - 2).cloned().into_iter().collect(),
            };
            if values.is_empty() {
                self.variables.remove(name);
            } else {
                self.variables.insert(name.to_owned(), values);
            }
        }
    }

    /// Adds what a command changed that ran with one choice.
    fn merge(&mut self, start: &Self, after: Self, choice: &Choice, is_first: bool) {
        if is_first {
            self.dirs.clear();
        }
        self.add_dirs(after.dirs);
        let known = start.left.len();
        self.left.extend(after.left.into_iter().skip(known));
        self.dotglob |= after.dotglob;
        for (name, values) in after.variables {
            let known = choice.get(&name).or(start.variables.get(&name));
            // Values are only added.
            if values.len() != known.map_or(0, Vec::len) {
                self.assign(&name, values);
            }
        }
    }
}

/// Adds the names of the variables in a command.
fn of_command<'c>(command: &'c Command, names: &mut BTreeSet<&'c str>) {
    let of_redirects = |redirects: &'c [Redirect], names: &mut BTreeSet<&'c str>| {
        let targets = redirects.iter().filter_map(|it| it.target.get());
        targets.for_each(|word| of_parts(&word.parts, names));
    };
    let of_words = |words: &'c [Word], names: &mut BTreeSet<&'c str>| {
        words.iter().for_each(|word| of_parts(&word.parts, names));
    };
    match command {
        Command::Simple(simple) => {
            of_words(&simple.words, names);
            of_redirects(&simple.redirects, names);
            for assignment in &simple.assignments {
                of_words(&assignment.values, names);
            }
        }
        Command::Pipeline(commands) => commands.iter().for_each(|it| of_command(it, names)),
        Command::Group {
            body, redirects, ..
        } => {
            body.iter().for_each(|it| of_command(it, names));
            of_redirects(redirects, names);
        }
        Command::For { words, body, .. } => {
            of_words(words, names);
            body.iter().for_each(|it| of_command(it, names));
        }
        Command::Test(words) | Command::Arithmetic(words) => of_words(words, names),
        Command::Function { body, .. } => of_command(&body.command, names),
        Command::And | Command::Or | Command::Background | Command::Branch => {}
    }
}

fn of_parts<'c>(parts: &'c [Part], names: &mut BTreeSet<&'c str>) {
    for part in parts {
        match part {
            Part::Variable {
                name,
                operator,
                argument,
                ..
            } => {
                // `"$@"` and `"${a[@]}"` are words, and `${a[0]}` and `${a[1]}` differ.
                let is_element = operator.is_empty() && !argument.is_empty();
                if !["@", "*"].contains(&&**name) && !is_element {
                    names.insert(name);
                }
                of_parts(argument, names);
            }
            Part::Command { body, .. } | Part::Process(body) => {
                body.iter().for_each(|it| of_command(it, names));
            }
            Part::Text { .. } | Part::Tilde(_) => {}
        }
    }
}
