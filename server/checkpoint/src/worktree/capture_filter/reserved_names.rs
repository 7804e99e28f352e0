//! Names that git refuses in a tree, because some file system could read them as `.git`.

/// Returns whether this is the folder of a repository.
pub(crate) fn is_repository(name: &[u8]) -> bool {
    name == b".git"
}

/// Returns whether git refuses an entry with this name.
pub(crate) fn is_refused_by_git(name: &[u8], is_link: bool) -> bool {
    // Windows treats a backslash as a separator.
    let mut parts = name.split(|byte| *byte == b'\\');
    if parts.any(is_windows_git) || is_mac_name(name, b".git") {
        return true;
    }
    // git refuses a link, because it could redirect the submodule configuration.
    is_link && is_mac_name(without_windows_end(name), b".gitmodules")
}

/// Returns whether Windows reads the name as `.git` or its short name `git~1`: in any case, with
/// trailing dots and spaces, or with a stream.
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

/// Compares names as HFS+ does: ignores case and invisible characters.
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
    fn names_that_resemble_dot_git_are_refused() {
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
