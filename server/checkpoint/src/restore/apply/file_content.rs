//! Writes and verifies the content of files.

use std::{fs::File, io};

use crate::{restore::crash_point::crash_point, worktree::read_file};

/// Size of a write, in bytes; small in tests, so that a kill can come between two.
const PIECE: usize = if cfg!(test) { 4 } else { 1024 * 1024 };

pub(super) fn write_content(mut file: &File, content: &[u8]) -> io::Result<()> {
    use std::io::Write;
    for piece in content.chunks(PIECE) {
        file.write_all(piece)?;
        crash_point();
    }
    Ok(())
}

/// Reads the file back, and fails unless it contains `content`.
pub(super) fn verify_content(mut file: &File, content: &[u8]) -> io::Result<()> {
    let mut held = Vec::new();
    io::Seek::rewind(&mut file)?;
    // One byte more detects a longer file.
    read_file::read_at_most(file, content.len() as u64 + 1, &mut held)?;
    if held == content {
        Ok(())
    } else {
        Err(io::Error::other(
            "the content read back differs from what was written",
        ))
    }
}
