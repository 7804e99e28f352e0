//! A preview, and the files and hunks that are chosen in it.

use std::sync::Arc;

use sightline_base::plural::plural;
use sightline_protocol::checkpoint::{PreviewRestoreResult, RestoreChange};

use super::choice::{Choice, Compared, SomeHunks};

/// A preview and the files that are chosen in it.
#[derive(Debug)]
pub(in crate::checkpoints) struct Preview {
    /// What was previewed.
    pub(in crate::checkpoints) of: Choice,
    pub(in crate::checkpoints) result: PreviewRestoreResult,
    /// For each change, whether it is made.
    pub(in crate::checkpoints) chosen: Vec<Chosen>,
    /// Index of a change or, after these, of a conflict.
    pub(in crate::checkpoints) selected: usize,
    /// Index of the hunk with the cursor.
    pub(in crate::checkpoints) hunk: usize,
}

/// Which hunks of a changed file are restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::checkpoints) enum Chosen {
    /// All of them, or the file if it has none.
    Whole,
    /// Those with these numbers, of a patch.
    Hunks(Vec<u32>, Arc<str>),
    /// None.
    Nothing,
}

impl Chosen {
    /// Returns whether the hunk with this index is restored.
    pub(in crate::checkpoints) fn has_hunk(&self, at: usize) -> bool {
        match self {
            Self::Whole => true,
            Self::Hunks(numbers, _) => numbers.iter().any(|number| *number as usize == at + 1),
            Self::Nothing => false,
        }
    }

    /// Returns this with one of `count` hunks more or less.
    pub(in crate::checkpoints) fn toggled(&self, at: usize, count: usize, patch: Arc<str>) -> Self {
        if count == 0 {
            return if *self == Self::Nothing {
                Self::Whole
            } else {
                Self::Nothing
            };
        }
        let is_chosen = |one: &usize| self.has_hunk(*one) != (*one == at);
        let numbers: Vec<u32> = (0..count)
            .filter(is_chosen)
            .map(|one| one as u32 + 1)
            .collect();
        match numbers.len() {
            0 => Self::Nothing,
            all if all == count => Self::Whole,
            _ => Self::Hunks(numbers, patch),
        }
    }
}

impl Preview {
    pub(in crate::checkpoints) fn new(of: Choice, result: PreviewRestoreResult) -> Self {
        Self {
            chosen: initially(&of, &result),
            of,
            result,
            selected: 0,
            hunk: 0,
        }
    }

    /// Returns the number of changes and conflicts.
    pub(in crate::checkpoints) fn len(&self) -> usize {
        self.result.changes.len() + self.result.conflicts.len()
    }

    pub(in crate::checkpoints) fn toggle(&mut self) {
        if let Some(chosen) = self.chosen.get_mut(self.selected) {
            *chosen = match chosen {
                Chosen::Whole => Chosen::Nothing,
                _ => Chosen::Whole,
            };
        }
    }

    /// Chooses all files, or none if all are.
    pub(in crate::checkpoints) fn toggle_all(&mut self) {
        let all = self.chosen.iter().all(|chosen| *chosen == Chosen::Whole);
        self.chosen
            .fill(if all { Chosen::Nothing } else { Chosen::Whole });
    }

    /// Chooses nothing of the files whose hunks have changed.
    pub(in crate::checkpoints) fn forget_hunks(&mut self) {
        let some = self.chosen.iter_mut();
        some.filter(|chosen| matches!(chosen, Chosen::Hunks(..)))
            .for_each(|chosen| *chosen = Chosen::Nothing);
    }

    /// Returns the name of the state after the turn, or before it.
    pub(in crate::checkpoints) fn other_side(&self) -> Option<String> {
        let name = self.result.target.as_ref()?.name.as_ref()?;
        Some(match name.strip_suffix('+') {
            Some(before) => before.to_owned(),
            None => format!("{name}+"),
        })
    }

    /// Returns whether this is the state before a turn.
    pub(in crate::checkpoints) fn is_of_turn(&self) -> bool {
        self.other_side().is_some_and(|side| side.ends_with('+'))
    }

    /// Returns whether only what the turn changed is reverted.
    pub(in crate::checkpoints) fn is_only_turn(&self) -> bool {
        self.of.only_turn
    }

    pub(in crate::checkpoints) fn choice(&self) -> Choice {
        if self.chosen == initially(&self.of, &self.result) {
            return self.of.clone();
        }
        let mut files = Vec::new();
        let mut hunks = Vec::new();
        for (change, chosen) in self.result.changes.iter().zip(&self.chosen) {
            match chosen {
                Chosen::Whole => files.push(change.uri.clone()),
                Chosen::Hunks(numbers, patch) => hunks.push(SomeHunks {
                    uri: change.uri.clone(),
                    numbers: numbers.clone(),
                    patch: patch.clone(),
                }),
                Chosen::Nothing => {}
            }
        }
        let whole = files.len() == self.chosen.len();
        Choice {
            // The numbers of hunks are those of this difference.
            id: if hunks.is_empty() {
                self.of.id.clone()
            } else {
                self.compared_from()
            },
            files: if whole && self.of.hunks.is_empty() {
                self.of.files.clone()
            } else {
                Some(files).filter(|files| hunks.is_empty() || !files.is_empty())
            },
            hunks,
            only_turn: self.of.only_turn,
        }
    }

    /// Returns whether a preview of the chosen files makes the changes that are shown.
    pub(in crate::checkpoints) fn has_chosen(&self, part: &PreviewRestoreResult) -> bool {
        self.chosen_changes().eq(&part.changes)
    }

    fn chosen_changes(&self) -> impl Iterator<Item = &RestoreChange> {
        let all = self.result.changes.iter().zip(&self.chosen);
        all.filter_map(|(change, chosen)| (*chosen != Chosen::Nothing).then_some(change))
    }

    pub(in crate::checkpoints) fn compared(&self) -> Option<Compared> {
        let changes = self.result.changes.iter().map(|change| &change.uri);
        let conflicts = self.result.conflicts.iter().map(|conflict| &conflict.uri);
        Some(Compared {
            from: self.compared_from(),
            files: vec![changes.chain(conflicts).nth(self.selected)?.clone()],
        })
    }

    /// Returns the state that the changes are shown from. From the name of a turn, its own changes are.
    fn compared_from(&self) -> String {
        let target = self.result.target.as_ref();
        let state = target.filter(|_| !self.of.only_turn);
        state.map_or(&self.of.id, |target| &target.id).clone()
    }

    /// Says how many files are chosen.
    pub(in crate::checkpoints) fn counts(&self) -> String {
        let chosen = self.chosen_changes().count();
        let all = plural(self.chosen.len(), "file");
        if chosen == self.chosen.len() {
            all
        } else {
            format!("{chosen} of {all}")
        }
    }
}

/// Returns what is chosen of a new preview.
fn initially(of: &Choice, result: &PreviewRestoreResult) -> Vec<Chosen> {
    result
        .changes
        .iter()
        .map(|change| {
            let some = of.hunks.iter().find(|file| file.uri == change.uri);
            some.map_or(Chosen::Whole, |file| {
                Chosen::Hunks(file.numbers.clone(), file.patch.clone())
            })
        })
        .collect()
}
