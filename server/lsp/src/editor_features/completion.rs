//! Completion in `.clineignore` files, on the text in the editor.
//!
//! Requests for other documents are answered with `null`. Results name hidden files,
//! because they are for the user, not for agents.

use std::{borrow::Cow, fs};

use serde_json::{Value, json};
use sightline_access::RULE_FILE;
use sightline_base::{
    escape::one_line,
    path::{AbsPath, RelPath},
};
use sightline_engine::{error::Error, request_context::RequestContext};

use super::rule_file::{At, RuleFile, text_before, text_units};

/// Maximum number of completions.
const MAX_COMPLETIONS: usize = 500;

/// `textDocument/completion`: existing paths, and `!include`.
///
/// # Errors
/// None.
pub(crate) fn run(context: &RequestContext<'_>, at: At) -> Result<Value, Error> {
    let Some(file) = RuleFile::open(&context.snapshot, &at.text_document.uri) else {
        return Ok(Value::Null);
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
    Ok(json!({ "isIncomplete": !complete, "items": items }))
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
    let real = sightline_base::path::canonicalize(folder.join(&rel).as_path());
    let base = sightline_base::path::canonicalize(folder.as_path());
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
}
