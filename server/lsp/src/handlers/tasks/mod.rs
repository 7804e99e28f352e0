//! The requests about stored conversations, one file per method.

pub(crate) mod append_messages;
pub(crate) mod delete_task;
pub(crate) mod list_tasks;
pub(crate) mod load_task;
pub(crate) mod prune;
pub(crate) mod resume_task;
