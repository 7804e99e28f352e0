//! Detects renamed files: a deleted and an added one with the same content.

use std::collections::{HashMap, VecDeque};

use super::super::{
    store::object::{Kind, Oid, name_of},
    tree_diff::Difference,
};

/// Returns the index of the old path for the index of each new path. Prefers a file with the same
/// name.
pub(crate) fn renames(differences: &[Difference]) -> HashMap<usize, usize> {
    // Empty files have nothing in common.
    let empty = name_of(Kind::Blob, b"");
    let mut gone: HashMap<(Oid, bool), VecDeque<usize>> = HashMap::new();
    for (index, difference) in differences.iter().enumerate() {
        if let (Some(leaf), None) = (difference.left, difference.right)
            && leaf.oid != empty
        {
            let key = (leaf.oid, leaf.is_file());
            gone.entry(key).or_default().push_back(index);
        }
    }
    let mut pairs = HashMap::new();
    for (index, difference) in differences.iter().enumerate() {
        let (None, Some(leaf)) = (difference.left, difference.right) else {
            continue;
        };
        let Some(candidates) = gone.get_mut(&(leaf.oid, leaf.is_file())) else {
            continue;
        };
        let name = difference.path.name();
        let same_name = candidates
            .iter()
            .position(|old| differences[*old].path.name() == name);
        if let Some(old) = candidates.remove(same_name.unwrap_or(0)) {
            pairs.insert(index, old);
        }
    }
    pairs
}
