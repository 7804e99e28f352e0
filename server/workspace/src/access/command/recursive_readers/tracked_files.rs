//! Checks programs that read the files that git tracks.

use std::{fs, path::Path};

use super::{EntryAction, MAX_NAMED, TreeSearch, counts};
use crate::{
    access::command::{
        CommandChecker,
        invocation::Invocation,
        name_filter::{NameFilter, NamePattern, TreeEntry, below_top},
        options::{ProgramUse, excluded_path},
        program_table::{FolderReader, PatternStyle, has},
    },
    git::index::{GitIndex, TrackedKind},
    path::AbsPath,
};

/// Maximum git index that is read, in bytes.
const MAX_INDEX_BYTES: u64 = 64 << 20;

impl CommandChecker<'_> {
    /// Checks the files tracked by a git repository.
    pub(super) fn check_tracked_files(
        &mut self,
        dir: &Path,
        reader: &FolderReader,
        invocation: &Invocation,
        used: &ProgramUse,
    ) {
        let Some(dir) = fs::canonicalize(dir).ok().filter(|dir| dir.is_dir()) else {
            return;
        };
        let found = dir
            .ancestors()
            .find_map(|top| Some((top, GitIndex::of(top)?)));
        // Without its repository, git reads nothing.
        let Some((top, Ok(index))) = found else {
            return;
        };
        if self
            .search_roots(top, ".")
            .is_none_or(|tops| tops.is_empty())
        {
            return;
        }
        let below = dir
            .strip_prefix(top)
            .unwrap_or(Path::new(""))
            .to_string_lossy();
        let Some(wanted) = pathspecs(invocation, used, &dir, &below) else {
            return;
        };
        let filter = NameFilter::of_pathspecs(invocation, used, &below);
        let program = format!("git {}", subcommand(invocation, used));
        let search = TreeSearch {
            program: &program,
            hint: reader.hint,
            skips_hidden: false,
            skips_ignored: false,
            visit: &|entry| {
                let is_wanted = |pattern: &NamePattern| {
                    pattern.is_too_large()
                        || ancestors(entry.path).any(|path| pattern.matches(&at(path)))
                };
                let is_kept = ancestors(entry.path).all(|path| filter.keeps(&at(path)));
                EntryAction {
                    reads: is_kept && (wanted.is_empty() || wanted.iter().any(is_wanted)),
                    enters: false,
                }
            },
        };
        let before = self.denied.len();
        let tracked = match index.tracked_paths(MAX_INDEX_BYTES) {
            Ok(tracked) => tracked,
            Err(why) => return self.refuse_unlisted(&search, &format!("cannot be read: {why}")),
        };
        let how = search.how(".");
        // Other programs read files that are not in the work tree too.
        let reads_work_tree = has("grep", subcommand(invocation, used)) && !used.is_set("--cached");
        for entry in tracked {
            let files = match entry.kind {
                TrackedKind::SparseFolder(_) if reads_work_tree => continue,
                TrackedKind::SparseFolder(_) => {
                    match index.files_in_sparse_folder(&entry, self.tree_left) {
                        Ok(files) => files,
                        Err(why) => {
                            let why = format!("is sparse, and a folder cannot be read: {why}");
                            return self.refuse_unlisted(&search, &why);
                        }
                    }
                }
                TrackedKind::File | TrackedKind::Submodule => vec![entry],
            };
            for file in files {
                if self.denied.len() >= before + MAX_NAMED {
                    return;
                }
                if self.tree_left == 0 || self.started.elapsed() > self.tree_time() {
                    return self.refuse_undecided(&search, ".", before);
                }
                self.tree_left -= 1;
                let path = String::from_utf8_lossy(&file.path);
                let place = top.join(&*path);
                let denial =
                    AbsPath::new(&place).and_then(|place| self.view.denial_of(&place, || false));
                let Some(denial) = denial.filter(counts) else {
                    continue;
                };
                if (search.visit)(&at(&path)).reads {
                    let shown = denial.named_in(&path).unwrap_or(".").to_owned();
                    self.deny(&shown, &how, denial);
                }
            }
        }
    }

    /// Denies a command that reads tracked files if the git index does not list them. `why` completes
    /// a sentence about the index.
    fn refuse_unlisted(&mut self, search: &TreeSearch<'_>, why: &str) {
        if !self.view.has_user_rules() {
            return;
        }
        let reason = format!(
            "`{}` would read all tracked files, and the git index {why}; search folders with `grep -r` or `rg`, or set \
             access.recursiveReaders to \"allow\"",
            search.program
        );
        self.refuse(".", reason);
    }
}

/// Creates an entry for a file.
fn at(path: &str) -> TreeEntry<'_> {
    TreeEntry {
        path,
        is_dir: false,
        depth: 0,
    }
}

/// Returns the path and its ancestors.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
    folders.chain(std::iter::once(path))
}

fn subcommand<'a>(invocation: &'a Invocation, used: &ProgramUse) -> &'a str {
    let mut words = (used.at..invocation.len()).filter_map(|at| invocation.exact(at));
    words
        .find(|word| has(used.program.subcommands, word))
        .unwrap_or_default()
}

/// Returns the pathspecs of what git reads; empty if it reads everything, `None` if it reads single
/// objects.
fn pathspecs(
    invocation: &Invocation,
    used: &ProgramUse,
    dir: &Path,
    below: &str,
) -> Option<Vec<NamePattern>> {
    let mut wanted = Vec::new();
    let mut objects = 0;
    let is_grep = has(used.program.subcommands, "grep");
    for at in used.paths() {
        let Some(word) = invocation.exact(*at) else {
            continue;
        };
        if excluded_path(word).is_some() {
            continue;
        }
        let path = word
            .strip_prefix(":/")
            .or_else(|| word.strip_prefix(":(top)"));
        let is_path = invocation.is_behind_dashes(*at)
            || path.is_some()
            || (!word.starts_with(':') && (dir.join(word).exists() || word.contains('*')));
        if is_path {
            let text = below_top(path.unwrap_or(word), below, path.is_some());
            let text = if text.is_empty() { "*" } else { &text };
            wanted.push(NamePattern::new(text, PatternStyle::Whole));
        } else if word.contains(':') && !is_grep {
            // `HEAD:path` names a single file.
            objects += 1;
        }
    }
    let others = used.paths().len() - wanted.len();
    if objects > 0 && objects == others {
        return None;
    }
    if wanted.is_empty() && is_grep && !below.is_empty() {
        wanted.push(NamePattern::new(below, PatternStyle::Whole));
    }
    Some(wanted)
}
