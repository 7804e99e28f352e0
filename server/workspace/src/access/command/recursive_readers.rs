//! Checks programs that read directories recursively for denied files in these directories.
//!
//! The search is bounded. A command is denied if the bound is reached before the result is known.

mod tracked_files;

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use sightline_protocol::settings::RecursiveReaders;

use super::{
    CommandChecker, MAX_TIME,
    invocation::Invocation,
    name_filter::{NameFilter, TreeEntry},
    options::ProgramUse,
    program_table::{self, DefaultOperand, FolderReader, Visibility, WrittenOperand, has},
    shell::ShellState,
};
use crate::{
    access::{Denial, Rules},
    fs::dir::Dir,
    gitignore_stack,
    path::AbsPath,
};

/// Maximum directory entries visited for one command.
pub(super) const MAX_ENTRIES: usize = 200_000;
/// Maximum denied files reported per directory.
const MAX_NAMED: usize = 20;

/// What a program does with an entry.
#[derive(Clone, Copy)]
pub(super) struct EntryAction {
    pub(super) reads: bool,
    /// Whether it descends into a directory.
    pub(super) enters: bool,
}

/// A recursive read of a program.
pub(super) struct TreeSearch<'a> {
    /// Name of the program.
    pub(super) program: &'a str,
    /// How to exclude something, for the error message.
    pub(super) hint: &'a str,
    pub(super) skips_hidden: bool,
    pub(super) skips_ignored: bool,
    pub(super) visit: &'a dyn Fn(&TreeEntry<'_>) -> EntryAction,
}

impl TreeSearch<'_> {
    fn how(&self, folder: &str) -> String {
        format!(
            "`{}` would read it as part of `{folder}` (exclude it with {}, or set access.recursiveReaders to \"allow\")",
            self.program, self.hint
        )
    }
}

/// A directory that is not visited yet.
struct PendingDir {
    place: PathBuf,
    path: String,
    depth: usize,
    rules: gitignore_stack::IgnoreRules,
}

