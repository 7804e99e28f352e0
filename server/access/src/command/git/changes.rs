//! What earlier commands of a line change, so that git prints other files than it would now.

use std::path::PathBuf;

use super::{
    super::{
        expand::Field,
        judge::{Judge, Writes},
        programs::has,
        syntax::DeniedName,
    },
    Git, object_path,
    printed::{Kind, Printed, QUESTION},
    repository::Repository,
    top_of,
};

/// Subcommands that change neither the work tree nor the index and the commits.
const READERS: &str = "annotate archive blame branch bundle cat-file check-attr check-ignore config count-objects credential \
                       daemon describe diff diff-files diff-index diff-tree difftool fast-export for-each-ref format-patch \
                       fsck gc grep hash-object help log ls-files ls-tree maintenance merge-base name-rev notes push \
                       range-diff reflog remote rev-list rev-parse shortlog show show-branch show-ref status tag var \
                       version whatchanged";
/// Subcommands that change the work tree, the index or `HEAD` to a commit that they name, or to `HEAD`.
const MOVERS: &str = "checkout switch reset restore";

/// Other subcommands that do not change the work tree.
const OF_REPOSITORY: &str = "add commit commit-tree fetch init pack-refs prune repack symbolic-ref update-index \
                             update-ref write-tree";

/// What the commands so far have changed.
#[derive(Default)]
pub(in crate::command) struct Changes {
    /// Commands of git, and the folders in which they run.
    pub(in crate::command) commands: Vec<(Git, Vec<PathBuf>)>,
    /// Paths that were removed or moved.
    pub(in crate::command) removed: Vec<PathBuf>,
}

impl Git {
    /// Returns whether the command does not change what later ones print.
    pub(in crate::command) fn only_reads(&self) -> bool {
        let first = self.words.first().map(Field::text).unwrap_or_default();
        self.subcommand.is_empty()
            || has(READERS, &self.subcommand)
            || self.subcommand == "stash" && has("show list drop clear", &first)
    }

    /// Returns whether the command may change files of the work tree.
    pub(in crate::command) fn changes_work_tree(&self) -> bool {
        !self.only_reads() && !has(OF_REPOSITORY, &self.subcommand)
    }

    /// Returns whether the command runs in a repository that does not exist yet.
    pub(in crate::command) fn makes_repository(&self, changes: &Changes, dirs: &[PathBuf]) -> bool {
        !changes.commands.is_empty() && dirs.iter().any(|dir| top_of(dir).is_none())
    }

    /// Records the folders that the command creates, and those that they contain the files of.
    pub(in crate::command) fn add_copies(&self, judge: &mut Judge<'_>, dirs: &[PathBuf]) {
        let is_operand = |text: &String| !text.starts_with('-');
        let texts = self.words.iter().map(Field::text);
        let operands: Vec<String> = texts.filter(is_operand).collect();
        for dir in dirs {
            let places = operands.iter().map(|word| dir.join(word));
            let (sources, names): (Vec<PathBuf>, Vec<PathBuf>) = match self.subcommand.as_str() {
                "worktree" => (top_of(dir).into_iter().collect(), places.collect()),
                "clone" => {
                    let sources: Vec<PathBuf> = places.clone().filter(|it| it.is_dir()).collect();
                    let stems = sources.iter().filter_map(|source| source.file_stem());
                    let names = stems.map(|stem| dir.join(stem)).chain(places);
                    (sources.clone(), names.collect())
                }
                _ => continue,
            };
            for source in &sources {
                let names = names.iter().filter(|name| *name != source);
                names.for_each(|name| judge.add_link(name, source));
            }
        }
    }

    /// Adds the denied files that the command prints because of earlier commands. Returns `None` if they
    /// cannot be determined.
    pub(super) fn printed_after(
        &self,
        judge: &mut Judge<'_>,
        repository: &Repository,
        changes: &Changes,
        printed: &mut Printed,
    ) -> Option<()> {
        let mut found: Vec<DeniedName> = Vec::new();
        for (change, dirs) in &changes.commands {
            for dir in change.dirs(dirs) {
                if judge.is_exhausted() {
                    return None;
                }
                let Some(top) = top_of(&dir) else { continue };
                let other = Repository::new(&dir, &top, &change.selection)?;
                let paths = change.changed(judge, &other, self)?;
                found.extend(other.denied(judge, &paths));
            }
        }
        let replaces_any = judge.writes >= Writes::Files;
        if replaces_any || !changes.removed.is_empty() {
            let tracked = repository.denied(judge, &repository.files(&[], false)?);
            let is_changed = |name: &DeniedName| {
                let mut removed = changes.removed.iter();
                replaces_any || removed.any(|path| name.place.starts_with(path))
            };
            found.extend(tracked.into_iter().filter(is_changed));
        }
        let specs = self.paths(judge, repository);
        if !found.is_empty() && !specs.is_empty() {
            let matching = repository.files(&specs, true)?;
            let places: Vec<PathBuf> = matching.iter().map(|path| repository.place(path)).collect();
            found.retain(|name| places.contains(&name.place));
        }
        found.iter_mut().for_each(|name| name.fix = repository.fix);
        printed.contents.extend(found);
        Some(())
    }

