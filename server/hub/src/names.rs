//! Names of denied files in results: lines and strings that are a path, as lists print them.
//!
//! Prose that mentions a file stays, because the text was judged when the file that contains it was
//! opened.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use percent_encoding::percent_decode_str;
use sightline_access::AccessView;
use sightline_protocol::access::{AccessKind, AccessRule, PathAccess};

/// Maximum length of a path, in bytes.
const MAX_PATH: usize = 4096;
/// Schemes of other machines.
const REMOTE: &[&str] = &["http", "https", "ws", "wss", "ftp", "ssh"];
/// Characters that draw trees and lists.
const DRAWN: &[char] = &[
    '│', '├', '└', '─', '|', '`', '•', '*', '+', '-', '\\', ' ', '\t', '\u{a0}',
];
/// Characters around a path.
const QUOTES: &[char] = &['"', '\'', '`', ',', '<', '>'];

/// A denied file, and the rule that denies it.
pub(crate) type Hidden = (String, Option<AccessRule>);

/// Finds denied names.
pub(crate) struct Names<'a> {
    view: &'a AccessView,
    /// Folders from which paths may start, and the names in them.
    bases: Vec<(PathBuf, HashSet<OsString>)>,
    /// The denied paths of lines.
    known: HashMap<String, Option<Hidden>>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(view: &'a AccessView, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let roots = view
            .roots()
            .as_slice()
            .iter()
            .map(|root| root.path.as_path().to_owned());
        let mut bases: Vec<(PathBuf, HashSet<OsString>)> = Vec::new();
        for folder in roots.chain(folders) {
            if bases.iter().all(|(known, _)| *known != folder) {
                let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
                let names = entries.map(|entry| entry.file_name()).collect();
                bases.push((folder, names));
            }
        }
        Self {
            view,
            bases,
            known: HashMap::new(),
        }
    }

    /// Returns the denial of a text that is the path or the URI of a denied file.
    pub(crate) fn denial(&self, text: &str) -> Option<PathAccess> {
        if text.is_empty() || text.len() > MAX_PATH || text.contains('\n') {
            return None;
        }
        let decoded = percent_decode_str(text).decode_utf8_lossy();
        [text, &*decoded].into_iter().find_map(|text| {
            // `file:///a`, `repository://a`
            let parts = text.split_once("://").or_else(|| text.split_once("file:"));
            let Some((scheme, rest)) = parts else {
                return self.denial_of_path(text);
            };
            if REMOTE.contains(&scheme) {
                return None;
            }
            let rest = rest.split(['?', '#']).next()?;
            let relative = rest.trim_start_matches('/');
            let rooted = format!("/{relative}");
            let [first, second] = if rest.starts_with('/') {
                [&*rooted, relative]
            } else {
                [relative, &*rooted]
            };
            [first, second, text]
                .into_iter()
                .find_map(|text| self.denial_of_path(text))
        })
    }

    fn denial_of_path(&self, text: &str) -> Option<PathAccess> {
        let path = Path::new(text);
        if path.is_absolute() {
            return self.denial_at(path);
        }
        let first = path.components().next()?;
        let is_path = text.contains('/') || text.starts_with('.');
        let places = self
            .bases
            .iter()
            .filter(|(_, names)| is_path || names.contains(first.as_os_str()));
        places
            .into_iter()
            .find_map(|(base, _)| self.denial_at(&base.join(path)))
    }

    /// Returns the denial of an absolute path.
    pub(crate) fn denial_at(&self, path: &Path) -> Option<PathAccess> {
        let (location, mut checked) = self.view.check_written(path.to_str()?);
        if let Some(location) = location {
            checked.path = self.view.roots().result_path(&location).0;
        }
        (checked.access == AccessKind::Denied).then_some(checked)
    }

    /// Returns whether a text is the path of an existing file.
    pub(crate) fn exists(&self, text: &str) -> bool {
        let mut bases = self.bases.iter();
        !text.is_empty()
            && text.len() <= MAX_PATH
            && bases.any(|(base, _)| base.join(text).symlink_metadata().is_ok())
    }

    /// Returns the denied file that a line of a list names.
    pub(crate) fn in_line(&mut self, line: &str) -> Option<Hidden> {
        if let Some(known) = self.known.get(line) {
            return known.clone();
        }
        let texts = candidates(line);
        let denied = texts.iter().find_map(|text| self.denial(text));
        let hidden = denied.map(|denied| (denied.path, denied.rule));
        self.known.insert(line.to_owned(), hidden.clone());
        hidden
    }

    /// Returns whether a line of a list names an existing file.
    pub(crate) fn is_listed(&self, line: &str) -> bool {
        candidates(line).iter().any(|text| self.exists(text))
    }
}

