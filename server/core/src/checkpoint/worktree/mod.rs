//! The work tree: scanning it, and which of its files a checkpoint captures.

pub(crate) mod capture_filter;
pub(crate) mod dirty_set;
pub(crate) mod git_index;
pub(crate) mod leaf;
pub(crate) mod permissions;
pub(crate) mod read_file;
pub(crate) mod reserved_names;
pub(crate) mod scan;
pub(crate) mod scan_dir;
pub(crate) mod snapshot;
pub(crate) mod stat_cache;
#[cfg(test)]
mod tests;
pub(crate) mod walk;
