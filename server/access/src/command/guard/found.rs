//! Protected files that a search by name finds.

use std::path::{Path, PathBuf};

use super::{
    Change, Checker, State,
    effects::{Effect, Reach},
    invocation::Invocation,
};
use crate::{command::programs::has, path::AbsPath};

impl Checker<'_> {
    /// Checks the places that a search by name finds, if it changes them. Remembers them if another
    /// program reads their names.
    pub(super) fn guard_found(&mut self, invocation: &Invocation, effect: Effect, state: &State) {
        let Some(guarded) = &mut self.guard else {
            return;
        };
        let texts = invocation.texts(1);
        let finds = has("find", &invocation.program(0));
        let searched = |name: &str| {
            texts.iter().enumerate().any(|(at, text)| {
                let is_pattern = if finds {
                    at > 0
                        && has(
                            "-name -iname -path -ipath -wholename -regex -iregex",
                            &texts[at - 1],
                        )
                } else {
                    !text.starts_with('-')
                };
                let mut parts = text
                    .split(|c: char| "*?[]^$\\+(){}|/.".contains(c))
                    .filter(|part| !part.is_empty())
                    .peekable();
                is_pattern
                    && parts.peek().is_some()
                    && parts.all(|part| name.to_lowercase().contains(&part.to_lowercase()))
            })
        };
        let is_below = |place: &Path| {
            let mut roots = texts
                .iter()
                .filter(|text| !text.starts_with('-'))
                .peekable();
            let starts = |root: &Path| {
                let of = |dir: &PathBuf| {
                    AbsPath::new(&dir.join(root))
                        .is_some_and(|root| place.starts_with(root.as_path()))
                };
                state.dirs.iter().any(of)
            };
            !finds && starts(Path::new("")) || roots.any(|root| starts(Path::new(root)))
        };
        let matches = guarded.places.iter().filter(|place| {
            let name = place.file_name().unwrap_or_default().to_string_lossy();
            searched(&name) && is_below(place)
        });
        let matches: Vec<PathBuf> = matches.cloned().collect();
        if effect.reach == Reach::Nothing {
            guarded.found.extend(matches);
            return;
        }
        let mut refusals = matches.iter();
        let refusal = refusals.find_map(|place| guarded.refusal(place, Reach::File, Change::Any));
        if let Some(refusal) = refusal {
            self.refuse(&refusal);
        }
    }
}
