//! Messages of model providers, scanned in place.
//!
//! A message is never parsed into a tree: [`Message`] has the ranges of its blocks, texts and ids, so
//! that an edit changes only these ranges, and blocks of unknown types stay as they are. [`json`] is
//! the scanner below it, [`Values`] all values of a text whose messages have no known form.

pub mod json;
mod message;
mod values;

pub use message::{Block, BlockKind, Content, Layout, Message, Outline, Role};
pub use values::{TooDeep, Values};
