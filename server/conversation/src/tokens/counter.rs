//! Counts the tokens of texts, messages and requests, and caches the results.

use rayon::prelude::*;
use serde_json::value::RawValue;
use sightline_base::{cancel::Cancel, error::Error, thread_pool};
use sightline_protocol::tokens::{CountTokensParams, CountTokensResult};

use super::{
    Calibration, CountableMessage, Encoding, Family,
    measure::{self, FrameCounts, Measure, TextPart},
    measure_cache::{Key, MeasureCache},
    message,
};

/// Counts tokens and caches the results.
#[derive(Default)]
pub struct Counter {
    cache: MeasureCache,
}

impl Counter {
    /// Counts the tokens of texts without framing.
    ///
    /// # Errors
    /// Kind `cancelled`.
    pub fn texts<T: AsRef<str> + Sync>(
        &self,
        texts: &[T],
        family: Family,
        cancel: &Cancel,
    ) -> Result<CountTokensResult, Error> {
        Ok(counts(&self.measure_texts(texts, family, cancel)?, family))
    }

    /// Counts the tokens of messages including their framing. The other parts of a request (system
    /// prompt, tool definitions) are not included.
    ///
    /// # Errors
    /// Kind `cancelled`.
    pub fn messages<M: CountableMessage>(
        &self,
        messages: &[M],
        family: Family,
        cancel: &Cancel,
    ) -> Result<CountTokensResult, Error> {
        let measures = self.measure_messages(messages, family, cancel)?;
        Ok(counts(&measures, family))
    }

    /// Computes the result of `sightline/countTokens` for its texts and `messages`, calibrated with
    /// the usage reported for the task.
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
        // Reported usage is that of a whole request, so it does not apply to texts alone.
        let calibration = match messages {
            [] => Calibration::default(),
            _ => calibration.for_family(family),
        };
        Ok(CountTokensResult {
            calibration: calibration.factor(),
            ..calibration.apply(counts(&measures, family))
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
            let parts_by_item: Vec<_> = missing
                .iter()
                .map(|&i| vec![TextPart::certain(texts[i].as_ref())])
                .collect();
            measure::measure(&parts_by_item, family.encoding(), cancel)
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
            let (parts_by_item, frames): (Vec<_>, Vec<FrameCounts>) =
                parsed.iter().map(|one| message::split_message(one)).unzip();
            let mut measures = measure::measure(&parts_by_item, family.encoding(), cancel)?;
            for (measure, frames) in measures.iter_mut().zip(frames) {
                measure.frames = frames;
            }
            Ok(measures)
        })
    }

    /// Computes cache keys. Hashes in parallel, because hashing is most of the work when little has
    /// changed.
    fn keys<T: Sync>(
        &self,
        parts_by_item: &[T],
        family: Family,
        feed: impl Fn(&T, &mut twox_hash::XxHash3_128) + Sync,
    ) -> Vec<Key> {
        thread_pool::start();
        parts_by_item
            .par_iter()
            .with_min_len(64)
            .map(|thing| {
                let mut hasher = self.cache.hasher();
                feed(thing, &mut hasher);
                (hasher.finish_128(), family.encoding().base())
            })
            .collect()
    }

    /// Returns the measure for each key from the cache, or measures and caches it.
    pub(super) fn lookup_or_measure(
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

/// Returns the family that the request names. An encoding takes precedence over a model.
///
/// # Errors
/// Kind `invalidParams` for an unknown encoding.
pub fn requested_family(params: &CountTokensParams) -> Result<Family, Error> {
    if let Some(name) = &params.encoding {
        let encoding = Encoding::by_name(name).ok_or_else(|| {
            let known = Encoding::ALL.map(Encoding::name).join(", ");
            Error::invalid(format!("unknown encoding {name:?}; use one of {known}"))
        })?;
        return Ok(Family::of_encoding(encoding));
    }
    let default = || Family::of_encoding(Encoding::O200kBase);
    let model = params.model.as_ref();
    Ok(model.map_or_else(default, |model| Family::of_model(model.id())))
}

/// Converts measures to the token counts of a family.
fn counts(measures: &[Measure], family: Family) -> CountTokensResult {
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
        && all.uncertain == 0
        && all.cuts == 0
        && all.failed_bytes == 0;
    CountTokensResult {
        tokens,
        items,
        exact,
        encoding: family.encoding().name().to_owned(),
        method: method(&all, family),
        lower: (!exact).then_some(lower),
        upper: (!exact).then_some(upper),
        calibration: None,
    }
}

/// Describes the method of a count, for display.
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
        method.push_str(", message framing estimated");
    }
    if all.cuts > 0 {
        method.push_str(&format!(", {} words split", all.cuts));
    }
    if all.failed_bytes > 0 {
        let bytes = all.failed_bytes;
        method.push_str(&format!(", {bytes} bytes estimated (encoder failed)"));
    }
    method
}
