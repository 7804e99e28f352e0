//! What a pattern on the command line matches in the real folders.
//!
//! Folders are read only where roots are, and never a denied one. Bounded: a
//! pattern that would look at too much is itself denied.

use std::path::{Path, PathBuf};

use super::{Audit, word::Field};
use crate::{
    access::{
        Verdict,
        fold::fold,
        glob::{Case, Glob, Subject},
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

/// One name of a pattern.
enum Step {
    Name(String),
    Pattern {
        glob: Glob,
        hidden: bool,
    },
    /// `**`, which some shells let match any depth.
    AnyDepth,
}

impl Audit<'_> {
    /// Judges every file a word's pattern matches.
    pub(super) fn judge_matches(&mut self, field: &Field, dirs: &[PathBuf], how: &str) {
        let text = field.text();
        let how = format!("{how} (by the pattern `{text}`)");
        let steps: Vec<Step> = field.names().iter().map(step).collect();
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
                    self.judge_match(&at, &start, &text, &how);
                    continue;
                };
                let Step::Name(name) = step else {
                    if !self.look_into(&at, step, index, &mut todo, (&start, &text), &how) {
                        self.refuse(
                            &text,
                            "this pattern matches more files than can be checked; name them more closely"
                                .to_owned(),
                        );
                        return;
                    }
                    continue;
                };
                let next = at.join(name);
                // A pattern matches only what is there.
                if index + 1 < steps.len() || next.symlink_metadata().is_ok() {
                    todo.push((next, index + 1));
                }
            }
        }
    }

    /// Reads a folder and adds what matches; false when the budget is spent.
    fn look_into(
        &mut self,
        folder: &Path,
        step: &Step,
        index: usize,
        todo: &mut Vec<(PathBuf, usize)>,
        (start, pattern): (&Path, &str),
        how: &str,
    ) -> bool {
        let Some(place) = AbsPath::new(folder) else {
            return true;
        };
        match self.view.check_absolute(&place) {
            Verdict::Denied(_) => {
                self.judge_match(folder, start, pattern, how);
                return true;
            }
            Verdict::Outside if !self.leads_to_a_root(&place) => return true,
            _ => {}
        }
        if matches!(step, Step::AnyDepth) {
            todo.push((folder.to_path_buf(), index + 1));
        }
        let Ok(entries) = std::fs::read_dir(folder) else {
            return true;
        };
        for entry in entries.flatten() {
            if self.entries_left == 0 || self.is_exhausted() {
                return false;
            }
            self.entries_left -= 1;
            let name = entry.file_name();
            let bytes = name.as_encoded_bytes();
            let hidden = bytes.starts_with(b".");
            match step {
                Step::Pattern {
                    glob,
                    hidden: shown,
                } => {
                    let matches = match CASE {
                        Case::Sensitive => glob.matches(bytes),
                        Case::Folded => glob.matches(&fold(bytes)),
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
        true
    }

    /// Judges a file that a pattern matches. The answer names the file only where
    /// the rule does so itself, else the pattern: names are not to be found out
    /// by asking for `*`.
    fn judge_match(&mut self, path: &Path, start: &Path, pattern: &str, how: &str) {
        let Some(denial) = self.denial(path) else {
            return;
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let named = denial.rule.as_ref().is_some_and(|rule| {
            rule.pattern.trim_end_matches('/').rsplit('/').next() == Some(&*name)
        });
        if !named {
            return self.deny(pattern, how, denial);
        }
        // Relative when the pattern is.
        let shown = match start.parent() {
            Some(_) => path.strip_prefix(start).unwrap_or(path),
            None => path,
        };
        let shown = shown.to_string_lossy().into_owned();
        self.deny(&shown, how, denial);
    }

    fn leads_to_a_root(&self, folder: &AbsPath) -> bool {
        self.view
            .areas
            .iter()
            .flat_map(|area| &area.paths)
            .any(|path| path.relative_to(folder).is_some())
    }
}

fn step(name: &Field) -> Step {
    let text = name.text();
    if !name.has_pattern() {
        return Step::Name(text);
    }
    if text == "**" {
        return Step::AnyDepth;
    }
    match Glob::new(&name.pattern(), Subject::Name, CASE) {
        Some(glob) => Step::Pattern {
            glob: glob.by_character(),
            hidden: text.starts_with('.'),
        },
        None => Step::Name(text),
    }
}
