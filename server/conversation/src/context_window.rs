//! Sizes of context windows and how much of them a conversation may use.

use sightline_protocol::environment::ModelRef;

use crate::model_info;

/// A context window, in tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextWindow {
    /// Total size.
    pub size: f64,
    /// Tokens available before deduplication starts. The rest is reserved for the system prompt and
    /// the response.
    pub usable: f64,
}

/// Usable tokens of common window sizes. Small windows have a small reserve. Cline's values.
const USABLE: [(f64, f64); 3] = [
    (64_000.0, 37_000.0),
    (128_000.0, 98_000.0),
    (200_000.0, 160_000.0),
];

impl ContextWindow {
    /// Returns the window for a total size in tokens.
    pub fn with_size(size: f64) -> Self {
        let usable = USABLE
            .into_iter()
            .find(|(known, _)| *known == size)
            .map_or_else(|| (size - 40_000.0).max(size * 0.8), |(_, usable)| usable);
        Self { size, usable }
    }

    /// Returns the window of a model: the size the client sent, else the built-in size.
    pub fn for_model(model: &ModelRef) -> Self {
        let provider = match model {
            ModelRef::Info(info) => info.provider.as_deref(),
            ModelRef::Id(_) => None,
        };
        // Clients of OpenAI-compatible endpoints send one description for all models. It is wrong
        // for DeepSeek.
        if provider == Some("openai") && model.id().to_lowercase().contains("deepseek") {
            return Self::with_size(128_000.0);
        }
        Self::with_size(model_info::context_window(
            model.id(),
            model.context_window(),
        ))
    }

    /// Returns the token count from which the window is full: `threshold` as a fraction of the
    /// window, at most the usable size.
    pub fn limit(&self, threshold: Option<f64>) -> f64 {
        threshold
            .filter(|fraction| fraction.is_finite() && *fraction > 0.0)
            .map_or(self.usable, |fraction| {
                (self.size * fraction).floor().min(self.usable)
            })
    }
}
