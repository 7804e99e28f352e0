//! Measures texts and messages: everything that a family needs to compute its token count. A
//! measure is the same for all families with the same vocabulary.

use std::borrow::Cow;

use rayon::prelude::*;
use sightline_base::{cancel::Cancel, error::Error, thread_pool};

use super::{
    chunk::{self, Chunk, MAX_CHUNK_BYTES},
    encoding::Encoding,
    estimate,
};

/// Maximum error per split word, in tokens. Merging restarts after the split; the tests show
/// smaller errors for runs and blobs.
const TOKENS_OFF_PER_CUT: u64 = 8;

/// Length of the longest token in the public vocabularies, in bytes (a run of spaces).
const LONGEST_TOKEN_BYTES: u64 = 128;

/// The measure of one or several texts or messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Measure {
    /// Tokens of all text.
    pub(super) tokens: u64,
    /// Minimum tokens of text.
    pub(super) lower: u64,
    /// Maximum tokens of text.
    pub(super) upper: u64,
    /// Part of `tokens` that the model may not see: earlier thinking and blocks of unknown types.
    pub(super) uncertain: u64,
    /// Bytes of text.
    pub(super) bytes: u64,
    /// Bytes that are not ASCII.
    pub(super) non_ascii_bytes: u64,
    /// Number of split words.
    pub(super) cuts: u64,
    /// Bytes on which the encoder failed; their tokens are estimated.
    pub(super) failed_bytes: u64,
    /// Counts of framing elements.
    pub(super) frames: FrameCounts,
}

/// Parts of messages that cost tokens but are not text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FrameCounts {
    pub(super) messages: u64,
    /// Messages that name their author.
    pub(super) names: u64,
    pub(super) calls: u64,
    pub(super) results: u64,
    pub(super) images: u64,
    pub(super) documents: u64,
    /// Bytes of documents that are not text.
    pub(super) document_bytes: u64,
}

impl FrameCounts {
    /// Returns whether there is only message framing, whose size is known for public encodings.
    pub(super) fn are_messages_only(&self) -> bool {
        let messages = self.messages;
        *self
            == Self {
                messages,
                ..Self::default()
            }
    }
}

/// A piece of text to count.
pub(super) struct TextPart<'a> {
    pub(super) text: Cow<'a, str>,
    /// Whether the model may not see it.
    pub(super) is_uncertain: bool,
}

impl<'a> TextPart<'a> {
    pub(super) fn certain(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        let is_uncertain = false;
        Self { text, is_uncertain }
    }

    pub(super) fn uncertain(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        let is_uncertain = true;
        Self { text, is_uncertain }
    }
}

impl Measure {
    pub(super) fn add(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.lower += other.lower;
        self.upper += other.upper;
        self.uncertain += other.uncertain;
        self.bytes += other.bytes;
        self.non_ascii_bytes += other.non_ascii_bytes;
        self.cuts += other.cuts;
        self.failed_bytes += other.failed_bytes;
        self.frames.messages += other.frames.messages;
        self.frames.names += other.frames.names;
        self.frames.calls += other.frames.calls;
        self.frames.results += other.frames.results;
        self.frames.images += other.frames.images;
        self.frames.documents += other.frames.documents;
        self.frames.document_bytes += other.frames.document_bytes;
    }

    fn of_chunk(chunk: Chunk<'_>, is_uncertain: bool, count: impl Fn(&str) -> Option<u64>) -> Self {
        let bytes = chunk.text.len() as u64;
        let mut measure = Self {
            bytes,
            non_ascii_bytes: chunk.text.bytes().filter(|byte| !byte.is_ascii()).count() as u64,
            cuts: u64::from(chunk.cut),
            ..Self::default()
        };
        match count(chunk.text) {
            Some(tokens) => {
                let off = TOKENS_OFF_PER_CUT * measure.cuts;
                measure.tokens = tokens;
                measure.lower = tokens.saturating_sub(off);
                measure.upper = tokens + off;
            }
            None => {
                measure.failed_bytes = bytes;
                measure.lower = bytes.div_ceil(LONGEST_TOKEN_BYTES);
                // A byte encoding never produces more tokens than bytes.
                measure.upper = bytes;
                measure.tokens = estimate(chunk.text).clamp(measure.lower, measure.upper);
            }
        }
        if is_uncertain {
            measure.uncertain = measure.tokens;
        }
        measure
    }
}

