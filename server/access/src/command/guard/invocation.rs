//! The words of a simple command, as the guard reads them, and the files that a search among them finds.

use std::path::Path;

use super::{
    Checker, State,
    effects::{Effect, Reach},
};
use crate::command::{expand::Field, find::Find, programs::program_name, syntax::DeniedName};
use sightline_base::path::AbsPath;

/// The words of a simple command.
pub(super) struct Invocation {
    pub(super) words: Vec<Field>,
    known: Vec<Option<String>>,
}

impl Invocation {
    pub(super) fn new(words: &[Field]) -> Self {
        Self {
            words: words.to_vec(),
            known: words.iter().map(Field::known).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns a word if its value is known.
    pub(super) fn exact(&self, at: usize) -> Option<&str> {
        self.known.get(at)?.as_deref()
    }

    /// Returns the name of the program at a word.
    pub(super) fn program(&self, at: usize) -> String {
        let word = self.words.get(at);
        word.map(|word| program_name(&word.text()))
            .unwrap_or_default()
    }

    /// Returns the search of `find`.
    pub(super) fn find(&self) -> Option<Find> {
        let at = (0..self.len()).find(|at| self.program(*at) == "find")?;
        Some(Find::new(&self.words[at..]))
    }

    /// Returns the command line that `sightline exec` runs.
    pub(super) fn executed(&self) -> Option<String> {
        let texts = self.texts(0);
        if self.program(0) != "sightline" || !texts.iter().any(|text| text == "exec") {
            return None;
        }
        let mut at = texts.iter().position(|text| text == "exec")? + 1;
        let mut is_shell = false;
        while let Some(option) = texts.get(at).filter(|text| text.starts_with("--")) {
            at += if option == "--root" { 2 } else { 1 };
            is_shell |= option == "--shell";
            if option == "--" {
                break;
            }
        }
        let quoted = (at..self.len()).map(|at| match self.exact(at) {
            Some(word) if is_shell => word.to_owned(),
            Some(word) => format!("'{}'", word.replace('\'', "'\\''")),
            None => "\"$unknown\"".to_owned(),
        });
        Some(quoted.collect::<Vec<_>>().join(" "))
    }

    pub(super) fn texts(&self, from: usize) -> Vec<String> {
        let words = self.words.get(from..).unwrap_or_default();
        words.iter().map(Field::text).collect()
    }
}

impl Checker<'_> {
    /// Checks the places that a search finds, if it changes them. Returns those that it prints otherwise.
    pub(super) fn guard_found(
        &mut self,
        invocation: &Invocation,
        effect: Effect,
        state: &State,
    ) -> Vec<DeniedName> {
        let Some(guarded) = self.guard.as_ref().filter(|_| !effect.keeps_access) else {
            return Vec::new();
        };
        let texts = invocation.texts(1);
        let words = || texts.iter().filter(|text| !text.starts_with('-'));
        let find = invocation.find();
        let below = |root: &str, place: &Path| {
            let mut dirs = state.dirs.iter();
            dirs.find_map(|dir| {
                let start = AbsPath::new(&dir.join(root))?;
                let rest = place.strip_prefix(start.as_path()).ok()?;
                Some(rest.to_path_buf())
            })
        };
        let found = |place: &Path, find: &Find| {
            find.roots.iter().map(Field::text).find_map(|root| {
                let rest = below(&root, place)?;
                let path = |rest: &Path| Path::new(&root).join(rest).to_string_lossy().into_owned();
                let mut above = rest.ancestors().skip(1);
                let is_found = find.reaches(&path(&rest), place.is_dir())
                    && !above.any(|above| find.prunes(&path(above)));
                is_found.then(|| path(&rest))
            })
        };
        let searched = |place: &Path| {
            let name = place.file_name().unwrap_or_default().to_string_lossy();
            let name = name.to_lowercase();
            let mut patterns = words().filter(|text| {
                let mut parts = text
                    .split(|c: char| "*?[]^$\\+(){}|/.".contains(c))
                    .filter(|part| !part.is_empty())
                    .peekable();
                parts.peek().is_some() && parts.all(|part| name.contains(&part.to_lowercase()))
            });
            patterns.next()?;
            let mut roots = words().map(String::as_str).chain([""]);
            roots.find_map(|root| below(root, place))?;
            Some(place.to_string_lossy().into_owned())
        };
        let mut names = Vec::new();
        for place in &guarded.places {
            let path = match &find {
                Some(find) => found(place, find),
                None => searched(place),
            };
            names.extend(path.map(|path| DeniedName::guarded(path, place.clone())));
        }
        if effect.reach == Reach::Nothing {
            return names;
        }
        let mut refusals = names.iter();
        let change = effect.change();
        let refusal = refusals.find_map(|it| guarded.refusal(&it.place, Reach::File, change));
        if let Some(refusal) = refusal {
            self.refuse(&refusal);
        }
        Vec::new()
    }
}
