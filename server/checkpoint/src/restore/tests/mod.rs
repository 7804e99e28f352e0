//! Kills, races and concurrent saves during a restore.

mod concurrent_saves;
pub(super) mod crashes;
pub(super) mod races;
