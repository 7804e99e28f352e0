//! What a task has seen, and what changed since: one file per method.

pub mod record_environment;
pub mod record_model;
pub mod saved;
pub mod shared;
pub mod task_context;
pub mod track_file;
