//! What a git command prints: the denied files among the names that git gives for the same arguments.

use std::path::PathBuf;

use super::{
    super::{
        expand::Field,
        judge::Judge,
        programs::has,
        syntax::{DeniedName, Fix},
    },
    Changes, Git, MAX_DIRS, excludes, object_path,
    options::{ARCHIVE, DIFF, GREP, LIST, Question},
    repository::{Repository, output_of},
    top_of,
};

/// Maximum denied files whose contents `git grep` is asked for.
const MAX_GREPPED: usize = 200;
/// Subcommands whose contents a pathspec restricts.
const PATHSPECS: &str = "diff show log reflog whatchanged grep archive diff-tree diff-index diff-files format-patch \
                         range-diff fast-export difftool add checkout restore reset";
/// Options with which git prints contents.
const PATCH: &str = "-p -u -U --patch --unified --patch-with-stat --patch-with-raw --binary -c --cc --dd --remerge-diff \
                     --diff-merges --check --word-diff --color-words -W --function-context -L";
/// Options with which git prints names or numbers only.
const NAMES_ONLY: &str = "--stat --shortstat --numstat --dirstat --summary --name-only --name-status --raw -s --no-patch \
                          --quiet --compact-summary --exit-code-only";
/// Options with which git prints the names of files, and nothing else.
pub(super) const QUESTION: &str =
    "-z --no-ext-diff --no-textconv --no-relative --ignore-submodules=all";

/// What a git command would print.
#[derive(Default)]
pub(in crate::command) struct Printed {
    /// Denied files whose contents it prints.
    pub(in crate::command) contents: Vec<DeniedName>,
    /// Denied files whose names it prints.
    pub(in crate::command) names: Vec<DeniedName>,
    /// Whether the contents could not be determined.
    pub(in crate::command) is_unknown: bool,
}

/// How the contents that a subcommand prints are found.
pub(super) enum Kind {
    /// It prints none.
    Nothing,
    /// A command with `--name-only`.
    NameOnly(Vec<&'static str>),
    Grep,
    /// The files of a tree.
    Tree,
    /// The files whose lines `-L` names, under the names that they had.
    Lines,
    /// The tracked files that pathspecs match.
    Tracked,
    /// All tracked files.
    All,
    /// The names that `ls-files` and `ls-tree` print.
    Listed,
    /// Changed and new files.
    Changed,
}

impl Git {
    /// Returns the denied files that the command prints. `lists`: also those whose names it prints.
    pub(in crate::command) fn printed(
        &self,
        judge: &mut Judge<'_>,
        dirs: &[PathBuf],
        lists: bool,
        fix: usize,
        changes: &Changes,
    ) -> Printed {
        let mut printed = Printed::default();
        let lists = lists && !self.prints() && !matches!(self.kind(true), Kind::Nothing);
        let may_print = self.prints() || has("cat-file show", &self.subcommand);
        // A guard asks for names only.
        if !lists && (!may_print || judge.guarded.is_some()) {
            return printed;
        }
        let mut dirs = self.dirs(dirs);
        dirs.sort();
        dirs.dedup();
        dirs.retain(|dir| !self.selection.is_empty() || top_of(dir).is_some());
        printed.is_unknown = dirs.len() > MAX_DIRS || self.is_elsewhere;
        if printed.is_unknown {
            return printed;
        }
        for dir in &dirs {
            let top = top_of(dir).unwrap_or_else(|| dir.clone());
            match Repository::new(dir, &top, &self.selection) {
                Some(mut repository) => {
                    repository.fix = self.fix(&repository, fix);
                    self.printed_in(judge, &repository, lists, &mut printed);
                    self.printed_of_submodules(judge, &repository, &mut printed);
                    let changes_it = lists || self.prints();
                    if changes_it
                        && self
                            .printed_after(judge, &repository, changes, &mut printed)
                            .is_none()
                    {
                        printed.is_unknown = true;
                    }
                }
                None => printed.is_unknown = true,
            }
        }
        if lists {
            printed.names.append(&mut printed.contents);
        }
        printed
    }

