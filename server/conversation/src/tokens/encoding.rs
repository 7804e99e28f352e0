//! Public encodings, and counting a chunk of text.
//!
//! An encoding is loaded on first use. This takes 0.1 to 0.2 s and about 40 MB.

use std::collections::HashSet;

use tiktoken_rs::CoreBPE;

/// A tokenizer with a public vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// GPT-4o and later models.
    O200kBase,
    /// `o200k_base` with the special tokens of gpt-oss.
    O200kHarmony,
    /// GPT-4, GPT-3.5 and the embedding models.
    Cl100kBase,
    /// Codex and the last completion models.
    P50kBase,
    /// `p50k_base` with the special tokens of the edit models.
    P50kEdit,
    /// GPT-2 and GPT-3.
    R50kBase,
}

impl Encoding {
    /// All encodings.
    pub const ALL: [Self; 6] = [
        Self::O200kBase,
        Self::O200kHarmony,
        Self::Cl100kBase,
        Self::P50kBase,
        Self::P50kEdit,
        Self::R50kBase,
    ];

    /// Returns the public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::O200kBase => "o200k_base",
            Self::O200kHarmony => "o200k_harmony",
            Self::Cl100kBase => "cl100k_base",
            Self::P50kBase => "p50k_base",
            Self::P50kEdit => "p50k_edit",
            Self::R50kBase => "r50k_base",
        }
    }

    /// Returns the encoding with this name. `gpt2` is an alias of `r50k_base`.
    pub fn by_name(name: &str) -> Option<Self> {
        if name == "gpt2" {
            return Some(Self::R50kBase);
        }
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Returns the encoding that counts text. Variants differ only in special tokens, which are
    /// counted as ordinary text.
    pub(super) fn base(self) -> Self {
        match self {
            Self::O200kHarmony => Self::O200kBase,
            Self::P50kEdit => Self::P50kBase,
            other => other,
        }
    }

    /// Counts the tokens of a chunk. Returns `None` if the encoder fails, as it does on about a
    /// million spaces.
    pub(super) fn count(self, text: &str) -> Option<u64> {
        let tokens = self.encoder().count(text, &HashSet::new()).ok()?;
        u64::try_from(tokens).ok()
    }

    fn encoder(self) -> &'static CoreBPE {
        match self.base() {
            Self::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
            Self::P50kBase | Self::P50kEdit => tiktoken_rs::p50k_base_singleton(),
            Self::R50kBase => tiktoken_rs::r50k_base_singleton(),
            Self::O200kBase | Self::O200kHarmony => tiktoken_rs::o200k_base_singleton(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Encoding::{Cl100kBase, O200kBase, O200kHarmony, P50kBase, P50kEdit, R50kBase};
    use super::*;

    #[test]
    fn counts_match_the_published_examples() {
        // From cookbook.openai.com, "How to count tokens with tiktoken", comparison of encodings.
        for (text, counts) in [
            ("hello world", [2, 2, 2, 2]),
            ("antidisestablishmentarianism", [5, 5, 6, 6]),
            ("2 + 2 = 4", [5, 5, 7, 7]),
            ("お誕生日おめでとう", [14, 14, 9, 8]),
        ] {
            let got = [R50kBase, P50kBase, Cl100kBase, O200kBase].map(|e| e.count(text));
            assert_eq!(got, counts.map(Some), "{text}");
        }
        assert_eq!(Cl100kBase.count("tiktoken is great!"), Some(6));
        assert_eq!(O200kBase.count(""), Some(0));
    }

    #[test]
    fn special_tokens_are_counted_as_text() {
        for encoding in Encoding::ALL {
            for marker in ["<|endoftext|>", "<|fim_prefix|>", "<|im_start|>"] {
                let tokens = encoding.count(marker);
                assert!(tokens > Some(2), "{marker} in {}", encoding.name());
            }
        }
    }

    #[test]
    fn variants_share_a_vocabulary() {
        let text = "fn main() { println!(\"<|start|>私は<|insert|>\\t1234567\"); }\n\n\n  x";
        let harmony = tiktoken_rs::o200k_harmony_singleton().encode_ordinary(text);
        let edit = tiktoken_rs::p50k_edit_singleton().encode_ordinary(text);
        assert_eq!(O200kHarmony.count(text), Some(harmony.len() as u64));
        assert_eq!(P50kEdit.count(text), Some(edit.len() as u64));
    }

    #[test]
    fn names_round_trip() {
        for encoding in Encoding::ALL {
            assert_eq!(Encoding::by_name(encoding.name()), Some(encoding));
        }
        assert_eq!(Encoding::by_name("gpt2"), Some(R50kBase));
        assert_eq!(Encoding::by_name("o200k"), None);
    }
}
