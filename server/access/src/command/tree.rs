//! Searches folders for the denied files that a program would read or name there.
//!
//! The search is bounded. A command is denied if the bound is reached before the result is known.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use ignore::{
    overrides::{Override, OverrideBuilder},
    types::{Types, TypesBuilder},
};

use super::{
    expand::Field,
    judge::{Judge, MAX_TIME, Writes},
    programs::{Arguments, Program, has},
    syntax::DeniedName,
};
use crate::{
    Denial,
    gitignore::glob::{Case, Matcher, NoGlob, Subject, Syntax},
    gitignore_stack::{self, IgnoreRules},
};
use sightline_base::{fs::dir::Dir, path::AbsPath};

/// Maximum directory entries visited for one folder.
const MAX_ENTRIES: usize = 1_000_000;
/// Maximum time of a command for searching. The rest is for judging what was found.
const MAX_SEARCH_TIME: Duration = MAX_TIME.saturating_sub(Duration::from_millis(500));
/// Maximum denied files that are found, of which names are passed on, and others.
const MAX_NAMES: usize = 100;
const MAX_FOUND: usize = 5_000;

/// An entry of a folder.
pub(super) struct Entry<'a> {
    /// Path as the program would print it.
    pub(super) path: &'a str,
    pub(super) is_dir: bool,
    /// Depth below the start; 1 for its entries.
    pub(super) depth: usize,
}

/// What a program does with an entry.
#[derive(Clone, Copy)]
pub(super) struct Visit {
    pub(super) uses: bool,
    /// Whether it is visited although it is hidden or ignored.
    pub(super) is_wanted: bool,
    /// Whether it descends into a folder.
    pub(super) enters: bool,
}

/// A search in a folder.
pub(super) struct Search<'a> {
    pub(super) skips_hidden: bool,
    pub(super) skips_ignored: bool,
    /// Whether folders themselves count.
    pub(super) with_folders: bool,
    /// Whether the names are passed on.
    pub(super) for_names: bool,
    pub(super) visit: &'a dyn Fn(&Entry<'_>) -> Visit,
}

/// A file or folder that a program is given.
pub(super) struct Operand {
    /// Where the program runs.
    pub(super) dir: PathBuf,
    pub(super) place: PathBuf,
    pub(super) written: String,
}

impl Operand {
    pub(super) fn new(dir: &Path, written: &str) -> Self {
        Self {
            dir: dir.to_path_buf(),
            place: dir.join(written),
            written: written.to_owned(),
        }
    }

    /// Returns the length of the operand at the start of the path of a [`DeniedName`].
    pub(super) fn len(&self) -> usize {
        let start = format!("{}/", self.written.trim_end_matches('/'));
        start.strip_prefix("./").unwrap_or(&start).len()
    }
}

/// Returns the denied files that a program with these arguments would read in a folder, or with `lists` the
/// denied entries that it would name, like `ls`.
pub(super) fn read_by_program(
    judge: &mut Judge<'_>,
    program: &Program,
    arguments: &Arguments,
    operand: &Operand,
    lists: bool,
) -> Vec<DeniedName> {
    let is_set = |field| arguments.is_set(program.get(field));
    let recurses = !lists || arguments.is_on("recursive");
    let filter = Filter::new(program, arguments, operand);
    let skips = program.has_field("skips");
    let extensions: Vec<&str> = arguments.values("-e --extension").collect();
    let by_extension = program.has_field("lists_names") && !extensions.is_empty();
    let visit = |entry: &Entry<'_>| {
        let is_kept = filter.keeps(entry);
        let has_extension = || {
            extensions
                .iter()
                .any(|it| entry.path.ends_with(&format!(".{it}")))
        };
        Visit {
            uses: is_kept
                && (!by_extension || has_extension())
                && !(lists && entry.is_dir && filter.only_included),
            is_wanted: filter.is_wanted(entry),
            enters: is_kept && recurses,
        }
    };
    search(
        judge,
        &Search {
            skips_hidden: (skips || lists) && !is_set("shows_hidden"),
            skips_ignored: skips && !is_set("shows_ignored"),
            // `ls` prints names without the folder, `ls DIR/*` and `tree -f` with it.
            with_folders: lists,
            for_names: arguments.prints_names_only(),
            visit: &visit,
        },
        &operand.place,
        &operand.written,
    )
}

