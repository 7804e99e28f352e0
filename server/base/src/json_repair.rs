//! Repairs JSON with lone surrogates. JavaScript writes a string that was cut inside a surrogate
//! pair with an escape such as `\ud83d`, which other JSON parsers reject.

use serde_json::Value;

/// Parses JSON, with U+FFFD in place of each escaped lone surrogate.
///
/// # Errors
/// If the text is not JSON.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| {
        let repaired = replace_lone_surrogates(text).ok_or(error)?;
        serde_json::from_str(&repaired)
    })
}

/// Replaces each escaped lone surrogate in JSON text by U+FFFD. Returns `None` when there is none.
fn replace_lone_surrogates(text: &str) -> Option<String> {
    let mut repaired = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some(at) = rest.find('\\') {
        repaired.push_str(&rest[..at]);
        rest = &rest[at..];
        let copied = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                repaired.push_str("\\ufffd");
                rest = &rest[6..];
                changed = true;
                continue;
            }
            // Any other escape: the backslash and the next character.
            _ => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        repaired.push_str(&rest[..copied]);
        rest = &rest[copied..];
    }
    repaired.push_str(rest);
    changed.then_some(repaired)
}

/// Parses a `\uXXXX` at the start of `text` into its UTF-16 unit.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        assert_eq!(replace_lone_surrogates(r#""\ud83d\ude00 \\ud83d""#), None);
        assert_eq!(
            replace_lone_surrogates(r#""\ud83dx""#).as_deref(),
            Some(r#""\ufffdx""#)
        );
    }
}
