//! Runs programs that pass names and texts to others: `find`, `xargs`, `git`, `read`, `echo`.

use std::{path::Path, rc::Rc};

use sightline_protocol::settings::RecursiveReaders;

use super::{
    Checker, State,
    expand::{Field, Output, Unit, literal},
    find::{self, Find},
    git::{self, Git},
    judge::Writes,
    names::with_form,
    programs::{self, Arguments, Use, has},
    syntax::{DeniedName, Fix, Form},
};

/// Files of a pattern, besides the denied ones, that a loop gets.
const MAX_OTHERS: usize = 16;

impl Checker<'_> {
    /// Runs `find`.
    pub(super) fn find(&mut self, words: &[Field], state: &mut State) -> Output {
        let find = Find::new(words);
        for (field, kind) in &find.uses {
            self.use_field(field, *kind, "find", state);
        }
        let mut roots = Vec::new();
        for root in &find.roots {
            roots.extend(self.judge.named(root, &state.dirs, state.dotglob));
        }
        let is_allowed = self.judge.readers == RecursiveReaders::Allow;
        let runs = find
            .actions
            .iter()
            .any(|action| matches!(action, find::Action::Run(_)));
        let is_unknown = is_allowed || roots.is_empty();
        for pattern in find.patterns.iter().filter(|_| is_unknown && runs) {
            self.use_field(pattern, Use::Read, "find", state);
        }
        let mut output = Output::default();
        for (index, action) in find.actions.iter().enumerate() {
            let is_print = matches!(action, find::Action::Print { target: None, .. });
            let seen = self.judge.seen.files;
            let mut names = Vec::new();
            for (root, place) in roots
                .iter()
                .filter(|_| (!is_print || state.is_consumed) && !is_allowed)
            {
                let is_dir = place.is_dir();
                let first = names.len();
                let counts = || match self.judge.guarded {
                    Some(_) => find.reaches(root, is_dir),
                    None => !is_dir,
                };
                if counts()
                    && let Some(denial) = self.judge.denial(place)
                {
                    let (root, place) = (root.clone(), place.clone());
                    names.push(DeniedName::new(root, place, is_dir, denial));
                }
                let mut found = find::find(&mut self.judge, &find, index, place, root);
                let fix = self.fix_of_find(&find, root);
                let files = found.iter_mut().filter(|name| name.is_file());
                files.for_each(|name| name.fix.clone_from(&fix));
                names.extend(found);
                let form = match action {
                    find::Action::Print {
                        is_plain: false, ..
                    } => Form::Unknown,
                    _ => Form::below(root),
                };
                names[first..].iter_mut().for_each(|name| name.form = form);
            }
            let names: Rc<[DeniedName]> = names.into();
            match action {
                find::Action::Print {
                    target: Some(target),
                    ..
                } => {
                    let written = Output {
                        names,
                        ..Output::default()
                    };
                    self.keep_files(std::slice::from_ref(target), &written, state);
                }
                find::Action::Print { .. } => {
                    output.names = names;
                    output.has_words = self.judge.seen.files != seen && !find.has_unknown;
                }
                find::Action::Delete => {
                    self.deny_names(&names, "`find` would delete");
                    self.guard_deleted(&names);
                }
                find::Action::Run(command) => {
                    // A program that reads folders gets the folders.
                    for (root, _) in roots.iter().filter(|(root, _)| find.reaches(root, true)) {
                        if Arguments::new(command).tree().is_some() {
                            let root = Field::quoted(root);
                            let words: Vec<Field> = command
                                .iter()
                                .map(|word| replace(word, "{}", &root))
                                .collect();
                            self.run(&words, &mut state.clone());
                        }
                    }
                    let inner = self.run_for_names(command, &names, state);
                    output.append(Output {
                        names: inner,
                        ..Output::default()
                    });
                }
            }
        }
        output
    }

    /// Runs a command with the names of files in place of `{}`.
    pub(super) fn run_for_names(
        &mut self,
        command: &[Field],
        names: &Rc<[DeniedName]>,
        state: &State,
    ) -> Rc<[DeniedName]> {
        let mut words = Vec::new();
        let mut is_placed = false;
        for word in command {
            let text = word.text();
            is_placed |= text.contains("{}");
            if text == "{}" || text == "{/}" {
                words.push(Field::named(Rc::clone(names)));
            } else if text.contains("{}") {
                words.push(Field {
                    names: Rc::clone(names),
                    ..word.clone()
                });
            } else {
                words.push(word.clone());
            }
        }
        if !is_placed {
            words.push(Field::named(Rc::clone(names)));
        }
        let mut inner = state.clone();
        inner.stdin = Output::default();
        self.run(&words, &mut inner).names
    }

    /// Runs `parallel`: a command, or a script in a word, for each word after `:::` or line of the input.
    pub(super) fn parallel(&mut self, words: &[Field], state: &State) -> Output {
        let is_separator = |word: &Field| word.text().starts_with(":::");
        let end = words.iter().position(is_separator);
        let (command, given) = words.split_at(end.unwrap_or(words.len()));
        let mut inner = state.clone();
        inner.is_counted = false;
        if end.is_some() {
            inner.stdin = Output::default();
        }
        let mut are_lists = false;
        for word in self.listed_values(given.to_vec(), state) {
            let text = word.text();
            if is_separator(&word) {
                are_lists = text.starts_with("::::");
            } else if are_lists {
                inner
                    .stdin
                    .append(word.file.as_deref().cloned().unwrap_or_default());
                self.append_written(&text, state, &mut inner.stdin);
                self.use_field(&word, Use::Read, "parallel", state);
            } else {
                inner.stdin.append(Output {
                    names: word.names,
                    ..Output::of_text(text + "\n")
                });
            }
        }
        let is_script = |word: &Field| word.text().contains(char::is_whitespace);
        let at = programs::wrapped_command(command).or(command.iter().position(is_script));
        let Some(at) = at else {
            // Its lines are commands.
            return self.script(&inner.stdin.text.take().unwrap_or_default(), &mut inner);
        };
        let places = ["{}", "{1}"].into_iter();
        let mut used =
            places.filter(|it| command[at..].iter().any(|word| word.text().contains(it)));
        let place = used.next();
        let option = Field::quoted(&format!("-I{}", place.unwrap_or("{}")));
        let added = place.is_none().then(|| Field::quoted("{}"));
        let (before, after) = command.split_at(at);
        let words = [before, &[option], after].concat();
        let words: Vec<Field> = words.into_iter().chain(added).collect();
        self.run_with_input(&words, &mut inner)
    }

    /// Runs `xargs`: a command with words from the input.
    pub(super) fn run_with_input(&mut self, words: &[Field], state: &mut State) -> Output {
        let at = programs::wrapped_command(words).unwrap_or(words.len());
        let mut input = state.stdin.clone();
        let mut placeholder = None;
        let mut options = words[1..at].iter().peekable();
        while let Some(option) = options.next() {
            let text = option.text();
            self.use_field(option, Use::Read, "xargs", state);
            if let Some(value) = text.strip_prefix("-I").or(text.strip_prefix("--replace=")) {
                placeholder = if value.is_empty() {
                    options.peek().map(|word| word.text())
                } else {
                    Some(value.to_owned())
                };
            } else if text == "-i" || text == "--replace" {
                placeholder = Some("{}".to_owned());
            } else if let Some(path) = text.strip_prefix("-a").or(text
                .strip_prefix("--arg-file")
                .map(|it| it.trim_start_matches('=')))
            {
                let file = match path.is_empty() {
                    true => options.peek().copied().cloned().unwrap_or_default(),
                    false => Field::quoted(path),
                };
                input = file.file.as_deref().cloned().unwrap_or_default();
                self.append_written(&file.text(), state, &mut input);
            }
        }
        let mut command: Vec<Field> = words[at..].to_vec();
        if command.is_empty() {
            command.push(Field::quoted("echo"));
        }
        let text = input.text.take().unwrap_or_default();
        let items = text.split(['\n', '\0']).flat_map(|line| {
            let words: Vec<&str> = if placeholder.is_some() {
                vec![line.trim()]
            } else {
                line.split_whitespace().collect()
            };
            words
        });
        let mut fields: Vec<Field> = items
            .filter(|item| !item.is_empty())
            .map(Field::quoted)
            .collect();
        let is_script = |word: &Field| word.text().contains(char::is_whitespace);
        if command.first().is_some_and(is_script) {
            let names = input.names.iter().take(MAX_OTHERS);
            fields.extend(names.map(|name| Field::quoted(&name.path)));
        } else if !input.names.is_empty() {
            fields.push(Field::named(Rc::clone(&input.names)));
        }
        if fields.is_empty() {
            // `xargs` runs the command also without input.
            let runs_empty = placeholder.is_none()
                && !input.has_words
                && !words[1..at]
                    .iter()
                    .any(|word| has("-r --no-run-if-empty", &word.text()));
            fields.push(Field::unknown(runs_empty));
        }
        let mut inner = state.clone();
        inner.stdin = Output::default();
        // Their commands get no input.
        inner.is_fed = false;
        let placeholder = placeholder.or_else(|| {
            command
                .iter()
                .any(|word| word.text() == "{}")
                .then(|| "{}".to_owned())
        });
        let Some(placeholder) = placeholder else {
            command.extend(fields);
            return self.run(&command, &mut inner);
        };
        let mut output = Output::default();
        for field in fields {
            let replaced: Vec<Field> = command
                .iter()
                .map(|word| replace(word, &placeholder, &field))
                .collect();
            output.append(self.run(&replaced, &mut inner));
        }
        output
    }

    /// Runs `git`.
    pub(super) fn git(&mut self, words: &[Field], state: &mut State) -> Output {
        let git = Git::new(words, |name| state.variables.get(name).map(Vec::as_slice));
        let dirs = git.dirs(&state.dirs);
        // `-c alias.x='!cat .env'`, `rebase -x 'cat .env'`
        for pair in words.windows(2) {
            let text = pair[1].text();
            let is_setting = "alias. core. pager. diff. filter. sequence. merge."
                .split(' ')
                .any(|start| text.strip_prefix("-c").unwrap_or(&text).starts_with(start));
            let is_command = has("-x --exec foreach run", &pair[0].text());
            // A name that the same line gives to a command.
            if let Some(alias) = git::alias_value(&pair[0].text(), &text) {
                self.script(&alias, &mut state.clone());
            }
            if let Some((_, file)) = text.split_once('=').filter(|_| pair[0].text() == "-c") {
                self.use_field(&Field::quoted(file), Use::Read, "git", state);
            }
            if is_setting || is_command {
                self.embedded(&text, state);
                let value = text.split_once('=').filter(|_| self.guard.is_some());
                let command = value.map_or("", |(_, value)| value.trim_start_matches('!'));
                self.script(command, &mut state.clone());
            }
        }
        if let Some(script) = git.alias(&dirs) {
            let rest: Vec<String> = git.rest().map(Field::text).collect();
            return self.script(&format!("{script} {}", rest.join(" ")), &mut state.clone());
        }
        if let Some(command) = git.command() {
            let mut inner = state.clone();
            inner.dirs = git.command_dirs(&dirs);
            return self.run(command, &mut inner);
        }
        if let Some(command) = git.without_repository(&dirs) {
            let mut inner = state.clone();
            inner.dirs.clone_from(&dirs);
            self.run(&command, &mut inner);
        }
        let how = format!("`git {}`", git.subcommand);
        let program = format!("git {}", git.subcommand);
        let mut all_dirs = dirs.clone();
        let top = git.top(&dirs);
        // Files of a repository without a work tree could be those of the workspace.
        let is_bare = top.as_ref().is_some_and(|top| !top.join(".git").exists());
        all_dirs.extend(self.judge.roots().filter(|_| is_bare));
        let form = git.form(&dirs, top.as_deref());
        all_dirs.extend(top);
        if has("apply am", &git.subcommand) {
            self.patch(&program, words, &all_dirs, state);
        }
        let versions = git.versions(&self.judge, &dirs);
        for (path, denial) in &versions {
            if let Some(denial) = denial {
                self.judge
                    .deny(path, &format!("{how} would print"), denial.clone());
            }
        }
        self.takes_names = git.subcommand == "config";
        for (field, kind) in git.uses() {
            if versions.iter().any(|(path, _)| *path == field.text()) {
                continue;
            }
            self.use_field_in(&field, kind, &program, &all_dirs, state);
        }
        self.takes_names = false;
        if git.changes_work_tree() {
            // A patch has other contents.
            let is_patch = has("apply am", &git.subcommand);
            self.judge.add_writes(if is_patch {
                Writes::Files
            } else {
                Writes::Versions
            });
        }
        if self.judge.readers == RecursiveReaders::Allow {
            return Output::default();
        }
        let lists = state.is_consumed;
        let last = words.iter().map(|word| word.span.end).max().unwrap_or(0);
        // `xargs` adds words at the end.
        let is_written = words.iter().all(|word| !word.span.is_empty());
        let place = self.place.as_ref().filter(|_| is_written);
        let fix = place.map(|place| Fix {
            at: last,
            quotes: place.quotes.clone(),
            ..Fix::default()
        });
        let mut printed = git.printed(&mut self.judge, &state.dirs, lists, fix, &self.changes);
        if let Some(places) = self.judge.guarded.as_ref().filter(|_| printed.is_unknown) {
            printed.names = places.iter().map(|it| DeniedName::of_guard(it)).collect();
        } else if printed.is_unknown {
            self.refuse(&format!(
                "{how} would print files that could not be determined; name the files or commits"
            ));
        }
        self.deny_names(&printed.contents, &format!("{how} would print"));
        let mut output = Output {
            names: with_form(&printed.names, |_| form),
            // Earlier commands may change the index.
            has_words: printed.lists_any
                && self.changes.commands.is_empty()
                && !self.judge.writes_any(),
            ..Output::default()
        };
        if git.rest().any(|word| word.text() == "--show-toplevel")
            || self.changes.commands.is_empty() && !self.judge.writes_any()
        {
            output.text = git.revisions(&dirs);
            output.names_commits = output.text.is_some();
        }
        self.judge.copied.extend(git.copied(&dirs));
        if !git.only_reads() {
            self.changes.commands.push((git, state.dirs.clone()));
        }
        output
    }

    /// A program that prints its words reads none of them.
    pub(super) fn print(&mut self, name: &str, words: &[Field], state: &mut State) -> Output {
        let texts: Vec<String> = words.iter().map(Field::text).collect();
        let mut output = Output::default();
        for word in words {
            // `echo "$files"`
            let is_whole = word.units.len() == 1 && (name != "echo" || words.len() == 1);
            let form = |form: Form| if is_whole { form } else { form.with_more() };
            let mut names = with_form(&word.names, form).to_vec();
            if word.has_glob() && state.is_consumed {
                for (path, place) in self.judge.matches(word, &state.dirs, state.dotglob) {
                    let is_dir = place.is_dir();
                    let denial = self.judge.denial(&place);
                    names.extend(denial.map(|it| DeniedName {
                        form: if name == "echo" {
                            Form::Within
                        } else {
                            Form::Path
                        },
                        ..DeniedName::new(path, place, is_dir, it)
                    }));
                }
            }
            output.append(Output {
                names: names.into(),
                ..Output::default()
            });
        }
        let is_option = |text: &&String| name == "echo" && has("-n -e -E -ne -en", text);
        let texts: Vec<&str> = texts
            .iter()
            .skip_while(is_option)
            .map(String::as_str)
            .collect();
        let escapes = texts
            .iter()
            .any(|text| text.contains("\\x") || text.contains("\\0") || text.contains("\\1"));
        // The words after a format become lines: a path may be one of them.
        let separator = if name == "printf" { "\n" } else { " " };
        let text = texts
            .join(separator)
            .replace("%s", "")
            .replace("\\n", "\n")
            .replace("\\t", "\t");
        output.text = Some(text.trim_start_matches('\n').to_owned() + "\n");
        if escapes && name != "write-output" {
            output.mark_decoded();
        }
        output
    }

    /// Returns the values that a loop gets one by one: denied files of patterns, and some others.
    pub(super) fn listed_values(&mut self, fields: Vec<Field>, state: &State) -> Vec<Field> {
        let mut values = Vec::new();
        for field in fields {
            if !field.has_glob() {
                values.push(field);
                continue;
            }
            // The loop gets the denied files one by one, and some others.
            let matches = self.judge.matches(&field, &state.dirs, state.dotglob);
            let (denied, others): (Vec<_>, Vec<_>) = matches
                .into_iter()
                .partition(|(_, place)| self.judge.denial(place).is_some());
            let files = denied.iter().chain(others.iter().take(MAX_OTHERS));
            let end = if field.text().ends_with('/') { "/" } else { "" };
            values.extend(files.map(|(path, _)| Field::quoted(&format!("{path}{end}"))));
        }
        values
    }

    /// `compgen` prints the files that match a pattern (`-G`), or begin with a word.
    pub(super) fn complete(&mut self, words: &[Field], state: &State) -> Output {
        let is_pattern = words.iter().any(|word| word.text().starts_with("-G"));
        let texts = words.iter().map(Field::text);
        let patterns = texts.filter_map(|text| match text.strip_prefix("-G") {
            Some(pattern) => Some(pattern.to_owned()),
            None => (!text.starts_with('-')).then_some(text),
        });
        let end = if is_pattern { "" } else { "*" };
        let mut patterns: Vec<String> = patterns.collect();
        if patterns.is_empty() && words.iter().any(|word| word.text() == "-f") {
            patterns.extend(["", "."].map(str::to_owned));
        }
        let patterns: Vec<Field> = patterns
            .iter()
            .map(|pattern| literal(&format!("{pattern}{end}"), false))
            .collect();
        self.print("printf", &patterns, &mut state.clone())
    }

    /// `read`: assigns the words of the input to variables.
    pub(super) fn read_variables(&mut self, words: &[Field], state: &mut State) {
        let values = fields_of(&state.stdin);
        let mut names: Vec<String> = words
            .iter()
            .map(Field::text)
            .filter(|text| !text.starts_with('-'))
            .collect();
        if names.is_empty() {
            names.push("REPLY".to_owned());
        }
        for name in names {
            state.assign(&name, values.iter().cloned());
        }
    }

    /// Applies `cd`, `pushd` and similar commands.
    pub(super) fn change_dir(&mut self, name: &str, words: &[Field], state: &mut State) {
        if matches!(name, "popd" | "pop-location") {
            state.enter(None);
            return;
        }
        if name == "pushd" && words.iter().any(|word| word.text() == "-n") {
            return;
        }
        // Several ones are values of the same word.
        let is_operand = |field: &&Field| !field.text().starts_with('-') || field.text() == "-";
        let operands: Vec<&Field> = words.iter().filter(is_operand).collect();
        if operands.is_empty() {
            let home = self.home.clone();
            state.enter(home.as_deref().and_then(Path::to_str));
        }
        let outer = state.clone();
        for (at, field) in operands.into_iter().enumerate() {
            let mut inner = outer.clone();
            inner.left.clear();
            if field.has_glob() {
                let matches = self.judge.matches(field, &inner.dirs, inner.dotglob);
                let places = matches.into_iter().map(|(_, place)| place);
                inner.add_dirs(places.filter(|place| place.is_dir()).collect());
            } else if let Some(folder) = field.known().filter(|folder| folder != "-") {
                // PowerShell and cmd.exe enter another folder than a POSIX shell.
                let mut other = inner.clone();
                inner.enter(Some(&folder));
                if let Some(slashed) = field.slashed() {
                    other.enter(Some(&slashed.text()));
                    inner.add_dirs(other.dirs);
                }
            } else {
                inner.enter(None);
            }
            if at == 0 {
                state.dirs.clear();
            }
            state.add_dirs(inner.dirs);
            state.left.extend(inner.left);
        }
        // Another value of the same variable.
        if words.iter().any(Field::has_unknown) {
            state.enter(None);
        }
        if !state.dirs.iter().all(|dir| dir.is_dir()) {
            state.add_dirs(self.judge.copied.clone());
            if !self.changes.commands.is_empty() || state.variables.contains_key("CDPATH") {
                state.settle();
            }
        }
    }
}

/// Returns the lines and words of an output, and the denied files that it names.
pub(super) fn fields_of(output: &Output) -> Vec<Field> {
    let text = output.text.as_deref().unwrap_or_default();
    let items = text.split(['\n', '\0']).chain(text.split_whitespace());
    let items = items.filter(|item| !item.is_empty());
    let mut fields: Vec<Field> = items.map(Field::quoted).collect();
    if !output.names.is_empty() {
        fields.push(Field::named(Rc::clone(&output.names)));
    }
    fields
}

/// Replaces a placeholder in a word.
fn replace(word: &Field, placeholder: &str, value: &Field) -> Field {
    let text = word.text();
    if text == placeholder {
        return value.clone();
    }
    if !text.contains(placeholder) {
        return word.clone();
    }
    let mut units = Vec::new();
    let mut parts = text.split(placeholder).peekable();
    while let Some(part) = parts.next() {
        units.extend(part.chars().map(Unit::Quoted));
        if parts.peek().is_some() {
            units.extend(&value.units);
        }
    }
    Field {
        units,
        names: Rc::clone(&value.names),
        ..Field::default()
    }
}
