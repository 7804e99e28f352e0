//! Files that a command line must not change, and commands that it must not run, whatever the access
//! rules say.
//!
//! A [`CommandGuard`] knows which. Every word of a program that is not known to only read is taken
//! as a path that it changes.

mod archives;
mod code;
mod effects;
mod invocation;

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use regex::RegexBuilder;
use sightline_protocol::settings::RecursiveReaders;

use super::{
    Checker, State,
    deny::pieces,
    expand::Field,
    find::Find,
    programs::{self, Arguments, Use, folders_of, has},
    scripts::names_in_code,
    syntax::DeniedName,
};
use crate::AccessView;
use effects::{Effect, Reach};
use invocation::Invocation;
use sightline_base::{fs::find_programs, path::AbsPath};

/// Maximum words of code that are taken as one command.
const MAX_CODE_WORDS: usize = 12;

/// A change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its content, its name or its mode.
    Any,
    /// A program gets it that may change it, or changes only its mode.
    Possible,
    /// It is copied to another place.
    Copy,
    /// A program can change files of its folder.
    Folder,
}

/// Decides which files a command line must not change, and which commands it must not run.
pub trait CommandGuard: Sync {
    /// Returns files and folders that must not be removed with a folder above them. They need not exist.
    fn places(&self) -> Vec<PathBuf>;
    /// Returns why an absolute path must not be changed.
    fn change_refusal(&self, path: &Path, change: Change) -> Option<String>;
    /// Returns why a program must not run with these words, the first of which is its name. A word is
    /// `None` if its value is unknown. `is_certain`: the program runs; otherwise these are words of another
    /// one, which may run them.
    fn run_refusal(&self, words: &[Option<&str>], is_certain: bool) -> Option<String>;
    /// Returns the name by which [`Self::run_refusal`] knows a program that has another name here.
    fn program_name(&self, _path: &Path) -> Option<&'static str> {
        None
    }
    /// Returns whether a change of the files of a folder, such as `git restore FOLDER`, concerns a place.
    fn is_in(&self, place: &Path, folder: &Path) -> bool {
        place.parent() == Some(folder)
    }
}

/// Returns why a command line must not run in a folder. `None` if the guard refuses nothing.
pub fn guard_command(text: &str, folder: &Path, guard: &dyn CommandGuard) -> Option<String> {
    let view = AccessView::default();
    let mut checker = Checker::new(&view, RecursiveReaders::Deny);
    let guarded = Guarded::new(guard, folder.to_owned());
    checker.judge.guarded = Some(guarded.places.clone());
    checker.guard = Some(guarded);
    checker.check(text);
    let denied = checker.judge.denied.into_iter().next();
    denied.map(|denied| denied.reason)
}

/// Returns why one of these paths must not be changed: a file, or with `with_below` everything below it.
pub fn guard_changes(
    mut paths: impl Iterator<Item = PathBuf>,
    with_below: bool,
    guard: &dyn CommandGuard,
) -> Option<String> {
    let guarded = Guarded::new(guard, PathBuf::new());
    let reach = if with_below { Reach::Tree } else { Reach::File };
    paths.find_map(|path| guarded.refusal(&path, reach, Change::Any))
}

/// A guard, with its places that exist.
pub(super) struct Guarded<'a> {
    guard: &'a dyn CommandGuard,
    places: Vec<PathBuf>,
    /// Where the command runs.
    pub(super) folder: PathBuf,
}

impl<'a> Guarded<'a> {
    fn new(guard: &'a dyn CommandGuard, folder: PathBuf) -> Self {
        let mut places = guard.places();
        places.retain(|place| place.symlink_metadata().is_ok());
        Self {
            guard,
            places,
            folder,
        }
    }

    fn refusal(&self, path: &Path, reach: Reach, change: Change) -> Option<String> {
        if let Some(refusal) = self.guard.change_refusal(path, change) {
            return Some(refusal);
        }
        let real = sightline_base::path::canonicalize(path).unwrap_or_default();
        if reach == Reach::Into {
            // Programs that work on the folder of the session are not refused.
            let is_outside = |folder: &Path| !self.folder.starts_with(folder);
            let places = self.guard.places();
            let mut inside = places.iter().filter(|place| {
                let of_place = |path: &Path| place.parent() == Some(path) && is_outside(path);
                of_place(path) || of_place(&real)
            });
            return inside.find_map(|place| self.guard.change_refusal(place, Change::Folder));
        }
        let mut below = self.places.iter().filter(|place| {
            let mut found = [path, &real].into_iter().filter(|it| it.is_absolute());
            found.any(|path| match reach {
                Reach::Nothing | Reach::File | Reach::Into => false,
                Reach::Folder => self.guard.is_in(place, path),
                Reach::Tree => place.starts_with(path),
            })
        });
        below.find_map(|place| self.guard.change_refusal(place, change))
    }

