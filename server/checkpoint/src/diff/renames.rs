//! Detects renamed files: identical content, or at least half of it.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, HashMap, HashSet},
};

use sightline_workspace::cancel::Cancel;

use super::super::{
    store::object::{Kind, Oid, name_of},
    tree_diff::Difference,
};
use crate::error::Error;

/// Maximum number of files on each side to search for similar content, as git's `diff.renameLimit`.
/// With more, only identical files are matched.
const MAX_CANDIDATES: usize = 1000;
/// Maximum size of a file that is compared for similarity, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;
/// Maximum total size of compared contents, in bytes.
const MAX_TOTAL_BYTES: u64 = 128 * 1024 * 1024;
/// Maximum length of a compared piece of a line, in bytes, as in git.
const CHUNK_BYTES: usize = 64;
/// Minimum similarity in percent, git's default.
const MIN_SIMILARITY: u64 = 50;

/// Reads contents and their lengths.
pub(super) trait Contents {
    fn len(&self, of: ContentSide<'_>) -> Result<u64, Error>;
    fn read(&self, of: ContentSide<'_>) -> Result<Vec<u8>, Error>;
}

/// Which side of a difference.
#[derive(Clone, Copy)]
pub(super) enum ContentSide<'a> {
    Old(&'a Difference),
    New(&'a Difference),
}

/// Returns the index of the old path for the index of each new path.
pub(super) fn renames(
    differences: &[Difference],
    contents: &dyn Contents,
    cancel: &Cancel,
) -> Result<HashMap<usize, usize>, Error> {
    let mut gone: Vec<usize> = Vec::new();
    let mut new: Vec<usize> = Vec::new();
    for (index, difference) in differences.iter().enumerate() {
        match (&difference.left, &difference.right) {
            (Some(_), None) => gone.push(index),
            (None, Some(_)) => new.push(index),
            _ => {}
        }
    }
    let mut pairs = HashMap::new();
    same(differences, &mut gone, &mut new, &mut pairs);
    gone.retain(|index| differences[*index].left.is_some_and(|leaf| leaf.is_file()));
    new.retain(|index| differences[*index].right.is_some_and(|leaf| leaf.is_file()));
    if gone.len() <= MAX_CANDIDATES && new.len() <= MAX_CANDIDATES {
        similar(differences, &gone, &new, contents, cancel, &mut pairs)?;
    }
    Ok(pairs)
}

/// Matches identical files, and removes them from `gone` and `new`. Prefers a file with the same
/// name.
fn same(
    differences: &[Difference],
    gone: &mut Vec<usize>,
    new: &mut Vec<usize>,
    pairs: &mut HashMap<usize, usize>,
) {
    let empty = name_of(Kind::Blob, b"");
    let mut known: BTreeMap<(Oid, bool), Vec<usize>> = BTreeMap::new();
    for index in gone.iter() {
        // Empty files have nothing in common.
        if let Some(leaf) = differences[*index].left.filter(|leaf| leaf.oid != empty) {
            let key = (leaf.oid, leaf.is_file());
            known.entry(key).or_default().push(*index);
        }
    }
    new.retain(|index| {
        let Some(leaf) = differences[*index].right else {
            return true;
        };
        let Some(candidates) = known.get_mut(&(leaf.oid, leaf.is_file())) else {
            return true;
        };
        if candidates.is_empty() {
            return true;
        }
        let name = differences[*index].path.name();
        let of_same_name = candidates
            .iter()
            .position(|candidate| differences[*candidate].path.name() == name);
        pairs.insert(*index, candidates.remove(of_same_name.unwrap_or(0)));
        false
    });
    let used: HashSet<usize> = pairs.values().copied().collect();
    gone.retain(|index| !used.contains(index));
}

fn similar(
    differences: &[Difference],
    gone: &[usize],
    new: &[usize],
    contents: &dyn Contents,
    cancel: &Cancel,
    pairs: &mut HashMap<usize, usize>,
) -> Result<(), Error> {
    if gone.is_empty() || new.is_empty() {
        return Ok(());
    }
    let mut room = MAX_TOTAL_BYTES;
    let mut fingerprints =
        |indexes: &[usize], is_old: bool| -> Result<Vec<(usize, Fingerprint)>, Error> {
            let mut fingerprints = Vec::with_capacity(indexes.len());
            for index in indexes {
                cancel.check()?;
                let difference = &differences[*index];
                let of = if is_old {
                    ContentSide::Old(difference)
                } else {
                    ContentSide::New(difference)
                };
                let length = contents.len(of)?;
                if length == 0 || length > MAX_BYTES.min(room) {
                    continue;
                }
                room -= length;
                fingerprints.push((*index, Fingerprint::new(&contents.read(of)?)));
            }
            Ok(fingerprints)
        };
    let (old, new) = (fingerprints(gone, true)?, fingerprints(new, false)?);
    let mut found: Vec<(u64, bool, usize, usize)> = Vec::new();
    let name = |index: usize| differences[index].path.name();
    for (new_index, new) in &new {
        cancel.check()?;
        for (old_index, old) in &old {
            let percent = new.similarity(old);
            if percent >= MIN_SIMILARITY {
                let same_name = name(*new_index) == name(*old_index);
                found.push((percent, same_name, *new_index, *old_index));
            }
        }
    }
    // Most similar first, then in path order.
    found.sort_by_key(|(percent, same_name, new, old)| {
        (Reverse((*percent, *same_name)), *new, *old)
    });
    let mut taken = HashSet::new();
    for (_, _, new, old) in found {
        if !pairs.contains_key(&new) && taken.insert(old) {
            pairs.insert(new, old);
        }
    }
    Ok(())
}

/// Returns how much of the larger content is in the other one, in percent.
pub(super) fn similarity(old: &[u8], new: &[u8]) -> u64 {
    if old == new {
        return 100;
    }
    // Below 100 despite rounding.
    Fingerprint::new(new)
        .similarity(&Fingerprint::new(old))
        .min(99)
}

/// Pieces of a content, for comparison.
#[derive(Debug)]
struct Fingerprint {
    /// Hash and total length of each distinct piece, sorted.
    pieces: Vec<(u64, u64)>,
    length: u64,
}

impl Fingerprint {
    fn new(content: &[u8]) -> Self {
        let mut pieces: HashMap<u64, u64> = HashMap::new();
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            for piece in line.chunks(CHUNK_BYTES) {
                let hash = twox_hash::XxHash3_128::oneshot(piece) as u64;
                *pieces.entry(hash).or_default() += piece.len() as u64;
            }
        }
        let mut pieces: Vec<(u64, u64)> = pieces.into_iter().collect();
        pieces.sort_unstable();
        Self {
            pieces,
            length: content.len() as u64,
        }
    }

    fn similarity(&self, old: &Fingerprint) -> u64 {
        let larger = self.length.max(old.length);
        if larger == 0 {
            return 100;
        }
        if self.length.min(old.length) * 100 < larger * MIN_SIMILARITY {
            return 0;
        }
        let (mut left, mut right) = (self.pieces.iter().peekable(), old.pieces.iter().peekable());
        let mut same = 0;
        while let (Some((hash, bytes)), Some((other, others))) = (left.peek(), right.peek()) {
            match hash.cmp(other) {
                Ordering::Less => {
                    left.next();
                }
                Ordering::Greater => {
                    right.next();
                }
                Ordering::Equal => {
                    same += bytes.min(others);
                    left.next();
                    right.next();
                }
            }
        }
        same * 100 / larger
    }
}

#[cfg(test)]
mod tests {
    use super::similarity;

    #[test]
    fn similarity_is_the_common_share() {
        assert_eq!(similarity(b"a\nb\n", b"a\nb\n"), 100);
        assert_eq!(similarity(b"a\nb\n", b"a\nc\n"), 50);
        assert_eq!(similarity(b"a\nb\n", b"b\na\n"), 99);
        assert_eq!(similarity(b"a\nb\n", b"c\nd\n"), 0);
        assert_eq!(similarity(b"", b""), 100);
    }
}
