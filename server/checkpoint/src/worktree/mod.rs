//! The work tree: scanning it, and deciding what a checkpoint captures.
//!
//! [`scan`] is the place to start: it runs a [`walk`] over the folders ([`read_file`]) and builds a [`snapshot`]. [`capture_filter`] decides which entries are captured,
//! together with [`git_index`] (tracked files); [`exclusions`] saves the
//! others. [`stat_cache`] keeps the last scan, and [`dirty_set`] the changes since then.
//! [`permissions`] saves read permissions, which git does not record.

pub(crate) mod capture_filter;
pub(crate) mod dirty_set;
pub(crate) mod exclusions;
pub(crate) mod git_index;
pub(crate) mod linked_repositories;
pub(crate) mod permissions;
pub(crate) mod read_file;
pub(crate) mod saved_paths;
pub(crate) mod scan;
pub(crate) mod snapshot;
pub(crate) mod stat_cache;
#[cfg(test)]
mod tests;
pub(crate) mod walk;
