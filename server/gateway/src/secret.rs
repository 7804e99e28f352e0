//! The secret in the address of the gateway, made once per user.

use std::{io, path::Path};

use sightline_base::{
    escape::hex,
    storage::{Storage, atomic_file},
};
use subtle::ConstantTimeEq;
use tempfile::NamedTempFile;

/// Name of the file in the folder of the gateway.
const FILE: &str = "secret";
/// Length in bytes, twice as many hexadecimal digits.
const LENGTH: usize = 16;

/// 32 hexadecimal digits that only programs of the user can know.
pub(crate) struct Secret(String);

impl Secret {
    /// Returns the secret of the user, which is made once and stays, so that agents can be
    /// configured with it.
    pub(crate) fn of_user(storage: &Path) -> Result<Self, String> {
        let read_or_make = || -> Result<String, sightline_base::error::Error> {
            let storage = Storage::open(storage)?;
            let folder = storage.gateway();
            storage.make_dir(&folder)?;
            let path = folder.join(FILE);
            if let Some(content) = atomic_file::read(&path)? {
                return Ok(String::from_utf8_lossy(&content).into_owned());
            }
            make(&folder, &path)
                .map_err(|error| atomic_file::failed("create the secret", &path, error))?;
            // That of another process, if it was first.
            let content = atomic_file::read(&path)?.unwrap_or_default();
            Ok(String::from_utf8_lossy(&content).into_owned())
        };
        let secret = read_or_make().map_err(|error| error.to_string())?;
        let is_valid =
            secret.len() == 2 * LENGTH && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_valid {
            Ok(Self(secret))
        } else {
            Err(format!(
                "cannot use {FILE} in the folder `gateway` of {}: it is damaged; delete it, and connect your agents again",
                storage.display()
            ))
        }
    }

    /// Returns the digits.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a number that others cannot guess.
    pub(crate) fn seed(&self) -> u64 {
        u64::from_str_radix(&self.0[..LENGTH], 16).unwrap_or_default()
    }

    /// Compares in a time that does not depend on the content.
    pub(crate) fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// Writes a new secret, unless there is one. Readers see no part of it.
fn make(folder: &Path, path: &Path) -> io::Result<()> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let mut file = NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, hex(&bytes).as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}
