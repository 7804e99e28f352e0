//! File events: [`file_watcher`] only sends notifications, [`dirty_tracker`] lists the
//! changes since the last checkpoint.

pub mod dirty_tracker;
pub mod file_watcher;
