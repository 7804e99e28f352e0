//! What a task has seen, and what changed since: one file per method.

pub(crate) mod record_environment;
pub(crate) mod record_model;
pub(crate) mod saved;
pub(crate) mod shared;
pub(crate) mod task_context;
pub(crate) mod track_file;
