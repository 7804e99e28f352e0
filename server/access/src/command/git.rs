//! Finds the denied files that a git command would print, by asking git for their names.
//!
//! The same command runs with `--name-only` and those of its options that are known to start no program
//! and write no file. With another option, or if git takes too long, the command is judged by the files
//! that git tracks.

mod changes;
mod options;
mod printed;
mod repository;
mod versions;

use std::path::{Component, Path, PathBuf};

pub(super) use changes::{Changes, alias_value};

use super::{
    expand::Field,
    programs::{GLOBAL_VALUES, Use, has},
};
use repository::{Repository, output};
pub(crate) use repository::{git, output_of};

use crate::gitignore_stack;
use sightline_base::path::AbsPath;

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
/// Subcommands that write their operands.
const WRITERS: &str = "checkout restore mv rm clean";
/// Other subcommands, which are no aliases.
const OTHERS: &str = "add commit blame annotate cat-file config apply am notes submodule rev-parse hash-object bundle \
                      fast-export show-ref show-branch symbolic-ref commit-tree write-tree read-tree maintenance lfs \
                      range-diff credential daemon send-email request-pull instaweb replace rerere pack-objects \
                      checkout-index unpack-file merge-tree";
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
            let options = ["-s", "-z"].map(str::to_owned);
            let lines = top_of(&dir)
                .and_then(|top| Repository::new(&dir, &top, &[]))
                .and_then(|repository| repository.run("ls-files", &options, &[]))
                .unwrap_or_default();
            let submodules: Vec<PathBuf> = lines
                .iter()
                .filter(|line| line.starts_with("160000 "))
                .filter_map(|line| Some(dir.join(line.split_once('\t')?.1)))
                .collect();
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

    /// Returns what git does with its operands.
    pub(super) fn uses(&self) -> Vec<(Field, Use)> {
        let is_set = |names: &str| self.is_set(names);
        let name = self.subcommand.as_str();
        let only_index = self.only_index();
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
