//! Exclusions saved with a checkpoint: the paths that existed and that its tree does not hold.
//!
//! Only the topmost paths are saved: an excluded folder covers everything below it. A restore keeps
//! these paths. Skipped paths are saved with their reasons, as `Skipped`; ignored
//! and denied paths are saved here.
//!
//! The name of a denied path must not be readable in the store, so only its hash is saved, see
//! [`PathSalt`]. To compare a path, it and the folders above it are hashed.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest, Sha256};
use sightline_access::gitignore::bytes_of;
use sightline_base::path::RelPath;
use uuid::Uuid;

use crate::named_path::NamedPath;

/// Maximum total size of the saved paths, in bytes; small in tests. With more exclusions, nothing is
/// saved, and a restore keeps every path that is not captured.
pub(crate) const MAX_BYTES: usize = if cfg!(test) { 4096 } else { 512 * 1024 };
/// Size of an entry in addition to its path, in bytes.
pub(crate) const ENTRY_BYTES: usize = 16;

/// The ignored and denied paths of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedExclusions {
    /// Ignored paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored: Vec<NamedPath>,
    /// Hashes of denied paths, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) denied: Vec<PathHash>,
    /// Salt of the hashes.
    pub(crate) salt: PathSalt,
}

/// Random number that is hashed together with denied paths. It is saved with the hashes, so that
/// they can be compared on any machine, and it prevents a search in tables of known hashes. It
/// changes when the stat cache is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PathSalt(pub(crate) Hex16);

impl PathSalt {
    pub(crate) fn random() -> Self {
        Self(Hex16(Uuid::new_v4().into_bytes()))
    }

    /// Hashes a path relative to the root, with `/`: the first half of a SHA-256 hash.
    pub(crate) fn hash(&self, path: &[u8]) -> PathHash {
        let digest = Sha256::new().chain_update(self.0.0).chain_update(path);
        let mut hash = [0; 16];
        hash.copy_from_slice(&digest.finalize()[..16]);
        PathHash(Hex16(hash))
    }

    /// Hashes the entry `name` of a folder.
    pub(crate) fn hash_in(&self, folder: &[u8], name: &[u8]) -> PathHash {
        if folder.is_empty() {
            self.hash(name)
        } else {
            self.hash(&[folder, b"/", name].concat())
        }
    }

    pub(crate) fn hash_path(&self, path: &RelPath) -> PathHash {
        self.hash(&bytes_of(path.as_path()))
    }
}

/// Salted hash of a denied path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PathHash(pub(crate) Hex16);

/// 16 bytes, saved as hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Hex16(pub(crate) [u8; 16]);

impl Serialize for Hex16 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", u128::from_be_bytes(self.0)))
    }
}

impl<'de> Deserialize<'de> for Hex16 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = u128::from_str_radix(&text, 16)
            .map_err(|_| D::Error::custom("not a hexadecimal number of 128 bits"))?;
        Ok(Self(number.to_be_bytes()))
    }
}