    fn printed_in(
        &self,
        judge: &mut Judge<'_>,
        repository: &Repository,
        lists: bool,
        printed: &mut Printed,
    ) {
        let has_unknown = self.words.iter().any(Field::has_unknown);
        let kind = self.kind(lists);
        let (command, options) = match &kind {
            Kind::NameOnly(_) | Kind::Grep | Kind::Nothing if self.names_content(repository) => {
                return self.tracked(judge, repository, &[], printed);
            }
            Kind::Nothing => return,
            Kind::Listed | Kind::Changed => {
                let options = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
                let paths = if matches!(kind, Kind::Changed) {
                    let new = options("-o -z --exclude-standard --full-name");
                    let new = repository.run("ls-files", &new, &[":/".to_owned()]);
                    let changed = options(&format!("--name-only {QUESTION}"));
                    let changed = repository.run("diff", &changed, &["HEAD".to_owned()]);
                    let changed = changed.or_else(|| repository.files(&[], false));
                    new.zip(changed)
                        .map(|(new, changed)| [new, changed].concat())
                } else if let Some(question) = self.question() {
                    repository.run(
                        &self.subcommand,
                        &options("-z --full-name"),
                        &question.words,
                    )
                } else {
                    repository.files(&self.pathspecs(), true)
                };
                // The lines of `ls-tree` begin with the mode and the id.
                let path = |line: &String| line.rsplit('\t').next().unwrap_or_default().to_owned();
                let paths: Option<Vec<String>> = paths.map(|it| it.iter().map(path).collect());
                printed.is_unknown |= paths.is_none();
                let denied = repository.denied(judge, &paths.unwrap_or_default());
                return printed.contents.extend(denied);
            }
            Kind::All => return self.tracked(judge, repository, &[], printed),
            Kind::Tracked => return self.tracked(judge, repository, &self.pathspecs(), printed),
            _ if has_unknown => {
                return self.tracked(judge, repository, &self.pathspecs(), printed);
            }
            Kind::Lines => return self.lines(judge, repository, printed),
            Kind::Grep => return self.grep(judge, repository, printed),
            // Git prints nothing: it is not a tree.
            Kind::Tree if self.names_content(repository) => return,
            Kind::Tree => (vec!["ls-tree"], "-r -z --name-only --full-tree".to_owned()),
            Kind::NameOnly(command) => {
                let mut options = format!("--name-only {QUESTION}");
                if command[0] == "diff-tree" {
                    options.push_str(" -r");
                }
                if has("log show whatchanged reflog stash", command[0]) {
                    options.push_str(" --format=");
                }
                (command.clone(), options)
            }
        };
        let options: Vec<String> = command[1..]
            .iter()
            .copied()
            .chain(options.split_ascii_whitespace())
            .map(str::to_owned)
            .collect();
        let paths = self
            .question()
            .and_then(|question| repository.run(command[0], &options, &question.words));
        match paths {
            Some(paths) => printed.contents.extend(repository.denied(judge, &paths)),
            None => self.tracked(judge, repository, &self.pathspecs(), printed),
        }
    }

    /// Returns whether an operand means the content of a file, but does not say of which: an id, a tag.
    fn names_content(&self, repository: &Repository) -> bool {
        let words = || self.words.iter().map(Field::text);
        if self.subcommand == "cat-file" && words().any(|word| has("-e -t -s", &word)) {
            return false;
        }
        let operands: String = words()
            .take_while(|word| word != "--")
            .filter(|word| !word.starts_with('-') && !word.contains([':', '\n']))
            .flat_map(|word| [format!("{word}\n"), format!("{word}^{{}}\n")])
            .collect();
        if operands.is_empty() {
            return false;
        }
        let mut command = repository.command();
        command.args(["cat-file", "--batch-check=%(objecttype)"]);
        let types = output_of(command, operands.into_bytes());
        match types {
            Some(types) => types
                .split(|byte| *byte == b'\n')
                .any(|line| line == b"blob"),
            // The questions after this one fail as well.
            None => self.subcommand == "cat-file",
        }
    }

