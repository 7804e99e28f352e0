//! Hover and completion in `.clineignore` files, on the text in the editor.
//!
//! Requests for other documents are answered with `null`. Results name hidden files,
//! because they are for the user, not for agents.

use std::{borrow::Cow, fs};

use serde::Deserialize;
use serde_json::{Value, json};
use sightline_core::{
    access::{
        RULE_FILE,
        lint::{self, Effect, Line},
    },
    document::PositionEncoding,
    error::Error,
    escape::one_line,
    limits,
    path::{AbsPath, RelPath, uri_to_path},
};
use sightline_protocol::editor::Position;

use crate::{
    handlers::{self, HandlerResult, RequestContext},
    params_compat,
    session::{Snapshot, normalize_uri},
};

/// Maximum number of completions.
const MAX_COMPLETIONS: usize = 500;

/// An open rule file: the folder it applies to, and its text.
pub(super) struct RuleFile {
    pub(super) folder: AbsPath,
    pub(super) text: String,
}

impl RuleFile {
    /// Returns the open document `uri` if it is a rule file in effect.
    pub(super) fn open(snapshot: &Snapshot, uri: &str) -> Option<Self> {
        let uri = normalize_uri(uri);
        let path = uri_to_path(&uri).ok().flatten()?;
        if path.as_path().file_name()? != RULE_FILE {
            return None;
        }
        let folder = AbsPath::new(path.as_path().parent()?)?;
        let roots = snapshot.access.roots();
        let mut all = roots.as_slice().iter();
        // In effect are files at the top of a root or above, and those beside a file that
        // is in no root.
        let counts = all.any(|root| {
            [&root.path, &root.canonical]
                .into_iter()
                .any(|path| path.as_path().starts_with(folder.as_path()))
        });
        let text = snapshot.editor.document(&uri)?.document.text();
        let is_small = text.len_bytes() as u64 <= limits::MAX_RULE_FILE_BYTES;
        (is_small && (counts || roots.is_empty())).then(|| Self {
            folder,
            text: text.to_string(),
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct At {
    text_document: Document,
    position: Position,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Document {
    uri: String,
}

fn at(method: &str, params: &str) -> Result<At, Error> {
    let params = params_compat::parse_object(method, Some(params))?;
    serde_json::from_value(params).map_err(|error| Error::invalid(format!("{method}: {error}")))
}

/// `textDocument/hover`: describes what a line does.
pub(super) fn hover(context: &RequestContext<'_>, params: &str) -> HandlerResult {
    let method = "textDocument/hover";
    let at = at(method, params)?;
    let Some(file) = RuleFile::open(&context.snapshot, &at.text_document.uri) else {
        return handlers::to_body(method, &Value::Null);
    };
    let lines = lint::lines(&file.folder, file.text.as_bytes());
    let said = match lines.get(at.position.line as usize) {
        None | Some(Line::Nothing) => return handlers::to_body(method, &Value::Null),
        Some(Line::Unmatchable) => "This pattern can never match.".to_owned(),
        Some(Line::TooLarge) => "This pattern is too large, so everything is denied.".to_owned(),
        Some(line) => {
            let text = file.text.as_bytes();
            let mut effects = lint::effects(&file.folder, text, &context.cancel)?;
            let effect = effects.by_line.remove(&(at.position.line + 1));
            describe(line, &effect.unwrap_or_default(), effects.complete)
        }
    };
    let kind = if context.snapshot.client_info.markdown_hover {
        "markdown"
    } else {
        "plaintext"
    };
    handlers::to_body(
        method,
        &json!({ "contents": { "kind": kind, "value": said } }),
    )
}

/// Describes the effect of a line.
fn describe(line: &Line, effect: &Effect, complete: bool) -> String {
    let (verb, agents) = match line {
        Line::Pattern { negated: true } => ("Shows", "to agents"),
        _ => ("Hides", "from agents"),
    };
    let at_least = if complete { "" } else { "at least " };
    let paths = match effect.count {
        0 => "no existing path".to_owned(),
        1 => "1 path".to_owned(),
        count => format!("{count} paths"),
    };
    let mut names: Vec<String> = effect
        .examples
        .iter()
        .map(|name| format!("`{}`", one_line(name).replace('`', "'")))
        .collect();
    if effect.count > names.len() as u64 {
        names.push("...".to_owned());
    }
    let names = if names.is_empty() {
        String::new()
    } else {
        format!(": {}", names.join(", "))
    };
    format!("{verb} {at_least}{paths} {agents}{names}")
}

/// `textDocument/completion`: existing paths, and `!include`.
pub(super) fn completion(context: &RequestContext<'_>, params: &str) -> HandlerResult {
    let method = "textDocument/completion";
    let at = at(method, params)?;
    let Some(file) = RuleFile::open(&context.snapshot, &at.text_document.uri) else {
        return handlers::to_body(method, &Value::Null);
    };
    let line = file.text.split('\n').nth(at.position.line as usize);
    let encoding = context.snapshot.client_info.encoding;
    let typed = text_before(line.unwrap_or_default(), at.position.character, encoding);
    let item = |label: &str, kind: u32, keep: &str, new: &str| {
        let start = text_units(keep, encoding);
        let range = json!({
            "start": { "line": at.position.line, "character": start },
            "end": { "line": at.position.line, "character": text_units(typed, encoding) },
        });
        let edit = json!({ "range": range, "newText": new });
        json!({ "label": label, "kind": kind, "filterText": new, "textEdit": edit })
    };
    let mut items = Vec::new();
    let include = "!include ";
    if include.starts_with(typed) && typed.len() < include.len() {
        items.push(item("!include", KEYWORD, "", include));
    }
    let is_include = typed.starts_with(include);
    let (names, complete) = completions(&file.folder, typed);
    for name in names {
        let keep = &typed[..name.keep];
        let (end, kind) = if name.is_folder {
            ("/", FOLDER)
        } else {
            ("", FILE)
        };
        let text = if is_include {
            Cow::Borrowed(name.text.as_str())
        } else {
            escaped(&name.text, keep.is_empty())
        };
        let label = format!("{}{end}", one_line(&name.text));
        items.push(item(&label, kind, keep, &format!("{text}{end}")));
    }
    handlers::to_body(
        method,
        &json!({ "isIncomplete": !complete, "items": items }),
    )
}

/// LSP's kinds of completion items.
const KEYWORD: u32 = 14;
const FILE: u32 = 17;
const FOLDER: u32 = 19;

struct Name {
    text: String,
    is_folder: bool,
    /// Bytes of the typed text before the name.
    keep: usize,
}

/// Returns the names that may follow the typed text, sorted, and whether the list is
/// complete.
fn completions(folder: &AbsPath, typed: &str) -> (Vec<Name>, bool) {
    let none = (Vec::new(), true);
    if typed.starts_with('#') {
        return none;
    }
    let path = match typed.strip_prefix("!include ") {
        Some(path) => path.trim_start(),
        None => typed.strip_prefix('!').unwrap_or(typed),
    };
    let above = path.rfind('/').map_or("", |at| &path[..=at]);
    let keep = typed.len() - path.len() + above.len();
    if above.contains(['*', '?', '[', '\\']) {
        return none;
    }
    let Some(rel) = RelPath::new(above.trim_matches('/').as_ref()) else {
        return none;
    };
    // Targets of symlinks outside the folder are not listed.
    let real = fs::canonicalize(folder.join(&rel).as_path());
    let base = fs::canonicalize(folder.as_path());
    let (Ok(real), Ok(base)) = (real, base) else {
        return none;
    };
    if !real.starts_with(base) {
        return none;
    }
    let start = &path[above.len()..];
    let mut names: Vec<Name> = fs::read_dir(real)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let text = entry.file_name().into_string().ok()?;
            let is_wanted = text.to_lowercase().starts_with(&start.to_lowercase());
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_plain = text != ".git" && text != RULE_FILE && !text.contains(['\n', '\r']);
            (is_wanted && is_plain).then_some(Name {
                text,
                is_folder,
                keep,
            })
        })
        .collect();
    names.sort_by(|a, b| a.text.cmp(&b.text));
    let complete = names.len() <= MAX_COMPLETIONS;
    names.truncate(MAX_COMPLETIONS);
    (names, complete)
}

/// Escapes a name so that the pattern matches only it. `#` and `!` are special at the
/// start of a line.
fn escaped(name: &str, is_first: bool) -> Cow<'_, str> {
    let special = |c: char| matches!(c, '*' | '?' | '[' | '\\');
    let starts = is_first && name.starts_with(['#', '!']);
    let ends = name.ends_with(' ');
    if !starts && !ends && !name.contains(special) {
        return Cow::Borrowed(name);
    }
    let mut pattern = String::with_capacity(name.len() + 4);
    let last = name.trim_end_matches(' ').len();
    for (at, c) in name.char_indices() {
        if special(c) || starts && at == 0 || at >= last {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    Cow::Owned(pattern)
}

/// Returns the part of a line before a position.
fn text_before(line: &str, character: u32, encoding: PositionEncoding) -> &str {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let mut passed = 0;
    for (at, c) in line.char_indices() {
        if passed >= character {
            return &line[..at];
        }
        passed += width(c, encoding);
    }
    line
}

/// Returns the length of a text in the units of the position encoding.
pub(super) fn text_units(text: &str, encoding: PositionEncoding) -> u32 {
    text.chars().map(|c| width(c, encoding)).sum()
}

fn width(c: char, encoding: PositionEncoding) -> u32 {
    let width = match encoding {
        PositionEncoding::Utf8 => c.len_utf8(),
        PositionEncoding::Utf16 => c.len_utf16(),
        PositionEncoding::Utf32 => 1,
    };
    u32::try_from(width).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_match_themselves() {
        assert_eq!(escaped("a b.txt", true), "a b.txt");
        assert_eq!(escaped("a*[x]?\\", false), "a\\*\\[x]\\?\\\\");
        assert_eq!(
            (escaped("#a", true), escaped("#a", false)),
            ("\\#a".into(), "#a".into())
        );
        assert_eq!(escaped("a  ", false), "a\\ \\ ");
    }

    #[test]
    fn positions_are_counted_in_every_encoding() {
        for (encoding, character) in [
            (PositionEncoding::Utf8, 6),
            (PositionEncoding::Utf16, 3),
            (PositionEncoding::Utf32, 2),
        ] {
            assert_eq!(text_before("é😀x\r", character, encoding), "é😀");
            assert_eq!(text_units("é😀", encoding), character);
            assert_eq!(text_before("é", 99, encoding), "é");
        }
    }
}
