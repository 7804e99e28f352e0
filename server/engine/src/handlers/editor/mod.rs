//! What the editor shows, and showing a file in it.

pub mod diagnostics;
pub mod open_file;
pub mod selection;
pub mod unsaved_files;