/// Searches a folder, inside or outside of the workspace. If that cannot be completed, the folder
/// itself is among the denied names.
pub(super) fn search(
    judge: &mut Judge<'_>,
    search: &Search<'_>,
    folder: &Path,
    written: &str,
) -> Vec<DeniedName> {
    let mut found = Vec::new();
    let Some(place) = sightline_base::path::canonicalize(folder)
        .ok()
        .filter(|it| it.is_dir())
    else {
        return found;
    };
    let first = Pending {
        rules: if search.skips_ignored {
            IgnoreRules::above(&place, &place)
        } else {
            IgnoreRules::default()
        },
        place: place.clone(),
        path: written.to_owned(),
        depth: 1,
    };
    let mut walk = Walk {
        judge,
        search,
        entries_left: MAX_ENTRIES,
        queue: VecDeque::from([first]),
    };
    if !walk.run(&mut found) && judge.view.has_rules() {
        found.push(DeniedName::unsearched(written, place));
    }
    found
}

/// A folder that is not visited yet.
struct Pending {
    place: PathBuf,
    path: String,
    depth: usize,
    rules: IgnoreRules,
}

struct Walk<'a, 'v> {
    judge: &'a mut Judge<'v>,
    search: &'a Search<'a>,
    entries_left: usize,
    queue: VecDeque<Pending>,
}

impl Walk<'_, '_> {
    /// Returns whether everything was visited.
    fn run(&mut self, found: &mut Vec<DeniedName>) -> bool {
        while let Some(folder) = self.queue.pop_front() {
            if self.judge.elapsed() > MAX_SEARCH_TIME {
                return false;
            }
            let entries = fs::read_dir(&folder.place).into_iter().flatten().flatten();
            let entries: Vec<fs::DirEntry> = entries.take(self.entries_left + 1).collect();
            if entries.len() > self.entries_left {
                return false;
            }
            self.entries_left -= entries.len();
            self.visit_entries(&folder, &entries, found);
            if found.len()
                >= if self.search.for_names {
                    MAX_NAMES
                } else {
                    MAX_FOUND
                }
            {
                return false;
            }
        }
        true
    }

    fn visit_entries(
        &mut self,
        folder: &Pending,
        entries: &[fs::DirEntry],
        found: &mut Vec<DeniedName>,
    ) {
        let names: Vec<OsString> = entries.iter().map(fs::DirEntry::file_name).collect();
        let rules = if self.search.skips_ignored {
            ignore_rules(folder, &names)
        } else {
            IgnoreRules::default()
        };
        let mut ignores = rules.within(&folder.place);
        let mut is_seen = false;
        for (entry, name) in entries.iter().zip(&names) {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let is_dir = kind.is_dir();
            let text = name.to_string_lossy();
            let path = format!("{}/{text}", folder.path.trim_end_matches('/'));
            let visit = (self.search.visit)(&Entry {
                path: &path,
                is_dir,
                depth: folder.depth,
            });
            let is_hidden = self.search.skips_hidden && text.starts_with('.');
            if (is_hidden || ignores.ignores(name, is_dir)) && !visit.is_wanted {
                continue;
            }
            if visit.uses && (!is_dir || self.search.with_folders) {
                let place = entry.path();
                let denial = if self.judge.guarded.is_some() {
                    self.judge.denial(&place)
                } else if kind.is_symlink() {
                    self.judge.denial_of(&place)
                } else {
                    AbsPath::new(&place)
                        .and_then(|place| self.judge.view.denial_of(&place, || is_dir))
                };
                let denial = match denial {
                    Some(denial) if denial.by_content => {
                        let denial = self.judge.denial_of(&place);
                        denial.or_else(|| self.judge.denial_of_changed(&place, Writes::Versions))
                    }
                    denial => denial,
                };
                if denial.is_none() && !is_dir {
                    let folder = (!is_seen).then_some(folder.path.as_str());
                    self.judge.seen.add(&place, folder);
                    is_seen = true;
                }
                // Rule files contain no secrets.
                let counts =
                    |denial: &Denial| denial.rule.as_ref().is_none_or(|rule| rule.line > 0);
                found.extend(denial.filter(counts).map(|denial| {
                    let path = path.strip_prefix("./").unwrap_or(&path).to_owned();
                    DeniedName::new(path, place, is_dir, denial)
                }));
            }
            if is_dir && visit.enters && self.judge.may_hold(&entry.path()) {
                self.queue.push_back(Pending {
                    place: entry.path(),
                    path,
                    depth: folder.depth + 1,
                    rules: rules.clone(),
                });
            }
        }
    }
}

