//! File system access relative to open directories, write leases, file stamps for change
//! detection, programs on the search path, and configuration files of other programs.

#![allow(
    clippy::missing_errors_doc,
    reason = "each function returns the error of its system call"
)]

use std::{fs, io, path::Path, thread, time::Duration};

pub mod config_file;
pub mod dir;
pub mod lease;
mod search_path;
mod stamp;

pub use search_path::{find_program, find_programs};
pub use stamp::Stamp;

/// Attempts to open a leased file, one per millisecond. A restore holds a lease for a much shorter
/// time.
const LEASE_RETRIES: u32 = 500;

/// Opens a file with the non-blocking `open`. Retries while another thread or process holds a lease
/// on it.
pub fn retry_while_leased<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..LEASE_RETRIES {
        match open() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(1));
            }
            opened => return opened,
        }
    }
    open()
}

/// Returns the size of a file, or of the files below a folder. Unreadable ones count as empty.
pub fn bytes_below(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let children = fs::read_dir(path).into_iter().flatten().flatten();
    children.map(|child| bytes_below(&child.path())).sum()
}