/// Measures several items in parallel. Each item is a list of text parts.
///
/// Always runs on rayon's thread pool, because the encoder keeps a compiled pattern for each
/// thread that uses it.
///
/// # Errors
/// Kind `cancelled`.
pub(super) fn measure(
    parts_by_item: &[Vec<TextPart<'_>>],
    encoding: Encoding,
    cancel: &Cancel,
) -> Result<Vec<Measure>, Error> {
    measure_by(parts_by_item, MAX_CHUNK_BYTES, cancel, |chunk| {
        encoding.count(chunk)
    })
}

fn measure_by(
    parts_by_item: &[Vec<TextPart<'_>>],
    limit: usize,
    cancel: &Cancel,
    count: impl Fn(&str) -> Option<u64> + Sync,
) -> Result<Vec<Measure>, Error> {
    let mut work = Vec::new();
    for (owner, parts) in parts_by_item.iter().enumerate() {
        cancel.check()?;
        for part in parts {
            let chunks = chunk::chunks(&part.text, limit);
            work.extend(chunks.map(|chunk| (owner, part.is_uncertain, chunk)));
        }
    }
    thread_pool::start();
    let counted = work
        .par_iter()
        .map(|&(_, is_uncertain, chunk)| {
            cancel.check()?;
            Ok(Measure::of_chunk(chunk, is_uncertain, &count))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let mut measures = vec![Measure::default(); parts_by_item.len()];
    for ((owner, ..), measure) in work.iter().zip(&counted) {
        measures[*owner].add(measure);
    }
    Ok(measures)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    fn one(text: &str, encoding: Encoding, limit: usize) -> Measure {
        let parts_by_item = [vec![TextPart::certain(text)]];
        let count = |chunk: &str| encoding.count(chunk);
        measure_by(&parts_by_item, limit, &Cancel::default(), count).unwrap()[0]
    }

    /// The expected value: the whole text encoded at once.
    fn whole(text: &str, encoding: Encoding) -> u64 {
        let encoder = match encoding.base() {
            Encoding::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
            Encoding::P50kBase => tiktoken_rs::p50k_base_singleton(),
            Encoding::R50kBase => tiktoken_rs::r50k_base_singleton(),
            _ => tiktoken_rs::o200k_base_singleton(),
        };
        encoder.encode_ordinary(text).len() as u64
    }

    #[test]
    fn chunks_do_not_change_counts_of_source_code() {
        let mut files = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
        let mut sources = String::new();
        while let Some(path) = files.pop() {
            if path.is_dir() {
                files.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            } else {
                sources.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
        assert!(sources.len() > 100_000);
        for encoding in Encoding::ALL {
            let expected = whole(&sources, encoding);
            for limit in [MAX_CHUNK_BYTES, 4096, 700] {
                let got = one(&sources, encoding, limit);
                assert_eq!(got.cuts, 0, "{}, {limit}", encoding.name());
                assert_eq!(got.tokens, expected, "{}, {limit}", encoding.name());
            }
        }
        let minified = sources.replace(char::is_whitespace, "");
        for limit in [MAX_CHUNK_BYTES, 700] {
            let got = one(&minified, Encoding::O200kBase, limit);
            assert_eq!(got.cuts, 0);
            assert_eq!(got.tokens, whole(&minified, Encoding::O200kBase));
        }
    }

    /// Text in several scripts with all characters that the patterns distinguish.
    fn mixed() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            "[a-zA-Z]{1,9}",
            "[0-9]{1,5}",
            "[ \t]{1,4}",
            "[\r\n]{1,3}",
            "['’](s|t|re|ve|m|ll|d|S|LL|ſ)",
            "[-/;:.,(){}<>|_\"#=+*!?]{1,4}",
            "[日本語中文字。，、！한국어かなカナ]{1,6}",
            "[а-яА-Яάλφ\u{301}\u{300}éüß]{1,6}",
            "[\u{a0}\u{3000}\u{2028}\u{85}]",
            "[😀👨‍👩‍👧٣५Ⅷ²ǅʰ]{1,3}",
            Just("<|endoftext|>".to_owned()),
            "\\PC{1,3}",
        ];
        prop::collection::vec(word, 0..60).prop_map(|words| words.concat())
    }

    #[test]
    fn contractions_are_not_split() {
        let text = "They don't know; we'll see. ".repeat(20);
        for limit in 12..60 {
            let got = one(&text, Encoding::O200kBase, limit);
            assert_eq!(
                (got.cuts, got.tokens),
                (0, whole(&text, Encoding::O200kBase))
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn chunks_at_word_boundaries_do_not_change_counts(text in mixed(), limit in 4_usize..90) {
            for encoding in [Encoding::O200kBase, Encoding::Cl100kBase, Encoding::P50kBase, Encoding::R50kBase] {
                let got = one(&text, encoding, limit);
                let expected = whole(&text, encoding);
                if got.cuts == 0 {
                    prop_assert_eq!(got.tokens, expected, "{}", encoding.name());
                }
                prop_assert!(got.lower <= expected && expected <= got.upper);
                prop_assert!(got.lower <= got.tokens && got.tokens <= got.upper);
                prop_assert_eq!(got.bytes, text.len() as u64);
            }
        }

        #[test]
        fn chunks_concatenate_to_the_text(text in "\\PC{0,80}|[a\n' ]{0,80}", limit in 4_usize..30) {
            let chunks: Vec<_> = chunk::chunks(&text, limit).collect();
            prop_assert!(chunks.iter().all(|chunk| !chunk.text.is_empty() && chunk.text.len() <= limit));
            let again: String = chunks.iter().map(|chunk| chunk.text).collect();
            prop_assert_eq!(again, text);
        }
    }

    #[test]
    fn hostile_text_is_within_its_bounds() {
        let repeat = |unit: &str, bytes: usize| unit.repeat(bytes / unit.len());
        let blob: String = (0_u32..200_000)
            .map(|i| char::from(b'A' + (i.wrapping_mul(2_654_435_761) >> 13) as u8 % 26))
            .collect();
        let texts = [
            "a", "A", "aB", " ", "\t", "\n", " \n", "日", "😀", "\u{301}", "!", "'s", "0",
        ];
        for text in texts
            .map(|unit| repeat(unit, 200_000))
            .into_iter()
            .chain([blob])
        {
            for encoding in [Encoding::O200kBase, Encoding::Cl100kBase] {
                let got = one(&text, encoding, MAX_CHUNK_BYTES);
                let expected = whole(&text, encoding);
                assert!(got.cuts > 0 && got.failed_bytes == 0, "{got:?}");
                let start: String = text.chars().take(3).collect();
                assert!(
                    got.lower <= expected && expected <= got.upper,
                    "{start:?}: {expected}, {got:?}"
                );
            }
        }
    }

    #[test]
    fn an_encoder_failure_yields_an_estimate() {
        let parts_by_item = [
            vec![
                TextPart::certain("good words"),
                TextPart::certain("bad words here"),
            ],
            vec![],
        ];
        let count = |chunk: &str| (!chunk.starts_with("bad")).then_some(2);
        let measures = measure_by(&parts_by_item, 100, &Cancel::default(), count).unwrap();
        assert_eq!(measures[0].failed_bytes, 14);
        assert_eq!(measures[0].tokens, 2 + estimate("bad words here"));
        assert_eq!((measures[0].lower, measures[0].upper), (2 + 1, 2 + 14));
        assert_eq!(measures[1], Measure::default());
    }

    #[test]
    fn cancelling_stops_between_chunks() {
        let cancel = Cancel::default();
        let counted = AtomicUsize::new(0);
        let text = "word ".repeat(10_000);
        let parts_by_item = [vec![TextPart::certain(text.as_str())]];
        let result = measure_by(&parts_by_item, 50, &cancel, |_| {
            if counted.fetch_add(1, Ordering::Relaxed) == 10 {
                cancel.cancel();
            }
            Some(1)
        });
        assert_eq!(
            result.unwrap_err().kind(),
            sightline_protocol::error::ErrorKind::Cancelled
        );
        assert!(counted.into_inner() < 1_000);
    }
}
