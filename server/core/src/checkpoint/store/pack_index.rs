//! Pack indexes, version 2: the offset and checksum of each object.

use std::{cmp::Ordering, path::Path};

use sha1::{Digest, Sha1};

use super::object::Oid;
use crate::{error::Error, storage::atomic_file};

const MAGIC: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
/// Length of the magic number and fan-out table.
const NAMES_AT: usize = 8 + 256 * 4;
/// Length of the two checksums at the end.
const TRAILER: usize = 40;
/// First offset that needs the table of 64-bit offsets.
const LARGE: u64 = 1 << 31;

/// An object in a pack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackIndexEntry {
    pub(crate) oid: Oid,
    /// CRC-32 of its entry in the pack.
    pub(crate) crc: u32,
    /// Offset of its entry in the pack.
    pub(crate) offset: u64,
}

/// Encodes an index. Sorts the entries by id.
pub(crate) fn encode(entries: &mut [PackIndexEntry], pack_checksum: &[u8; 20]) -> Vec<u8> {
    entries.sort_unstable_by_key(|entry| entry.oid);
    let mut bytes = Vec::with_capacity(NAMES_AT + entries.len() * 28 + TRAILER);
    bytes.extend_from_slice(&MAGIC);
    let mut counts = [0u32; 256];
    for entry in &*entries {
        counts[usize::from(entry.oid.0[0])] += 1;
    }
    let mut total = 0;
    for count in counts {
        total += count;
        bytes.extend_from_slice(&total.to_be_bytes());
    }
    for entry in &*entries {
        bytes.extend_from_slice(&entry.oid.0);
    }
    for entry in &*entries {
        bytes.extend_from_slice(&entry.crc.to_be_bytes());
    }
    let mut large = Vec::new();
    for entry in &*entries {
        let small = u32::try_from(entry.offset).ok();
        let word = match small.filter(|small| u64::from(*small) < LARGE) {
            Some(small) => small,
            None => {
                large.push(entry.offset);
                (1 << 31) | (large.len() - 1) as u32
            }
        };
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    for offset in large {
        bytes.extend_from_slice(&offset.to_be_bytes());
    }
    bytes.extend_from_slice(pack_checksum);
    let checksum = Sha1::digest(&bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

/// A decoded index.
#[derive(Debug)]
pub(crate) struct Index {
    bytes: Vec<u8>,
    count: usize,
    /// Ascending offsets of all entries, and the end of the last one.
    bounds: Vec<u64>,
}

impl Index {
    /// Reads the index of a pack of `pack_len` bytes.
    ///
    /// # Errors
    /// `storage` if it cannot be read or is damaged.
    pub(crate) fn read(path: &Path, pack_len: u64) -> Result<Self, Error> {
        // An entry has at least 9 bytes in the pack, and at most 36 in the index.
        let most = pack_len.saturating_mul(4).saturating_add(4096);
        let bytes = atomic_file::read_foreign(path, most)?.unwrap_or_default();
        Self::decode(bytes, pack_len).ok_or_else(|| {
            Error::storage(format!(
                "{} is damaged; the next checkpoint rebuilds the store from the intact checkpoints",
                path.display()
            ))
        })
    }

    fn decode(bytes: Vec<u8>, pack_len: u64) -> Option<Self> {
        if !bytes.starts_with(&MAGIC) {
            return None;
        }
        let count = word(&bytes, NAMES_AT - 4)? as usize;
        let small_end = NAMES_AT.checked_add(count.checked_mul(28)?)?;
        if bytes.len() < small_end.checked_add(TRAILER)? {
            return None;
        }
        let ascending = |at: usize| word(&bytes, 8 + at * 4) <= word(&bytes, 12 + at * 4);
        if !(0..255).all(ascending) {
            return None;
        }
        let mut index = Self {
            bytes,
            count,
            bounds: Vec::new(),
        };
        let mut bounds = (0..count)
            .map(|at| index.offset(at))
            .collect::<Option<Vec<_>>>()?;
        bounds.push(pack_len.checked_sub(20)?);
        bounds.sort_unstable();
        if bounds.last() != Some(&(pack_len - 20)) {
            return None;
        }
        index.bounds = bounds;
        Some(index)
    }

    /// Returns the checksum that the pack must end with.
    pub(crate) fn pack_checksum(&self) -> Option<&[u8; 20]> {
        self.bytes.last_chunk::<TRAILER>()?.first_chunk()
    }

    /// Number of objects.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Ids of the objects, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = Oid> {
        (0..self.count).map(|at| self.name(at))
    }

    /// Returns whether the pack has the object.
    pub(crate) fn has(&self, oid: Oid) -> bool {
        self.place(oid).is_some()
    }

    /// Returns the range of an object's entry in the pack.
    pub(crate) fn find(&self, oid: Oid) -> Option<std::ops::Range<u64>> {
        self.range(self.place(oid)?)
    }

    /// Returns the range of the entry that begins at `start`.
    pub(crate) fn range_from(&self, start: u64) -> Option<std::ops::Range<u64>> {
        let at = self.bounds.binary_search(&start).ok()?;
        Some(start..*self.bounds.get(at + 1)?)
    }

    /// Returns the checksum of an object's entry.
    pub(crate) fn crc(&self, oid: Oid) -> Option<u32> {
        self.crc_at(self.place(oid)?)
    }

    /// Returns the range and checksum with one lookup.
    pub(crate) fn find_with_crc(&self, oid: Oid) -> Option<(std::ops::Range<u64>, u32)> {
        let at = self.place(oid)?;
        self.range(at).zip(self.crc_at(at))
    }

    fn range(&self, at: usize) -> Option<std::ops::Range<u64>> {
        let start = self.offset(at)?;
        let next = self.bounds.partition_point(|bound| *bound <= start);
        Some(start..*self.bounds.get(next)?)
    }

    fn crc_at(&self, at: usize) -> Option<u32> {
        word(&self.bytes, NAMES_AT + self.count * 20 + at * 4)
    }

    /// Returns the position of an id in the sorted table.
    fn place(&self, oid: Oid) -> Option<usize> {
        let first = usize::from(oid.0[0]);
        let fan = |at: usize| word(&self.bytes, 8 + at * 4).map_or(0, |count| count as usize);
        let low = if first == 0 { 0 } else { fan(first - 1) };
        let (mut low, mut high) = (low.min(self.count), fan(first).min(self.count));
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name(middle).cmp(&oid) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    fn name(&self, at: usize) -> Oid {
        let start = NAMES_AT + at * 20;
        let mut name = [0; 20];
        name.copy_from_slice(&self.bytes[start..start + 20]);
        Oid(name)
    }

    fn offset(&self, at: usize) -> Option<u64> {
        let small = word(&self.bytes, NAMES_AT + self.count * 24 + at * 4)?;
        if u64::from(small) < LARGE {
            return Some(u64::from(small));
        }
        let large = NAMES_AT + self.count * 28 + (small & 0x7fff_ffff) as usize * 8;
        let bytes = self.bytes.get(large..large + 8)?;
        Some(u64::from_be_bytes(bytes.try_into().ok()?))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(first: u8, last: u8, offset: u64) -> PackIndexEntry {
        let mut oid = [7; 20];
        (oid[0], oid[19]) = (first, last);
        PackIndexEntry {
            oid: Oid(oid),
            crc: u32::from(last),
            offset,
        }
    }

    #[test]
    fn large_offsets_round_trip_and_git_reads_them() {
        let far = 5 << 31;
        let mut entries = [
            entry(9, 1, 12),
            entry(0, 1, LARGE),
            entry(255, 1, far),
            entry(9, 2, LARGE - 1),
        ];
        let bytes = encode(&mut entries, &[1; 20]);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.idx");
        std::fs::write(&path, &bytes).unwrap();
        let output = std::process::Command::new("git")
            .arg("show-index")
            .stdin(std::fs::File::open(&path).unwrap())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .output()
            .unwrap();
        assert!(output.status.success());
        let output = String::from_utf8(output.stdout).unwrap();
        for entry in &entries {
            assert!(
                output.contains(&format!("{} {}", entry.offset, entry.oid)),
                "{output}"
            );
        }
        let index = Index::decode(bytes, far + 100).unwrap();
        assert_eq!(index.find(entries[0].oid), Some(LARGE..far));
        assert_eq!(index.find(entry(9, 1, 0).oid), Some(12..LARGE - 1));
        assert_eq!(index.find(entry(255, 1, 0).oid), Some(far..far + 80));
        assert_eq!(index.find(entry(9, 3, 0).oid), None);
        assert_eq!(index.names().count(), 4);
    }

    proptest! {
        #[test]
        fn arbitrary_indexes_do_not_panic(
            cut in 0usize..1200,
            at in 0usize..1200,
            value: u8,
        ) {
            let mut entries = [entry(1, 1, 12), entry(1, 2, 40)];
            let mut bytes = encode(&mut entries, &[0; 20]);
            let at = at.min(bytes.len() - 1);
            bytes[at] = value;
            bytes.truncate(bytes.len().saturating_sub(cut));
            if let Some(index) = Index::decode(bytes, 100) {
                for entry in &entries {
                    index.find(entry.oid);
                }
            }
        }
    }
}
