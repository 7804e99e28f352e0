//! Finds the denied files that a git command would print, by asking git for their names.
//!
//! The same command runs with `--name-only` and those of its options that are known to start no program
//! and write no file. With another option, or if git takes too long, the command is judged by the files
//! that git tracks.

mod ask;
mod changes;
mod printed;

use std::path::{Path, PathBuf};

pub(super) use changes::Changes;

use super::{
    expand::Field,
    judge::Judge,
    programs::{self, Arguments, GLOBAL_VALUES, Use, has},
    syntax::Form,
};
pub(crate) use ask::output_of;
use ask::{Repository, output};
use sightline_base::git::git;

use crate::{Denial, gitignore_stack};
use sightline_base::path::AbsPath;

/// Maximum folders in which git is asked about one command.
const MAX_DIRS: usize = 4;
/// Maximum bytes of the names of commits that are followed.
const MAX_REVISIONS: usize = 4096;

/// Subcommands that change neither the work tree nor the index and the commits.
const READERS: &str = "annotate archive blame branch bundle cat-file check-attr check-ignore config count-objects credential \
                       daemon describe diff diff-files diff-index diff-tree difftool fast-export for-each-ref format-patch \
                       fsck gc grep hash-object help log ls-files ls-tree maintenance merge-base name-rev notes push \
                       range-diff reflog remote rev-list rev-parse shortlog show show-branch show-ref status tag var \
                       version whatchanged";
/// Other subcommands that do not change the work tree.
const OF_REPOSITORY: &str = "add commit commit-tree fetch init pack-refs prune repack symbolic-ref update-index \
                             update-ref write-tree";
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
    /// The folders of `-C`. Each has the meanings that shells of Windows give to a word.
    folders: Vec<Vec<String>>,
    /// Options that select the repository and the meaning of pathspecs.
    selection: Vec<String>,
    /// Whether the repository is selected in a way that the check does not follow.
    is_elsewhere: bool,
    /// Whether a setting makes commands enter submodules.
    sets_submodules: bool,
    pub(super) subcommand: String,
    words: Vec<Field>,
}

impl Git {
    /// Returns how lines of the output contain names of files. `top`: the top folder of the work tree.
    pub(super) fn form(&self, dirs: &[PathBuf], top: Option<&Path>) -> Form {
        let is_plain = match self.subcommand.as_str() {
            "ls-files" => !self.sets("-s --stage -u --unmerged -t -v -f --debug --eol"),
            "ls-tree" => self.sets("--name-only --name-status"),
            "grep" => self.sets("-l -L --name-only --files-with-matches --files-without-match"),
            _ => self.sets("--name-only") && !self.sets("--graph"),
        };
        let is_at_top = dirs.iter().all(|dir| Some(dir.as_path()) == top);
        let is_relative = has("ls-files ls-tree grep status clean", &self.subcommand)
            && !self.sets("--full-name");
        let form = match is_at_top || !is_relative {
            true => Form::Path,
            false => Form::End,
        };
        if is_plain { form } else { form.with_more() }
    }

