//! Hover in `.clineignore` files, on the text in the editor, and if a setting says so in other files, on
//! the author of a line.
//!
//! Results name hidden files, because they are for the user, not for agents.

use serde_json::{Value, json};
use sightline_access::lint::{self, Effect, Line};
use sightline_base::escape::one_line;
use sightline_engine::{
    error::Error,
    handlers::checkpoint::list_checkpoints::blame,
    request_context::RequestContext,
    session::{Snapshot, normalize_uri},
};
use sightline_protocol::checkpoint::{BlameAuthor, BlameParams};

use super::rule_file::{At, RuleFile};

/// `textDocument/hover`: describes what a line does.
///
/// # Errors
/// `cancelled`.
pub(crate) fn run(context: &RequestContext<'_>, at: At) -> Result<Value, Error> {
    let Some(file) = RuleFile::open(&context.snapshot, &at.text_document.uri) else {
        return Ok(blame(context, &at).map_or(Value::Null, |text| contents(context, &text)));
    };
    let lines = lint::lines(&file.folder, file.text.as_bytes());
    let description = match lines.get(at.position.line as usize) {
        None | Some(Line::Nothing) => return Ok(Value::Null),
        Some(Line::Unmatchable) => "This pattern can never match.".to_owned(),
        Some(Line::TooLarge) => "This pattern is too large, so everything is denied.".to_owned(),
        Some(line) => {
            let text = file.text.as_bytes();
            let mut effects = lint::effects(&file.folder, text, &context.cancel)?;
            let effect = effects.by_line.remove(&(at.position.line + 1));
            describe(line, &effect.unwrap_or_default(), effects.complete)
        }
    };
    Ok(contents(context, &description))
}

fn contents(context: &RequestContext<'_>, text: &str) -> Value {
    let kind = if context.snapshot.client_info.markdown_hover {
        "markdown"
    } else {
        "plaintext"
    };
    json!({ "contents": { "kind": kind, "value": text } })
}

/// Returns whether hover shows the author of a line.
pub(crate) fn shows_blame(snapshot: &Snapshot) -> bool {
    snapshot.settings.checkpoints.blame_hover
}

/// Returns the author of a line of a saved document. `None` if that is unknown.
fn blame(context: &RequestContext<'_>, at: &At) -> Option<String> {
    let snapshot = &context.snapshot;
    let uri = normalize_uri(&at.text_document.uri);
    let is_saved = |uri: &str| {
        let document = snapshot.editor.document(uri);
        document.is_none_or(|open| !open.document.is_dirty())
    };
    if !shows_blame(snapshot) || !is_saved(&uri) {
        return None;
    }
    let params = BlameParams {
        path: uri,
        root: None,
    };
    let blamed = blame::run(context, params).ok()?;
    let line = blamed.lines.into_iter().nth(at.position.line as usize)?;
    match (line.by, line.turn) {
        (BlameAuthor::Unknown, _) => None,
        (BlameAuthor::User, _) => Some("Written by you, or another program".to_owned()),
        (BlameAuthor::Agent, Some(turn)) => Some(format!("Written in {turn}")),
        (BlameAuthor::Agent, None) => Some(format!("Written in one of {}", line.turns.join(", "))),
    }
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