impl CommandChecker<'_> {
    /// Checks what a known program reads from directories.
    pub(super) fn check_recursive_read(
        &mut self,
        invocation: &Invocation,
        used: &ProgramUse,
        state: &ShellState,
    ) {
        let Some(reader) = &used.program.reader else {
            return;
        };
        if self.readers == RecursiveReaders::Allow || self.is_exhausted() {
            return;
        }
        let reads = reader.when.is_empty() && !reader.is_list || reads_folders(reader, used);
        let lists = (reader.is_list && !reads) || used.is_set(reader.lists);
        let is_off = used.is_set(reader.never) && !used.is_set(reader.reenabled_by);
        if is_off || if lists { !state.list_used } else { !reads } {
            return;
        }
        let name = invocation.program(used.at);
        let dirs = base_folders(invocation, used, state);
        if reader.visibility == Visibility::Tracked && !used.is_set("--no-index --untracked") {
            for dir in dirs {
                if !self.is_exhausted() {
                    self.check_tracked_files(&dir, reader, invocation, used);
                }
            }
            return;
        }
        let filter = NameFilter::new(reader, used);
        let is_visible = reader.visibility == Visibility::Visible && !filter.overrides;
        let everything = used.options.iter().filter(|set| set.name == "-u").count() > 1;
        let search = TreeSearch {
            program: &name,
            hint: reader.hint,
            skips_hidden: is_visible && !used.is_set(reader.shows_hidden) && !everything,
            skips_ignored: is_visible && !used.is_set(reader.shows_ignored),
            visit: &|entry| {
                let kept = filter.keeps(entry);
                EntryAction {
                    reads: kept && !entry.is_dir,
                    enters: kept,
                }
            },
        };
        let (folders, are_named) = self.read_dirs(invocation, used, reader, &dirs);
        if are_named {
            for (place, path) in folders {
                self.check_tree(&place, &path, &search);
            }
            return;
        }
        let of_list = has(program_table::LIST_RUNNERS, &invocation.program(0));
        let here = match reader.default {
            DefaultOperand::Nothing => false,
            DefaultOperand::CurrentFolder => !of_list,
            DefaultOperand::InputOrFolder => !of_list && !state.is_fed,
        };
        for dir in dirs.iter().filter(|_| here) {
            self.check_tree(dir, ".", &search);
        }
    }

    /// Returns the directories that the program is given, as absolute paths and as written, and
    /// whether it has any path operand.
    fn read_dirs(
        &mut self,
        invocation: &Invocation,
        used: &ProgramUse,
        reader: &FolderReader,
        dirs: &[PathBuf],
    ) -> (Vec<(PathBuf, String)>, bool) {
        let mut paths = used.paths();
        match reader.writes {
            _ if used.is_set(reader.target) => {}
            WrittenOperand::Nothing => {}
            WrittenOperand::First => paths = paths.get(1..).unwrap_or_default(),
            WrittenOperand::Last if paths.len() > 1 => paths = &paths[..paths.len() - 1],
            WrittenOperand::Last => {}
        }
        let mut folders = Vec::new();
        for field in paths.iter().flat_map(|at| invocation.fields(*at)) {
            if field.has_pattern() {
                for place in self.matches(field, dirs) {
                    let path = shown(&place, dirs);
                    folders.push((place, path));
                }
            } else if let Some(text) = field.known() {
                let places = dirs.iter().map(|dir| (dir.join(&text), text.clone()));
                folders.extend(places.filter(|(place, _)| !is_remote(&text) || place.exists()));
            }
        }
        (folders, !paths.is_empty())
    }

    /// Searches a directory for denied files that would be read.
    pub(super) fn check_tree(&mut self, folder: &Path, written: &str, search: &TreeSearch<'_>) {
        let Some(tops) = self.search_roots(folder, written) else {
            return;
        };
        let mut queue: VecDeque<PendingDir> = tops
            .into_iter()
            .map(|(place, path)| {
                let is_repository = place.ancestors().any(|above| above.join(".git").exists());
                let rules = if search.skips_ignored && is_repository {
                    gitignore_stack::IgnoreRules::above(&place, &place)
                } else {
                    gitignore_stack::IgnoreRules::default()
                };
                PendingDir {
                    place,
                    path,
                    depth: 1,
                    rules,
                }
            })
            .collect();
        let how = search.how(written);
        let before = self.denied.len();
        while let Some(folder) = queue.pop_front() {
            let Ok(entries) = fs::read_dir(&folder.place) else {
                continue;
            };
            let entries: Vec<fs::DirEntry> = entries.flatten().take(self.tree_left + 1).collect();
            if entries.len() > self.tree_left {
                return self.refuse_undecided(search, written, before);
            }
            self.tree_left -= entries.len();
            self.check_entries(&folder, &entries, search, (written, &how), &mut queue);
            if self.started.elapsed() > self.tree_time() {
                return self.refuse_undecided(search, written, before);
            }
            if self.denied.len() >= before + MAX_NAMED {
                return;
            }
        }
    }

    /// Returns how long directories are searched. A search for built-in secrets alone leaves time to
    /// check the rest of the command.
    fn tree_time(&self) -> Duration {
        if self.view.has_user_rules() {
            MAX_TIME
        } else {
            MAX_TIME / 4
        }
    }

    /// Denies a command that could not be checked completely, unless a file was denied since
    /// `before`. Without a rule of the user, such a command is allowed: built-in rules alone must
    /// not make large directories unsearchable.
    fn refuse_undecided(&mut self, search: &TreeSearch<'_>, folder: &str, before: usize) {
        if self.denied.len() > before || !self.view.has_user_rules() {
            return;
        }
        let reason = format!(
            "`{}` would read all of `{folder}`, which is too large to check for denied files; read smaller \
             directories, exclude some with {}, or set access.recursiveReaders to \"allow\"",
            search.program, search.hint
        );
        self.refuse(folder, reason);
    }

    fn check_entries(
        &mut self,
        folder: &PendingDir,
        entries: &[fs::DirEntry],
        search: &TreeSearch<'_>,
        (written, how): (&str, &str),
        queue: &mut VecDeque<PendingDir>,
    ) {
        let holds = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
        // The content of these files is not evaluated; they may include entries that `.gitignore`
        // ignores.
        let is_other = [".ignore", ".rgignore", ".fdignore"].into_iter().any(holds);
        let rules = if search.skips_ignored && !is_other {
            let dir = Dir::open_no_symlinks(&folder.place).ok();
            let text = dir
                .filter(|_| holds(gitignore_stack::FILE_NAME))
                .and_then(|dir| gitignore_stack::read_in(&dir));
            folder.rules.enter(&folder.place, holds(".git"), text)
        } else {
            gitignore_stack::IgnoreRules::default()
        };
        let mut ignores = rules.within(&folder.place);
        for entry in entries {
            if self.started.elapsed() > self.tree_time() {
                return;
            }
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let is_dir = kind.is_dir();
            let text = name.to_string_lossy();
            if (search.skips_hidden && text.starts_with('.')) || ignores.ignores(&name, is_dir) {
                continue;
            }
            let path = format!("{}/{text}", folder.path.trim_end_matches('/'));
            let visit = (search.visit)(&TreeEntry {
                path: &path,
                is_dir,
                depth: folder.depth,
            });
            if visit.reads {
                let place = entry.path();
                let denial = if kind.is_symlink() {
                    self.denial(&place)
                } else {
                    AbsPath::new(&place).and_then(|place| self.view.denial_of(&place, || is_dir))
                };
                if let Some(denial) = denial.filter(counts) {
                    let path = path.strip_prefix("./").unwrap_or(&path);
                    let shown = denial.named_in(path).unwrap_or(written);
                    self.deny(shown, how, denial);
                }
            }
            if is_dir && visit.enters {
                queue.push_back(PendingDir {
                    place: entry.path(),
                    path,
                    depth: folder.depth + 1,
                    rules: rules.clone(),
                });
            }
        }
    }

    /// Returns the directories to search: the given one, or the scopes with rules below it. Returns
    /// `None` if it is not a directory.
    fn search_roots(&self, folder: &Path, written: &str) -> Option<Vec<(PathBuf, String)>> {
        let real = AbsPath::new(&fs::canonicalize(folder).ok()?)?;
        if !real.as_path().is_dir() {
            return None;
        }
        let with_rules = || {
            let scopes = self.view.scopes.iter();
            // Rules may begin in any directory below a root.
            scopes.filter(|scope| scope.is_root || !matches!(scope.rules, Rules::None))
        };
        if with_rules().any(|scope| scope.relative(&real).is_some())
            || self.view.has_rules_outside(&real)
        {
            return Some(vec![(real.as_path().to_path_buf(), written.to_owned())]);
        }
        let below = with_rules().filter_map(|scope| {
            let rel = scope.real().relative_to(&real)?;
            let path = format!(
                "{}/{}",
                written.trim_end_matches('/'),
                rel.as_path().display()
            );
            Some((scope.real().as_path().to_path_buf(), path))
        });
        Some(below.collect())
    }
}

