/// What tells that a file was not written to: from `lstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Nanoseconds since the epoch.
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) size: u64,
    pub(crate) inode: u64,
    /// Type and permission bits.
    pub(crate) mode: u32,
}

/// How coarse a file system's clock may be, in nanoseconds.
const TICK: i64 = 10_000_000;
/// The same where no time has a fraction of a second.
const COARSE_TICK: i64 = 2_000_000_000;

impl Stamp {
    /// Would any change made after `looked` (nanoseconds since the epoch) show
    /// in this stamp? Not when its times are so young that another change could
    /// leave the same ones.
    pub(crate) fn is_settled(&self, looked: i64) -> bool {
        let second = 1_000_000_000;
        let coarse = self.mtime % second == 0 && self.ctime % second == 0;
        let tick = if coarse { COARSE_TICK } else { TICK };
        self.mtime.max(self.ctime) < looked.saturating_sub(tick)
    }
}
