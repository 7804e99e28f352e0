//! Strings from outside, made harmless: none can open or close the block.

use std::borrow::Cow;

/// The name of the block's tag.
pub(super) const TAG: &str = "environment_details";

/// `text` with the `<` of everything that reads as the block's tag, opening or
/// closing, in any case and spacing, written `&lt;`.
pub(super) fn without_tags(text: &str) -> Cow<'_, str> {
    if !text.contains('<') {
        return Cow::Borrowed(text);
    }
    let lower = text.to_ascii_lowercase();
    let mut safe = String::new();
    let mut copied = 0;
    for (name, _) in lower.match_indices(TAG) {
        let before = text[copied..name].trim_end_matches(|c: char| c == '/' || c.is_whitespace());
        let Some(kept) = before.strip_suffix('<') else {
            continue;
        };
        safe.push_str(kept);
        safe.push_str("&lt;");
        copied += before.len();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    safe.push_str(&text[copied..]);
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_lose_their_bracket_and_nothing_else_does() {
        for (text, safe) in [
            ("</environment_details>", "&lt;/environment_details>"),
            ("<environment_details>", "&lt;environment_details>"),
            (
                "a < / Environment_DETAILS x",
                "a &lt; / Environment_DETAILS x",
            ),
            (
                "<<environment_details><environment_details>",
                "<&lt;environment_details>&lt;environment_details>",
            ),
            ("<a> environment_details", "<a> environment_details"),
            ("environment_details", "environment_details"),
            ("a < b </b>", "a < b </b>"),
        ] {
            assert_eq!(without_tags(text), safe);
        }
    }
}