/// Returns whether the given options make a program read directories.
pub(super) fn reads_folders(reader: &FolderReader, used: &ProgramUse) -> bool {
    let recurses = |set: &super::options::SetOption| {
        matches!(set.name.as_str(), "-d" | "--directories")
            && set.value.as_deref() == Some("recurse")
    };
    used.is_set(reader.when)
        || (has(used.program.names, "grep") && used.options.iter().any(recurses))
}

/// Returns whether the denial matters for a recursive read. Rule files contain no secrets, so
/// denying them does not make a directory unreadable.
fn counts(denial: &Denial) -> bool {
    denial.rule.as_ref().is_none_or(|rule| rule.line > 0)
}

/// Returns whether `text` has the form `host:path`.
fn is_remote(text: &str) -> bool {
    text.split('/')
        .next()
        .is_some_and(|first| first.contains(':'))
}

/// Returns a path relative to one of the directories.
fn shown(place: &Path, dirs: &[PathBuf]) -> String {
    let below = dirs.iter().find_map(|dir| place.strip_prefix(dir).ok());
    below.unwrap_or(place).to_string_lossy().into_owned()
}

/// Returns the directories that the program's operands are relative to.
fn base_folders(invocation: &Invocation, used: &ProgramUse, state: &ShellState) -> Vec<PathBuf> {
    let sent = (used.at..invocation.len())
        .filter(|_| has(used.program.names, "git") || has(used.program.names, "tar"))
        .filter_map(|at| match invocation.exact(at)? {
            "-C" | "--directory" => invocation.exact(at + 1),
            word => word.strip_prefix("--directory="),
        });
    let mut dirs = state.dirs.clone();
    for folder in sent {
        for dir in &mut dirs {
            dir.push(folder);
        }
    }
    dirs
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use sightline_protocol::settings::Secrets;

    use super::*;
    use crate::{
        access::Access,
        path::{Root, Roots},
    };

    /// The error message says how to proceed.
    #[test]
    fn a_directory_that_is_too_large_is_denied() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".clineignore"), "nothing\n").unwrap();
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let root = Root::new(AbsPath::new(folder.path()).unwrap(), None);
        let view = Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Allow)
            .view()
            .0;
        for (left, is_allowed) in [(3, false), (4, true)] {
            let mut checker = CommandChecker::new(&view, RecursiveReaders::Deny);
            checker.tree_left = left;
            checker.run("grep -r x .");
            assert_eq!(checker.denied.is_empty(), is_allowed);
            if let [refused] = checker.denied.as_slice() {
                assert_eq!(refused.path, ".");
                assert!(refused.reason.contains("access.recursiveReaders"));
            }
        }
    }

    /// Otherwise no large project could be searched.
    #[test]
    fn a_directory_that_is_too_large_is_allowed_without_user_rules() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let root = Root::new(AbsPath::new(folder.path()).unwrap(), None);
        let roots = Arc::new(Roots::new(vec![root]));
        let view = Access::new(roots, Vec::new(), Secrets::Deny).view().0;
        for (name, is_allowed) in [(None, true), (Some(".env"), false)] {
            if let Some(name) = name {
                fs::write(folder.path().join(name), "").unwrap();
            }
            let mut checker = CommandChecker::new(&view, RecursiveReaders::Deny);
            checker.tree_left = if is_allowed { 1 } else { 100 };
            checker.run("grep -r x . | head");
            assert_eq!(checker.denied.is_empty(), is_allowed);
        }
    }
}
