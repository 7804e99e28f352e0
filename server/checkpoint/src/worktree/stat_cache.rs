//! Caches the last scan of the work tree, in memory and on disk. Entries are verified by their
//! stamps; a lost cache only costs a full scan.

mod encoding;

use std::{path::Path, sync::Arc};

use sightline_base::storage::{Storage, atomic_file, read_foreign};

use super::{scan::Scan, snapshot::Folder};
use crate::error::Error;

const CACHE_FILE: &str = "tree.cache";
/// Maximum size of the cache file, in bytes; some millions of files.
const MAX_CACHE_BYTES: u64 = 1 << 30;

/// The cached state of the work tree.
#[derive(Debug, Default)]
pub(crate) struct StatCache {
    pub(crate) scan: Option<Scan>,
    /// Whether the cache file was read.
    pub(crate) loaded: bool,
    /// Tree that was last written to the cache file.
    saved: Option<Arc<Folder>>,
}

impl StatCache {
    /// Reads the cache file in `state_dir` once. An unreadable file is ignored.
    pub(crate) fn load(&mut self, state_dir: &Path) {
        if self.loaded {
            return;
        }
        self.loaded = true;
        let bytes = read_foreign(&state_dir.join(CACHE_FILE), MAX_CACHE_BYTES)
            .ok()
            .flatten();
        let Some((header, tree)) = bytes.as_deref().and_then(encoding::decode) else {
            return;
        };
        self.saved = Some(tree.clone());
        self.scan = Some(Scan::of(
            tree,
            header.git_index,
            header.filter_fingerprint,
            header.salt,
        ));
    }

    /// Writes the cache file if the cache has changed.
    pub(crate) fn save(&mut self, storage: &Storage, state_dir: &Path) -> Result<(), Error> {
        let Some(scan) = &self.scan else {
            return Ok(());
        };
        if self
            .saved
            .as_ref()
            .is_some_and(|saved| Arc::ptr_eq(saved, &scan.tree))
        {
            return Ok(());
        }
        let header = encoding::Header {
            filter_fingerprint: scan.filter_fingerprint,
            salt: scan.salt,
            stored: None,
            git_index: scan.git_index.clone(),
        };
        let bytes = encoding::encode(&header, &scan.tree).map_err(Error::encode(CACHE_FILE))?;
        storage.make_dir(state_dir)?;
        atomic_file::replace(&state_dir.join(CACHE_FILE), &bytes)?;
        self.saved = Some(scan.tree.clone());
        Ok(())
    }
}
