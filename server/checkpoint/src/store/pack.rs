//! Reads one pack and its index with `gix-pack`.

mod index_writer;
pub(crate) mod writer;

use std::{
    cell::RefCell,
    fs,
    io::{self, ErrorKind as Io},
    ops::Range,
    path::{Path, PathBuf},
};

use sightline_base::{
    error::Error as WorkspaceError,
    storage::atomic_file::{failed, not_a_regular_file, read_foreign},
};

use gix_hash::{Kind as Hash, ObjectId};
use gix_pack::{
    cache::Never,
    data::{
        self,
        decode::{entry, header},
    },
    index,
};
use gix_zlib::Inflate;

use super::object::{Kind, Oid, Unreadable, name_of};
use crate::error::Error;

/// Maximum compression ratio of deflate.
pub(crate) const MAX_RATIO: u64 = 1032;

thread_local! {
    /// Reused, because a new one allocates more than a small object.
    static INFLATE: RefCell<Inflate> = RefCell::default();
}

/// A pack and its index.
pub(crate) struct Pack {
    path: PathBuf,
    index: index::File<Vec<u8>>,
    data: data::File,
    /// Ascending offsets of all entries, and the end of the last one.
    bounds: Vec<u64>,
}

impl Pack {
    /// Opens a pack that has an index.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a file is missing or damaged, or the two do not belong together. Another
    /// error if a file cannot be opened or read, such as with too many open files: the pack may be
    /// intact.
    pub(crate) fn open(path: &Path, largest: u64) -> Result<Self, Error> {
        let found = match fs::symlink_metadata(path) {
            Err(error) if error.kind() != Io::NotFound => {
                return Err(failed("inspect", path, error).into());
            }
            found => found.ok().filter(fs::Metadata::is_file),
        };
        // `gix-pack` would follow a link, and block on a pipe.
        let Some(found) = found else {
            return Err(Error::damaged(not_a_regular_file(path).to_string()));
        };
        let index = path.with_extension("idx");
        let damaged = || {
            Error::damaged(format!(
                "{} is damaged; the next checkpoint rebuilds the store from the intact checkpoints",
                index.display()
            ))
        };
        // An entry has at least 9 bytes in the pack, and at most 36 in the index.
        let most = found.len().saturating_mul(4).saturating_add(4096);
        let bytes = match read_foreign(&index, most) {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(error @ WorkspaceError::Storage { .. }) => return Err(error.into()),
            Err(_) => return Err(damaged()),
        };
        let index =
            index::File::from_data(bytes, index.clone(), Hash::Sha1).map_err(|_| damaged())?;
        // A damaged length must not allocate more than the content can need. Applying a delta
        // needs two buffers and the instructions.
        let limit = found
            .len()
            .saturating_mul(MAX_RATIO)
            .min(largest.saturating_mul(3));
        let data = data::File::at(path, Hash::Sha1)
            .map_err(|error| match error.downcast_any_ref::<io::Error>() {
                Some(cause) => {
                    let number = cause.raw_os_error();
                    let cause = number.map_or(cause.kind().into(), io::Error::from_raw_os_error);
                    failed("open", path, cause).into()
                }
                None => damaged(),
            })?
            .with_alloc_limit_bytes(usize::try_from(limit).ok());
        let mut bounds = index.sorted_offsets();
        let end = data.pack_end() as u64;
        let is_within = bounds.last().is_none_or(|last| *last < end);
        if !is_within || index.pack_checksum() != data.checksum() {
            return Err(damaged());
        }
        bounds.push(end);
        Ok(Self {
            path: path.to_path_buf(),
            index,
            data,
            bounds,
        })
    }

