//! The requests about conversations, one file per method.
//!
//! With messages, a request is stateless. With a task only, it works on the stored
//! conversation and stores the result.

pub mod classify_error;
pub mod count_tokens;
pub mod rollback_history;
pub mod shared;
pub mod truncate_history;
