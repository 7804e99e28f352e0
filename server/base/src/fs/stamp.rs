use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// Result of `lstat`, compared to detect that a file was changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Nanoseconds since the Unix epoch.
    pub mtime: i64,
    /// Nanoseconds since the Unix epoch.
    pub ctime: i64,
    /// Size in bytes.
    pub size: u64,
    /// Inode number.
    pub inode: u64,
    /// Type and permission bits.
    pub mode: u32,
}

/// Timestamp granularity of a file system, in nanoseconds.
const TICK: i64 = 10_000_000;
/// Timestamp granularity assumed when no timestamp has a fraction of a second, in nanoseconds.
const COARSE_TICK: i64 = 2_000_000_000;

impl Stamp {
    /// Returns the time of the last change of the content, which programs can set.
    pub fn modified(&self) -> SystemTime {
        time_of(self.mtime)
    }

    /// Returns the time of the last change of the content or the metadata.
    pub fn changed(&self) -> SystemTime {
        time_of(self.ctime)
    }

    /// Returns whether every change after `looked` (nanoseconds since the Unix epoch) would alter
    /// this stamp. Returns false while the timestamps are so recent that another change could
    /// produce the same ones.
    pub fn is_settled(&self, looked: i64) -> bool {
        let second = 1_000_000_000;
        let coarse = self.mtime % second == 0 && self.ctime % second == 0;
        let tick = if coarse { COARSE_TICK } else { TICK };
        self.mtime.max(self.ctime) < looked.saturating_sub(tick)
    }
}

fn time_of(nanos: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanos.unsigned_abs());
    let time = if nanos < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}
