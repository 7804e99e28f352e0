//! Conversations: truncation, compaction, token counts. Pure functions of messages; nothing here reads
//! or writes a file.
//!
//! [`wire`] scans messages. [`truncation`] selects those that fit the model's context window,
//! [`compaction`] replaces older messages by a summary, and [`tokens`] counts tokens.
//! [`classify_error`] understands errors of providers, [`model_info`] is a table of models.

pub mod compaction;
mod context_window;
pub mod error;
pub mod model_info;
mod provider_error;
pub mod tokens;
pub mod truncation;
pub mod wire;

pub use context_window::ContextWindow;
pub use provider_error::classify_error;
pub use truncation::{
    BlockEdit, ContextHistory, DeletedRange, Notices, SentMessage, TruncateAction, TruncateOutcome,
    TruncateRequest, TruncateResponse, truncate, truncate_scanned,
};
pub use wire::Outline;
