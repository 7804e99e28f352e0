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
pub use counter::{Counter, requested_family};
pub use encoding::Encoding;
pub use estimate::estimate;
pub use message::CountableMessage;
pub use model_family::Family;

#[cfg(test)]
mod tests;