/// Returns the rules of `.gitignore` files in a folder with these entries. None if other files may
/// include what they ignore.
fn ignore_rules(folder: &Pending, names: &[OsString]) -> IgnoreRules {
    let holds = |name: &str| names.iter().any(|known| known == name);
    if [".ignore", ".rgignore", ".fdignore"].into_iter().any(holds) {
        return IgnoreRules::default();
    }
    let dir = Dir::open_no_symlinks(&folder.place).ok();
    let text = dir
        .filter(|_| holds(gitignore_stack::FILE_NAME))
        .and_then(|dir| gitignore_stack::read_in(&dir));
    folder.rules.enter(&folder.place, holds(".git"), text)
}

/// The include and exclude options of a command.
struct Filter {
    rules: Vec<FilterRule>,
    /// Whether the first of several matching patterns decides, not the last one.
    first_decides: bool,
    /// Whether files without a matching pattern are skipped.
    only_included: bool,
    globs: Option<Override>,
    types: Option<Types>,
}

/// What a pattern is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Name,
    /// The path, or its end at a separator.
    End,
    Path,
}

struct FilterRule {
    /// `None` for a pattern that matches nothing.
    matcher: Option<Matcher>,
    /// The matches of a pattern over a size limit are unknown.
    is_unknown: bool,
    target: Target,
    excludes: bool,
    files: bool,
    folders: bool,
}

impl Filter {
    fn new(program: &Program, arguments: &Arguments, operand: &Operand) -> Self {
        let style = program.get("style");
        let mut rules = Vec::new();
        let is_unfiltered = arguments.is_set(program.get("unfiltered"));
        for (name, value) in arguments.options.iter().filter(|_| !is_unfiltered) {
            let Some(value) = value else { continue };
            let separator = if program.has_field("powershell") {
                ','
            } else {
                '\0'
            };
            for (key, excludes, files, folders) in [
                ("exclude", true, true, true),
                ("exclude_files", true, true, false),
                ("exclude_folders", true, false, true),
                ("include", false, true, false),
            ] {
                let applies = has(program.get(key), name) && style != "git";
                for value in value.split(separator).filter(|_| applies) {
                    let mut rule = FilterRule::new(value, style, &operand.written);
                    // `rsync --include='*/'`
                    let is_transfer = style == "transfer";
                    let names_folder = value.ends_with('/');
                    rule.excludes = excludes;
                    rule.files = files && !(is_transfer && names_folder);
                    rule.folders = folders || is_transfer;
                    // `grep --exclude=.env/`: no file has such a name.
                    let is_for_folders = names_folder && !rule.folders;
                    rule.matcher = rule.matcher.filter(|_| !is_for_folders);
                    rules.push(rule);
                }
            }
        }
        let first = arguments.operands.first().map(Field::text);
        let root = match program.get("globs_in") {
            "first" => PathBuf::from(first.as_deref().unwrap_or(".")),
            _ => operand.dir.clone(),
        };
        let mut globs = OverrideBuilder::new(root);
        let mut has_globs = false;
        // `--iglob` comes after all others.
        let mut options: Vec<_> = arguments.options.iter().collect();
        options.sort_by_key(|(name, _)| name == "--iglob");
        for (name, value) in options {
            let Some(value) = value else { continue };
            let excludes = style == "git" && has(program.get("exclude"), name);
            if has(program.get("globs"), name) || excludes {
                let ignores_case = name == "--iglob" || arguments.is_set("--glob-case-insensitive");
                let _ = globs.case_insensitive(ignores_case);
                let mark = if excludes { "!" } else { "" };
                has_globs |= globs.add(&format!("{mark}{value}")).is_ok();
            }
        }
        Self {
            first_decides: style == "transfer",
            only_included: style != "transfer" && rules.iter().any(|rule| !rule.excludes),
            rules,
            globs: has_globs.then(|| globs.build().ok()).flatten(),
            types: types(program, arguments),
        }
    }

    /// Returns whether a pattern names the entry, so that it is not skipped.
    fn is_wanted(&self, entry: &Entry<'_>) -> bool {
        let globs = self.globs.as_ref();
        globs.is_some_and(|globs| globs.matched(entry.path, entry.is_dir).is_whitelist())
    }

