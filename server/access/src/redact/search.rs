//! Finds any of many secret values in a text, in one pass.
//!
//! A rolling hash over as many bytes as the shortest value has looks up candidates, which are then
//! compared. Unlike the states of an automaton, all copies of the values are erased when they are
//! dropped.

use std::{collections::HashMap, fmt, fmt::Write, ops::Range};

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use foldhash::fast::FixedState;
use zeroize::Zeroizing;

use super::values::MIN_BYTES;

/// Base of the rolling hash: any odd number with many bits.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bits that a hash selects in the filter in front of the table.
const FILTER_BITS: u32 = 18;

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
    /// Adds a value as it is, and as it is written in an address, in JSON and in Base64.
    pub(super) fn add(&mut self, value: u32, plain: &str) {
        self.push(value, plain.as_bytes(), false);
        for (lower, slash) in [(false, false), (true, false), (false, true), (true, true)] {
            self.push_new(value, plain, percent_encoded(plain, lower, slash));
        }
        let once = json_escaped(plain);
        self.push_new(value, &once, json_escaped(&once));
        self.push_new(value, plain, once.clone());
        self.push_new(value, plain, Zeroizing::new(once.replace('/', "\\/")));
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
        let Some(start) = bytes.first_chunk::<MIN_BYTES>() else {
            return;
        };
        let hash = start.iter().fold(0, |hash, byte| next(hash, *byte));
        let (word, bit) = filter_place(hash);
        self.filter[word] |= bit;
        let at = u32::try_from(self.spellings.len()).unwrap_or(u32::MAX);
        self.by_start.entry(hash).or_default().push(at);
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
        let leaving = (0..MIN_BYTES).fold(1_u64, |power, _| power.wrapping_mul(BASE));
        let (mut hash, mut end, mut from) = (0_u64, 0, 0);
        while end < bytes.len() {
            hash = next(hash, bytes[end]);
            end += 1;
            if end - from > MIN_BYTES {
                let left = u64::from(bytes[end - MIN_BYTES - 1]) + 1;
                hash = hash.wrapping_sub(left.wrapping_mul(leaving));
            }
            if end - from < MIN_BYTES {
                continue;
            }
            let (word, bit) = filter_place(hash);
            if self.filter[word] & bit == 0 {
                continue;
            }
            if let Some(matched) = self.at(text, end - MIN_BYTES, hash) {
                (hash, from, end) = (0, matched.range.end, matched.range.end);
                found.push(matched);
            }
        }
        found
    }

    /// Returns the longest value that starts at a place.
    fn at(&self, text: &str, start: usize, hash: u64) -> Option<Match> {
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

fn next(hash: u64, byte: u8) -> u64 {
    hash.wrapping_mul(BASE).wrapping_add(u64::from(byte) + 1)
}

/// Returns the word of the filter and the bit in it.
fn filter_place(hash: u64) -> (usize, u64) {
    let at = hash >> (u64::BITS - FILTER_BITS);
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