    /// Adds the tracked files of submodules, if the command enters them.
    fn printed_of_submodules(
        &self,
        judge: &Judge<'_>,
        repository: &Repository,
        printed: &mut Printed,
    ) {
        let names_them = |text: &str| {
            let is_short =
                text == "--submodule" || text.ends_with("=log") || text.ends_with("=short");
            text.starts_with("--recurse-s") || text.starts_with("--subm") && !is_short
        };
        let is_asked = || self.words.iter().any(|word| names_them(&word.text()));
        if !repository.has_submodules()
            || !(is_asked() || self.sets_submodules || repository.enters_submodules())
        {
            return;
        }
        let options = ["-z", "--full-name", "--recurse-submodules"].map(str::to_owned);
        let Some(paths) = repository.run("ls-files", &options, &[":/".to_owned()]) else {
            printed.is_unknown = true;
            return;
        };
        let mut denied = repository.denied(judge, &paths);
        denied.iter_mut().for_each(|name| name.fix = None);
        printed.contents.extend(denied);
    }

    /// `log -L` follows files like `--follow`, and prints nothing else.
    fn lines(&self, judge: &mut Judge<'_>, repository: &Repository, printed: &mut Printed) {
        for range in self.ranges() {
            let file = range.rsplit(':').next().unwrap_or_default();
            let options = format!("--name-only {QUESTION} --format= --follow");
            let options: Vec<String> = options.split(' ').map(str::to_owned).collect();
            let paths = self.question().and_then(|mut question| {
                let file = format!(":(literal){file}");
                question.words.extend(["--".to_owned(), file]);
                repository.run("log", &options, &question.words)
            });
            match paths {
                Some(paths) => printed.contents.extend(repository.denied(judge, &paths)),
                None => self.tracked(judge, repository, &[], printed),
            }
        }
    }

    /// Returns the values of `-L` of `git log`.
    fn ranges(&self) -> impl Iterator<Item = String> {
        let applies = has("log show whatchanged reflog", &self.subcommand);
        let words = self.words.iter().enumerate().filter(move |_| applies);
        words.filter_map(|(at, word)| match word.text().strip_prefix("-L")? {
            "" => self.words.get(at + 1).map(Field::text),
            range => Some(range.to_owned()),
        })
    }

    /// Returns how the command can leave out a file. `at`: the end of its words, or 0.
    fn fix(&self, repository: &Repository, at: usize) -> Option<Fix> {
        if at == 0 || !has(PATHSPECS, &self.subcommand) || self.ranges().next().is_some() {
            return None;
        }
        let is_path = |word: &Field| {
            let text = word.text();
            text == "--" || repository.has_file(&text) && !text.starts_with('-')
        };
        let is_at_top = repository.is_at_top();
        let opening = if self.words.iter().any(is_path) {
            ""
        } else if is_at_top || has("grep archive", &self.subcommand) {
            " -- ."
        } else {
            " -- :/"
        };
        let spec = if is_at_top { "':!{}'" } else { "':!/{}'" };
        Some(Fix {
            at,
            opening,
            file: spec,
            folder: spec,
            by_name: false,
        })
    }

    /// Returns what git can be asked with. `None` if an option is not known to be harmless.
    pub(super) fn question(&self) -> Option<Question> {
        let mut words: Vec<String> = self.words.iter().map(Field::text).collect();
        let options = match self.subcommand.as_str() {
            "grep" => GREP,
            "archive" => ARCHIVE,
            "ls-files" | "ls-tree" => LIST,
            "stash" => {
                if words
                    .first()
                    .is_some_and(|word| has("show list push save", word))
                {
                    words.remove(0);
                }
                DIFF
            }
            _ => DIFF,
        };
        let mut question = options.question(words.into_iter())?;
        if !has("archive ls-tree", &self.subcommand) {
            let dashes = question.words.iter().position(|word| word == "--");
            let mut at = 0..;
            // An object is checked by its path.
            question.words.retain(|word| {
                let is_operand = at.next() < dashes.or(Some(usize::MAX));
                // `:/TEXT` is the newest commit with this text.
                !is_operand || word.starts_with(":/") || object_path(word).is_none()
            });
        }
        Some(question)
    }

    /// Returns whether the command prints contents.
    pub(in crate::command) fn prints(&self) -> bool {
        !matches!(self.kind(false), Kind::Nothing)
    }