    /// Returns whether the entry is used, or a folder is entered.
    fn keeps(&self, entry: &Entry<'_>) -> bool {
        if let Some(globs) = &self.globs {
            let matched = globs.matched(entry.path, entry.is_dir);
            if matched.is_ignore() {
                return false;
            }
            if matched.is_whitelist() && !entry.is_dir {
                return true;
            }
        }
        if let Some(types) = &self.types
            && types.matched(entry.path, entry.is_dir).is_ignore()
        {
            return false;
        }
        let mut matching = self.rules.iter().filter(|rule| rule.matches(entry));
        let deciding = match self.first_decides {
            true => matching.next(),
            false => matching.next_back(),
        };
        match deciding {
            Some(rule) => !rule.excludes,
            None => entry.is_dir || !self.only_included,
        }
    }
}

/// Returns the types of `rg -t` and `-T`.
fn types(program: &Program, arguments: &Arguments) -> Option<Types> {
    let wanted: Vec<&str> = arguments.values(program.get("types")).collect();
    let unwanted: Vec<&str> = arguments.values(program.get("types_not")).collect();
    // Types of the command line may contain hidden files.
    let are_changed = arguments.values("--type-add --type-clear").next().is_some();
    if wanted.is_empty() && unwanted.is_empty() || are_changed {
        return None;
    }
    let mut types = TypesBuilder::new();
    types.add_defaults();
    for name in wanted {
        types.select(name);
    }
    for name in unwanted {
        types.negate(name);
    }
    types.build().ok()
}

impl FilterRule {
    fn new(text: &str, style: &str, operand: &str) -> Self {
        // `ack --ignore-file=is:NAME`
        let plain = text.strip_prefix("is:").unwrap_or(text);
        let rooted;
        let (plain, target) = match style {
            // `tar --exclude=private/` leaves out nothing.
            "written" if plain.starts_with('/') || plain.ends_with('/') => ("/", Target::Name),
            "literal" if plain.contains(['*', '?', '[']) => ("/", Target::Name),
            "transfer" if plain.starts_with('/') => {
                rooted = format!("{}{plain}", transfer_root(operand));
                (
                    rooted.trim_start_matches("./").trim_end_matches('/'),
                    Target::Path,
                )
            }
            "transfer" if plain.starts_with("./") => ("/", Target::Name),
            "end" | "transfer" | "written" => {
                let plain = plain.trim_start_matches("./").trim_matches('/');
                let target = if plain.contains('/') {
                    Target::End
                } else {
                    Target::Name
                };
                (plain, target)
            }
            "whole" => {
                let plain = plain.trim_start_matches("./").trim_start_matches('/');
                (plain, Target::Path)
            }
            // `7z -xr!NAME -x!PATH`
            "archive" => match text.strip_prefix('!') {
                Some(path) => (path, Target::Path),
                None => (text.strip_prefix("r!").unwrap_or("/"), Target::Name),
            },
            _ => (plain.trim_end_matches('/'), Target::Name),
        };
        let syntax = Syntax::git(Case::Sensitive);
        let matcher = syntax.matcher(joined(plain).as_bytes(), Subject::Name);
        Self {
            is_unknown: matches!(matcher, Err(NoGlob::TooLarge)),
            matcher: matcher.ok(),
            target,
            excludes: true,
            files: true,
            folders: true,
        }
    }

    fn matches(&self, entry: &Entry<'_>) -> bool {
        if !(if entry.is_dir {
            self.folders
        } else {
            self.files
        }) {
            return false;
        }
        // With unknown matches, more is read: nothing is excluded, everything is included.
        if self.is_unknown {
            return !self.excludes;
        }
        let Some(matcher) = &self.matcher else {
            return false;
        };
        let is_match = |text: &str| matcher.is_match(joined(text).as_bytes());
        let path = entry.path.trim_start_matches("./");
        match self.target {
            Target::Name => is_match(path.rsplit('/').next().unwrap_or(path)),
            Target::Path => is_match(path),
            Target::End => {
                let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
                std::iter::once(path).chain(ends).any(is_match)
            }
        }
    }
}

/// Returns the folder in which `/` of patterns of `rsync` is, in the form of the operand.
fn transfer_root(operand: &str) -> &str {
    if operand == "." || operand.ends_with('/') {
        return operand.trim_end_matches('/');
    }
    operand.rsplit_once('/').map_or(".", |(parent, _)| parent)
}

/// Converts a path to a single name, so that `*` also matches separators.
pub(super) fn joined(path: &str) -> String {
    path.replace('/', "\u{1}")
}
