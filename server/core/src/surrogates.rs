//! Strings cut in the middle of a surrogate pair: JavaScript writes the halves
//! as escapes, and no other reader of JSON takes them.

/// JSON text in which each escaped half of a surrogate pair that stands alone
/// is U+FFFD; `None` when there is none. JavaScript writes such halves.
pub fn mended(text: &str) -> Option<String> {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some(at) = rest.find('\\') {
        mended.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                mended.push_str("\\ufffd");
                rest = &rest[6..];
                changed = true;
                continue;
            }
            // An escape: the backslash and the character after it.
            _ => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        mended.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    mended.push_str(rest);
    changed.then_some(mended)
}

/// The UTF-16 unit of a `\uXXXX` at the beginning of `text`.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halves_are_mended() {
        assert_eq!(mended(r#""\ud83d\ude00 \\ud83d""#), None);
        assert_eq!(mended(r#""\ud83dx""#).as_deref(), Some(r#""\ufffdx""#));
    }
}
