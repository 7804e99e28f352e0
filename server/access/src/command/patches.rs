//! The files that a patch changes.

use std::path::PathBuf;

use super::{Checker, State, expand::Field, programs::Use};
use crate::read_small_file;

/// Maximum folders that `patch -p` removes from a path.
const MAX_REMOVED: usize = 8;

impl Checker<'_> {
    /// Checks the files that a patch changes: on standard input, or in one of the files that are named.
    pub(super) fn patch(&mut self, name: &str, words: &[Field], dirs: &[PathBuf], state: &State) {
        let named = words
            .iter()
            .map(Field::text)
            .chain(state.stdin.path.clone());
        let places = named.flat_map(|path| dirs.iter().map(move |dir| dir.join(&path)));
        let read = |path: PathBuf| read_small_file(&path).ok().flatten();
        let mut texts: Vec<String> = places
            .filter_map(read)
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .collect();
        texts.extend(state.stdin.text.clone());
        let marks = ["+++ ", "--- ", "rename to ", "copy to "];
        for line in texts.iter().flat_map(|text| text.lines()) {
            let Some(path) = marks.iter().find_map(|mark| line.strip_prefix(mark)) else {
                continue;
            };
            let (path, _) = path.split_once('\t').unwrap_or((path, ""));
            let path = path.trim_matches([' ', '"']);
            for path in without_folders(path) {
                let field = Field::quoted(path);
                self.use_field_in(&field, Use::Write, name, dirs, state);
                self.guard_redirection(&field, state);
            }
        }
    }
}

/// Returns a path, and what is left of it without its first folders, as with `patch -p`.
pub(super) fn without_folders(path: &str) -> impl Iterator<Item = &str> {
    let starts = path.match_indices('/').map(|(at, _)| at + 1);
    let starts = std::iter::once(0).chain(starts).take(MAX_REMOVED);
    starts.map(|start| &path[start..])
}
