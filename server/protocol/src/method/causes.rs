//! Causes of errors that several methods share.

pub(super) const STORAGE: &str = "the data directory cannot be read or written";
pub(super) const TASK_BUSY: &str = "another process is writing the task";
pub(super) const NO_TASK: &str = "the task is not stored";
pub(super) const LONG_LINE: &str = "an entry is too long for the log";
pub(super) const NO_ROOT: &str = "no workspace folder is open, or the folder no longer exists";
pub(super) const NO_CHECKPOINT: &str = "the checkpoint does not exist, or its folder is not open";
pub(super) const NO_RULES: &str = "the access rules of the folder cannot be read or are invalid";
pub(super) const NO_PLACE: &str =
    "the folder is too broad, such as the home folder or the root of a file system";
pub(super) const STORE_BUSY: &str = "another process is writing to the checkpoint store";
pub(super) const NO_MCP_SERVER: &str = "no file configures a server with this name";
pub(super) const MCP: &str =
    "a configuration file of MCP servers or the data directory cannot be read or written";
pub(super) const STORE: &str = "the checkpoint store cannot be read or written";
