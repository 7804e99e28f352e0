//! Caches measures by the hash of what was measured.
//!
//! Two generations approximate a least-recently-used cache: when the young generation is full,
//! it becomes the old one, and the previous old one is dropped. A hit moves an entry to the
//! young generation. The cache always holds the last `GENERATION_SIZE` distinct keys, and at
//! most twice as many.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    mem,
};

use parking_lot::{Mutex, MutexGuard};
use twox_hash::XxHash3_128;

use super::{encoding::Encoding, measure::Measure};

/// Maximum number of keys per generation. Holds several long conversations and takes a few
/// megabytes.
const GENERATION_SIZE: usize = 16 * 1024;

/// A 128-bit hash and the vocabulary. The hash is seeded per cache, so collisions cannot be
/// prepared.
pub(super) type Key = (u128, Encoding);

/// A bounded cache, shared between threads.
pub(super) struct MeasureCache {
    seed: u64,
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<Key, Measure>,
    old: HashMap<Key, Measure>,
}

impl Default for MeasureCache {
    fn default() -> Self {
        Self {
            seed: RandomState::new().hash_one(0_u8),
            generations: Mutex::default(),
        }
    }
}

impl MeasureCache {
    /// Returns a hasher for the keys of this cache.
    pub(super) fn hasher(&self) -> XxHash3_128 {
        XxHash3_128::with_seed(self.seed)
    }

    /// Looks up each key.
    pub(super) fn get(&self, keys: &[Key]) -> Vec<Option<Measure>> {
        let mut generations = self.lock();
        keys.iter().map(|key| generations.get(key)).collect()
    }

    /// Adds measures.
    pub(super) fn put(&self, measured: impl IntoIterator<Item = (Key, Measure)>) {
        let mut generations = self.lock();
        for (key, measure) in measured {
            generations.put(key, measure);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        // Entries are complete even after a panic.
        self.generations.lock()
    }
}

impl Generations {
    fn get(&mut self, key: &Key) -> Option<Measure> {
        if let Some(measure) = self.young.get(key) {
            return Some(*measure);
        }
        let measure = self.old.remove(key)?;
        self.put(*key, measure);
        Some(measure)
    }

    fn put(&mut self, key: Key, measure: Measure) {
        if self.young.len() >= GENERATION_SIZE {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, measure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(i: usize) -> Key {
        (i as u128, Encoding::O200kBase)
    }

    fn known(cache: &MeasureCache, i: usize) -> bool {
        cache.get(&[key(i)])[0].is_some()
    }

    #[test]
    fn the_cache_is_bounded_and_evicts_unused_entries() {
        let cache = MeasureCache::default();
        for i in 0..3 * GENERATION_SIZE {
            cache.put([(key(i), Measure::default())]);
            assert!(known(&cache, 0), "asked for again and again: {i}");
        }
        assert!(!known(&cache, 1));
        assert!(known(&cache, 3 * GENERATION_SIZE - 1));
        let generations = cache.lock();
        assert!(generations.young.len() + generations.old.len() <= 2 * GENERATION_SIZE);
    }

    #[test]
    fn encodings_do_not_share_entries() {
        let cache = MeasureCache::default();
        cache.put([(key(1), Measure::default())]);
        assert_eq!(cache.get(&[(1, Encoding::Cl100kBase)]), [None]);
    }
}
