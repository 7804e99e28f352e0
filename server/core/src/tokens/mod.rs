//! How many tokens of a model's context something takes.
//!
//! Exact for the public encodings; for everything else an estimate that says
//! how it was made and where the truth may lie. A count never fails for the
//! sake of its input: an encoder that gives up costs exactness only.
//!
//! Reading order: [`estimate`] (a figure for displays, without any tokenizer),
//! [`encoding`] and `chunk` (counting bounded pieces), `measure` and `message`
//! (what texts and messages consist of), [`family`] (what a model makes of
//! that), `cache` (what need not be counted again), [`calibration`] (what
//! providers report).
//!
//! A [`Counter`] is shared by all threads; counting takes milliseconds a
//! megabyte, and the first use of an encoding loads it, so callers count in
//! jobs, never on the thread that answers others.

pub mod calibration;
mod chunk;
pub mod encoding;
mod estimate;
pub mod family;
mod measure;
mod measure_cache;
mod message;

pub use calibration::Calibration;
pub use encoding::Encoding;
pub use estimate::estimate;
pub use family::Family;
pub use message::CountableMessage;

use rayon::prelude::*;
use serde_json::value::RawValue;
use sightline_protocol::tokens::{CountTokensParams, CountTokensResult};

use crate::{cancel::Cancel, error::Error};
use measure::{FrameCounts, Measure, TextPart};
use measure_cache::{Key, MeasureCache};

/// A number of tokens and what it is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The figure, in tokens, as the next two.
    pub tokens: u64,
    /// Is it what the encoding gives, not an estimate?
    pub exact: bool,
    /// The encoding it was counted with or made from.
    pub encoding: &'static str,
    /// How it was made.
    pub method: String,
    /// The least it is likely to be; `tokens` when exact.
    pub lower: u64,
    /// The most it is likely to be; `tokens` when exact.
    pub upper: u64,
}

/// The figures of several texts or messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// One figure for each, in the order given.
    pub items: Vec<u64>,
    /// All of them.
    pub total: Count,
}

/// Tokens of one text.
///
/// # Errors
/// Kind `cancelled`.
pub fn count(text: &str, family: Family, cancel: &Cancel) -> Result<Count, Error> {
    let things = [vec![TextPart::certain(text)]];
    let measures = measure::measure(&things, family.encoding(), cancel)?;
    Ok(counts(&measures, family).total)
}

/// Counts, and remembers what it counted.
pub struct Counter {
    cache: MeasureCache,
}

impl Default for Counter {
    fn default() -> Self {
        Self {
            cache: MeasureCache::new(),
        }
    }
}

impl Counter {
    /// Tokens of texts, each as it is.
    ///
    /// # Errors
    /// Kind `cancelled`.
    pub fn texts<T: AsRef<str> + Sync>(
        &self,
        texts: &[T],
        family: Family,
        cancel: &Cancel,
    ) -> Result<Counts, Error> {
        Ok(counts(&self.measure_texts(texts, family, cancel)?, family))
    }

    /// Tokens of messages with what frames them. What a request has besides
    /// (the system prompt, the definitions of tools) is not in them.
    ///
    /// # Errors
    /// Kind `cancelled`.
    pub fn messages<M: CountableMessage>(
        &self,
        messages: &[M],
        family: Family,
        cancel: &Cancel,
    ) -> Result<Counts, Error> {
        let measures = self.measure_messages(messages, family, cancel)?;
        Ok(counts(&measures, family))
    }

    /// Answers `sightline/countTokens` about its texts and these messages, on the
    /// base of what was reported for the task.
    ///
    /// # Errors
    /// Kind `invalidParams` for an unknown encoding, `cancelled`.
    pub fn count_request(
        &self,
        params: &CountTokensParams,
        messages: &[&RawValue],
        calibration: &Calibration,
        cancel: &Cancel,
    ) -> Result<CountTokensResult, Error> {
        let family = requested_family(params)?;
        let mut measures = self.measure_texts(&params.texts, family, cancel)?;
        measures.extend(self.measure_messages(messages, family, cancel)?);
        let Counts { items, total } = counts(&measures, family);
        // What was reported was a request: it says nothing about texts alone.
        let calibration = match messages {
            [] => Calibration::default(),
            _ => calibration.for_family(family),
        };
        let total = calibration.apply(total);
        Ok(CountTokensResult {
            tokens: total.tokens,
            items,
            encoding: total.encoding.to_owned(),
            exact: total.exact,
            method: total.method,
            lower: (!total.exact).then_some(total.lower),
            upper: (!total.exact).then_some(total.upper),
            calibration: calibration.factor(),
        })
    }

    fn measure_texts<T: AsRef<str> + Sync>(
        &self,
        texts: &[T],
        family: Family,
        cancel: &Cancel,
    ) -> Result<Vec<Measure>, Error> {
        let keys = self.keys(texts, family, |text, hasher| {
            message::hash_text(hasher, b"T", text.as_ref());
        });
        self.lookup_or_measure(&keys, cancel, |missing| {
            let things: Vec<_> = missing
                .iter()
                .map(|&i| vec![TextPart::certain(texts[i].as_ref())])
                .collect();
            measure::measure(&things, family.encoding(), cancel)
        })
    }

