//! Hover in `.clineignore` files, on the text in the editor.
//!
//! Requests for other documents are answered with `null`. Results name hidden files,
//! because they are for the user, not for agents.

use serde_json::{Value, json};
use sightline_access::lint::{self, Effect, Line};
use sightline_base::escape::one_line;
use sightline_engine::{error::Error, request_context::RequestContext};

use super::rule_file::{At, RuleFile};

/// `textDocument/hover`: describes what a line does.
///
/// # Errors
/// `cancelled`.
pub(crate) fn run(context: &RequestContext<'_>, at: At) -> Result<Value, Error> {
    let Some(file) = RuleFile::open(&context.snapshot, &at.text_document.uri) else {
        return Ok(Value::Null);
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
    let kind = if context.snapshot.client_info.markdown_hover {
        "markdown"
    } else {
        "plaintext"
    };
    Ok(json!({ "contents": { "kind": kind, "value": description } }))
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
