//! What the editor shows, and showing a file in it.

pub mod connected_agents;
pub mod diagnostics;
pub mod open_file;
pub mod selection;
pub mod unsaved_files;