    /// Path of the pack.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the pack, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.data.data_len() as u64
    }

    /// Returns whether a `.keep` file protects the pack.
    pub(crate) fn is_kept(&self) -> bool {
        self.path
            .with_extension("keep")
            .try_exists()
            .unwrap_or(true)
    }

    /// Returns the objects, ordered by their offset.
    pub(crate) fn objects(&self) -> Vec<Oid> {
        let mut entries: Vec<index::Entry> = self.index.iter().collect();
        entries.sort_unstable_by_key(|entry| entry.pack_offset);
        let oid = |entry: &index::Entry| Oid::from_gix(&entry.oid);
        entries.iter().filter_map(oid).collect()
    }

    /// Returns whether the pack has the object.
    pub(crate) fn has(&self, oid: Oid) -> bool {
        self.find(oid).is_some()
    }

    /// Returns the range of an object's entry in the pack.
    pub(crate) fn entry_range(&self, oid: Oid) -> Option<Range<u64>> {
        Some(self.range(self.find(oid)?))
    }

    fn find(&self, oid: Oid) -> Option<u32> {
        self.index.lookup(ObjectId::from(oid.0))
    }

    fn range(&self, at: u32) -> Range<u64> {
        let start = self.index.pack_offset_at_index(at);
        let next = self.bounds.partition_point(|bound| *bound <= start);
        start..self.bounds.get(next).copied().unwrap_or(start)
    }

    /// Returns the kind and length of an object without reading its content, or `None` if this pack
    /// does not have it.
    pub(crate) fn header(&self, oid: Oid) -> Option<Result<(Kind, u64), Unreadable>> {
        let at = self.find(oid)?;
        Some(INFLATE.with_borrow_mut(|inflate| self.decode_header(at, inflate)))
    }

    /// Reads an object of at most `largest` bytes and verifies its id. Returns `None` if this pack
    /// does not have it.
    pub(crate) fn read(
        &self,
        oid: Oid,
        largest: u64,
    ) -> Option<Result<(Kind, Vec<u8>), Unreadable>> {
        let at = self.find(oid)?;
        let read = INFLATE.with_borrow_mut(|inflate| self.decode(at, largest, inflate));
        let verified = read.and_then(|(kind, bytes)| {
            if name_of(kind, &bytes) == oid {
                Ok((kind, bytes))
            } else {
                Err(Unreadable::Damaged)
            }
        });
        Some(verified)
    }

    fn decode_header(&self, at: u32, inflate: &mut Inflate) -> Result<(Kind, u64), Unreadable> {
        let range = self.range(at);
        let entry = self.entry(range.start)?;
        if entry.decompressed_size > (range.end - range.start).saturating_mul(MAX_RATIO) {
            return Err(Unreadable::Damaged);
        }
        let found = self.data.decode_header(entry, inflate, &|base| {
            let base = self.index.lookup(base);
            let entry = base.map(|at| self.data.entry(self.index.pack_offset_at_index(at)));
            Ok(entry.transpose()?.map(header::ResolvedBase::InPack))
        });
        let found = found.map_err(|_| Unreadable::Damaged)?;
        Ok((found.kind, found.object_size))
    }

    fn decode(
        &self,
        at: u32,
        largest: u64,
        inflate: &mut Inflate,
    ) -> Result<(Kind, Vec<u8>), Unreadable> {
        let (_, length) = self.decode_header(at, inflate)?;
        if length > largest {
            return Err(Unreadable::TooLarge(length));
        }
        let entry = self.entry(self.range(at).start)?;
        let mut bytes = Vec::new();
        let found = self.data.decode_entry(
            entry,
            &mut bytes,
            inflate,
            &|base, _| {
                let base = self.index.lookup(base);
                let entry = base.map(|at| self.data.entry(self.index.pack_offset_at_index(at)));
                Ok(entry.transpose()?.map(entry::ResolvedBase::InPack))
            },
            &mut Never,
        );
        let found = found.map_err(|_| Unreadable::Damaged)?;
        Ok((found.kind, bytes))
    }

    fn entry(&self, offset: u64) -> Result<data::Entry, Unreadable> {
        self.data.entry(offset).map_err(|_| Unreadable::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha1::{Digest, Sha1};
    use tempfile::TempDir;

    use super::*;
    use crate::{
        store::{object::Mode, pack::index_writer::PackIndexEntry},
        testing::{Scratch, git, noise},
    };

    const BLOB: u8 = 3;
    const OFFSET_DELTA: u8 = 6;

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
        let mut out = vec![0; compressor.zlib_compress_bound(bytes.len())];
        let length = compressor.zlib_compress(bytes, &mut out).unwrap();
        out.truncate(length);
        out
    }

    /// An entry with less than 2048 bytes of content. `base` follows its header.
    fn entry(code: u8, base: &[u8], content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let header = [
            0x80 | (code << 4) | (length & 15) as u8,
            (length >> 4) as u8,
        ];
        [&header, base, &deflated(content)].concat()
    }

    /// Writes a pack of these entries.
    fn write(entries: &[(Oid, Vec<u8>)]) -> (TempDir, PathBuf) {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend_from_slice(&(entries.len() as u32).to_be_bytes());
        let mut listed = Vec::new();
        for (oid, entry) in entries {
            listed.push(PackIndexEntry {
                oid: *oid,
                crc: crc32fast::hash(entry),
                offset: pack.len() as u64,
            });
            pack.extend_from_slice(entry);
        }
        let checksum: [u8; 20] = Sha1::digest(&pack).into();
        pack.extend_from_slice(&checksum);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pack-x.pack");
        fs::write(&path, pack).unwrap();
        let index = index_writer::encode(&mut listed, &checksum);
        fs::write(path.with_extension("idx"), index).unwrap();
        (folder, path)
    }

    fn open(path: &Path) -> Pack {
        Pack::open(path, u64::MAX).unwrap()
    }

    fn blob(pack: &Pack, oid: Oid) -> Result<Vec<u8>, Unreadable> {
        pack.read(oid, u64::MAX).unwrap().map(|(kind, bytes)| {
            assert_eq!(kind, Kind::Blob);
            bytes
        })
    }

    #[test]
    fn objects_are_read_and_damage_is_detected() {
        let scratch = Scratch::new();
        let contents = [
            Vec::new(),
            b"text\n".repeat(40),
            noise(1, 15),
            noise(2, 300_000),
            vec![0; 5_000_000],
        ];
        for (at, content) in contents.iter().enumerate() {
            let file = (&b"file"[..], &content[..], Mode::File);
            scratch.checkpoint(at as u64 + 1, &[file]);
        }
        let packs = scratch.repository().packs().unwrap();
        let find = |oid| packs.iter().find(|pack| pack.has(oid));
        for content in &contents {
            let oid = name_of(Kind::Blob, content);
            let pack = find(oid).unwrap();
            let length = content.len() as u64;
            assert_eq!(pack.header(oid), Some(Ok((Kind::Blob, length))));
            assert!(blob(pack, oid).unwrap() == *content);
            if let Some(less) = length.checked_sub(1) {
                let too_large = Some(Err(Unreadable::TooLarge(length)));
                assert_eq!(pack.read(oid, less), too_large);
            }
        }
        assert!(find(name_of(Kind::Blob, b"absent")).is_none());

        let oid = name_of(Kind::Blob, &contents[3]);
        let pack = find(oid).unwrap();
        let path = pack.path().to_owned();
        let start = pack.entry_range(oid).unwrap().start as usize;
        // Windows does not write to a file that is mapped.
        drop(packs);
        let mut bytes = fs::read(&path).unwrap();
        bytes[start + 1000] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(blob(&open(&path), oid), Err(Unreadable::Damaged));
        // Same length, but overwritten: the pack is not used.
        bytes.fill(0);
        fs::write(&path, &bytes).unwrap();
        assert!(Pack::open(&path, u64::MAX).is_err());
    }

    #[test]
    fn deltas_of_git_are_resolved() {
        let scratch = Scratch::new();
        let base = noise(1, 100_000);
        let mut other = base.clone();
        other[50_000] ^= 1;
        for (at, content) in [&base, &other].into_iter().enumerate() {
            let file = (&b"file"[..], &content[..], Mode::File);
            scratch.checkpoint(at as u64 + 1, &[file]);
        }
        git(&scratch.dir(), &["repack", "-adfq"]);
        let pack = scratch.repository().packs().unwrap().remove(0);
        let mut small = 0;
        for content in [base, other] {
            let oid = name_of(Kind::Blob, &content);
            let range = pack.entry_range(oid).unwrap();
            small += usize::from(range.end - range.start < 1000);
            assert!(blob(&pack, oid).unwrap() == content);
            assert_eq!(pack.header(oid), Some(Ok((Kind::Blob, 100_000))));
        }
        assert_eq!(small, 1, "git made one a difference to the other");
    }

    #[test]
    fn deltas_stay_within_their_bounds() {
        let base = b"0123456789";
        let read = |delta: &[u8], largest| {
            let content = b"0123456789-0123456789";
            let oid = name_of(Kind::Blob, content);
            let base = (name_of(Kind::Blob, base), entry(BLOB, b"", base));
            let back = base.1.len() as u8;
            let delta = (oid, entry(OFFSET_DELTA, &[back], delta));
            let (_folder, path) = write(&[base, delta]);
            let read = open(&path).read(oid, largest).unwrap();
            read.map(|(_, bytes)| assert_eq!(bytes, content))
        };
        // Two copies of the base, with one inserted byte in between.
        let copy = [0x90, 10];
        let whole = [&[10, 21][..], &copy, &[1, b'-'], &copy].concat();
        assert_eq!(read(&whole, 21), Ok(()));
        assert_eq!(read(&whole, 20), Err(Unreadable::TooLarge(21)));
        for (at, byte) in [
            (0, 9),
            (0, 11),
            (1, 20),
            (1, 22),
            (3, 11),
            (4, 0),
            (4, 9),
            (7, 255),
        ] {
            let mut delta = whole.clone();
            delta[at] = byte;
            assert_eq!(read(&delta, 99), Err(Unreadable::Damaged), "{at}: {byte}");
        }
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end], 99), Err(Unreadable::Damaged), "{end}");
        }
        assert_eq!(read(&[0xff; 20], u64::MAX), Err(Unreadable::Damaged));
    }

    /// A few bytes claim a content that no memory can hold.
    #[test]
    fn a_forged_length_allocates_nothing() {
        let oid = name_of(Kind::Blob, b"x");
        let claims = [0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        let huge = [&claims[..], &deflated(b"x")].concat();
        let delta = [&[1][..], &[0xff; 8], &[0x7f], &[0x90, 1]].concat();
        let base = entry(BLOB, b"", b"x");
        let back = [base.len() as u8];
        let grown = entry(OFFSET_DELTA, &back, &delta);
        let base = (name_of(Kind::Blob, b"base"), base);
        for entries in [vec![(oid, huge)], vec![base, (oid, grown)]] {
            let (_folder, path) = write(&entries);
            assert_eq!(blob(&open(&path), oid), Err(Unreadable::Damaged));
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_and_pipes_are_not_opened() {
        let oid = name_of(Kind::Blob, b"x");
        let (folder, path) = write(&[(oid, entry(BLOB, b"", b"x"))]);
        for name in [path.clone(), path.with_extension("idx")] {
            let aside = folder.path().join("aside");
            fs::rename(&name, &aside).unwrap();
            std::os::unix::fs::symlink(&aside, &name).unwrap();
            assert!(Pack::open(&path, u64::MAX).is_err());
            fs::remove_file(&name).unwrap();
            let made = std::process::Command::new("mkfifo").arg(&name).status();
            assert!(made.unwrap().success());
            assert!(Pack::open(&path, u64::MAX).is_err());
            fs::rename(&aside, &name).unwrap();
        }
        assert_eq!(blob(&open(&path), oid).unwrap(), b"x");
    }

    proptest! {
        #[test]
        fn arbitrary_damage_does_not_panic(
            is_index: bool,
            cut in 0usize..1300,
            at in 0usize..1300,
            value: u8,
        ) {
            let contents = [&b"some content"[..], b"x"].map(|content| {
                (name_of(Kind::Blob, content), entry(BLOB, b"", content))
            });
            let (_folder, path) = write(&contents);
            let name = if is_index { path.with_extension("idx") } else { path.clone() };
            let mut bytes = fs::read(&name).unwrap();
            let at = at % bytes.len();
            bytes[at] = value;
            bytes.truncate(bytes.len().saturating_sub(cut / 4));
            fs::write(&name, bytes).unwrap();
            if let Ok(pack) = Pack::open(&path, u64::MAX) {
                for oid in pack.objects() {
                    pack.header(oid);
                    pack.read(oid, u64::MAX);
                }
            }
        }
    }
}
