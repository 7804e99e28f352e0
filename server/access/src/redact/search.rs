//! Finds any of many secret values in a text, in one pass.
//!
//! Every few bytes, a filter looks up the next ones: each value has a part at one of these places. Candidates
//! are then looked up by their start, and compared. Unlike the states of an automaton, all copies of the
//! values are erased when they are dropped.

use std::{collections::HashMap, fmt, fmt::Write, ops::Range};

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use foldhash::fast::FixedState;
use zeroize::Zeroizing;

use super::values::MIN_BYTES;

/// Factor of hashes: any odd number with many bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bits of the hash of a part that select its place in the filter.
const FILTER_BITS: u32 = 20;
/// Length of the parts, in bytes.
const PART: usize = size_of::<u64>();
/// Distance of the places in a text at which parts are looked up. The shortest value has as many parts.
const STEP: usize = MIN_BYTES - PART + 1;

/// The spellings of all values.
pub(super) struct Spellings {
    spellings: Vec<Spelling>,
    by_start: HashMap<u64, Vec<u32>, FixedState>,
    filter: Box<[u64]>,
}

struct Spelling {
    bytes: Zeroizing<Box<[u8]>>,
    value: u32,
    is_base64: bool,
}

/// A value that was found.
pub(super) struct Match {
    pub(super) range: Range<usize>,
    pub(super) value: u32,
}

/// Shows no value.
impl fmt::Debug for Spellings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spellings")
            .field("count", &self.spellings.len())
            .finish_non_exhaustive()
    }
}

impl Default for Spellings {
    fn default() -> Self {
        Self {
            spellings: Vec::new(),
            by_start: HashMap::default(),
            filter: vec![0; 1 << (FILTER_BITS - 6)].into(),
        }
    }
}

impl Spellings {
    /// Adds a value as it is, and as it is written in an address, in JSON, in HTML and in Base64.
    pub(super) fn add(&mut self, value: u32, plain: &str) {
        self.push(value, plain.as_bytes(), false);
        for (lower, slash) in [(false, false), (true, false), (false, true), (true, true)] {
            self.push_new(value, plain, percent_encoded(plain, lower, slash));
        }
        let once = json_escaped(plain);
        self.push_new(value, &once, json_escaped(&once));
        self.push_new(value, plain, once.clone());
        self.push_new(value, plain, Zeroizing::new(once.replace('/', "\\/")));
        // Go and Rails, Gson, Python and PHP, .NET.
        for (ascii, others, is_upper) in [
            ("&<>", false, false),
            ("&<>='", false, false),
            ("", true, false),
            ("&<>'+`", true, true),
        ] {
            let escapes = |c: char| {
                if c.is_ascii() {
                    ascii.contains(c)
                } else {
                    others
                }
            };
            self.push_new(value, &once, unicode_escaped(&once, escapes, is_upper));
        }
        let mut html = Zeroizing::new(String::with_capacity(5 * plain.len()));
        for c in plain.chars() {
            match c {
                '&' => html.push_str("&amp;"),
                '<' => html.push_str("&lt;"),
                '>' => html.push_str("&gt;"),
                c => html.push(c),
            }
        }
        self.push_new(value, plain, html);
        for skipped in 0..3 {
            let bytes = &plain.as_bytes()[skipped..];
            let whole = &bytes[..bytes.len() - bytes.len() % 3];
            let encoded = Zeroizing::new(BASE64_STANDARD_NO_PAD.encode(whole));
            if encoded.len() >= MIN_BYTES {
                self.push(value, encoded.as_bytes(), true);
                let url_safe = Zeroizing::new(encoded.replace('+', "-").replace('/', "_"));
                if url_safe != encoded {
                    self.push(value, url_safe.as_bytes(), true);
                }
            }
        }
    }

    fn push_new(&mut self, value: u32, plain: &str, encoded: Zeroizing<String>) {
        if **encoded != *plain {
            self.push(value, encoded.as_bytes(), false);
        }
    }

