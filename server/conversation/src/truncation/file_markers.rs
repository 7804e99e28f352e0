//! Recognizes file content in texts: the header of a tool result, and the tags around a file.

use std::ops::Range;

use memchr::memmem;

use crate::wire::json::{UnescapedChars, unquoted};

/// A tool whose result contains a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileTool {
    /// The whole result is the file.
    Read,
    /// The result contains the file after the edit.
    Edit,
}

/// First line of a tool result.
#[derive(Debug, PartialEq)]
pub(crate) struct ResultHeader {
    pub(crate) tool: FileTool,
    pub(crate) path: String,
    /// The header up to and including its colon.
    pub(crate) text: String,
    /// Whether nothing follows the header.
    pub(crate) is_alone: bool,
}

const HEADER_PREFIXES: [(&str, FileTool); 3] = [
    ("[read_file for '", FileTool::Read),
    ("[write_to_file for '", FileTool::Edit),
    ("[replace_in_file for '", FileTool::Edit),
];
const HEADER_SUFFIX: &str = "'] Result:";

/// Parses the header at the start of a JSON string. Decodes only the header.
pub(crate) fn parse_header(string: &str) -> Option<ResultHeader> {
    let inner = unquoted(string);
    if !inner.starts_with(['[', '\\']) {
        return None;
    }
    let (opening, tool) = HEADER_PREFIXES
        .into_iter()
        .find(|(opening, _)| starts_with(&mut UnescapedChars(inner), opening))?;
    let mut rest = UnescapedChars(inner);
    starts_with(&mut rest, opening);
    let path: String = rest.by_ref().take_while(|c| *c != '\'').collect();
    // `take_while` consumed the quote.
    let ends = HEADER_SUFFIX.strip_prefix('\'').unwrap_or_default();
    if path.is_empty() || !starts_with(&mut rest, ends) {
        return None;
    }
    Some(ResultHeader {
        tool,
        text: format!("{opening}{path}{HEADER_SUFFIX}"),
        path,
        is_alone: rest.next().is_none(),
    })
}

fn starts_with(characters: &mut UnescapedChars<'_>, text: &str) -> bool {
    text.chars().all(|c| characters.next() == Some(c))
}

/// A file between tags.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TaggedFile {
    /// Range of the tags and the content.
    pub(crate) range: Range<usize>,
    /// Range of the `path` attribute.
    pub(crate) path: Range<usize>,
    /// Range of the text between the tags.
    pub(crate) content: Range<usize>,
}

/// Tags around a file: `<NAME path="...">` and `</NAME>`.
pub(crate) struct FileTags {
    opening: &'static str,
    closing: &'static str,
    /// A substring of every opening tag, whichever characters JSON escapes.
    pub(crate) needle: &'static str,
}

/// A file mentioned by the user.
pub(crate) const FILE_CONTENT: FileTags = FileTags {
    opening: "<file_content path=\"",
    closing: "</file_content>",
    needle: "file_content path=",
};

/// A file after an edit.
pub(crate) const FINAL_FILE_CONTENT: FileTags = FileTags {
    opening: "<final_file_content path=\"",
    closing: "</final_file_content>",
    needle: "final_file_content path=",
};

impl FileTags {
    /// Returns the first tagged file at or after `from`.
    pub(crate) fn find(&self, text: &str, from: usize) -> Option<TaggedFile> {
        let mut at = from;
        loop {
            let start = at + find(text, at, self.opening)?;
            let path = start + self.opening.len();
            let quote = path + find(text, path, "\"")?;
            let body = quote + "\">".len();
            if text.get(quote..body) != Some("\">") {
                at = path;
                continue;
            }
            let end = body + find(text, body, self.closing)?;
            return Some(TaggedFile {
                range: start..end + self.closing.len(),
                path: path..quote,
                content: body..end,
            });
        }
    }

    /// Returns all tagged files.
    pub(crate) fn all(&self, text: &str) -> impl Iterator<Item = TaggedFile> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let found = self.find(text, from)?;
            from = found.range.end;
            Some(found)
        })
    }
}

fn find(text: &str, from: usize, needle: &str) -> Option<usize> {
    memmem::find(text.as_bytes().get(from..)?, needle.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<(FileTool, String, bool)> {
        let header = parse_header(&serde_json::to_string(text).unwrap())?;
        assert!(text.starts_with(&header.text));
        Some((header.tool, header.path, header.is_alone))
    }

    #[test]
    fn headers() {
        let found = |tool, path: &str, alone| Some((tool, path.to_owned(), alone));
        assert_eq!(
            parse("[read_file for 'a b/漢.rs'] Result:\nx"),
            found(FileTool::Read, "a b/漢.rs", false)
        );
        assert_eq!(
            parse("[write_to_file for 'a\"b\\c'] Result:"),
            found(FileTool::Edit, "a\"b\\c", true)
        );
        for text in [
            "[read_file for ''] Result:",
            "[read_file for 'it's'] Result:",
            "[read_file for 'a'] Result",
            " [read_file for 'a'] Result:",
            "[read_file for 'a",
            "[list_files for 'a'] Result:",
            "",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        let escaped = r#""\u005bread_file for \u0027a\u0027] Result:""#;
        assert_eq!(parse_header(escaped).unwrap().path, "a");
    }

    #[test]
    fn tags() {
        let text = "<file_content path=\"<file_content path=\"a\">1</file_content>\
            <file_content path=\"\n\"></file_content><file_content path=\"c\">";
        let found: Vec<_> = FILE_CONTENT
            .all(text)
            .map(|tagged| (&text[tagged.path], &text[tagged.content]))
            .collect();
        assert_eq!(found, [("a", "1"), ("\n", "")]);
        assert_eq!(FINAL_FILE_CONTENT.find(text, 0), None);
        assert_eq!(FILE_CONTENT.find(text, usize::MAX), None);
    }
}
