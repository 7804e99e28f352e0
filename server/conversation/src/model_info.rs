//! Facts about models: context window and family.
//!
//! A window that the client names takes precedence over the table.

/// Context window of an unknown model, in tokens.
pub const DEFAULT_CONTEXT_WINDOW: f64 = 128_000.0;

/// Largest plausible context window, in tokens. A larger value from a client is ignored.
const MAX_CONTEXT_WINDOW: f64 = 1e12;

/// Context windows in tokens, by prefix of the model id. The first match counts, so a longer prefix
/// precedes a shorter one.
const WINDOWS: &[(&str, u32)] = &[
    // docs.anthropic.com, models overview: 200K for every model since Claude 2.1.
    ("claude", 200_000),
    // platform.openai.com/docs/models, one page per model. GPT-5 takes 272,000
    // tokens of input; its window counts the output too.
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.5", 128_000),
    ("gpt-4-32k", 32_768),
    ("gpt-4", 8_192),
    ("gpt-3.5", 16_385),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    // ai.google.dev/gemini-api/docs/models: input token limit.
    ("gemini-1.5-pro", 2_097_152),
    ("gemini", 1_048_576),
    // api-docs.deepseek.com, models and pricing: 128K since V3.1.
    ("deepseek", 128_000),
    // docs.x.ai, models.
    ("grok-4", 256_000),
    ("grok-3", 131_072),
];

/// Returns the context window of a model in tokens: the client's value if it is plausible, else the
/// table's, else the default.
pub fn context_window(id: &str, named: Option<f64>) -> f64 {
    if let Some(window) = named
        && (1.0..=MAX_CONTEXT_WINDOW).contains(&window)
    {
        return window;
    }
    known_context_window(id).unwrap_or(DEFAULT_CONTEXT_WINDOW)
}

/// Returns the context window of a model in tokens, if the table has it.
pub fn known_context_window(id: &str) -> Option<f64> {
    let id = bare_id(id);
    WINDOWS
        .iter()
        .find(|(prefix, _)| id.starts_with(prefix))
        .map(|(_, window)| f64::from(*window))
}

/// Returns whether the model is a Claude of generation 4 or later, or a GPT-5.
pub fn is_next_generation(id: &str) -> bool {
    let id = bare_id(id);
    if let Some(rest) = id.strip_prefix("claude") {
        // In `claude-sonnet-4-20250514`, `claude-opus-4.1` and `claude-3-7-sonnet` the first short
        // number is the generation; a long one is a date.
        return rest
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|part| part.len() <= 2)
            .find_map(|part| part.parse::<u8>().ok())
            .is_some_and(|generation| generation >= 4);
    }
    id.starts_with("gpt-5") || id.starts_with("gpt5")
}

/// Returns the lower-case id without prefixes of routers and regions, such as
/// `openrouter/anthropic/claude-...` and `us.anthropic.claude-...`.
pub fn bare_id(id: &str) -> String {
    let id = id.to_ascii_lowercase();
    let id = id.rsplit('/').next().unwrap_or_default();
    let id = id.rsplit("anthropic.").next().unwrap_or_default();
    id.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_by_id() {
        for (id, window) in [
            ("claude-sonnet-4-20250514", 200_000.0),
            ("anthropic/claude-3.7-sonnet", 200_000.0),
            ("us.anthropic.claude-opus-4-1-20250805-v1:0", 200_000.0),
            ("GPT-4o-mini", 128_000.0),
            ("gpt-4.1-nano", 1_047_576.0),
            ("openai/gpt-5-codex", 400_000.0),
            ("gpt-4", 8_192.0),
            ("models/gemini-2.5-pro", 1_048_576.0),
            ("deepseek-chat", 128_000.0),
            ("o4-mini-high", 200_000.0),
            ("something-else", 128_000.0),
            ("", 128_000.0),
        ] {
            assert_eq!(context_window(id, None), window, "{id}");
        }
    }

    #[test]
    fn implausible_windows_are_ignored() {
        assert_eq!(context_window("gpt-4o", Some(32_000.5)), 32_000.5);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            assert_eq!(context_window("claude-x", Some(bad)), 200_000.0, "{bad}");
        }
    }

    #[test]
    fn generations() {
        for id in [
            "claude-sonnet-4-20250514",
            "anthropic/claude-opus-4.1",
            "claude-4-sonnet",
            "eu.anthropic.claude-haiku-5-20270101-v1:0",
            "gpt-5-mini",
            "openai/gpt-5.2",
        ] {
            assert!(is_next_generation(id), "{id}");
        }
        for id in [
            "claude-3-7-sonnet-20250219",
            "claude-3.5-haiku",
            "claude-2.1",
            "claude-latest",
            "gpt-4o",
            "gemini-2.5-pro",
            "",
        ] {
            assert!(!is_next_generation(id), "{id}");
        }
    }
}
