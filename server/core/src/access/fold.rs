//! Names under one spelling: upper and lower case, and the two ways Unicode has
//! to write an accented letter.
//!
//! Access rules compare folded names, because macOS and Windows open `.ENV` for
//! `.env` (and macOS either spelling of `é`), and a boundary that depends on
//! the file system underneath would leak on the other one.

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;

/// The folded form of a name or path. Bytes that are not UTF-8 stay.
pub(crate) fn fold(text: &[u8]) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        if !text.iter().any(u8::is_ascii_uppercase) {
            return Cow::Borrowed(text);
        }
        return Cow::Owned(text.to_ascii_lowercase());
    }
    let mut folded = Vec::with_capacity(text.len() + 8);
    for chunk in text.utf8_chunks() {
        // Up, then down: both forms of sigma, the long s and the Kelvin sign
        // meet the letters they are written for.
        let lower: String = chunk
            .valid()
            .chars()
            .flat_map(char::to_uppercase)
            .flat_map(char::to_lowercase)
            .collect();
        let composed = ComposingNormalizerBorrowed::new_nfc().normalize(&lower);
        folded.extend_from_slice(composed.as_bytes());
        folded.extend_from_slice(chunk.invalid());
    }
    Cow::Owned(folded)
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn spellings_of_one_name_meet() {
        for (a, b) in [
            ("NAÏVE.txt", "nai\u{308}ve.TXT"),
            ("ΣΑΣ", "σας"),
            ("\u{212a}ey", "key"),
            ("STRASSE", "straße"),
        ] {
            assert_eq!(fold(a.as_bytes()), fold(b.as_bytes()), "{a} {b}");
        }
        assert_eq!(&*fold(b"A\xff/B"), b"a\xff/b");
    }
}
