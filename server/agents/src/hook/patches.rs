//! The files that a patch names.

/// First line of a patch for `apply_patch`.
pub(super) const START: &str = "*** Begin Patch";
/// What lines of such a patch do, before the colon and the path.
const ACTIONS: &[&str] = &["AddFile", "UpdateFile", "DeleteFile", "Moveto"];
/// Starts of the lines of a unified diff that name a file.
const DIFF_STARTS: &[&str] = &[
    "--- ",
    "+++ ",
    "rename from ",
    "rename to ",
    "copy from ",
    "Index: ",
];

/// Returns the paths in the lines of a patch for `apply_patch`, wherever they stand in a text.
pub(super) fn files(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        let (action, path) = line.trim().strip_prefix("***")?.split_once(':')?;
        let action: String = action.split_whitespace().collect();
        let mut actions = ACTIONS.iter();
        actions
            .any(|known| action.eq_ignore_ascii_case(known))
            .then(|| path.trim().to_owned())
    })
}

/// Returns the paths in the lines of a unified diff, also without the prefixes `a/` and `b/`.
pub(super) fn diff_files(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut starts = DIFF_STARTS.iter();
        let Some(rest) = starts.find_map(|start| line.strip_prefix(start)) else {
            continue;
        };
        // A time may follow after a tab.
        let path = rest.split('\t').next().unwrap_or_default().trim();
        found.push(path.to_owned());
        found.extend(path.split_once('/').map(|(_, path)| path.to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{diff_files, files};

    #[test]
    fn files_are_found_with_any_spaces() {
        let patch =
            "*** Begin  Patch\r\n*** Update File:  a b\r\n@@\n*** Move to:c\n +*** Add x: y";
        assert_eq!(files(patch).collect::<Vec<_>>(), ["a b", "c"]);
    }

    #[test]
    fn diffs_name_their_files() {
        let diff = "--- a/b c\t2020\n+++ b/d\n@@ -1 +1 @@\n-x\n+y\n";
        assert_eq!(diff_files(diff), ["a/b c", "b c", "b/d", "d"]);
    }
}
