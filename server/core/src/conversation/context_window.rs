//! How much of a model's context window a conversation may fill.

use sightline_protocol::environment::ModelRef;

use crate::model;

/// A context window, in tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextWindow {
    /// All of it.
    pub size: f64,
    /// What may be used before something is taken out; the rest is for the
    /// system prompt's growth and the answer.
    pub usable: f64,
}

/// Usable tokens of common windows: with a small one the reserve is small too.
const USABLE: [(f64, f64); 3] = [
    (64_000.0, 37_000.0),
    (128_000.0, 98_000.0),
    (200_000.0, 160_000.0),
];

impl ContextWindow {
    /// A window of this size.
    pub fn with_size(size: f64) -> Self {
        let usable = USABLE
            .into_iter()
            .find(|(known, _)| *known == size)
            .map_or_else(|| (size - 40_000.0).max(size * 0.8), |(_, usable)| usable);
        Self { size, usable }
    }

    /// The window of a model: what the client says, else what is known.
    pub fn for_model(model: &ModelRef) -> Self {
        let provider = match model {
            ModelRef::Info(info) => info.provider.as_deref(),
            ModelRef::Id(_) => None,
        };
        // Clients of OpenAI-compatible endpoints describe one model for all;
        // DeepSeek's are known to differ from it.
        if provider == Some("openai") && model.id().to_lowercase().contains("deepseek") {
            return Self::with_size(128_000.0);
        }
        Self::with_size(model::context_window(model.id(), model.context_window()))
    }

    /// From how many tokens on something is taken out: at `threshold`, a
    /// fraction of the window, but not later than its usable size.
    pub fn limit(&self, threshold: Option<f64>) -> f64 {
        threshold
            .filter(|fraction| fraction.is_finite() && *fraction > 0.0)
            .map_or(self.usable, |fraction| {
                (self.size * fraction).floor().min(self.usable)
            })
    }
}
