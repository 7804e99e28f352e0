//! The command to run instead of a denied one: the same with options that leave out denied files.

use std::path::Path;

use super::{
    Checker,
    judge::{DeniedName, Fix},
};
use crate::path::AbsPath;

/// Maximum options that a suggested command adds.
const MAX_FIXES: usize = 12;

impl Checker<'_> {
    /// Adds the option that leaves out a file to the command to run instead.
    pub(super) fn add_fix(&mut self, name: &DeniedName) {
        let Some(fix) = name.fix.filter(|_| self.depth == 1) else {
            self.is_fixable = false;
            return;
        };
        let Some((path, is_dir)) = self.excluded_path(name, fix) else {
            self.is_fixable = false;
            return;
        };
        let template = if is_dir { fix.folder } else { fix.file };
        let is_plain = |text: &str| {
            text.chars()
                .all(|c| c.is_alphanumeric() || "._-/+@:,".contains(c))
        };
        let path = if is_plain(&path) || template.contains('\'') {
            path
        } else {
            format!("'{path}'")
        };
        let option = format!(" {}", template.replace("{}", &path));
        let is_known = |known: &(Fix, String)| known.0.at == fix.at && known.1 == option;
        if !self.fixes.iter().any(is_known) {
            self.fixes.push((fix, option));
        }
    }

    /// Returns the name or path to leave out: the file, or the folder whose contents are denied.
    pub(super) fn excluded_path(&self, name: &DeniedName, fix: Fix) -> Option<(String, bool)> {
        let path = Path::new(&name.path);
        let above = name.place.ancestors().skip(1);
        let depth = path.components().count();
        let folder = above
            .take(depth.saturating_sub(1))
            .filter(|dir| {
                AbsPath::new(dir)
                    .is_some_and(|dir| self.judge.view.denial_of(&dir, || true).is_some())
            })
            .last();
        let excluded = folder.unwrap_or(&name.place);
        let text = if fix.by_name {
            excluded.file_name()?.to_str()?.to_owned()
        } else {
            let up = name.place.strip_prefix(excluded).ok()?.components().count();
            path.ancestors().nth(up)?.to_str()?.to_owned()
        };
        let is_usable = !text.contains(['\'', '\n', '*', '?', '[', '\\']);
        is_usable.then_some((text, folder.is_some()))
    }

    /// Returns the command that leaves out the denied files, if there is one.
    pub(super) fn with_fixes(&self, text: &str) -> Option<String> {
        if !self.is_fixable || self.fixes.is_empty() || self.fixes.len() > MAX_FIXES {
            return None;
        }
        let mut fixed = text.to_owned();
        let mut fixes: Vec<&(Fix, String)> = self.fixes.iter().collect();
        fixes.sort_by_key(|(fix, _)| fix.at);
        for (at, (fix, option)) in fixes.iter().enumerate().rev() {
            if !fixed.is_char_boundary(fix.at) {
                return None;
            }
            let is_first = at == 0 || fixes[at - 1].0.at != fix.at;
            let opening = if is_first { fix.opening } else { "" };
            fixed.insert_str(fix.at, &format!("{opening}{option}"));
        }
        Some(fixed)
    }
}
