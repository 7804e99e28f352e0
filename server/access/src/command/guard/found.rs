//! Protected files that a search by name finds.

use std::path::{Path, PathBuf};

use super::{
    Change, Checker, State,
    effects::{Effect, Reach},
    invocation::Invocation,
};
use crate::{command::find::Find, path::AbsPath};

impl Checker<'_> {
    /// Checks the places that a search by name finds, if it changes them. Remembers them if another
    /// program reads their names.
    pub(super) fn guard_found(&mut self, invocation: &Invocation, effect: Effect, state: &State) {
        let Some(guarded) = &mut self.guard else {
            return;
        };
        let texts = invocation.texts(1);
        let find = invocation.find();
        let starts = |root: &Path, place: &Path| {
            let mut dirs = state.dirs.iter();
            dirs.find_map(|dir| {
                let root = AbsPath::new(&dir.join(root))?;
                let rest = place.strip_prefix(root.as_path()).ok()?;
                Some(rest.to_path_buf())
            })
        };
        let is_found = |place: &Path, find: &Find| {
            find.roots.iter().any(|root| {
                let root = root.text();
                let root = Path::new(&root);
                starts(root, place).is_some_and(|rest| {
                    let path = |rest: &Path| root.join(rest).to_string_lossy().into_owned();
                    find.reaches(&path(&rest), place.is_dir())
                        && !rest
                            .ancestors()
                            .skip(1)
                            .any(|above| find.prunes(&path(above)))
                })
            })
        };
        let words = || texts.iter().filter(|text| !text.starts_with('-'));
        let is_searched = |place: &Path| {
            let name = place.file_name().unwrap_or_default().to_string_lossy();
            let name = name.to_lowercase();
            let names = words().any(|text| {
                let mut parts = text
                    .split(|c: char| "*?[]^$\\+(){}|/.".contains(c))
                    .filter(|part| !part.is_empty())
                    .peekable();
                parts.peek().is_some() && parts.all(|part| name.contains(&part.to_lowercase()))
            });
            let mut roots = words().map(Path::new).chain([Path::new("")]);
            names && roots.any(|root| starts(root, place).is_some())
        };
        // Without a pattern, the mode of everything may be changed, as by `chmod -R`.
        let has_pattern = find.as_ref().is_none_or(|find| !find.patterns.is_empty());
        if effect.is_mode && !has_pattern {
            return;
        }
        let matches = guarded.places.iter().filter(|place| match &find {
            Some(find) => is_found(place, find),
            None => is_searched(place),
        });
        let matches: Vec<PathBuf> = matches.cloned().collect();
        if effect.reach == Reach::Nothing {
            let found = matches.into_iter().map(|place| (place, has_pattern));
            guarded.found.extend(found);
            return;
        }
        let mut refusals = matches.iter();
        let refusal = refusals.find_map(|place| guarded.refusal(place, Reach::File, Change::Any));
        if let Some(refusal) = refusal {
            self.refuse(&refusal);
        }
    }
}
