//! Limits on input: what a peer can make this server hold or read.

/// Longest message of an error answer, in bytes; a longer one is cut. A path of
/// this machine fits in.
pub const MAX_ERROR_MESSAGE_BYTES: usize = 8 * 1024;
/// Longest path taken from a client, in bytes (Linux's PATH_MAX is 4,096;
/// percent-encoding triples it).
pub const MAX_PATH_BYTES: usize = 16 * 1024;
/// Longest path of this machine, in bytes: Linux's PATH_MAX.
pub const MAX_ABSOLUTE_PATH_BYTES: usize = 4096;
/// Paths judged by one `checkAccess`.
pub const MAX_CHECKED_PATHS: usize = 1_000_000;
/// Longest command line parsed, in bytes.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// Largest rule file read, in bytes; a larger one denies everything.
pub const MAX_RULE_FILE_BYTES: u64 = 1024 * 1024;
/// Bytes of text `readFile` returns when the client names no `maxBytes`.
pub const DEFAULT_READ_BYTES: u64 = 1024 * 1024;
/// Bytes of text `readFile` returns at most.
pub const MAX_READ_BYTES: u64 = 16 * 1024 * 1024;
/// Largest file `readFile` goes through, in bytes.
pub const MAX_READ_FILE_BYTES: u64 = 512 * 1024 * 1024;
/// Entries of one listing at most.
pub const MAX_LIST_ENTRIES: u32 = 1_000_000;
/// Unread terminal output kept per terminal, in bytes; the oldest goes first.
pub const MAX_TERMINAL_BYTES: usize = 256 * 1024;
/// Commands remembered with a terminal's unread output; more drop the output.
pub const MAX_TERMINAL_SOURCES: usize = 100;
/// Tabs, visible editors or terminals taken from one notification.
pub const MAX_EDITOR_ITEMS: usize = 10_000;
/// Files larger than this are tracked by size and time, not by hash, in bytes.
pub const MAX_HASHED_FILE_BYTES: u64 = 64 * 1024 * 1024;
