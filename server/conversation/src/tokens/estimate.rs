//! A fast estimate of tokens, for budgets and displays.
//!
//! About four ASCII bytes are one token. A character of a script without spaces is one token.

/// Estimates the tokens of `text` without loading a tokenizer.
pub fn estimate(text: &str) -> u64 {
    let mut ascii = 0_u64;
    let mut other = 0_u64;
    for c in text.chars() {
        match c as u32 {
            0..=0x7f => ascii += 1,
            // Latin, Greek, Cyrillic, Hebrew, Arabic: about two characters per token.
            0x80..=0x07ff => other += 2,
            // CJK, emoji and others: about one character per token.
            _ => other += 4,
        }
    }
    (ascii + other).div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::estimate;

    #[test]
    fn scripts_have_different_weights() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("abcd"), 1);
        assert_eq!(estimate("abcde"), 2);
        assert_eq!(estimate("日本語"), 3);
        assert_eq!(estimate("жж"), 1);
    }
}
