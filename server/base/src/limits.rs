//! Limits on input from clients, files and stores. Input over a limit is refused, and the error
//! names the limit. Where stated below, the oldest or the remaining part is dropped instead.
//!
//! Three limits are defaults of settings: `checkpoints.maxFileSize`, `checkpoints.maxFiles` and
//! `checkpoints.maxTotalSize`. Their errors name the setting.

// Client messages.

/// Maximum message size, in bytes. Real conversations take tens of megabytes.
pub const MAX_FRAME_BYTES: usize = 512 * 1024 * 1024;
/// Maximum bytes kept of a header line; of a longer one, only the end is kept. LSP headers are
/// shorter than 100 bytes.
pub const MAX_HEADER_BYTES: usize = 8 * 1024;
/// Maximum requests in flight; further requests fail with `busy`.
pub const MAX_IN_FLIGHT: usize = 10_000;
/// Unsent output in bytes above which the server reads no input and starts no request until the
/// client has read some. Larger than almost any response, so that a short delay of the client does
/// not block the server.
pub const MAX_UNSENT_BYTES: usize = 64 * 1024 * 1024;
/// Maximum nesting of arrays and objects in params. Same as the limit of the JSON parser, which
/// protects its stack.
pub const MAX_NESTING: usize = 127;
/// Maximum concurrent connections to the server's socket; further ones are closed.
pub const MAX_CONNECTIONS: usize = 16;
/// Maximum size of imported files and of the command line's standard input, in bytes.
pub const MAX_IMPORT_BYTES: u64 = 512 * 1024 * 1024;
/// Maximum message of an error response, in bytes; a longer one is truncated. Leaves room for any
/// local path.
pub const MAX_ERROR_MESSAGE_BYTES: usize = 8 * 1024;

// Paths.

/// Maximum path from a client, in bytes: four times Linux's PATH_MAX, because percent-encoding
/// triples the length.
pub const MAX_PATH_BYTES: usize = 16 * 1024;
/// Maximum local path, in bytes: Linux's PATH_MAX.
pub const MAX_ABSOLUTE_PATH_BYTES: usize = 4096;
/// Maximum paths in one `checkAccess` request.
pub const MAX_CHECKED_PATHS: usize = 1_000_000;
/// Maximum commands in one `checkAccess` request.
pub const MAX_CHECKED_COMMANDS: usize = 1_000;
/// Maximum paths in one diff, preview or restore request.
pub const MAX_NAMED_PATHS: usize = 100_000;

// Access.

/// Maximum command line, in bytes.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// Maximum `.clineignore` or included file, in bytes. A larger one denies everything.
pub const MAX_RULE_FILE_BYTES: u64 = 256 * 1024;
/// Maximum total size of a `.clineignore` and its includes, in bytes. More denies everything.
pub const MAX_RULE_BYTES: u64 = 1024 * 1024;
/// Maximum patterns in a `.clineignore` and its includes. More denies everything. A pattern takes
/// some hundred bytes of memory, and each path may be matched against all of them.
pub const MAX_PATTERNS: usize = 50_000;
/// Maximum includes in one rule file. More denies everything.
pub const MAX_INCLUDES: usize = 64;

// Git.

/// Maximum `HEAD` or `config` read from the user's repository, in bytes. A larger file is ignored.
pub const MAX_GIT_FILE_BYTES: u64 = 1024 * 1024;
/// Maximum bytes of `packed-refs` searched for the current commit: about 1,000,000 refs.
pub const MAX_PACKED_REFS_BYTES: u64 = 64 * 1024 * 1024;

// Files.

/// Maximum `.gitignore` or `info/exclude`, in bytes. A larger file is ignored.
pub const MAX_GITIGNORE_BYTES: u64 = 1024 * 1024;
/// Text returned by `readFile` without `maxBytes`, in bytes.
pub const DEFAULT_READ_BYTES: u64 = 1024 * 1024;
/// Maximum text returned by `readFile`, in bytes. The rest is dropped.
pub const MAX_READ_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum file that `readFile` reads, in bytes.
pub const MAX_READ_FILE_BYTES: u64 = 512 * 1024 * 1024;
/// Maximum entries of a listing. The rest is dropped.
pub const MAX_LIST_ENTRIES: u32 = 1_000_000;
/// Maximum file tracked by content hash, in bytes. Larger files are tracked by size and
/// modification time.
pub const MAX_HASHED_FILE_BYTES: u64 = 64 * 1024 * 1024;

// Editor state.

/// Maximum unread output kept per terminal, in bytes. The oldest is dropped.
pub const MAX_TERMINAL_BYTES: usize = 256 * 1024;
/// Maximum read output kept per terminal with a running command, in bytes. The oldest is dropped.
pub const MAX_EARLIER_BYTES: usize = 16 * 1024;
/// Maximum commands recorded with a terminal's unread output. More drop that output.
pub const MAX_TERMINAL_SOURCES: usize = 100;
/// Maximum diagnostics kept of one file.
pub const MAX_FILE_DIAGNOSTICS: usize = 200;
/// Maximum files whose diagnostics are kept. Those of further files are dropped.
pub const MAX_DIAGNOSED_FILES: usize = 2_000;
/// Maximum length of the message of a diagnostic, in bytes.
pub const MAX_DIAGNOSTIC_BYTES: usize = 4 * 1024;
/// Maximum selected text that is returned, in bytes.
pub const MAX_SELECTED_BYTES: usize = 16 * 1024;
/// Maximum tabs, visible editors or terminals in one notification. The rest is dropped.
pub const MAX_EDITOR_ITEMS: usize = 10_000;

// Stored conversations.

/// Maximum log entry, and so maximum stored message, in bytes.
pub const MAX_ENTRY_BYTES: usize = 64 * 1024 * 1024;
/// Maximum state file, in bytes.
pub const MAX_STATE_FILE_BYTES: u64 = 64 * 1024 * 1024;

// Checkpoints.

/// Maximum checkpoint label, in bytes.
pub const MAX_LABEL_BYTES: usize = 4 * 1024;
/// Maximum content of one file in a diff, in bytes. Longer content is left out.
pub const MAX_FILE_CONTENTS_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum content of a whole diff, in bytes. Further content is left out.
pub const MAX_DIFF_CONTENTS_BYTES: u64 = 64 * 1024 * 1024;
