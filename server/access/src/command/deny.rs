//! Judges the words of a command, and finds a command to run instead of a denied one: the same with
//! options that leave out denied files.

use std::path::{Path, PathBuf};

use sightline_protocol::settings::RecursiveReaders;

use super::{
    Checker, State,
    expand::Field,
    programs::{self, Use},
    syntax::{DeniedName, Fix},
};
use sightline_base::path::AbsPath;

/// Maximum paths in one word: `a=b:c,d`.
const MAX_PIECES: usize = 64;
/// Maximum options that a suggested command adds.
const MAX_FIXES: usize = 12;

impl Checker<'_> {
    /// Checks a command in a word: `--pager='cat .env'`.
    pub(super) fn embedded(&mut self, text: &str, state: &State) {
        if !text.contains(char::is_whitespace) {
            return;
        }
        for start in [0, text.find(['=', ':']).map_or(0, |at| at + 1)] {
            let command = text[start..].trim_start_matches([' ', '|', '!', '-', '@', '+']);
            if programs::starts_with_command(command) {
                self.script(command, &mut state.clone());
                return;
            }
        }
    }

    /// Checks what a program does with a word.
    pub(super) fn use_field(&mut self, field: &Field, kind: Use, program: &str, state: &State) {
        self.use_field_in(field, kind, program, &state.dirs, state);
    }

    pub(super) fn use_field_in(
        &mut self,
        field: &Field,
        kind: Use,
        program: &str,
        dirs: &[PathBuf],
        state: &State,
    ) {
        let kind = if self.checks_all_words {
            Use::Read
        } else {
            kind
        };
        self.judge_field(field, kind, program, dirs, state);
        if matches!(kind, Use::Write | Use::Create | Use::Alter) {
            let paths = if field.has_glob() {
                let matches = self.judge.matches(field, dirs, state.dotglob);
                matches.into_iter().map(|(path, _)| path).collect()
            } else {
                pieces(&field.text())
            };
            for path in paths {
                self.judge.add_written(&path, dirs, kind == Use::Write);
            }
        }
    }

    fn judge_field(
        &mut self,
        field: &Field,
        kind: Use,
        program: &str,
        dirs: &[PathBuf],
        state: &State,
    ) {
        let text = field.text();
        let verb = match kind {
            Use::Text | Use::Stat | Use::Alter => return,
            Use::Write | Use::Create => "write",
            Use::Read | Use::Code => "read",
        };
        let how = if program == "a redirection" || program == "an expression" {
            format!("{program} would {verb}")
        } else {
            format!("`{program}` would {verb}")
        };
        if kind == Use::Code {
            self.code(&text, program, dirs, state);
            return;
        }
        self.deny_names(&field.names, &how);
        if field.has_glob() {
            // Most programs do not read folders; searches of folders are checked elsewhere.
            let reads_folders = self.reads_folders;
            for (path, place) in self.judge.matches(field, dirs, state.dotglob) {
                if let Some(denial) = self.judge.denial(&place)
                    && (reads_folders || !place.is_dir())
                {
                    self.is_fixable = false;
                    self.judge.deny(&path, &how, denial);
                }
            }
        }
        // A text with blanks that names no file is a message, or a command that is checked as one.
        let is_text = |piece: &str| piece.contains(char::is_whitespace) && !field.has_unknown();
        for path in field.paths() {
            for piece in pieces(&path) {
                if is_text(&piece) && !self.judge.exists(&piece, dirs) {
                    continue;
                }
                let reads = verb == "read";
                self.is_fixable &= !self.judge.check_path_as(&piece, dirs, &how, reads);
            }
        }
        self.embedded(&text, state);
    }

    /// Denies files that a program reads because their names are passed to it.
    pub(super) fn deny_names(&mut self, names: &[DeniedName], how: &str) {
        if self.judge.readers == RecursiveReaders::Allow {
            return;
        }
        for name in names {
            // Most programs do not read folders.
            if name.is_dir && !self.reads_folders {
                continue;
            }
            self.add_fix(name);
            self.judge.deny(&name.path, how, name.denial.clone());
        }
    }

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

/// Returns everything in a text that could be a path: the whole text, the value of an option or
/// assignment, the part after `@` or `:`.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let mut pieces = vec![text.to_owned()];
    if let Some((before, rest)) = text.split_once("://") {
        // A URL is not a path, except a `file:` URL.
        if !before.to_ascii_lowercase().ends_with("file") {
            return Vec::new();
        }
        let path = rest.strip_prefix("localhost").unwrap_or(rest);
        let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
        return vec![path.to_owned(), decoded.into_owned()];
    }
    if text.contains(['\n', ' ']) && !text.contains(['=', ':', '@']) {
        return pieces;
    }
    for part in text.split([',', ';', '=', ':', '<', '>', '|', '&', '(', ')', '@']) {
        let part = part
            .trim_matches(['\'', '"'])
            .trim_start_matches(['+', '?', '!', '%', '#', '-']);
        if pieces.len() < MAX_PIECES
            && !part.is_empty()
            && !pieces.iter().any(|piece| piece == part)
        {
            pieces.push(part.to_owned());
        }
    }
    if let Some((_, value)) = text.split_once('=') {
        pieces.push(value.to_owned());
        pieces.push(value.trim_start_matches('@').to_owned());
    }
    pieces
}
