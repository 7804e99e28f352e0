//! A profile for `sandbox-exec` of macOS. Its text is tested, the profile itself was never tried.

use std::fmt::Write;

use crate::{Cover, HiddenPath};

/// Returns a profile that forbids to read and write the paths, and allows everything else.
pub fn macos_profile(paths: &[HiddenPath]) -> String {
    let mut profile = "(version 1)\n(allow default)\n".to_owned();
    for hidden in paths {
        let path = hidden.path.to_string_lossy();
        let path = path.replace('\\', "\\\\").replace('"', "\\\"");
        let (operations, filter) = match hidden.cover {
            Cover::File => ("file-read* file-write*", "literal"),
            Cover::Folder => ("file-read* file-write*", "subpath"),
            Cover::ReadOnly => ("file-write*", "literal"),
        };
        let _ = writeln!(profile, "(deny {operations} ({filter} \"{path}\"))");
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted() {
        let hidden = |path: &str, cover| HiddenPath {
            path: path.into(),
            cover,
        };
        let profile = macos_profile(&[
            hidden("/w/a \"b\\c", Cover::File),
            hidden("/w/keys", Cover::Folder),
            hidden("/w/.clineignore", Cover::ReadOnly),
        ]);
        assert_eq!(
            profile,
            "(version 1)\n(allow default)\n\
             (deny file-read* file-write* (literal \"/w/a \\\"b\\\\c\"))\n\
             (deny file-read* file-write* (subpath \"/w/keys\"))\n\
             (deny file-write* (literal \"/w/.clineignore\"))\n"
        );
    }
}