    /// Parses the words after `git`. `variable`: the values that an environment variable may have.
    pub(super) fn new<'v>(words: &[Field], variable: impl Fn(&str) -> Option<&'v [Field]>) -> Self {
        let mut git = Self {
            folders: Vec::new(),
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
                    let slashed = value.and_then(Field::slashed);
                    let meanings = value.into_iter().chain(&slashed).map(Field::text);
                    git.folders.push(meanings.collect());
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
            Some(known) => {
                let slashed = value.and_then(Field::slashed).map(|other| other.text());
                self.is_elsewhere |= slashed.is_some_and(|it| Path::new(&it) != Path::new(&known));
                self.selection.push(format!("{option}={known}"));
            }
            None => self.is_elsewhere = true,
        }
    }

    /// Returns the folders in which git runs.
    pub(super) fn dirs(&self, dirs: &[PathBuf]) -> Vec<PathBuf> {
        self.folders.iter().fold(dirs.to_vec(), |dirs, meanings| {
            let below = |dir: &PathBuf| meanings.iter().map(|it| dir.join(it)).collect::<Vec<_>>();
            dirs.iter().flat_map(below).collect()
        })
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
        for dir in dirs.iter().filter(|_| self.subcommand == "submodule") {
            let options = ["-s", "-z"].map(str::to_owned);
            let lines = top_of(dir)
                .and_then(|top| Repository::new(dir, &top, &[]))
                .and_then(|repository| repository.run("ls-files", &options, &[]));
            let lines = lines.into_iter().flatten();
            let modules = lines.filter(|line| line.starts_with("160000 "));
            found.extend(modules.filter_map(|line| Some(dir.join(line.split_once('\t')?.1))));
        }
        found
    }

    /// Returns the top of the work tree that contains a folder.
    pub(super) fn top(&self, dirs: &[PathBuf]) -> Option<PathBuf> {
        dirs.iter().find_map(|dir| top_of(dir))
    }

    /// Returns the command that an alias abbreviates.
    pub(super) fn alias(&self, dirs: &[PathBuf]) -> Option<String> {
        let is_known = programs::row("git", Some(&self.subcommand)).is_some();
        if is_known || self.subcommand.is_empty() {
            return None;
        }
        let key = format!("alias.{}", self.subcommand);
        let text = dirs.iter().find_map(|dir| {
            let mut command = git();
            command.current_dir(dir).args(["config", "--get", &key]);
            String::from_utf8(output(command)?).ok()
        })?;
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
            dirs.iter().any(|dir| {
                let path = AbsPath::new(&dir.join(word.text()));
                let top = top_of(dir);
                path.is_some_and(|path| top.is_none_or(|top| !path.as_path().starts_with(top)))
            })
        };
        let is_here = self.selection.is_empty();
        let applies = before.iter().any(is_given)
            || is_here && dirs.iter().any(|dir| top_of(dir).is_none())
            || is_here && name == "diff" && operands().count() == 2 && operands().any(is_outside);
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

    fn is_set(&self, names: &str) -> bool {
        self.words.iter().any(|word| has(names, &word.text()))
    }

    /// Returns whether the command prints names, sizes and hashes only.
    pub(super) fn only_index(&self) -> bool {
        match self.subcommand.as_str() {
            "rm" => self.is_set("--cached"),
            "restore" => self.is_set("--staged -S") && !self.is_set("--worktree -W"),
            "cat-file" => self.is_set("-e -t -s"),
            // It prints a hash.
            "hash-object" => !self.words.iter().any(|word| {
                let text = word.text();
                text.starts_with('-') && !text.starts_with("--") && text.contains('w')
            }),
            _ => false,
        }
    }

    /// Returns the ids and names of commits that the command prints, which may be words of another one.
    pub(super) fn revisions(&self, dirs: &[PathBuf]) -> Option<String> {
        let is_id = |word: &Field| word.text().ends_with("%H") || word.text().ends_with("%h");
        let prints = match self.subcommand.as_str() {
            "rev-parse" | "merge-base" | "describe" => true,
            "rev-list" => !self.sets("--objects --objects-edge --format --pretty --header"),
            "log" => self.words.iter().any(is_id) && !self.prints(),
            _ => false,
        };
        let words = self.question().filter(|_| prints && !self.is_elsewhere)?;
        let top = self.top(dirs)?;
        let is_same = |dir: &PathBuf| top_of(dir).as_ref() == Some(&top);
        let dir = dirs.first().filter(|_| dirs.iter().all(is_same))?;
        let mut command = Repository::new(dir, &top, &self.selection)?.command();
        command.arg(&self.subcommand).args(words);
        let text = String::from_utf8(output(command)?).ok()?;
        (text.len() <= MAX_REVISIONS).then_some(text)
    }

    /// Returns whether `cat-file` prints kinds and sizes of what its input names.
    fn only_checks(&self) -> bool {
        let known = |word: &Field| word.known().unwrap_or_default();
        let mut words = self.words.iter().map(known);
        words.all(|word| word.split('=').next() == Some("--batch-check"))
    }

    /// Returns whether `cat-file -p` prints a commit, a tag, or the names in a tree.
    fn prints_no_file(&self, repository: &Repository) -> bool {
        let words = self.question().unwrap_or_default();
        let is_object = self.subcommand == "cat-file" && words.len() == 1;
        let kind = || repository.run("cat-file", &["-t".to_owned()], &words);
        let kind = is_object.then(kind).flatten().unwrap_or_default();
        kind.first()
            .is_some_and(|kind| has("commit tag tree", kind.trim_end()))
    }

    /// Returns whether the command does not change what later ones print.
    pub(super) fn only_reads(&self) -> bool {
        let first = self.words.first().map(Field::text).unwrap_or_default();
        self.subcommand.is_empty()
            || has(READERS, &self.subcommand)
            || self.subcommand == "stash" && has("show list drop clear", &first)
    }

    /// Returns whether the command may change files of the work tree.
    pub(super) fn changes_work_tree(&self) -> bool {
        !self.only_reads() && !has(OF_REPOSITORY, &self.subcommand)
    }

    /// Returns the folders whose files the command puts into others.
    pub(super) fn copied(&self, dirs: &[PathBuf]) -> Vec<PathBuf> {
        let operands = || self.words.iter().map(Field::text);
        let named = dirs
            .iter()
            .flat_map(|dir| operands().map(move |text| dir.join(text)));
        match self.subcommand.as_str() {
            "worktree" => self.top(dirs).into_iter().collect(),
            "clone" => named.filter(|place| place.is_dir()).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the operands that name a file whose content decides, and a denial if a version that the command prints
    /// may be secret. The name of an object means one version.
    pub(super) fn versions(
        &self,
        judge: &Judge<'_>,
        dirs: &[PathBuf],
    ) -> Vec<(String, Option<Denial>)> {
        let mut found = Vec::new();
        // `-L 1,5` has a value.
        let is_operand =
            |word: &&Field| !word.text().starts_with('-') && !word.text().contains(',');
        let operands = self.words.iter().filter(is_operand).count();
        let of_commit = has("blame annotate", &self.subcommand) && operands > 1;
        for field in &self.words {
            let word = field.text();
            let object = object_path(&word);
            if object.is_none() && !of_commit {
                continue;
            }
            let path = object.unwrap_or(&word);
            for dir in dirs {
                let top = top_of(dir).unwrap_or_else(|| dir.clone());
                let places = [dir.join(path), top.join(path)];
                let mut places = places.iter().filter_map(|place| AbsPath::new(place));
                let by_name = |place| judge.view.denial_of(&place, || false);
                let Some(denial) = places.find_map(|it| by_name(it).filter(|it| it.by_content))
                else {
                    continue;
                };
                let Some(repository) = Repository::new(dir, &top, &self.selection) else {
                    found.push((path.to_owned(), Some(denial)));
                    continue;
                };
                let denial = if object.is_some() && !field.has_unknown() {
                    repository.secret(denial, std::slice::from_ref(&word))
                } else {
                    let place = dir.join(path);
                    let below = place.strip_prefix(&top).unwrap_or(&place);
                    repository.secret_in_any_version(judge, &below.to_string_lossy(), denial)
                };
                found.push((path.to_owned(), denial));
            }
        }
        found
    }

    /// Returns what git does with its operands.
    pub(super) fn uses(&self) -> Vec<(Field, Use)> {
        let name = self.subcommand.as_str();
        let only_index = self.only_index();
        let program = [Field::quoted("git"), Field::quoted(name)];
        let arguments = Arguments::new(&[program.as_slice(), &self.words].concat());
        // A version is compared with the file on the disk.
        let names_object = |word: &Field| {
            let text = word.text();
            let is_id = text.len() > 3 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_id || object_path(&text).is_some()
        };
        let compares = has("diff difftool", name) && self.words.iter().any(names_object);
        let mut uses = Vec::new();
        for (word, kind) in arguments.uses {
            let text = word.text();
            if kind == Use::Text || excludes(&text) {
                continue;
            }
            if let Some(path) = object_path(&text) {
                let is_named = only_index || name == "rev-list";
                // With the names that a loop gives it.
                let before = text.chars().count() - path.chars().count();
                uses.push((
                    word.skip(before),
                    if is_named { Use::Stat } else { Use::Read },
                ));
            } else {
                let kind = match kind {
                    _ if only_index => Use::Stat,
                    Use::Stat if compares || self.is_set("--no-index") => Use::Read,
                    kind => kind,
                };
                uses.push((word, kind));
            }
        }
        uses
    }
}

/// Returns the words of a command without limits of the number of commits.
fn without_limits(words: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut is_value = false;
    for word in words {
        let name = word.split('=').next().unwrap_or(&word);
        let digits = word.strip_prefix("-n").or(word.strip_prefix('-'));
        let is_count = digits.is_some_and(|it| it.parse::<u32>().is_ok());
        let is_limit = has("-n --max-count --skip", name);
        if !(is_value || is_count || is_limit) {
            kept.push(word.clone());
        }
        is_value = is_limit && name == word;
    }
    kept
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

/// Returns `--` and the pathspecs of the files that `git status` prints: of all, unless some are named.
fn status_paths(specs: &[String]) -> Vec<String> {
    let is_all = specs.iter().all(|spec| excludes(spec));
    let first = ["--"].into_iter().chain(is_all.then_some(":/"));
    let rest = specs.iter().cloned();
    first.map(str::to_owned).chain(rest).collect()
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

/// Returns the command that a setting such as `alias.d` runs. `next`: the word after it.
pub(super) fn alias_value(word: &str, next: &str) -> Option<String> {
    let value = |rest: &str| match rest.strip_prefix('!') {
        Some(script) => script.to_owned(),
        None => format!("git {rest}"),
    };
    if let Some((_, given)) = next
        .strip_prefix("alias.")
        .and_then(|it| it.split_once('='))
    {
        return Some(value(given));
    }
    let is_name = word.starts_with("alias.") && !word.contains('=') && !next.starts_with('-');
    is_name.then(|| value(next))
}
