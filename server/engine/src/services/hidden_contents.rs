//! The contents of denied files, read again when they may have changed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sightline_access::{AccessView, EntryRules, redact::HiddenContents};

use crate::session::{LazyAccess, Snapshot};

/// The folders are searched again for files that were created, in at most this part of the time: 1/20.
const SHARE: u32 = 20;

/// The contents that were read last.
#[derive(Default)]
pub struct KeptContents(Mutex<Option<Kept>>);

struct Kept {
    access: Arc<LazyAccess>,
    rules: Vec<EntryRules>,
    contents: Arc<HiddenContents>,
    read_at: Instant,
    took: Duration,
}

impl KeptContents {
    /// Returns the contents of the files that a view denies.
    pub fn get(&self, snapshot: &Snapshot, view: &AccessView) -> Arc<HiddenContents> {
        let mut kept = self.0.lock();
        let roots = 0..view.roots().as_slice().len();
        let rules: Vec<EntryRules> = roots.flat_map(|root| view.entry_rules(root)).collect();
        let is_current = |kept: &&Kept| {
            Arc::ptr_eq(&kept.access, &snapshot.access)
                && kept.rules == rules
                && kept.read_at.elapsed() < kept.took * SHARE
                && kept.contents.is_current()
        };
        if let Some(kept) = kept.as_ref().filter(is_current) {
            return kept.contents.clone();
        }
        let read_at = Instant::now();
        let contents = Arc::new(HiddenContents::read(view));
        *kept = Some(Kept {
            access: snapshot.access.clone(),
            rules,
            contents: contents.clone(),
            read_at,
            took: read_at.elapsed(),
        });
        contents
    }
}
