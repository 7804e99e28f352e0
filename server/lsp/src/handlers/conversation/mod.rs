//! The requests about conversations, one file per method.
//!
//! With messages, a request is stateless. With a task only, it works on the stored
//! conversation and stores the result.

pub(crate) mod classify_error;
pub(crate) mod count_tokens;
pub(crate) mod rollback_history;
pub(crate) mod shared;
pub(crate) mod truncate_history;
