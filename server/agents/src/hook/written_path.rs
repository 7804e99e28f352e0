//! The paths that a tool may read in a text.
//!
//! Tools disagree on quotes, percent-encoding, line numbers, fragments and lists. A text therefore has several
//! readings, of which only those that exist matter.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde_json::Value;
use sightline_base::path::on_drive;

/// Maximum length of a path, in bytes. Linux opens no longer one.
pub(super) const MAX_PATH: usize = 4096;
/// Maximum length of a text that can be a path or a list of paths, in bytes.
pub(super) const MAX_TEXT: usize = 64 * 1024;
/// Maximum number of times that a text can be percent-encoded, and once more.
const MAX_DECODINGS: usize = 4;
/// Maximum number of schemes before a path.
const MAX_SCHEMES: usize = 4;

/// Returns a path that is too long to be opened without `.`, `..` and empty names: tools shorten
/// paths themselves. Links on the way do not matter, because only the short path can be opened.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_PATH {
        return Cow::Borrowed(text);
    }
    let mut names: Vec<&str> = Vec::new();
    for name in text.split('/') {
        match (name, names.last()) {
            ("" | ".", _) => {}
            ("..", Some(&last)) if last != ".." => {
                names.pop();
            }
            ("..", None) if text.starts_with('/') => {}
            _ => names.push(name),
        }
    }
    let start = if text.starts_with('/') { "/" } else { "" };
    Cow::Owned(format!("{start}{}", names.join("/")))
}

/// Returns the readings of a text other than the text.
pub(crate) fn readings(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if text.len() <= MAX_TEXT {
        let mut encoded = text.to_owned();
        for _ in 0..MAX_DECODINGS {
            add_readings(&encoded, &mut found);
            let decoded = percent_decode_str(&encoded)
                .decode_utf8_lossy()
                .into_owned();
            if decoded == encoded {
                break;
            }
            encoded = decoded;
        }
        found.sort();
        found.dedup();
        found.retain(|reading| reading != text);
    }
    found
}

fn add_readings(text: &str, found: &mut Vec<String>) {
    let trimmed = text.trim();
    if trimmed.starts_with(['[', '{', '"'])
        && let Ok(list) = serde_json::from_str::<Value>(trimmed)
    {
        add_strings(&list, found);
    }
    for part in [trimmed].into_iter().chain(trimmed.split([',', ';', '\n'])) {
        let quotes = ['"', '\'', '`', '<', '>'];
        let part = part.trim().trim_matches(quotes).trim_start_matches('@');
        add_path(part, found);
        // Schemes: `vscode://file/a`, `resource:///a`, `file:a`, `server:file:///a`.
        for (colon, _) in part.match_indices(':').take(MAX_SCHEMES) {
            let rest = part.get(colon + 1..).unwrap_or_default();
            let rest = rest.trim_start_matches('/');
            add_path(rest, found);
            add_path(&format!("/{rest}"), found);
            if let Some(at) = rest.find('/') {
                add_path(rest.get(at..).unwrap_or_default(), found);
            }
        }
    }
}

/// Adds a path, and the text before a fragment, a query and a line number.
fn add_path(path: &str, found: &mut Vec<String>) {
    let mut ends = vec![path.len()];
    ends.extend(['#', '?'].iter().filter_map(|end| path.find(*end)));
    // `jar:file:///a.jar!/b`
    ends.extend(path.find("!/"));
    let mut rest = path;
    // `path:10:5`
    while let Some((before, number)) = rest.rsplit_once(':')
        && number.chars().all(|c| c.is_ascii_digit() || c == '-')
    {
        ends.push(before.len());
        rest = before;
    }
    let paths = ends.into_iter().filter_map(|end| path.get(..end));
    for path in paths.filter(|path| !path.is_empty()) {
        found.push(path.to_owned());
        found.extend(on_drive(path));
    }
}

fn add_strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => add_path(text, found),
        Value::Array(elements) => elements.iter().for_each(|value| add_strings(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| add_strings(value, found)),
        _ => {}
    }
}

/// Returns a command that is given the files of a glob pattern. `None` if the text is none.
pub(crate) fn glob_command(text: &str) -> Option<String> {
    const SPECIAL: &[char] = &['*', '?', '[', ']', '{', '}', ',', '!'];
    if !text.contains(['*', '?', '[', '{']) || text.contains(['\n', '\0']) {
        return None;
    }
    let mut command = "cat -- ".to_owned();
    for part in text.split_inclusive(SPECIAL) {
        let plain = part.strip_suffix(SPECIAL).unwrap_or(part);
        if !plain.is_empty() {
            command.push_str(&quote(plain));
        }
        command.push_str(part.get(plain.len()..).unwrap_or_default());
    }
    Some(command)
}

/// Quotes a word for a shell.
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::{MAX_PATH, glob_command, readings, shortened};

    #[test]
    fn only_paths_that_cannot_be_opened_are_shortened() {
        assert_eq!(shortened("/a/../b"), "/a/../b");
        for (start, long, end) in [
            ("/r", "/src/..".repeat(MAX_PATH), "/r/b"),
            ("", "/..".repeat(MAX_PATH), "/b"),
            ("r", "/.//".repeat(MAX_PATH), "r/b"),
            ("..", "/a/..".repeat(MAX_PATH), "../b"),
        ] {
            assert_eq!(shortened(&format!("{start}{long}/b")), end);
        }
    }

    #[test]
    fn decorations_are_removed() {
        for text in [
            " a/b ",
            "\"a/b\"",
            "@a/b",
            "a/b#L1-2",
            "a/b:10",
            "a/b:10:5",
            "x,a/b",
            "x\na/b",
            "[\"a/b\"]",
            "{\"x\":\"a/b\"}",
            "file:a/b",
            "a/b?x=1",
            "x://a/b",
            "a%2Fb",
            "x:%61/b",
        ] {
            assert!(readings(text).contains(&"a/b".to_owned()), "{text}");
        }
        for text in ["/a%252Fb", "jar:file:///a/b!/c/d", "%25252Fa/b"] {
            assert!(readings(text).contains(&"/a/b".to_owned()), "{text}");
        }
        assert!(readings("vscode://file/a/b").contains(&"/a/b".to_owned()));
        assert_eq!(readings("a/b"), Vec::<String>::new());
    }

    #[test]
    fn globs_are_not_quoted() {
        assert_eq!(
            glob_command("a b/*.{c,d}").as_deref(),
            Some("cat -- 'a b/'*'.'{'c','d'}")
        );
        assert_eq!(glob_command("a b"), None);
    }

    #[cfg(windows)]
    #[test]
    fn paths_of_git_bash_are_on_a_drive() {
        for text in ["/c/a/.env", "@/c/a/.env", "/cygdrive/c/a/.env:10"] {
            assert!(readings(text).contains(&"c:/a/.env".to_owned()), "{text}");
        }
    }
}
