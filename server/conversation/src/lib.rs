//! Conversations: truncation, compaction, token counts. Pure functions of messages; nothing here reads
//! or writes a file.
//!
//! [`wire`] scans messages. [`truncation`] selects those that fit the model's context window,
//! [`compaction`] replaces older messages by a summary, and [`tokens`] counts tokens.
//! [`classify_error`] understands errors of providers, [`model_info`] is a table of models.
//!
//! Modules:
//!
//! - `wire`: messages, scanned in place
//! - `tokens`: token counts: exact for public encodings, bounded estimates otherwise, calibrated by
//!   reported usage; a fast estimate without a tokenizer, for budgets
//! - `truncation`: truncation: the messages to leave out, outdated file reads, edits of messages in
//!   Cline's format, and the messages to send
//! - `compaction`: compaction: when, the prompt, the included files, the resulting message
//! - `model_info`, `context_window`, `provider_error`: context windows of known models; errors of
//!   model providers

pub mod compaction;
mod context_window;
pub mod model_info;
mod provider_error;
pub mod tokens;
pub mod truncation;
pub mod wire;

pub use context_window::ContextWindow;
pub use provider_error::classify_error;
pub use truncation::{
    BlockEdit, ContextHistory, DeletedRange, SentMessage, TruncateAction, TruncateOutcome,
    TruncateRequest, TruncateResponse, truncate, truncate_scanned,
};
pub use wire::Outline;
