//! Derives the title of a task from the first text that the user wrote.

use sightline_conversation::wire::{BlockKind, Content, Message, Role, json::decode};

/// Maximum length of a title, in characters.
const MAX_CHARACTERS: usize = 80;

/// Returns the title that a message provides, if it is a user message with text.
pub(super) fn title_of(message: &str) -> Option<String> {
    let message = Message::scan(message)?;
    if message.role != Role::User {
        return None;
    }
    let string = match &message.content {
        Content::Text(range) => message.slice(range),
        _ => {
            let mut texts = message
                .blocks()
                .iter()
                .filter(|block| block.kind == BlockKind::Text);
            texts.find_map(|block| message.string(block))?
        }
    };
    let text = decode(string);
    let title = title(&text);
    (!title.is_empty()).then_some(title)
}

/// Returns the first line of a text, or of the text in its `<task>` element.
fn title(text: &str) -> String {
    let task = text
        .split_once("<task>")
        .and_then(|(_, rest)| rest.split_once("</task>"))
        .map_or(text, |(task, _)| task);
    let line = task.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_CHARACTERS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles() {
        let of = |content: &str| title_of(&format!(r#"{{"role":"user","content":{content}}}"#));
        assert_eq!(of(r#""\n  Fix it \nnow""#).unwrap(), "Fix it");
        let blocks =
            r#"[{"type":"image"},{"type":"text","text":"<task>\nDo a\nthing\n</task> x"}]"#;
        assert_eq!(of(blocks).unwrap(), "Do a");
        assert_eq!(
            of(&format!("\"{}\"", "ä".repeat(100))).unwrap(),
            "ä".repeat(80)
        );
        assert_eq!(of(r#""<task>""#).unwrap(), "<task>");
        for none in [r#""""#, r#"" \n""#, "[]", "5", "null"] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(title_of(r#"{"role":"assistant","content":"x"}"#), None);
    }
}