    /// `lists`: of a command that prints names only, the files whose names it prints.
    pub(super) fn kind(&self, lists: bool) -> Kind {
        let texts: Vec<String> = self.words.iter().map(Field::text).collect();
        // Abbreviations and clusters count.
        let is_set = |names: &str| {
            let before_paths = texts.iter().take_while(|text| *text != "--");
            before_paths.into_iter().any(|text| {
                let name = text.split('=').next().unwrap_or(text);
                names.split_ascii_whitespace().any(|known| {
                    if name.starts_with("--") {
                        name.len() > 2 && known.starts_with(name)
                    } else {
                        known.len() == 2
                            && name.starts_with('-')
                            && name
                                .split(['m', 'F', 'C', 't'])
                                .next()
                                .is_some_and(|letters| letters.contains(&known[1..]))
                    }
                })
            })
        };
        let question = self.question();
        let has_option = |names: &str| {
            question
                .as_ref()
                .is_some_and(|question| question.names.iter().any(|name| has(names, name)))
        };
        let command = |words: &[&'static str]| Kind::NameOnly(words.to_vec());
        // The last one decides.
        let last_of = |options: &str| {
            let names = &question.as_ref()?.names;
            names.iter().rposition(|name| has(options, name))
        };
        let is_patch = has_option(PATCH) && last_of("-s --no-patch") < last_of(PATCH);
        let only_names = has_option(NAMES_ONLY) && !is_patch && !lists;
        let names_them = has_option(NAMES_ONLY) || self.subcommand.starts_with("diff-");
        let is_patch = is_patch || lists && names_them;
        let first = texts.first().map_or("", String::as_str);
        match self.subcommand.as_str() {
            _ if texts.iter().any(|text| text == "--help") => Kind::Nothing,
            "reflog" if has("expire delete exists drop", first) => Kind::Nothing,
            "ls-files" | "ls-tree" if lists => Kind::Listed,
            "status" if lists => Kind::Changed,
            "stash" if !has("show list", first) && is_set("-p --patch") => command(&["diff"]),
            "stash" if !has("show list", first) => Kind::Nothing,
            "diff" | "show" | "difftool" | "diff-tree" | "diff-index" | "diff-files" | "log"
            | "reflog" | "whatchanged" | "stash" | "grep"
                if question.is_none() =>
            {
                Kind::Tracked
            }
            // [`Self::without_repository`] judges these.
            "diff" | "grep" if has_option("--no-index") => Kind::Nothing,
            "log" | "show" | "whatchanged" | "reflog" if has_option("-L") => Kind::Lines,
            "diff" if !only_names => command(&["diff"]),
            "show" if !only_names => {
                // A single object is checked by its path.
                let mut operands = texts
                    .iter()
                    .filter(|text| !text.starts_with('-'))
                    .peekable();
                let is_object = operands.peek().is_some()
                    && operands.all(|text| object_path(text).is_some() && !text.starts_with(":/"));
                if is_object {
                    Kind::Nothing
                } else {
                    command(&["show"])
                }
            }
            "difftool" => command(&["diff"]),
            "range-diff" | "fast-export" | "format-patch" => Kind::Tracked,
            "bundle" if first != "create" => Kind::Nothing,
            "checkout-index" if !is_set("-a --all --stdin") => Kind::Nothing,
            "bundle" | "pack-objects" | "checkout-index" | "unpack-file" | "merge-tree" => {
                Kind::All
            }
            "diff-tree" if is_patch => command(&["diff-tree"]),
            "diff-index" if is_patch => command(&["diff-index"]),
            "diff-files" if is_patch => command(&["diff-files"]),
            "log" if is_patch => command(&["log"]),
            "reflog" if is_patch => command(&["reflog"]),
            "whatchanged" if is_patch => command(&["whatchanged"]),
            "stash" if is_patch && first == "show" => command(&["stash", "show"]),
            "stash" if is_patch => command(&["stash", "list"]),
            "add" | "checkout" | "restore" | "reset"
                if is_set("-p --patch -i --interactive -e --edit") =>
            {
                Kind::Tracked
            }
            "commit" | "status" if is_set("-p --patch -v --verbose --interactive") => Kind::All,
            "grep"
                if lists
                    || !has_option(
                        "-l -L -c -q --files-with-matches --name-only --files-without-match --count --quiet",
                    ) =>
            {
                Kind::Grep
            }
            "archive" if !has_option("-l --list") => Kind::Tree,
            "cat-file" => {
                let names_elsewhere = texts.iter().any(|text| {
                    text.starts_with("--batch")
                        || text.starts_with("--textconv")
                        || text.starts_with("--filters")
                });
                let is_unknown = self.words.iter().any(Field::has_unknown)
                    || texts.iter().all(|text| text.starts_with('-'));
                if names_elsewhere || is_unknown {
                    Kind::All
                } else {
                    Kind::Nothing
                }
            }
            _ => Kind::Nothing,
        }
    }

    /// Judges a command by the tracked files that pathspecs match.
    pub(super) fn tracked(
        &self,
        judge: &mut Judge<'_>,
        repository: &Repository,
        specs: &[String],
        printed: &mut Printed,
    ) {
        // Another spelling of `--untracked`.
        let reads_others = self.subcommand == "grep" && self.question().is_none();
        match repository.files(specs, reads_others) {
            Some(paths) => printed.contents.extend(repository.denied(judge, &paths)),
            None => printed.is_unknown = true,
        }
    }

    /// Returns the pathspecs of the command.
    pub(super) fn pathspecs(&self) -> Vec<String> {
        let texts: Vec<String> = self.words.iter().filter_map(Field::known).collect();
        match texts.iter().position(|text| text == "--") {
            Some(at) => texts[at + 1..].to_vec(),
            None => texts.into_iter().filter(|text| excludes(text)).collect(),
        }
    }

    /// `git grep` prints lines of the files that match. Only denied files are searched.
    pub(super) fn grep(
        &self,
        judge: &mut Judge<'_>,
        repository: &Repository,
        printed: &mut Printed,
    ) {
        let Some(Question { words, names, .. }) = self.question() else {
            return self.tracked(judge, repository, &self.pathspecs(), printed);
        };
        let dashes = words.iter().position(|text| text == "--");
        let (before, after) = words.split_at(dashes.unwrap_or(words.len()));
        let mut specs: Vec<String> = after.iter().skip(1).cloned().collect();
        let mut options = Vec::new();
        let mut revisions = Vec::new();
        let mut needs_pattern = !names.iter().any(|name| name == "-e");
        let mut texts = before.iter();
        while let Some(text) = texts.next() {
            if text.starts_with('-') || !needs_pattern && has("( )", text) {
                options.push(text.clone());
                if has(GREP.values, text) {
                    options.extend(texts.next().cloned());
                }
            } else if std::mem::take(&mut needs_pattern) {
                options.extend(["-e".to_owned(), text.clone()]);
            } else if dashes.is_none()
                && (text.starts_with(':') || text.contains('*') || repository.has_file(text))
            {
                specs.push(text.clone());
            } else {
                revisions.push(text.clone());
            }
        }
        let forms = "-l -z --full-name --no-textconv --no-recurse-submodules".split(' ');
        let forms: Vec<String> = forms.map(str::to_owned).collect();
        if !revisions.is_empty() || names.iter().any(|name| has("--untracked --cached", name)) {
            let mut all = options;
            all.extend(revisions);
            all.push("--".to_owned());
            all.extend(specs);
            let Some(paths) = repository.run("grep", &forms, &all) else {
                printed.is_unknown = true;
                return;
            };
            let path = |text: &String| text.rsplit(':').next().unwrap_or_default().to_owned();
            let paths: Vec<String> = paths.iter().map(path).collect();
            printed.contents.extend(repository.denied(judge, &paths));
            return;
        }
        let specs = if specs.iter().all(|spec| excludes(spec)) {
            [vec![".".to_owned()], specs].concat()
        } else {
            specs
        };
        let Some(tracked) = repository.files(&specs, false) else {
            printed.is_unknown = true;
            return;
        };
        let denied = repository.denied(judge, &tracked);
        if denied.is_empty() {
            return;
        }
        let mut all = options;
        all.push("--".to_owned());
        all.extend(
            denied
                .iter()
                .take(MAX_GREPPED)
                .map(|name| format!(":(top,literal){}", name.path)),
        );
        match repository.run("grep", &forms, &all) {
            Some(paths) if denied.len() <= MAX_GREPPED => {
                printed.contents.extend(repository.denied(judge, &paths))
            }
            _ => printed.contents.extend(denied),
        }
    }
}
