//! Names of denied files in results: lines and strings that are a path, as lists print them.
//!
//! Prose that mentions a file stays, because the text was judged when the file that contains it was
//! opened.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    fs,
    path::{Component, Path, PathBuf},
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
    /// The names in the topmost folder.
    top: HashSet<OsString>,
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
                let names = names_in(&folder);
                bases.push((folder, names));
            }
        }
        let mut top = names_in(Path::new("/"));
        let paths = bases.iter().flat_map(|(path, _)| path.components().nth(1));
        top.extend(paths.map(|part| part.as_os_str().to_owned()));
        Self {
            view,
            top,
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
        let decoded = (decoded != text).then_some(&*decoded);
        [text].into_iter().chain(decoded).find_map(|text| {
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

    /// Returns whether a text may be a path. One with spaces is, if it exists: most lines are no paths, and
    /// looking for the file of each takes time.
    fn may_be_path(&self, text: &str) -> bool {
        if !text.contains([' ', '\t']) {
            return true;
        }
        let exists = |text: &str| {
            let path = Path::new(text);
            let mut parts = path.components();
            let first = parts.find(|part| !matches!(part, Component::RootDir | Component::CurDir));
            let is_in = |names: &HashSet<OsString>| {
                first.is_some_and(|first| names.contains(first.as_os_str()))
            };
            is_in(&self.top)
                || self.bases.iter().any(|(_, names)| is_in(names))
                || text.contains("..") && path.components().any(|part| part == Component::ParentDir)
        };
        let is_uri = |(scheme, _): (&str, &str)| !scheme.contains(' ');
        exists(text)
            || text.contains('%') && exists(&percent_decode_str(text).decode_utf8_lossy())
            || text.contains(':')
                && text
                    .split_once("://")
                    .or_else(|| text.split_once("file:"))
                    .is_some_and(is_uri)
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
        // Most lines are no paths.
        find_in_line(line, |text| self.may_be_path(text).then_some(()))?;
        if let Some(known) = self.known.get(line) {
            return known.clone();
        }
        let hidden = find_in_line(line, |text| {
            let denied = self.may_be_path(text).then(|| self.denial(text))??;
            Some((denied.path, denied.rule))
        });
        self.known.insert(line.to_owned(), hidden.clone());
        hidden
    }

    /// Returns whether a line of a list names an existing file.
    pub(crate) fn is_listed(&self, line: &str) -> bool {
        find_in_line(line, |text| self.exists(text).then_some(())).is_some()
    }
}

fn names_in(folder: &Path) -> HashSet<OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).collect()
}

/// Returns what is found for one of the texts of a line that are its path, if it is the line of a list.
fn find_in_line<T>(line: &str, find: impl Fn(&str) -> Option<T>) -> Option<T> {
    let line = line.trim_end_matches(['\r', ' ', '\t']);
    let plain = line.trim_start();
    let drawn = line.trim_start_matches(DRAWN);
    let drawn = (drawn.len() != plain.len()).then_some(drawn);
    let starts = [
        Some(plain),
        after_mark(plain),
        long_format(plain),
        drawn,
        drawn.and_then(after_mark),
        drawn.and_then(long_format),
    ];
    starts.into_iter().flatten().find_map(|start| {
        let ends = ends(start);
        let parts = ends.into_iter().flatten().map(|end| &start[..end]);
        let renamed = ends[..2].iter().flatten().map(|end| &start[end + ARROW..]);
        parts.chain(renamed).chain([start]).find_map(|text| {
            let text = text.trim();
            let bare = text.trim_matches(QUOTES);
            // A heading of `ls -R`, and no label of a language.
            let heading = bare
                .strip_suffix(':')
                .filter(|name| name.contains(['/', '.']));
            let bare = heading.unwrap_or(bare);
            let plain = bare.trim_end_matches(['*', '@', '=']);
            let is_new = [true, bare.len() < text.len(), plain.len() < bare.len()];
            let texts = [text, bare, plain].into_iter().zip(is_new);
            texts
                .filter(|(text, is_new)| *is_new && !matches!(*text, "" | "." | "/"))
                .find_map(|(text, _)| find(text))
        })
    })
}

/// Length of ` -> `.
const ARROW: usize = 4;

/// Returns where the name at the start of a text may end: before an arrow, a column, a size, a comment, and the
/// number of a line, as in `name:12:text`.
fn ends(text: &str) -> [Option<usize>; 7] {
    let is_number = |rest: &[u8]| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && matches!(rest.get(digits), None | Some(b':' | b' '))
    };
    let mut ends = [None; 7];
    for (at, byte) in text.bytes().enumerate() {
        let rest = &text.as_bytes()[at + 1..];
        let kind = match byte {
            b' ' if rest.starts_with(b"-> ") => 0,
            b' ' if rest.starts_with(b"=> ") => 1,
            b' ' if rest.starts_with(b" ") => 2,
            b' ' if rest.starts_with(b"| ") => 3,
            b' ' if rest.starts_with(b"(") => 4,
            b'\t' => 5,
            b':' if is_number(rest) => 6,
            _ => continue,
        };
        ends[kind].get_or_insert(at);
    }
    ends
}

/// Returns what follows the first word of a line, if that is a mark.
fn after_mark(line: &str) -> Option<&str> {
    let (mark, rest) = line.split_once(char::is_whitespace)?;
    is_mark(mark).then(|| rest.trim_start())
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
    use super::*;

    #[cfg(unix)]
    #[test]
    fn names_with_spaces_are_found_if_they_exist() {
        use std::{fs, sync::Arc};

        use sightline_access::Access;
        use sightline_base::path::{AbsPath, Root, Roots};
        use sightline_protocol::settings::Secrets;

        let folder = tempfile::tempdir().unwrap();
        let path = sightline_base::path::canonicalize(folder.path()).unwrap();
        fs::create_dir(path.join("my notes")).unwrap();
        fs::write(path.join("my notes/a.txt"), "").unwrap();
        fs::write(path.join(".clineignore"), "my notes/\n").unwrap();
        let root = Root::new(AbsPath::new(&path).unwrap(), None);
        let access = Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Deny);
        let view = access.view().0;
        let mut names = Names::new(&view, [path.clone()]);
        let path = path.display();
        for line in [
            "my notes",
            "my notes/a.txt",
            "./my notes/a.txt",
            "[FILE] my notes/a.txt",
            "x/../my notes/a.txt",
            "my%20notes/a.txt",
            "my%20notes/a .txt",
            &format!("{path}/my notes/a.txt"),
            &format!("file://{path}/my notes/a.txt"),
            &format!("{path}/my notes/a.txt: text"),
        ] {
            assert!(names.in_line(line).is_some(), "{line}");
        }
        for line in [
            "see my notes/a.txt",
            "// my notes/a.txt is a file",
            "my other notes/a.txt",
            "https://example.com/my notes",
        ] {
            assert_eq!(names.in_line(line), None, "{line}");
        }
    }

    #[test]
    fn lines_of_lists_name_files() {
        let is_path =
            |line: &str| find_in_line(line, |text| (text == "a b").then_some(())).is_some();
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
            assert!(is_path(line), "{line}");
        }
        for line in ["see a b for the keys", "copy a b to c"] {
            assert!(!is_path(line), "{line}");
        }
    }
}
