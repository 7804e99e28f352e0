//! Counts tokens.
//!
//! Counts are exact for public encodings. For other models they are estimates with a described
//! method and bounds. Counting never fails because of its input: if an encoder fails, the count
//! is an estimate.
//!
//! Reading order: [`estimate()`] (fast, without a tokenizer), [`encoding`] and `chunk` (counting
//! chunks of text), `measure` and `message` (contents of texts and messages), [`model_family`]
//! (corrections per model), `measure_cache`, [`calibration`] (usage reported by providers), and
//! `counter`, which combines them.
//!
//! All threads share a [`Counter`]. Counting takes milliseconds per megabyte, and the first use
//! of an encoding loads it. Do not count on the main loop.

pub mod calibration;
mod chunk;
mod counter;
pub mod encoding;
mod estimate;
mod measure;
mod measure_cache;
mod message;
pub mod model_family;

pub use calibration::Calibration;
pub use counter::{Counter, count, requested_family};
pub use encoding::Encoding;
pub use estimate::estimate;
pub use message::CountableMessage;
pub use model_family::Family;

/// A number of tokens and its accuracy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Tokens.
    pub tokens: u64,
    /// Whether the number is exact for the encoding.
    pub exact: bool,
    /// The encoding that it was counted with or estimated from.
    pub encoding: &'static str,
    /// Description of the method.
    pub method: String,
    /// Lower bound; `tokens` if exact.
    pub lower: u64,
    /// Upper bound; `tokens` if exact.
    pub upper: u64,
}

/// Token counts of several texts or messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// One count per text or message, in order.
    pub items: Vec<u64>,
    /// The total.
    pub total: Count,
}

#[cfg(test)]
mod tests;
