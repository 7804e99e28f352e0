use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sightline_base::path::Root;

use super::HiddenContents;
use crate::{AccessView, EntryRules};

/// The folders are searched again for files that were created, in at most this part of the time: 1/20.
const SHARE: u32 = 20;

/// The contents that were read last. They are read again when rules or files have changed.
#[derive(Default)]
pub struct KeptContents(Mutex<Option<Kept>>);

struct Kept {
    rules: Vec<(Root, Vec<EntryRules>)>,
    contents: Arc<HiddenContents>,
    read_at: Instant,
    took: Duration,
}

impl KeptContents {
    /// Returns the contents of the files that a view denies. A denied file that was created is found
    /// after 20 times the time of a search.
    pub fn get(&self, view: &AccessView) -> Arc<HiddenContents> {
        let mut kept = self.0.lock();
        let roots = view.roots().as_slice().iter().cloned();
        let rules = roots
            .enumerate()
            .map(|(at, root)| (root, view.entry_rules(at)))
            .collect();
        let is_current = |kept: &&Kept| {
            kept.rules == rules
                && kept.read_at.elapsed() < kept.took * SHARE
                && kept.contents.is_current()
        };
        if let Some(kept) = kept.as_ref().filter(is_current) {
            return kept.contents.clone();
        }
        let read_at = Instant::now();
        let contents = Arc::new(HiddenContents::read(view));
        *kept = Some(Kept {
            rules,
            contents: contents.clone(),
            read_at,
            took: read_at.elapsed(),
        });
        contents
    }
}
