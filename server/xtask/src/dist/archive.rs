//! Archives with fixed order, owners and times, so that equal content gives equal bytes.

use std::io::{Cursor, Write};

use flate2::{Compression, write::GzEncoder};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::Result;

/// Modification time of all entries: 1980-01-01, the earliest time of a zip archive.
pub(super) const MODIFIED: u64 = 315_532_800;

/// A file of an archive.
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) content: Vec<u8>,
    pub(super) is_executable: bool,
}

impl Entry {
    pub(super) fn file(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
            is_executable: false,
        }
    }

    pub(super) fn program(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            is_executable: true,
            ..Self::file(path, content)
        }
    }

    fn mode(&self) -> u32 {
        if self.is_executable { 0o755 } else { 0o644 }
    }
}

/// Returns a `.tar.gz` archive of the entries below the folder `root`.
pub(super) fn tar_gz(root: &str, entries: &[Entry]) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        header.set_mode(entry.mode());
        header.set_mtime(MODIFIED);
        header.set_size(entry.content.len() as u64);
        let path = format!("{root}/{}", entry.path);
        archive.append_data(&mut header, path, entry.content.as_slice())?;
    }
    Ok(archive.into_inner()?.finish()?)
}

/// Returns a zip archive of the entries.
pub(super) fn zip(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries {
        let options = SimpleFileOptions::DEFAULT
            .compression_method(CompressionMethod::Deflated)
            .unix_permissions(entry.mode());
        archive.start_file(entry.path.as_str(), options)?;
        archive.write_all(&entry.content)?;
    }
    Ok(archive.finish()?.into_inner())
}