    fn push(&mut self, value: u32, bytes: &[u8], is_base64: bool) {
        let Some(start) = start_of(bytes, 0) else {
            return;
        };
        for part in start.windows(PART) {
            let (word, bit) = filter_place(part);
            self.filter[word] |= bit;
        }
        let at = u32::try_from(self.spellings.len()).unwrap_or(u32::MAX);
        self.by_start.entry(hash_of(start)).or_default().push(at);
        self.spellings.push(Spelling {
            bytes: Zeroizing::new(bytes.into()),
            value,
            is_base64,
        });
    }

    /// Returns the values in a text, from its start to its end, without overlaps.
    pub(super) fn find(&self, text: &str) -> Vec<Match> {
        let bytes = text.as_bytes();
        let mut found = Vec::new();
        if self.spellings.is_empty() {
            return found;
        }
        // Start of the first value that may follow, and the next place.
        let (mut from, mut at) = (0, 0);
        while let Some(part) = bytes.get(at..at + PART) {
            let (word, bit) = filter_place(part);
            let mut starts = from..at + 1;
            at += STEP;
            from = starts.end;
            if self.filter[word] & bit != 0
                && let Some(matched) = starts.find_map(|start| self.at(text, start))
            {
                (from, at) = (matched.range.end, matched.range.end);
                found.push(matched);
            }
        }
        found
    }

    /// Returns the longest value that starts at a place.
    fn at(&self, text: &str, start: usize) -> Option<Match> {
        let hash = hash_of(start_of(text.as_bytes(), start)?);
        let spelling = self
            .by_start
            .get(&hash)?
            .iter()
            .map(|at| &self.spellings[*at as usize])
            .filter(|spelling| text.as_bytes()[start..].starts_with(&spelling.bytes))
            .max_by_key(|spelling| spelling.bytes.len())?;
        let end = start + spelling.bytes.len();
        let range = if spelling.is_base64 {
            let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/-_=".contains(c);
            let before = text[..start].trim_end_matches(is_base64).len();
            before..text.len() - text[end..].trim_start_matches(is_base64).len()
        } else {
            start..end
        };
        Some(Match {
            range,
            value: spelling.value,
        })
    }
}

/// Returns as many bytes as the shortest value has.
fn start_of(bytes: &[u8], at: usize) -> Option<&[u8; MIN_BYTES]> {
    bytes.get(at..)?.first_chunk()
}

fn hash_of(start: &[u8; MIN_BYTES]) -> u64 {
    start.iter().fold(0, |hash: u64, byte| {
        hash.wrapping_mul(FACTOR).wrapping_add(u64::from(*byte) + 1)
    })
}

/// Returns the word of the filter and the bit in it, for a part.
fn filter_place(part: &[u8]) -> (usize, u64) {
    let part = part
        .first_chunk()
        .map_or(0, |part| u64::from_le_bytes(*part));
    let at = part.wrapping_mul(FACTOR) >> (u64::BITS - FILTER_BITS);
    ((at >> 6) as usize, 1 << (at & 63))
}

/// Encodes all but letters, digits and `-_.~`. `slash`: `/` stays.
fn percent_encoded(plain: &str, lower: bool, slash: bool) -> Zeroizing<String> {
    let mut encoded = Zeroizing::new(String::with_capacity(3 * plain.len()));
    for byte in plain.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || slash && byte == b'/' {
            encoded.push(byte.into());
        } else {
            let _ = match lower {
                true => write!(encoded, "%{byte:02x}"),
                false => write!(encoded, "%{byte:02X}"),
            };
        }
    }
    encoded
}

fn json_escaped(plain: &str) -> Zeroizing<String> {
    let mut quoted = Zeroizing::new(serde_json::Value::from(plain).to_string());
    quoted.pop();
    quoted.remove(0);
    quoted
}

/// Writes characters as `\u0026`.
fn unicode_escaped(
    json: &str,
    escapes: impl Fn(char) -> bool,
    is_upper: bool,
) -> Zeroizing<String> {
    let mut escaped = Zeroizing::new(String::with_capacity(6 * json.len()));
    for c in json.chars() {
        if !escapes(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = match is_upper {
                true => write!(escaped, "\\u{unit:04X}"),
                false => write!(escaped, "\\u{unit:04x}"),
            };
        }
    }
    escaped
}
