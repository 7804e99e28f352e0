//! The tools of `sightline mcp`. `hub/tools` runs them.
//!
//! Read next: [`tools`] lists the tools, [`checked`] checks arguments.

mod arguments;
mod tools;

pub use arguments::checked;
pub use tools::{Tool, tools};

/// Name of the server.
pub const SERVER_NAME: &str = "sightline";

/// The only text that every session sees, also where tools are loaded on demand.
pub const INSTRUCTIONS: &str = "Sightline knows the user's editor: open tabs, visible files, unsaved text, \
and which files agents may not see. Read files that are open in the editor with its `read_file`, because unsaved text \
is newer than the file on disk, and ask `check_access` before you work around a refusal. Create a checkpoint with \
`checkpoint_create` before a large change; `checkpoint_diff` and `checkpoint_restore` compare with it and go back to it.";

#[cfg(test)]
mod tests;
