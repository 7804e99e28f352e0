//! Finds the denied files that a git command would print, by asking git for their names.
//!
//! The same command runs with `--name-only` and those of its options that are known to start no program
//! and write no file. With another option, or if git takes too long, the command is judged by the files
//! that git tracks.

mod changes;
mod grep;
mod options;
mod repository;

use std::path::{Component, Path, PathBuf};

pub(super) use changes::{Changes, alias_value};

use super::{
    expand::Field,
    judge::{DeniedName, Fix, Judge},
    programs::{GLOBAL_VALUES, Use, has},
};
use options::{ARCHIVE, DIFF, GREP, LIST, Question};
use repository::{Repository, git, output};

use crate::{gitignore_stack, path::AbsPath};

/// Maximum folders in which git is asked about one command.
const MAX_DIRS: usize = 4;

/// Options of subcommands whose value is not a path.
const TEXTS: &str = "--message -S -G --format --pretty --author --committer --grep --since --until --after --before \
                     --date --diff-filter --trailer --cleanup --exclude --diff-algorithm --strategy --onto --reuse-message \
                     --fixup --squash";
/// Subcommands that print at most names of their operands, or whose contents are judged by git.
const NAMES: &str = "ls-files ls-tree status check-ignore check-attr log reflog shortlog diff show stash rev-list reset \
                     describe branch tag push pull fetch merge rebase sparse-checkout update-index diff-tree diff-index \
                     diff-files difftool grep archive whatchanged switch for-each-ref name-rev merge-base format-patch \
                     remote cherry cherry-pick revert bisect worktree init clone count-objects gc fsck var version help";
/// Subcommands whose contents a pathspec restricts.
const PATHSPECS: &str = "diff show log reflog whatchanged grep archive diff-tree diff-index diff-files format-patch \
                         range-diff fast-export difftool add checkout restore reset";
/// Subcommands that write their operands.
const WRITERS: &str = "checkout restore mv rm clean";
/// Other subcommands, which are no aliases.
const OTHERS: &str = "add commit blame annotate cat-file config apply am notes submodule rev-parse hash-object bundle \
                      fast-export show-ref show-branch symbolic-ref commit-tree write-tree read-tree maintenance lfs \
                      range-diff credential daemon send-email request-pull instaweb replace rerere pack-objects \
                      checkout-index unpack-file merge-tree";
/// Options with which git prints contents.
const PATCH: &str = "-p -u -U --patch --unified --patch-with-stat --patch-with-raw --binary -c --cc --dd --remerge-diff \
                     --diff-merges --check --word-diff --color-words -W --function-context -L";
/// Options with which git prints names or numbers only.
const NAMES_ONLY: &str = "--stat --shortstat --numstat --dirstat --summary --name-only --name-status --raw -s --no-patch \
                          --quiet --compact-summary --exit-code-only";
/// Options with which git prints the names of files, and nothing else.
const QUESTION: &str = "-z --no-ext-diff --no-textconv --no-relative --ignore-submodules=all";
/// Global options that change the meaning of pathspecs.
const PATHSPEC_MEANINGS: &str =
    "--literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs";
/// Variables that select other contents, or change what is printed.
const OTHER_SELECTIONS: &str = "GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES \
                                GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS \
                                GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS";

/// A git command.
#[derive(Clone)]
pub(super) struct Git {
    /// Options before the subcommand that select a folder.
    globals: Vec<String>,
    /// Options that select the repository and the meaning of pathspecs.
    selection: Vec<String>,
    /// Whether the repository is selected in a way that the check does not follow.
    is_elsewhere: bool,
    /// Whether a setting makes commands enter submodules.
    sets_submodules: bool,
    pub(super) subcommand: String,
    words: Vec<Field>,
}

/// What a git command would print.
#[derive(Default)]
pub(super) struct Printed {
    /// Denied files whose contents it prints.
    pub(super) contents: Vec<DeniedName>,
    /// Denied files whose names it prints.
    pub(super) names: Vec<DeniedName>,
    /// Whether the contents could not be determined.
    pub(super) is_unknown: bool,
}

/// How the contents that a subcommand prints are found.
enum Kind {
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
}