    /// Returns why a path must not be created from another one, which may contain a place.
    fn refusal_of_copy(&self, from: &Path, to: &Path) -> Option<String> {
        let places = self.guard.places();
        let mut carried = places.iter().filter(|place| {
            place.strip_prefix(to).is_ok_and(|rest| {
                !rest.as_os_str().is_empty() && from.join(rest).symlink_metadata().is_ok()
            })
        });
        carried.find_map(|place| self.guard.change_refusal(place, Change::Any))
    }
}

impl Checker<'_> {
    /// Checks a simple command by the guard, with each guarded file whose name it gets.
    pub(super) fn guard_words_of(&mut self, words: &[Field], state: &State) {
        if self.guard.is_none() || words.is_empty() {
            return;
        }
        let words = &self.with_known_names(words, state);
        self.guard_invocation(&Invocation::new(words), state);
        let names = words.iter().flat_map(|word| word.names.iter());
        let mut places: Vec<&Path> = names.map(|name| name.place.as_path()).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let place = Field::quoted(&place.to_string_lossy());
            let named = words.iter().map(|word| {
                let is_named = !word.names.is_empty();
                if is_named { &place } else { word }.clone()
            });
            let named: Vec<Field> = named.collect();
            let named = Invocation::new(&named);
            // `find . -type f -exec chmod 644 {} +`
            if !Effect::of(&named, &effects::programs(&named)).keeps_access {
                self.guard_invocation(&named, state);
            }
        }
    }

    fn guard_invocation(&mut self, invocation: &Invocation, state: &State) {
        let Some(guarded) = &self.guard else { return };
        let guard = guarded.guard;
        if let Some(text) = invocation.executed() {
            let mut folders = state.dirs.iter();
            if let Some(refusal) = folders.find_map(|dir| guard_command(&text, dir, guard)) {
                self.refuse(&refusal);
            }
            return;
        }
        // `find` runs its commands with what it finds.
        if invocation.program(0) == "find" {
            for (word, kind) in &Find::new(&invocation.words).uses {
                if *kind == Use::Write {
                    self.guard_word(word, &state.dirs, Reach::File, Change::Any);
                }
            }
            return;
        }
        let programs = effects::programs(invocation);
        let last = programs.last().map(|at| invocation.program(*at));
        let last = last.unwrap_or_default();
        // Variables that the line has set reach the program.
        let names = state.variables.keys().map(|name| format!("{name}="));
        let names: Vec<String> = std::iter::once("env".to_owned()).chain(names).collect();
        let variables: Vec<Option<&str>> = names.iter().map(|name| Some(name.as_str())).collect();
        let mut is_certain = !state.is_guess;
        for at in &programs {
            let words = (*at..invocation.len()).map(|at| invocation.exact(at));
            let words: Vec<Option<&str>> = words.collect();
            let with_variables = [variables.as_slice(), &words].concat();
            let refusal = guard.run_refusal(&words, is_certain);
            if let Some(refusal) = refusal.or_else(|| guard.run_refusal(&with_variables, true)) {
                self.refuse(&refusal);
                return;
            }
            is_certain &= !has(programs::LAUNCHERS, &invocation.program(*at));
            // The value of an option is not known: `npx --yes PROGRAM FILE`, `docker run -v DIR:/x`.
            if let Some(word) = invocation.words.get(*at).filter(|_| *at > 0)
                && !word.text().ends_with(":ro")
            {
                self.guard_word(word, &state.dirs, Reach::Into, Change::Folder);
            }
        }
        if !programs::is_language(&last)
            && effects::may_run_words(&last)
            && !has(programs::LAUNCHERS, &invocation.program(0))
        {
            self.guard_runner(invocation, &last, state);
        }
        let dirs = folders_of(&invocation.words, &state.dirs);
        if has(effects::CONTENT, &last) {
            self.guard_copy(&invocation.words[1..], &dirs);
        }
        if let Some(at) = programs.last().filter(|_| has(archives::PROGRAMS, &last)) {
            self.guard_unpacked(&last, &invocation.words[*at..], state);
        }
        let effect = Effect::of(invocation, &programs);
        if effect.reach == Reach::Nothing || code::only_reads(invocation, &programs, state) {
            return;
        }
        let operands: Vec<&Field> = (1..invocation.len())
            .filter(|at| !programs.contains(at) || invocation.exact(*at).is_none())
            .filter_map(|at| invocation.words.get(at))
            .collect();
        if effect.creates {
            let at = programs.last().copied().unwrap_or_default();
            let arguments = Arguments::new(&invocation.words[at..]);
            let target = arguments.values("-t --target-directory").next();
            self.guard_created(&operands, target, state);
        }
        for (at, word) in operands.iter().enumerate() {
            let is_source = effect.copies && at + 1 < operands.len();
            let change = if is_source {
                Change::Copy
            } else {
                effect.change()
            };
            // The last operand of `cp` stays where it is.
            let reach = match effect.copies {
                true if effect.deletes && !is_source => Reach::Tree,
                true => Reach::File,
                false => effect.reach,
            };
            self.guard_word(word, &dirs, reach, change);
            if effects::takes_script(&last)
                || (programs::is_interpreter(&last) && !programs::is_language(&last))
            {
                let text = word.text();
                let parts = text.split(|c: char| c.is_whitespace() || "'\"`".contains(c));
                let mut parts: Vec<String> = parts.map(str::to_owned).collect();
                parts.extend(names_in_code(&last, &text));
                for part in parts {
                    self.guard_word(&Field::quoted(&part), &dirs, Reach::File, change);
                }
            }
        }
        if has(effects::MERGERS, &last) {
            self.guard_merged(&operands, &dirs);
        }
        if effect.reach == Reach::Into && has(effects::EXTRACTORS, &last) {
            self.guard_word(&Field::quoted("."), &dirs, Reach::Into, Change::Any);
        }
    }

    /// Checks the files that `find` deletes. It deletes only empty folders.
    pub(super) fn guard_deleted(&mut self, names: &[DeniedName]) {
        for name in names.iter().filter(|name| !name.is_dir) {
            let place = Field::quoted(&name.place.to_string_lossy());
            self.guard_word(&place, &[PathBuf::new()], Reach::File, Change::Any);
        }
    }

    /// Keeps the guarded files that a search may find: by their content, for `fd` by their name.
    pub(super) fn keep_matching(
        &self,
        program: &str,
        arguments: &Arguments,
        names: &mut Vec<DeniedName>,
    ) {
        let mut texts = arguments.uses.iter();
        let first = texts.find(|(_, kind)| *kind == Use::Text);
        let pattern = first.and_then(|(word, _)| word.known());
        let Some(pattern) = pattern.filter(|_| self.guard.is_some()) else {
            return;
        };
        let mut pattern = RegexBuilder::new(&pattern.replace("\\|", "|"));
        let Ok(pattern) = pattern.unicode(false).case_insensitive(true).build() else {
            return;
        };
        let text = |place: &Path| match has("fd fdfind", program) {
            true => Some(place.file_name()?.to_string_lossy().into_owned()),
            false => fs::read_to_string(place).ok(),
        };
        names.retain(|name| text(&name.place).is_none_or(|text| pattern.is_match(&text)));
    }

    /// Checks the commands among the words of a program that may run them.
    fn guard_runner(&mut self, invocation: &Invocation, program: &str, state: &State) {
        let is_alias = program == "alias";
        let is_folder =
            |text: &str| text.contains('/') && state.dirs.iter().any(|dir| dir.join(text).is_dir());
        let texts = invocation.texts(1);
        let separators =
            |c: char| c.is_whitespace() || "'\"`();|&".contains(c) || is_alias && c == '=';
        let mut words: Vec<&str> = texts
            .iter()
            .filter(|text| !is_folder(text))
            .flat_map(|text| text.split(separators))
            .filter(|word| !word.is_empty())
            .collect();
        // A name gets more words, or what the program reads.
        if is_alias || state.is_fed {
            words.push("...");
        }
        self.guard_words(words);
    }

    /// Checks what a program creates from its other operands: the last one, or an entry in it.
    fn guard_created(&mut self, operands: &[&Field], target: Option<&str>, state: &State) {
        let is_option = |word: &&&Field| word.text().starts_with('-');
        let paths: Vec<&&Field> = operands.iter().filter(|word| !is_option(word)).collect();
        // `-t DIR` names the target.
        let last = || paths.last().map(|word| (**word).clone());
        let target: Option<Field> = target.map(Field::quoted).or_else(last);
        let mut sources: Vec<PathBuf> = Vec::new();
        for field in &paths {
            // Of a pattern, the folder that it looks into.
            let names = field.names_of_path();
            let plain = names.iter().take_while(|name| !name.has_glob()).count();
            let text = field.text();
            // `HOST:FILE`
            let remote = text.rsplit_once(':').map(|(_, file)| PathBuf::from(file));
            sources.extend(remote);
            let from: PathBuf = match plain < names.len() {
                true => names.iter().take(plain).map(Field::text).collect(),
                false => PathBuf::from(&text),
            };
            let start = if text.starts_with('/') { "/" } else { "" };
            let from = Path::new(start).join(from);
            sources.extend(state.dirs.iter().map(|dir| dir.join(&from)));
        }
        let takes_contents = |field: &Field| {
            let text = field.text();
            text.ends_with("/.") || text.ends_with('/') || field.has_glob()
        };
        // The names in a folder that the command line creates are not known.
        let exists = |text: &str| state.dirs.iter().any(|dir| dir.join(text).exists());
        let is_unknown = paths.iter().any(|field| {
            let text = field.text();
            let folder = text.trim_end_matches(['*', '.', '/']);
            takes_contents(field)
                && !exists(folder)
                && target.as_ref().is_some_and(|target| target.text() != text)
        });
        if let Some(target) = target.as_ref().filter(|_| is_unknown) {
            self.guard_word(target, &state.dirs, Reach::Into, Change::Any);
        }
        if let Some(target) = target.as_ref() {
            self.guard_word(target, &state.dirs, Reach::File, Change::Any);
        }
        let Some(guarded) = &self.guard else { return };
        let places = target.iter().flat_map(|target| {
            let target = target.text();
            state.dirs.iter().map(move |dir| dir.join(&target))
        });
        let refusal = places
            .filter_map(|place| AbsPath::new(&place))
            .find_map(|target| {
                let target = target.as_path();
                sources
                    .iter()
                    .filter(|from| *from != target)
                    .find_map(|from| {
                        let inside = target.join(from.file_name().unwrap_or_default());
                        guarded
                            .refusal(&inside, Reach::File, Change::Any)
                            .or_else(|| guarded.refusal_of_copy(from, target))
                            .or_else(|| guarded.refusal_of_copy(from, &inside))
                    })
            });
        if let Some(refusal) = refusal {
            self.refuse(&refusal);
        }
    }

    /// Checks a program that puts the files of one folder into another, of any two folders among its words. With one, the
    /// other is the current folder, or the one above it as for `stow`.
    fn guard_merged(&mut self, operands: &[&Field], dirs: &[PathBuf]) {
        let Some(guarded) = &self.guard else { return };
        let home = self.home.clone().unwrap_or_default();
        let places = |text: &str| match text.strip_prefix('~') {
            Some(rest) => vec![home.join(rest.trim_start_matches('/'))],
            None => dirs.iter().map(|dir| dir.join(text)).collect(),
        };
        let folder = |path: PathBuf| AbsPath::new(&path).filter(|path| path.as_path().is_dir());
        let words = operands.iter().flat_map(|word| pieces(&word.text()));
        let words: Vec<String> = words.filter(|word| !word.starts_with('-')).collect();
        let named = words.iter().flat_map(|word| places(word));
        let mut targets: BTreeSet<AbsPath> = named.filter_map(folder).collect();
        if targets.len() < 2 {
            let above = dirs.iter().filter_map(|dir| dir.parent());
            let near = dirs.iter().map(PathBuf::as_path).chain(above);
            targets.extend(near.filter_map(|dir| folder(dir.to_owned())));
        }
        let refusal = targets.iter().find_map(|target| {
            // A package of `stow` is in one of the folders.
            let inside = targets
                .iter()
                .flat_map(|folder| words.iter().map(|word| folder.as_path().join(word)));
            let mut sources = inside.filter_map(folder).chain(targets.iter().cloned());
            sources.find_map(|source| {
                let (from, to) = (source.as_path(), target.as_path());
                (from != to).then(|| guarded.refusal_of_copy(from, to))?
            })
        });
        if let Some(refusal) = refusal {
            self.refuse(&refusal);
        }
    }

    /// Checks the commands that begin at any of these words.
    fn guard_words(&mut self, words: Vec<&str>) {
        let Some(guarded) = &self.guard else { return };
        let words = words.into_iter().map(|word| Some(self.name_in_code(word)));
        let words: Vec<Option<&str>> = words.collect();
        let refusal = (0..words.len()).find_map(|at| {
            let end = words.len().min(at + MAX_CODE_WORDS);
            // A program that is only named.
            (end > at + 1).then(|| guarded.guard.run_refusal(&words[at..end], false))?
        });
        if let Some(refusal) = refusal {
            self.refuse(&refusal);
        }
    }

    /// Checks words whose content a program or a redirection hands on.
    pub(super) fn guard_copy(&mut self, words: &[Field], dirs: &[PathBuf]) {
        for word in words {
            self.guard_word(word, dirs, Reach::File, Change::Copy);
        }
    }

    /// Checks a path that a redirection writes.
    pub(super) fn guard_redirection(&mut self, field: &Field, state: &State) {
        let named = field.names.iter().map(|name| name.place.to_string_lossy());
        let named: Vec<Field> = named.map(|place| Field::quoted(&place)).collect();
        for field in named.iter().chain([field]) {
            self.guard_word(field, &state.dirs, Reach::File, Change::Any);
        }
    }

    /// Returns the words with the name by which the guard knows a program, if one is a copy of it or a link to it.
    fn with_known_names(&self, words: &[Field], state: &State) -> Vec<Field> {
        let mut named = words.to_vec();
        for at in effects::programs(&Invocation::new(words)) {
            let known = words.get(at).and_then(Field::known);
            if let Some(name) = known.and_then(|word| self.known_name(&word, state)) {
                named[at] = Field {
                    span: words[at].span.clone(),
                    ..Field::quoted(name)
                };
            }
        }
        named
    }

    fn known_name(&self, word: &str, state: &State) -> Option<&'static str> {
        let guard = self.guard.as_ref()?.guard;
        if word.contains('/') {
            let below = word.strip_prefix("~/");
            let at_home = below.and_then(|rest| Some(self.home.as_ref()?.join(rest)));
            let mut paths = state.dirs.iter().map(|dir| dir.join(word)).chain(at_home);
            return paths.find_map(|path| guard.program_name(&path));
        }
        let set = state.variables.get("PATH").into_iter().flatten();
        set.map(|value| value.text().into())
            .chain(env::var_os("PATH"))
            .flat_map(|path| find_programs(&path, word).next())
            .find_map(|path| guard.program_name(&path))
    }

    /// Returns the name by which the guard knows a path in code.
    fn name_in_code<'w>(&self, word: &'w str) -> &'w str {
        let Some(guarded) = self.guard.as_ref().filter(|_| word.contains('/')) else {
            return word;
        };
        let path: PathBuf = guarded.folder.join(Path::new(word));
        guarded.guard.program_name(&path).unwrap_or(word)
    }

    /// Checks everything that a word could name.
    fn guard_word(&mut self, field: &Field, dirs: &[PathBuf], reach: Reach, change: Change) {
        if self.guard.is_none() || !self.judge.denied.is_empty() {
            return;
        }
        let mut values: Vec<String> = Vec::new();
        for piece in field.paths().iter().flat_map(|path| pieces(path)) {
            // `-oFILE`, `-uoFILE`
            let attached = (2..5).filter(|_| piece.starts_with('-'));
            values.extend(attached.filter_map(|at| {
                piece
                    .get(at..)
                    .filter(|value| !value.is_empty())
                    .map(str::to_owned)
            }));
            values.push(piece);
        }
        // The reason names the smallest part that is a path.
        values.sort_by_key(String::len);
        let home = self.home.clone().unwrap_or_default();
        let mut paths: Vec<PathBuf> = Vec::new();
        for value in &values {
            match value.strip_prefix("~/") {
                Some(rest) => paths.push(home.join(rest)),
                None => paths.extend(dirs.iter().map(|dir| dir.join(value))),
            }
        }
        // A part that is not known may be any name in a folder that is named.
        let names = field.names_of_path();
        let is_below = names.len() > 1 && names.first().is_some_and(|name| !name.has_unknown());
        if field.has_glob() || is_below && field.has_unknown() {
            let matches = self.judge.matches(field, dirs, false);
            paths.extend(matches.into_iter().map(|(_, place)| place));
        }
        let Some(guarded) = &self.guard else { return };
        let paths = paths.iter().filter_map(|path| AbsPath::new(path));
        let refusal = paths
            .into_iter()
            .find_map(|path| guarded.refusal(path.as_path(), reach, change));
        if let Some(refusal) = refusal {
            self.refuse(&refusal);
        }
    }
}

#[cfg(test)]
mod tests;