/// Returns the texts of a line that are its path, if it is the line of a list.
fn candidates(line: &str) -> Vec<&str> {
    let line = line.trim_end_matches(['\r', ' ', '\t']);
    let mut starts = vec![line.trim_start()];
    let drawn = line.trim_start_matches(DRAWN);
    starts.push(drawn);
    for start in [line.trim_start(), drawn] {
        if let Some((mark, rest)) = start.split_once(char::is_whitespace)
            && is_mark(mark)
        {
            starts.push(rest.trim_start());
        }
        starts.extend(long_format(start));
    }
    // Most lines have neither a mark nor a drawing.
    starts.sort_unstable();
    starts.dedup();
    let mut found = Vec::new();
    for start in starts {
        let ends = [
            start.find("  "),
            start.find('\t'),
            start.find(" | "),
            start.find(" ("),
            start.find(" -> "),
            start.find(" => "),
            before_number(start),
        ];
        let parts = ends.into_iter().flatten().map(|end| &start[..end]);
        let renamed = [" -> ", " => "]
            .into_iter()
            .filter_map(|arrow| Some(start.split_once(arrow)?.1));
        for text in parts.chain(renamed).chain([start]) {
            let text = text.trim();
            let bare = text.trim_matches(QUOTES);
            // A heading of `ls -R`, and no label of a language.
            let heading = bare
                .strip_suffix(':')
                .filter(|name| name.contains(['/', '.']));
            let bare = heading.unwrap_or(bare);
            let plain = bare.trim_end_matches(['*', '@', '=']);
            found.extend([text, bare, plain]);
        }
    }
    found.sort_unstable();
    found.dedup();
    found.retain(|text| !text.is_empty() && *text != "." && *text != "/");
    found
}

/// Returns whether the first word of a line says what the rest is: `[FILE]`, `??`, `modified:`.
fn is_mark(word: &str) -> bool {
    word.starts_with('[') && word.ends_with(']')
        || word.ends_with(':') && word.len() > 1
        || word.len() <= 2 && word.chars().all(|c| "MADRCUT?!".contains(c))
        || word
            .trim_end_matches(['.', ')'])
            .bytes()
            .all(|byte| byte.is_ascii_digit())
}

/// Returns where a name ends that a line number follows, as in `name:12:text`.
fn before_number(line: &str) -> Option<usize> {
    let mut colons = line.match_indices(':').map(|(at, _)| at);
    colons.find(|at| {
        let rest = &line[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && matches!(rest.as_bytes().get(digits), None | Some(b':' | b' '))
    })
}

/// Returns the name in a line of `ls -l`, or after the object of `git ls-tree`.
fn long_format(line: &str) -> Option<&str> {
    let mode = line.split_whitespace().next()?;
    let is_mode = mode.len() >= 10
        && mode.starts_with(['-', 'd', 'l', 'c', 'b', 's', 'p'])
        && mode[1..].chars().all(|c| "rwxsStT-.+@".contains(c));
    if is_mode {
        let mut rest = line;
        for _ in 0..8 {
            rest = rest.trim_start().split_once(char::is_whitespace)?.1;
        }
        return Some(rest.trim_start());
    }
    let is_number = mode.len() == 6 && mode.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| line.split_once('\t').map(|(_, name)| name))?
}

#[cfg(test)]
mod tests {
    use super::candidates;

    #[test]
    fn lines_of_lists_name_files() {
        for line in [
            "a b",
            "  a b  ",
            "[FILE] a b",
            "[FILE] a b              12 B",
            "├── a b",
            "│   └── a b",
            "- a b",
            "1. a b",
            "?? a b",
            " M a b",
            "R  old -> a b",
            "\tmodified:   a b",
            "a b:12: text",
            "a b:12",
            " a b | 2 +-",
            "-rw-r--r--  1 u g  12 Nov  1 10:00 a b",
            "100644 blob 0123456789\ta b",
            "\"a b\",",
            "a b (12 bytes)",
            "a b*",
        ] {
            assert!(
                candidates(line).contains(&"a b"),
                "{line}: {:?}",
                candidates(line)
            );
        }
        for line in ["see a b for the keys", "copy a b to c"] {
            assert!(!candidates(line).contains(&"a b"), "{line}");
        }
    }
}
