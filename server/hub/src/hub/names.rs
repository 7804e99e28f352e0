//! Names of tools and prompts for agents: `server__tool`.

use sha2::{Digest, Sha256};

/// Maximum length of a name. Agents put up to 16 characters before it, and allow 64.
const MAX_NAME: usize = 48;
/// Digits of the hash in a name that is cut or changed.
const DIGITS: usize = 8;

/// Returns the name of a tool of a server. Equal names have equal results, in every session.
pub(super) fn exposed(server: &str, tool: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain: String = tool
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    let full = format!("{server}__{plain}");
    if full.len() <= MAX_NAME && plain == tool && !plain.is_empty() {
        return full;
    }
    let start = &full[..full.len().min(MAX_NAME - DIGITS - 1)];
    format!("{start}_{}", &hash(&format!("{server}\0{tool}"))[..DIGITS])
}

/// Returns a hash of a text, in hexadecimal.
pub(super) fn hash(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::exposed;

    #[test]
    fn names_are_short_plain_and_different() {
        assert_eq!(exposed("fs", "read_file"), "fs__read_file");
        let long = "a".repeat(60);
        let names = [
            exposed("fs", &long),
            exposed("fs", &format!("{long}b")),
            exposed("other", &long),
            exposed("fs", "a.b"),
            exposed("fs", "a_b"),
            exposed("fs", "a b"),
            exposed("fs", ""),
            exposed(&"s".repeat(24), &long),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(name.len() <= 48, "{name}");
            assert!(!names[..at].contains(name), "{name}");
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
            );
        }
    }
}
