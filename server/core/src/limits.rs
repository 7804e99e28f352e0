//! Limits on input: what a peer, a file or a store can make this server hold or
//! read. What goes over one is refused, and the error names the limit; where it
//! says so here, the oldest or the rest is left out instead.
//!
//! A user moves three of them by settings: `checkpoints.maxFileSize`,
//! `checkpoints.maxFiles` and `checkpoints.maxTotalSize`. Their errors name the
//! setting.

// Messages of a peer.

/// Largest message, in bytes. Conversations of tens of megabytes are real.
pub const MAX_FRAME_BYTES: usize = 512 * 1024 * 1024;
/// Longest header line kept, in bytes; of a longer one its end. LSP headers are
/// under 100.
pub const MAX_HEADER_BYTES: usize = 8 * 1024;
/// Requests in flight; more are `busy`.
pub const MAX_IN_FLIGHT: usize = 10_000;
/// Unsent output, in bytes, past which no input is read and no request begins, until
/// the client has read some. More than almost every answer, so that a client that is
/// slow for a moment is not held up; little beside the memory of a machine.
pub const MAX_UNSENT_BYTES: usize = 64 * 1024 * 1024;
/// Arrays and objects within each other in params: the JSON reader's own limit,
/// which keeps it off the end of its stack.
pub const MAX_NESTING: usize = 127;
/// Connections to a server's socket at once; more are closed.
pub const MAX_CONNECTIONS: usize = 16;
/// Standard input of the command line, and files it takes in, in bytes.
pub const MAX_IMPORT_BYTES: u64 = 512 * 1024 * 1024;
/// Longest message of an error answer, in bytes; a longer one is cut. A path of
/// this machine fits in.
pub const MAX_ERROR_MESSAGE_BYTES: usize = 8 * 1024;

// Paths.

/// Longest path taken from a client, in bytes (Linux's PATH_MAX is 4,096;
/// percent-encoding triples it).
pub const MAX_PATH_BYTES: usize = 16 * 1024;
/// Longest path of this machine, in bytes: Linux's PATH_MAX.
pub const MAX_ABSOLUTE_PATH_BYTES: usize = 4096;
/// Paths judged by one `checkAccess`.
pub const MAX_CHECKED_PATHS: usize = 1_000_000;
/// Paths named by one diff, preview or restore.
pub const MAX_NAMED_PATHS: usize = 100_000;

// Access.

/// Longest command line parsed, in bytes.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// Largest `.clineignore` or file it includes, in bytes; a larger one denies
/// everything.
pub const MAX_RULE_FILE_BYTES: u64 = 256 * 1024;
/// A `.clineignore` and all it includes, in bytes; more deny everything.
pub const MAX_RULE_BYTES: u64 = 1024 * 1024;
/// Patterns in a `.clineignore` and all it includes; more deny everything. A pattern
/// takes some hundred bytes, and each path may be matched with all of them.
pub const MAX_PATTERNS: usize = 50_000;
/// Files one rule file may include; more deny everything.
pub const MAX_INCLUDES: usize = 64;

// Git.

/// Largest file of the user's repository read for facts (`HEAD`, `config`), in bytes; of a
/// larger one nothing is told.
pub const MAX_GIT_FILE_BYTES: u64 = 1024 * 1024;
/// Bytes of `packed-refs` looked through for the commit that is checked out: about 1,000,000 refs.
pub const MAX_PACKED_REFS_BYTES: u64 = 64 * 1024 * 1024;

// Files.

/// Largest `.gitignore` or `info/exclude` read, in bytes; a larger one has no
/// patterns.
pub const MAX_GITIGNORE_BYTES: u64 = 1024 * 1024;
/// Bytes of text `readFile` returns when the client names no `maxBytes`.
pub const DEFAULT_READ_BYTES: u64 = 1024 * 1024;
/// Bytes of text `readFile` returns at most; the rest is left out.
pub const MAX_READ_BYTES: u64 = 16 * 1024 * 1024;
/// Largest file `readFile` goes through, in bytes.
pub const MAX_READ_FILE_BYTES: u64 = 512 * 1024 * 1024;
/// Entries of one listing at most; the rest is left out.
pub const MAX_LIST_ENTRIES: u32 = 1_000_000;
/// Files larger than this are tracked by size and time, not by hash, in bytes.
pub const MAX_HASHED_FILE_BYTES: u64 = 64 * 1024 * 1024;

// What the editor shows.

/// Unread terminal output kept per terminal, in bytes; the oldest goes first.
pub const MAX_TERMINAL_BYTES: usize = 256 * 1024;
/// Read output kept per terminal whose command still runs, in bytes; the oldest goes first.
pub const MAX_EARLIER_BYTES: usize = 16 * 1024;
/// Commands remembered with a terminal's unread output; more drop the output.
pub const MAX_TERMINAL_SOURCES: usize = 100;
/// Tabs, visible editors or terminals taken from one notification; the rest is
/// left out.
pub const MAX_EDITOR_ITEMS: usize = 10_000;

// Stored conversations.

/// Largest entry of a log, so largest message stored, in bytes.
pub const MAX_ENTRY_BYTES: usize = 64 * 1024 * 1024;
/// Largest state file read or written, in bytes.
pub const MAX_STATE_FILE_BYTES: u64 = 64 * 1024 * 1024;

// Checkpoints.

/// Longest label of a checkpoint, in bytes.
pub const MAX_LABEL_BYTES: usize = 4 * 1024;
/// Contents of one file in a diff at most, in bytes; more are left out.
pub const MAX_FILE_CONTENTS_BYTES: u64 = 4 * 1024 * 1024;
/// Contents of a whole diff at most, in bytes; more are left out.
pub const MAX_DIFF_CONTENTS_BYTES: u64 = 64 * 1024 * 1024;
