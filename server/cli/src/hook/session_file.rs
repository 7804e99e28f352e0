//! A file with what is known about an agent's session, locked while it is used.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    path::Path,
};

use serde::{Serialize, de::DeserializeOwned};
use sightline_base::storage::atomic_file;
use sightline_engine::error::Error;

/// Maximum size, in bytes. A larger file counts as none.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// An open and locked file, and its content.
pub(super) struct SessionFile<T> {
    file: File,
    pub(super) state: T,
}

impl<T: Default + DeserializeOwned + Serialize> SessionFile<T> {
    /// Opens and locks the file. Unreadable content counts as none.
    ///
    /// # Errors
    /// `storage` if it cannot be opened.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let opened = || {
            let mut options = atomic_file::private_options();
            options.read(true).write(true).create(true).truncate(false);
            let mut file = atomic_file::open(path, &mut options)?;
            file.lock()?;
            let mut text = Vec::new();
            Read::by_ref(&mut file)
                .take(MAX_BYTES)
                .read_to_end(&mut text)?;
            let state = serde_json::from_slice(&text).unwrap_or_default();
            Ok(Self { file, state })
        };
        opened().map_err(|error: io::Error| {
            Error::storage(format!("cannot open {}: {error}", path.display()))
        })
    }

    /// Writes the state.
    ///
    /// # Errors
    /// `storage`.
    pub(super) fn save(&mut self) -> Result<(), Error> {
        let written = serde_json::to_vec(&self.state).map_err(io::Error::from);
        written
            .and_then(|text| {
                self.file.rewind()?;
                self.file.set_len(0)?;
                self.file.write_all(&text)
            })
            .map_err(|error| {
                Error::storage(format!("cannot write the state of a session: {error}"))
            })
    }
}