impl Git {
    /// Parses the words after `git`. `variable`: the values that an environment variable may have.
    pub(super) fn new<'v>(words: &[Field], variable: impl Fn(&str) -> Option<&'v [Field]>) -> Self {
        let mut git = Self {
            globals: Vec::new(),
            selection: Vec::new(),
            is_elsewhere: OTHER_SELECTIONS
                .split_ascii_whitespace()
                .any(|name| variable(name).is_some()),
            sets_submodules: false,
            subcommand: String::new(),
            words: Vec::new(),
        };
        for (name, option) in [("GIT_DIR", "--git-dir"), ("GIT_WORK_TREE", "--work-tree")] {
            for value in variable(name).unwrap_or_default() {
                git.is_elsewhere |= git.selection.iter().any(|known| known.starts_with(option));
                git.select(option, Some(value));
            }
        }
        let mut at = 1;
        while let Some((word, text)) = words
            .get(at)
            .map(|word| (word, word.text()))
            .filter(|(_, text)| text.starts_with('-'))
        {
            let value = words.get(at + 1);
            let (name, attached) = match text.split_once('=') {
                Some((name, _)) => (name, Some(word.skip(name.chars().count() + 1))),
                None => (text.as_str(), None),
            };
            match name {
                "-C" => {
                    git.globals.push(text.clone());
                    git.globals.extend(value.map(Field::text));
                }
                "--git-dir" | "--work-tree" => git.select(name, attached.as_ref().or(value)),
                "-c" | "--config-env" => {
                    let setting = attached.as_ref().or(value).map(Field::text);
                    let setting = setting.unwrap_or_default().to_ascii_lowercase();
                    git.is_elsewhere |= ["core.worktree", "core.bare", "include"]
                        .iter()
                        .any(|start| setting.starts_with(start));
                    git.sets_submodules |=
                        setting.starts_with("diff.submodule") || setting.starts_with("submodule.");
                }
                "--bare" => git.is_elsewhere = true,
                _ if has(PATHSPEC_MEANINGS, name) => git.selection.push(text.clone()),
                _ => {}
            }
            at += if has(GLOBAL_VALUES, &text) { 2 } else { 1 };
        }
        git.subcommand = words.get(at).map(Field::text).unwrap_or_default();
        git.words = words.get(at + 1..).unwrap_or_default().to_vec();
        git
    }

    fn select(&mut self, option: &str, value: Option<&Field>) {
        match value.and_then(Field::known) {
            Some(value) => self.selection.push(format!("{option}={value}")),
            None => self.is_elsewhere = true,
        }
    }

    /// Returns the folders in which git runs.
    pub(super) fn dirs(&self, dirs: &[PathBuf]) -> Vec<PathBuf> {
        let mut dirs = dirs.to_vec();
        for pair in self.globals.windows(2) {
            if pair[0] == "-C" {
                dirs = dirs.iter().map(|dir| dir.join(&pair[1])).collect();
            }
        }
        dirs
    }

    /// Returns the words after the subcommand.
    pub(super) fn rest(&self) -> impl Iterator<Item = &Field> {
        self.words.iter()
    }

    /// Returns the command that git runs: `submodule foreach CMD`, `bisect run CMD`.
    pub(super) fn command(&self) -> Option<&[Field]> {
        let runs = |word: &Field| has("foreach run", &word.text());
        let at = self.words.iter().position(runs)?;
        let command = &self.words[at + 1..];
        let options = command
            .iter()
            .take_while(|word| word.text().starts_with('-'));
        has("submodule bisect", &self.subcommand).then(|| &command[options.count()..])
    }

    /// Returns the folders in which git runs [`Self::command`].
    pub(super) fn command_dirs(&self, dirs: &[PathBuf]) -> Vec<PathBuf> {
        let mut found = dirs.to_vec();
        let mut todo = dirs.to_vec();
        while let Some(dir) = todo
            .pop()
            .filter(|_| self.subcommand == "submodule" && found.len() <= MAX_DIRS)
        {
            let repository = top_of(&dir).and_then(|top| Repository::new(&dir, &top, &[]));
            let options = ["-s", "-z"].map(str::to_owned);
            let lines = repository.and_then(|it| it.run("ls-files", &options, &[]));
            let lines = lines.unwrap_or_default();
            let submodules = lines.iter().filter(|line| line.starts_with("160000 "));
            let submodules = submodules.filter_map(|line| Some(dir.join(line.split_once('\t')?.1)));
            let submodules: Vec<PathBuf> = submodules.collect();
            found.extend(submodules.iter().cloned());
            todo.extend(submodules);
        }
        found
    }

    /// Returns the top of the work tree that contains a folder.
    pub(super) fn top(&self, dirs: &[PathBuf]) -> Option<PathBuf> {
        dirs.iter().find_map(|dir| top_of(dir))
    }

    /// Returns the command that an alias abbreviates.
    pub(super) fn alias(&self, dirs: &[PathBuf]) -> Option<String> {
        let is_known = [NAMES, WRITERS, OTHERS]
            .iter()
            .any(|names| has(names, &self.subcommand));
        if is_known || self.subcommand.is_empty() {
            return None;
        }
        let mut command = git();
        let key = format!("alias.{}", self.subcommand);
        command
            .current_dir(dirs.first()?)
            .args(["config", "--get", &key]);
        let text = String::from_utf8(output(command)?).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| match text.strip_prefix('!') {
            Some(script) => script.to_owned(),
            None => format!("git {text}"),
        })
    }

    /// Returns the words of a command that does the same without a repository: `git diff --no-index` is
    /// `diff -r`, `git grep --no-index` is `grep -r`.
    pub(super) fn without_repository(&self, dirs: &[PathBuf]) -> Option<Vec<Field>> {
        let name = self.subcommand.as_str();
        if !has("diff grep", name) {
            return None;
        }
        let is_given = |word: &Field| {
            let text = word.text();
            text.len() > "--no-".len() && "--no-index".starts_with(&text)
        };
        let dashes = self.words.iter().position(|word| word.text() == "--");
        let (before, after) = self.words.split_at(dashes.unwrap_or(self.words.len()));
        let operands = || {
            let before = before.iter().filter(|word| !word.text().starts_with('-'));
            before.chain(after.iter().skip(1))
        };
        let is_outside = |word: &Field| {
            let text = word.text();
            self.selection.is_empty()
                && dirs.iter().any(|dir| {
                    let path = AbsPath::new(&dir.join(&text));
                    let top = top_of(dir);
                    Path::new(&text).components().any(|part| {
                        matches!(
                            part,
                            Component::RootDir | Component::ParentDir | Component::Prefix(_)
                        )
                    }) && path
                        .is_some_and(|path| top.is_none_or(|top| !path.as_path().starts_with(top)))
                })
        };
        let has_no_work_tree =
            self.selection.is_empty() && dirs.iter().any(|dir| top_of(dir).is_none());
        let applies = before.iter().any(is_given)
            || has_no_work_tree
            || name == "diff" && operands().count() == 2 && operands().any(is_outside);
        if !applies {
            return None;
        }
        let mut words = vec![Field::quoted(name), Field::quoted("-r")];
        if name == "diff" {
            words.push(Field::quoted("--"));
            words.extend(operands().cloned());
        } else {
            words.extend(self.words.iter().filter(|word| !is_given(word)).cloned());
        }
        Some(words)
    }

    /// Returns what git does with its operands.
    pub(super) fn uses(&self) -> Vec<(Field, Use)> {
        let is_set = |names: &str| self.words.iter().any(|word| has(names, &word.text()));
        let name = self.subcommand.as_str();
        let only_index = match name {
            "rm" => is_set("--cached"),
            "restore" => is_set("--staged -S") && !is_set("--worktree -W"),
            "cat-file" => is_set("-e -t -s"),
            _ => false,
        };
        let operand = if only_index || has(NAMES, name) && !is_set("--no-index") {
            Use::Stat
        } else if has(WRITERS, name) {
            Use::Write
        } else {
            Use::Read
        };
        let mut uses = Vec::new();
        let mut ended = false;
        let mut words = self.words.iter();
        let mut is_pattern = name == "grep" && !is_set("-e -f");
        while let Some(word) = words.next() {
            let text = word.text();
            if !ended && text.starts_with('-') && text.len() > 1 {
                ended = text == "--";
                let option = text.split('=').next().unwrap_or(&text);
                let is_text = has(TEXTS, option)
                    || (text.len() > 2
                        && has("-S -G -m", text.get(..2).unwrap_or_default())
                        && !text.starts_with("--"));
                let has_message = has("commit tag stash merge notes revert cherry-pick", name);
                let takes_word = match text.as_str() {
                    "-m" | "-am" | "-sm" => has_message,
                    "-b" | "-B" => has("checkout switch", name),
                    "-x" => has("rebase clean", name),
                    "-s" | "-X" => has("merge rebase", name),
                    "-e" => has("grep clean", name),
                    text => has(TEXTS, text),
                };
                if takes_word {
                    words.next();
                } else if has("-F --file -t --template --pathspec-from-file", option) {
                    uses.extend(
                        words
                            .next()
                            .filter(|_| option.len() == text.len())
                            .map(|value| (value.clone(), Use::Read)),
                    );
                } else if !is_text {
                    let skipped = text
                        .find('=')
                        .map_or(2, |at| text[..at].chars().count() + 1);
                    uses.push((word.skip(skipped), Use::Read));
                }
            } else if is_pattern && !ended {
                is_pattern = false;
            } else if excludes(&text) {
                // A pathspec that leaves out.
            } else if let Some(path) = object_path(&text).filter(|_| !ended) {
                let kind = if only_index || name == "rev-list" {
                    Use::Stat
                } else {
                    Use::Read
                };
                uses.push((Field::quoted(path), kind));
            } else {
                uses.push((word.clone(), operand));
            }
        }
        uses
    }

    /// Returns the denied files that the command prints. `lists`: also those whose names it prints.
    pub(super) fn printed(
        &self,
        judge: &mut Judge<'_>,
        dirs: &[PathBuf],
        lists: bool,
        fix: usize,
        changes: &Changes,
    ) -> Printed {
        let mut printed = Printed::default();
        let lists = lists && has("ls-files ls-tree", &self.subcommand);
        if !lists && !self.prints() {
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
                    self.printed_of_submodules(judge, &repository, lists, &mut printed);
                    if self
                        .printed_after(judge, &repository, changes, lists, &mut printed)
                        .is_none()
                    {
                        printed.is_unknown = true;
                    }
                }
                None => printed.is_unknown = true,
            }
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
        if lists {
            let options = ["-z", "--full-name"].map(str::to_owned);
            let paths = match self.question() {
                Some(question) => repository.run(&self.subcommand, &options, &question.words),
                None => repository.files(&self.pathspecs(), true),
            };
            let Some(paths) = paths else {
                printed.is_unknown = true;
                return;
            };
            // The lines of `ls-tree` begin with the mode and the id.
            let path = |line: &String| line.rsplit('\t').next().unwrap_or_default().to_owned();
            printed
                .names
                .extend(repository.denied(judge, &paths.iter().map(path).collect::<Vec<_>>()));
            return;
        }
        let has_unknown = self.words.iter().any(Field::has_unknown);
        let kind = self.kind();
        let (command, options) = match &kind {
            Kind::Nothing => return,
            Kind::All => return self.tracked(judge, repository, &[], printed),
            Kind::Tracked => return self.tracked(judge, repository, &self.pathspecs(), printed),
            _ if has_unknown => {
                return self.tracked(judge, repository, &self.pathspecs(), printed);
            }
            Kind::Lines => return self.lines(judge, repository, printed),
            Kind::Grep => return self.grep(judge, repository, printed),
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

    /// Adds the tracked files of submodules, if the command enters them.
    fn printed_of_submodules(
        &self,
        judge: &Judge<'_>,
        repository: &Repository,
        lists: bool,
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
        if lists {
            printed.names.extend(denied);
        } else {
            printed.contents.extend(denied);
        }
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
    fn question(&self) -> Option<Question> {
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
                !is_operand || object_path(word).is_none()
            });
        }
        Some(question)
    }

    /// Returns whether the command prints contents.
    pub(super) fn prints(&self) -> bool {
        !matches!(self.kind(), Kind::Nothing)
    }

    fn kind(&self) -> Kind {
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
        let is_patch = has_option(PATCH);
        let only_names = has_option(NAMES_ONLY) && !is_patch;
        let first = texts.first().map_or("", String::as_str);
        match self.subcommand.as_str() {
            _ if texts.iter().any(|text| text == "--help") => Kind::Nothing,
            "reflog" if has("expire delete exists drop", first) => Kind::Nothing,
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
                let is_object =
                    operands.peek().is_some() && operands.all(|text| object_path(text).is_some());
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
                if !has_option(
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
    fn tracked(
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
    fn pathspecs(&self) -> Vec<String> {
        let texts: Vec<String> = self.words.iter().filter_map(Field::known).collect();
        match texts.iter().position(|text| text == "--") {
            Some(at) => texts[at + 1..].to_vec(),
            None => texts.into_iter().filter(|text| excludes(text)).collect(),
        }
    }
}

/// Returns the top of the work tree that contains a folder, or the repository without one.
fn top_of(dir: &Path) -> Option<PathBuf> {
    let top = dir.ancestors().find(|top| {
        // The folder of a repository has these, also `.git`.
        let has_objects = || {
            ["objects", "refs", "HEAD"]
                .iter()
                .all(|name| top.join(name).exists())
        };
        gitignore_stack::WorkTree::of(top).is_some() || !top.ends_with(".git") && has_objects()
    })?;
    Some(top.to_path_buf())
}

/// Returns whether a pathspec leaves out files: `:!path`, `:^path`, `:(exclude)path`.
fn excludes(text: &str) -> bool {
    text.strip_prefix(':')
        .is_some_and(|rest| match rest.strip_prefix('(') {
            Some(magic) => magic
                .split(')')
                .next()
                .is_some_and(|magic| magic.split(',').any(|word| word == "exclude")),
            None => rest.trim_start_matches('/').starts_with(['!', '^']),
        })
}

/// Returns the path in `REVISION:path`, `:path`, `:/path` and `:(top)path`.
fn object_path(text: &str) -> Option<&str> {
    if text.starts_with('-') || text.contains("://") || excludes(text) {
        return None;
    }
    let (_, path) = text.split_once(':')?;
    let path = match path.strip_prefix('(') {
        Some(magic) => magic.split_once(')').map_or(magic, |(_, path)| path),
        None => path,
    };
    let path = path.trim_start_matches('/');
    // `:0:path` names a stage.
    Some(path.split_once(':').map_or(path, |(_, path)| path))
}
