//! Encodes pack indexes, version 2: the offset and checksum of each object.

use sha1::{Digest, Sha1};

use crate::store::object::Oid;

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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn git_reads_large_offsets() {
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
            // Outside a repository, git 2.47 crashes without the format.
            .args(["show-index", "--object-format=sha1"])
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
    }
}
