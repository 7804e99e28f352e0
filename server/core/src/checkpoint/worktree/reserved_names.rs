//! Names that git takes in no tree: whatever some file system could read as `.git`;
//! and those by which a git directory of any name is known.

/// Is this what git keeps a repository in?
pub(crate) fn is_repository(name: &[u8]) -> bool {
    name == b".git"
}

/// What every git directory has, whatever it is called.
pub(crate) const GIT_DIRECTORY_ENTRIES: [&str; 3] = ["HEAD", "objects", "refs"];

/// Does git refuse to have an entry of this name?
pub(crate) fn is_refused_by_git(name: &[u8], is_link: bool) -> bool {
    // Windows takes a backslash for a separator.
    let mut parts = name.split(|byte| *byte == b'\\');
    if parts.any(is_windows_git) || is_mac_name(name, b".git") {
        return true;
    }
    // Rules of submodules must not come from somewhere else.
    is_link && is_mac_name(without_windows_end(name), b".gitmodules")
}

/// `.git` or its short name `git~1`, as Windows reads names: in any case, with
/// dots and spaces at the end, or a stream.
fn is_windows_git(name: &[u8]) -> bool {
    let name = without_windows_end(name);
    name.eq_ignore_ascii_case(b".git") || name.eq_ignore_ascii_case(b"git~1")
}

fn without_windows_end(name: &[u8]) -> &[u8] {
    let stream = memchr::memchr(b':', name).unwrap_or(name.len());
    let name = &name[..stream];
    let end = name
        .iter()
        .rposition(|byte| !matches!(byte, b'.' | b' '))
        .map_or(0, |last| last + 1);
    &name[..end]
}

/// As a Mac reads names: in any case, and without characters that show nothing.
fn is_mac_name(name: &[u8], wanted: &[u8]) -> bool {
    if name.is_ascii() {
        return name.eq_ignore_ascii_case(wanted);
    }
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    let unseen = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let seen = name.chars().filter(|c| !unseen(*c));
    seen.map(|c| c.to_ascii_lowercase())
        .eq(wanted.iter().map(|byte| char::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_read_as_a_repository_is_refused() {
        for name in [
            ".git",
            ".GIT",
            ".Git ",
            ".git. .",
            "git~1",
            "GIT~1",
            ".git:x",
            "a\\.git",
            ".g\u{200c}it",
        ] {
            assert!(is_refused_by_git(name.as_bytes(), false), "{name:?}");
        }
        for name in [
            ".gitignore",
            ".github",
            "git",
            "git~2",
            ".gitmodules",
            "a.git",
            "\u{200c}",
        ] {
            assert!(!is_refused_by_git(name.as_bytes(), false), "{name:?}");
        }
        assert!(is_refused_by_git(b".gitmodules", true));
        assert!(!is_refused_by_git(b".gitignore", true));
        assert!(!is_refused_by_git(b".g\xe9it", false));
    }
}