    fn measure_messages<M: CountableMessage>(
        &self,
        messages: &[M],
        family: Family,
        cancel: &Cancel,
    ) -> Result<Vec<Measure>, Error> {
        let keys = self.keys(messages, family, CountableMessage::hash_into);
        self.lookup_or_measure(&keys, cancel, |missing| {
            let parsed: Vec<_> = missing.iter().map(|&i| messages[i].parsed()).collect();
            let (things, frames): (Vec<_>, Vec<FrameCounts>) =
                parsed.iter().map(|one| message::split_message(one)).unzip();
            let mut measures = measure::measure(&things, family.encoding(), cancel)?;
            for (measure, frames) in measures.iter_mut().zip(frames) {
                measure.frames = frames;
            }
            Ok(measures)
        })
    }

    /// What each thing is remembered by. Hashing walks every byte, which is
    /// all the work there is when little changed: hence in parallel.
    fn keys<T: Sync>(
        &self,
        things: &[T],
        family: Family,
        feed: impl Fn(&T, &mut twox_hash::XxHash3_128) + Sync,
    ) -> Vec<Key> {
        things
            .par_iter()
            .with_min_len(64)
            .map(|thing| {
                let mut hasher = self.cache.hasher();
                feed(thing, &mut hasher);
                (hasher.finish_128(), family.encoding().base())
            })
            .collect()
    }

    /// What is behind each key: remembered, or measured now and remembered.
    fn lookup_or_measure(
        &self,
        keys: &[Key],
        cancel: &Cancel,
        measure: impl FnOnce(&[usize]) -> Result<Vec<Measure>, Error>,
    ) -> Result<Vec<Measure>, Error> {
        cancel.check()?;
        let mut known = self.cache.get(keys);
        let missing: Vec<usize> = (0..keys.len()).filter(|&i| known[i].is_none()).collect();
        if !missing.is_empty() {
            let measured = measure(&missing)?;
            for (&i, &measure) in missing.iter().zip(&measured) {
                known[i] = Some(measure);
            }
            let keys = missing.iter().map(|&i| keys[i]);
            self.cache.put(keys.zip(measured));
        }
        Ok(known.into_iter().flatten().collect())
    }
}

/// The family asked for: an encoding wins over a model.
///
/// # Errors
/// Kind `invalidParams` for an unknown encoding.
pub fn requested_family(params: &CountTokensParams) -> Result<Family, Error> {
    if let Some(name) = &params.encoding {
        let encoding = Encoding::by_name(name).ok_or_else(|| {
            let known = Encoding::ALL.map(Encoding::name).join(", ");
            Error::invalid(format!("encoding {name:?} is not known; known are {known}"))
        })?;
        return Ok(Family::of_encoding(encoding));
    }
    let default = || Family::of_encoding(Encoding::O200kBase);
    let model = params.model.as_ref();
    Ok(model.map_or_else(default, |model| Family::of_model(model.id())))
}

/// What a family makes of what was measured.
fn counts(measures: &[Measure], family: Family) -> Counts {
    let mut all = Measure::default();
    let (mut lower, mut tokens, mut upper) = (0, 0, 0);
    let mut items = Vec::with_capacity(measures.len());
    for measure in measures {
        let range = family.tokens(measure);
        lower += range.low as u64;
        tokens += range.likely as u64;
        upper += range.high as u64;
        items.push(range.likely as u64);
        all.add(measure);
    }
    let exact = family.is_exact()
        && (all.frames == FrameCounts::default()
            || all.frames.are_messages_only() && family.is_framing_published())
        && all.is_uncertain == 0
        && all.cuts == 0
        && all.failed_bytes == 0;
    let total = Count {
        tokens,
        exact,
        encoding: family.encoding().name(),
        method: method(&all, family),
        lower,
        upper,
    };
    Counts { items, total }
}

/// How the figure was made, for people.
fn method(all: &Measure, family: Family) -> String {
    let mut method = family.encoding().name().to_owned();
    if !family.is_exact() {
        let factor = family.factor(all).likely;
        method.push_str(&format!(" ×{factor:.2} ({})", family.name()));
    }
    let is_framed = all.frames != FrameCounts::default();
    if is_framed
        && !(all.frames.are_messages_only() && family.is_exact() && family.is_framing_published())
    {
        method.push_str(", framing of messages estimated");
    }
    if all.cuts > 0 {
        method.push_str(&format!(", {} cuts inside words", all.cuts));
    }
    if all.failed_bytes > 0 {
        let bytes = all.failed_bytes;
        method.push_str(&format!(", {bytes} bytes by characters (encoder failed)"));
    }
    method
}

#[cfg(test)]
mod tests;
