//! `SHA256SUMS`, the checksums of the packages in the format of `sha256sum`.

use std::fs;

use sha2::{Digest, Sha256};

use super::{Output, Result};

const FILE: &str = "SHA256SUMS";

/// Writes the checksums of all files in the directory.
pub(super) fn write(output: &Output) -> Result<()> {
    let mut sums = String::new();
    for name in output.files()? {
        if name != FILE {
            let content = fs::read(output.folder.join(&name))?;
            sums.push_str(&format!("{}  {name}\n", sha256(&content)));
        }
    }
    output.write(FILE, sums.as_bytes())
}

/// Returns the SHA-256 checksum in hexadecimal digits.
pub(super) fn sha256(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
