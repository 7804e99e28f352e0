//! What earlier commands of a line change, so that git prints other files than it would now.

use std::path::{Path, PathBuf};

use super::{
    super::{
        expand::Field,
        judge::{Judge, Writes},
        programs::has,
    },
    Git,
    ask::{FileVersion, Repository},
    excludes, top_of,
};

/// Subcommands that change only what they are given of the index, the work tree and the commits.
const LOCAL: &str = "add commit rm mv update-index";

/// What the commands so far have changed.
#[derive(Default)]
pub(in crate::command) struct Changes {
    /// Commands of git, and the folders in which they run.
    pub(in crate::command) commands: Vec<(Git, Vec<PathBuf>)>,
    /// Paths that were removed or moved.
    pub(in crate::command) removed: Vec<PathBuf>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.removed.is_empty()
    }
}

impl Git {
    /// Returns the files that the command prints because of earlier commands.
    pub(super) fn files_after(
        &self,
        judge: &mut Judge<'_>,
        repository: &Repository,
        changes: &Changes,
    ) -> Option<Vec<FileVersion>> {
        let mut found = Vec::new();
        for (change, dirs) in &changes.commands {
            for dir in change.dirs(dirs) {
                if judge.is_exhausted() {
                    return None;
                }
                let Some(top) = top_of(&dir) else { continue };
                let other = Repository::new(&dir, &top, &change.selection)?;
                found.extend(change.changed(judge, &other)?);
            }
        }
        let replaces_any = judge.writes >= Writes::Files;
        if replaces_any || !changes.removed.is_empty() {
            let is_changed = |path: &String| {
                let place = repository.place(path);
                replaces_any
                    || changes
                        .removed
                        .iter()
                        .any(|removed| place.starts_with(removed))
            };
            let tracked = repository.files(&[], false)?;
            found.extend(FileVersion::any_of(tracked.into_iter().filter(is_changed)));
        }
        let specs = self.existing_paths(judge, repository);
        if !found.is_empty() && !specs.is_empty() {
            let matching = repository.files(&specs, true)?;
            found.retain(|file| matching.contains(&file.path));
        }
        Some(found)
    }

    /// Returns the files that this command may change for a later one.
    fn changed(&self, judge: &Judge<'_>, repository: &Repository) -> Option<Vec<FileVersion>> {
        let name = self.subcommand.as_str();
        let specs = if has("add rm mv restore", name) {
            self.existing_paths(judge, repository)
        } else {
            Vec::new()
        };
        let with = |first: &str| [vec![first.to_owned(), "--".to_owned()], specs.clone()].concat();
        let mut files = repository.changes(&["diff"], &with("--cached"))?;
        if has("rm mv", name) {
            files.extend(FileVersion::any_of(repository.files(&specs, false)?));
        }
        let only_staged = name == "commit"
            && !self.sets("-a --all -i --include -p --patch --interactive")
            && !self
                .words
                .iter()
                .any(|word| repository.has_file(&word.text()));
        if !only_staged {
            // Before the first commit, all files are new.
            let changed = repository.changes(&["diff"], &with("HEAD"));
            let all = || Some(FileVersion::current(repository.files(&specs, false)?));
            files.extend(changed.or_else(all)?);
        }
        let is_stash = name == "stash";
        let adds_new = match name {
            "add" => !self.sets("-u --update"),
            "stash" => self.sets("-u -a --include-untracked --all"),
            name => name == "update-index",
        };
        if adds_new {
            // The line may change what is ignored.
            let rewrites = |path: &String| {
                let path = Path::new(path);
                path.ends_with(".gitignore") || path.ends_with("info/exclude")
            };
            let with_ignored = self.sets(if is_stash { "-a --all" } else { "-f --force" })
                || name == "update-index"
                || judge.written.iter().any(rewrites);
            let specs = if specs.is_empty() {
                vec![":/".to_owned()]
            } else {
                specs.clone()
            };
            files.extend(repository.untracked(&specs, with_ignored)?);
        }
        let makes_branch = has("checkout switch", name)
            && self.sets("-b -B -c -C --orphan")
            && self.words.len() < 3;
        if has(LOCAL, name) && !is_stash || makes_branch {
            return Some(files);
        }
        // What comes from elsewhere is taken to be like what is here.
        if !is_stash {
            files.extend(FileVersion::current(repository.files(&specs, false)?));
        }
        for word in &self.words {
            let Some(word) = word.known() else {
                files.extend(repository.everything(&[], false, true)?);
                continue;
            };
            let question = match word.as_str() {
                "pop" | "apply" if is_stash => Vec::new(),
                // `checkout -`
                "-" => vec!["@{-1}".to_owned()],
                _ if word.starts_with('-') || repository.has_file(&word) => continue,
                _ => vec![word],
            };
            let commands: &[&[&str]] = match is_stash {
                true => &[&["stash", "show", "--include-untracked"]],
                false => &[&["show"], &["diff"]],
            };
            for command in commands {
                files.extend(repository.changes(command, &question).unwrap_or_default());
            }
        }
        Some(files)
    }

    /// Returns the operands that are paths. Empty if they do not restrict the command, or if one is unknown.
    fn existing_paths(&self, judge: &Judge<'_>, repository: &Repository) -> Vec<String> {
        let Some(texts) = self
            .words
            .iter()
            .map(Field::known)
            .collect::<Option<Vec<_>>>()
        else {
            return Vec::new();
        };
        if let Some(at) = texts.iter().position(|text| text == "--") {
            return texts[at + 1..].to_vec();
        }
        let is_path =
            |text: &&String| repository.has_file(text) || text.contains('*') || excludes(text);
        let operands = texts.iter().filter(|text| !text.starts_with('-'));
        if self.subcommand == "add" {
            // A folder that the line makes may have any files.
            let is_made = |text: &String| !is_path(&text) && !judge.copied.is_empty();
            return match operands.clone().any(is_made) {
                true => Vec::new(),
                false => operands.cloned().collect(),
            };
        }
        operands.filter(is_path).cloned().collect()
    }
}
