//! The requests about stored conversations, one file per method.

pub mod append_messages;
pub mod delete_task;
pub mod list_tasks;
pub mod load_task;
pub mod prune;
pub mod resume_task;
