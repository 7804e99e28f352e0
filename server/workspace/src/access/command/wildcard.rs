//! What a pattern on the command line matches in the real folders.
//!
//! Folders are read only where roots are, and never a denied one. Bounded: a
//! pattern that would look at too much is itself denied.

use std::path::{Path, PathBuf};

use super::{CommandChecker, expansion::ExpandedWord};
use crate::{
    access::{
        Verdict,
        casefold::fold,
        git_glob::{Case, Matcher, NoGlob, Subject, Syntax},
    },
    path::AbsPath,
};

/// Folder entries one command may look at.
pub(super) const MAX_ENTRIES: usize = 100_000;

/// File names compare as the file system does.
const CASE: Case = if cfg!(any(windows, target_os = "macos")) {
    Case::Folded
} else {
    Case::Sensitive
};

/// Matches of one pattern that are looked at once more.
const MAX_MATCHES: usize = 2_000;

/// How looking into a folder ended.
enum Look {
    Done,
    /// The folder is denied.
    Denied,
    /// There is more than may be looked at.
    Spent,
}

/// One name of a pattern.
enum Step {
    Name(String),
    Pattern {
        matcher: Matcher,
        hidden: bool,
    },
    /// `**`, which some shells let match any depth.
    AnyDepth,
}

impl CommandChecker<'_> {
    /// Judges every file a word's pattern matches.
    pub(super) fn check_matches(&mut self, field: &ExpandedWord, dirs: &[PathBuf], how: &str) {
        let text = field.text();
        let how = format!("{how} (by the pattern `{text}`)");
        let found = self.each_match(field, dirs, |checker, path, start| {
            checker.check_match(path, start, &text, &how);
        });
        if !found {
            self.refuse(
                &text,
                "this pattern matches too many files to check; use a narrower one".to_owned(),
            );
        }
    }

    /// The files a word's pattern matches; some, where there are many.
    pub(super) fn matches(&mut self, field: &ExpandedWord, dirs: &[PathBuf]) -> Vec<PathBuf> {
        let mut matches = Vec::new();
        self.each_match(field, dirs, |_, path, _| {
            if matches.len() < MAX_MATCHES {
                matches.push(path.to_path_buf());
            }
        });
        matches
    }

    /// Calls `found` with every file a word's pattern matches, and the folder it is
    /// seen from; false when there was too much to look at.
    fn each_match(
        &mut self,
        field: &ExpandedWord,
        dirs: &[PathBuf],
        mut found: impl FnMut(&mut Self, &Path, &Path),
    ) -> bool {
        let text = field.text();
        let steps: Option<Vec<Step>> = field.names().iter().map(step).collect();
        let Some(steps) = steps else {
            self.refuse(
                &text,
                "this pattern is too large to be checked; name the files".to_owned(),
            );
            return true;
        };
        let top = Path::new(&text);
        let starts: Vec<PathBuf> = if top.is_absolute() {
            vec![top.ancestors().last().unwrap_or(top).to_path_buf()]
        } else {
            dirs.to_vec()
        };
        for start in starts {
            let mut todo = vec![(start.clone(), 0_usize)];
            while let Some((at, index)) = todo.pop() {
                let Some(step) = steps.get(index) else {
                    found(self, &at, &start);
                    continue;
                };
                let Step::Name(name) = step else {
                    match self.look_into(&at, step, index, &mut todo) {
                        Look::Done => {}
                        Look::Denied => found(self, &at, &start),
                        Look::Spent => return false,
                    }
                    continue;
                };
                let next = at.join(name);
                // A pattern matches only existing files.
                if index + 1 < steps.len() || next.symlink_metadata().is_ok() {
                    todo.push((next, index + 1));
                }
            }
        }
        true
    }

    /// Reads a folder and adds what matches.
    fn look_into(
        &mut self,
        folder: &Path,
        step: &Step,
        index: usize,
        todo: &mut Vec<(PathBuf, usize)>,
    ) -> Look {
        let Some(place) = AbsPath::new(folder) else {
            return Look::Done;
        };
        match self.view.check_absolute(&place) {
            Verdict::Denied(_) => return Look::Denied,
            Verdict::Outside if !self.leads_to_a_root(&place) && !self.is_guarded(folder) => {
                return Look::Done;
            }
            _ => {}
        }
        if matches!(step, Step::AnyDepth) {
            todo.push((folder.to_path_buf(), index + 1));
        }
        let Ok(entries) = std::fs::read_dir(folder) else {
            return Look::Done;
        };
        for entry in entries.flatten() {
            if self.entries_left == 0 || self.is_exhausted() {
                return Look::Spent;
            }
            self.entries_left -= 1;
            let name = entry.file_name();
            let bytes = name.as_encoded_bytes();
            let hidden = bytes.starts_with(b".");
            match step {
                Step::Pattern {
                    matcher,
                    hidden: shown,
                } => {
                    let matches = match CASE {
                        Case::Sensitive => matcher.is_match(bytes),
                        Case::Folded => matcher.is_match(&fold(bytes)),
                    };
                    if matches && (*shown || !hidden) {
                        todo.push((entry.path(), index + 1));
                    }
                }
                Step::AnyDepth if !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) => {
                    todo.push((entry.path(), index));
                }
                _ => {}
            }
        }
        Look::Done
    }

    /// Judges a file that a pattern matches. The answer names the file only where
    /// the rule does so itself, else the pattern: names are not to be found out
    /// by asking for `*`.
    fn check_match(&mut self, path: &Path, start: &Path, pattern: &str, how: &str) {
        let Some(denial) = self.denial(path) else {
            return;
        };
        // Relative when the pattern is.
        let shown = match start.parent() {
            Some(_) => path.strip_prefix(start).unwrap_or(path),
            None => path,
        };
        let shown = shown.to_string_lossy();
        if denial.named_in(&shown) == Some(&*shown) {
            self.deny(&shown, how, denial);
        } else {
            self.deny(pattern, how, denial);
        }
    }

    fn is_guarded(&self, folder: &Path) -> bool {
        self.guard
            .as_ref()
            .is_some_and(|guard| guard.is_above_a_place(folder))
    }

    fn leads_to_a_root(&self, folder: &AbsPath) -> bool {
        self.view
            .scopes
            .iter()
            .flat_map(|scope| &scope.paths)
            .any(|path| path.relative_to(folder).is_some())
    }
}

/// Returns `None` for a pattern over a size limit.
fn step(name: &ExpandedWord) -> Option<Step> {
    let text = name.text();
    if !name.has_pattern() {
        return Some(Step::Name(text));
    }
    if text == "**" {
        return Some(Step::AnyDepth);
    }
    match Syntax::shell(CASE).matcher(&name.pattern(), Subject::Name) {
        Ok(matcher) => Some(Step::Pattern {
            matcher,
            hidden: text.starts_with('.'),
        }),
        Err(NoGlob::NeverMatches) => Some(Step::Name(text)),
        Err(NoGlob::TooLarge) => None,
    }
}
