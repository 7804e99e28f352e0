//! Paths as stored in metadata and journals.

use std::path::Path;

use serde::{Deserialize, Serialize};

use sightline_base::path::RelPath;

/// A path as stored in the metadata.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NamedPath {
    /// Path relative to the root, with `/`; percent-encoded if `encoded`.
    pub path: String,
    /// Whether `path` is percent-encoded because its bytes are not UTF-8.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encoded: bool,
}

impl NamedPath {
    /// Encodes `path`.
    pub fn of(path: &RelPath) -> Self {
        let (path, encoded) = path.to_wire();
        Self { path, encoded }
    }

    /// Decodes the path. Returns `None` if it leads out of the root.
    pub fn to_path(&self) -> Option<RelPath> {
        if !self.encoded {
            return RelPath::new(Path::new(&self.path));
        }
        let bytes: Vec<u8> = percent_encoding::percent_decode_str(&self.path).collect();
        #[cfg(unix)]
        let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(&bytes[..]);
        #[cfg(not(unix))]
        let path = String::from_utf8(bytes).ok()?;
        RelPath::new(Path::new(&path))
    }
}
