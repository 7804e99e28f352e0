//! Folders and files by descriptors, and what tells that they changed.

pub(crate) mod dir;
mod stamp;

pub(crate) use stamp::Stamp;