    /// Returns the files that this command may change for a later one, relative to the top.
    fn changed(
        &self,
        judge: &Judge<'_>,
        repository: &Repository,
        later: &Self,
    ) -> Option<Vec<String>> {
        let names = format!("--name-only {QUESTION}");
        let ask = |command: &str, options: &str, words: &[String]| {
            let options: Vec<String> = options.split(' ').map(str::to_owned).collect();
            repository.run(command, &options, words)
        };
        let is_set = |options: &str| {
            self.words.iter().any(|word| {
                let text = word.text();
                let letters = text.strip_prefix('-').filter(|text| !text.starts_with('-'));
                options
                    .split(' ')
                    .any(|option| match option.strip_prefix("--") {
                        Some(_) => text.len() > 3 && option.starts_with(&text),
                        None => letters.is_some_and(|letters| letters.contains(&option[1..])),
                    })
            })
        };
        let specs = self.paths(judge, repository);
        let with = |first: &[&str]| {
            let first = first.iter().map(|word| (*word).to_owned());
            first
                .chain(["--".to_owned()])
                .chain(specs.clone())
                .collect::<Vec<_>>()
        };
        // Before the first commit, all files are new.
        let dirty =
            || ask("diff", &names, &with(&["HEAD"])).or_else(|| repository.files(&specs, false));
        match self.subcommand.as_str() {
            "commit"
                if specs.is_empty()
                    && !is_set("-a --all -i --include -p --patch --interactive") =>
            {
                ask("diff", &names, &with(&["--cached"]))
            }
            "commit" => dirty(),
            "add" | "stash" | "update-index" => {
                let first = self.words.first().map(Field::text).unwrap_or_default();
                let is_stash = self.subcommand == "stash";
                let mut paths = dirty()?;
                if is_stash && has("pop apply branch", &first) {
                    let shown = ask("stash", &format!("show --include-untracked {names}"), &[]);
                    paths.extend(shown.unwrap_or_default());
                }
                let with_untracked = if is_stash {
                    is_set("-u -a --include-untracked --all")
                } else {
                    !is_set("-u --update")
                };
                // The line may change what is ignored.
                let rewrites = |path: &String| {
                    path.ends_with("/.gitignore") || path.ends_with("/info/exclude")
                };
                let with_ignored = is_set(if is_stash { "-a --all" } else { "-f --force" })
                    || self.subcommand == "update-index"
                    || judge.written.iter().any(rewrites);
                if with_untracked {
                    let options = if with_ignored {
                        "-o -z"
                    } else {
                        "-o -z --exclude-standard"
                    };
                    let options = format!("{options} --full-name");
                    // A pathspec of a stash follows its options.
                    let words = if specs.is_empty() {
                        vec![":/".to_owned()]
                    } else {
                        with(&[])
                    };
                    paths.extend(ask("ls-files", &options, &words)?);
                }
                Some(paths)
            }
            name => {
                let mut paths = if has(MOVERS, name) {
                    dirty()?
                } else {
                    Vec::new()
                };
                let mut is_known = has(MOVERS, name);
                let needs_tree = matches!(later.kind(false), Kind::Grep | Kind::Tree | Kind::All);
                for word in self.words.iter().map(Field::text) {
                    let is_path = specs.contains(&word) || object_path(&word).is_some();
                    if word.starts_with('-') || is_path {
                        continue;
                    }
                    let revision = [word];
                    let of_word = if needs_tree {
                        ask("ls-tree", "-r -z --name-only --full-tree", &revision)
                    } else if has("log whatchanged reflog", &later.subcommand) {
                        ask("log", &format!("{names} --format="), &revision)
                    } else {
                        let shown = ask("show", &format!("{names} --format="), &revision);
                        let differing = ask("diff", &names, &revision);
                        shown.zip(differing).map(|(a, b)| [a, b].concat())
                    };
                    is_known &= of_word.is_some() || is_set("-b -B -c -C --orphan");
                    paths.extend(of_word.unwrap_or_default());
                }
                if !is_known || self.words.iter().any(Field::has_unknown) {
                    paths.extend(repository.files(&specs, false)?);
                }
                Some(paths)
            }
        }
    }

    /// Returns the paths that the command is restricted to. Empty if it is not, or if they are unknown.
    fn paths(&self, judge: &Judge<'_>, repository: &Repository) -> Vec<String> {
        if self.words.iter().any(Field::has_unknown) {
            return Vec::new();
        }
        let texts: Vec<String> = self.words.iter().map(Field::text).collect();
        if let Some(at) = texts.iter().position(|text| text == "--") {
            return texts[at + 1..].to_vec();
        }
        let is_path = |text: &String| repository.has_file(text) || text.contains('*');
        let operands = if has("add rm mv restore clean update-index", &self.subcommand)
            && !texts.iter().any(|text| text.starts_with("--pathspec-f"))
        {
            let is_option = |text: &String| text.starts_with('-') && text.len() > 1;
            let operands: Vec<String> = texts.into_iter().filter(|it| !is_option(it)).collect();
            // A name that the line gives to a folder means other files.
            let is_known = |text: &String| {
                is_path(text) || judge.link_targets(&repository.dir.join(text)).is_empty()
            };
            return if operands.iter().all(is_known) {
                operands
            } else {
                Vec::new()
            };
        } else if has(READERS, &self.subcommand) {
            self.question().unwrap_or_default().operands
        } else {
            // The options of other commands are not known, so operands could be their values.
            Vec::new()
        };
        let counts = |text: &String| super::excludes(text) || !text.is_empty() && is_path(text);
        operands.into_iter().filter(counts).collect()
    }
}

/// Returns the command that a setting such as `alias.d` runs. `next`: the word after it.
pub(in crate::command) fn alias_value(word: &str, next: &str) -> Option<String> {
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
