//! The context window section: `12,345 / 200K tokens used (6%)`.

use sightline_protocol::environment::{EnvironmentDetailsParams, ModelRef};

use super::render::SectionDraft;
use sightline_conversation::model_info;

/// Fraction of the window from which the newest models get this section. Earlier knowledge makes
/// them rush.
const NEXT_GENERATION_THRESHOLD: f64 = 0.60;

/// Maximum plausible usage, in tokens.
const MAX_TOKENS: f64 = 1e12;

/// Drafts the section. Empty without usage.
pub(super) fn draft(params: &EnvironmentDetailsParams) -> SectionDraft {
    let Some(usage) = &params.usage else {
        return SectionDraft::default();
    };
    let id = params.model.as_ref().map_or("", ModelRef::id);
    let named = params.model.as_ref().and_then(ModelRef::context_window);
    let window = model_info::context_window(id, named);
    let total = usage.total();
    // NaN counts as zero.
    let used = if total > 0.0 {
        total.min(MAX_TOKENS)
    } else {
        0.0
    };
    if model_info::is_next_generation(id) && used / window < NEXT_GENERATION_THRESHOLD {
        return SectionDraft::default();
    }
    SectionDraft::text(&line(used, window))
}

fn line(used: f64, window: f64) -> String {
    // JavaScript's Math.round.
    let percent = (used / window * 100.0 + 0.5).floor();
    format!(
        "{} / {}K tokens used ({percent}%)",
        en_us(used),
        en_us(window / 1000.0)
    )
}

/// Formats a number like JavaScript's `toLocaleString("en-US")`: groups of three digits, at most
/// three decimals, rounded half up on the decimal digits.
fn en_us(value: f64) -> String {
    // Rust prints the shortest decimal that identifies the number, without an exponent.
    let plain = value.to_string();
    let (whole, decimals) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut thousandths: u128 = 0;
    for digit in whole.bytes().chain(decimals.bytes().chain(*b"000").take(3)) {
        thousandths = thousandths * 10 + u128::from(digit.saturating_sub(b'0'));
    }
    if decimals
        .as_bytes()
        .get(3)
        .is_some_and(|digit| *digit >= b'5')
    {
        thousandths += 1;
    }
    let whole = (thousandths / 1000).to_string();
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let decimals = format!("{:03}", thousandths % 1000);
    match decimals.trim_end_matches('0') {
        "" => grouped,
        decimals => format!("{grouped}.{decimals}"),
    }
}

#[cfg(test)]
mod tests {
    use sightline_protocol::environment::{ModelInfo, Usage};

    use super::*;

    #[test]
    fn recorded_lines() {
        for (used, window, expected) in [
            (0.0, 200_000.0, "0 / 200K tokens used (0%)"),
            (12_345.0, 200_000.0, "12,345 / 200K tokens used (6%)"),
            (
                1_234_567.0,
                1_048_576.0,
                "1,234,567 / 1,048.576K tokens used (118%)",
            ),
            (999.0, 131_072.0, "999 / 131.072K tokens used (1%)"),
            (1_000.0, 200_000.0, "1,000 / 200K tokens used (1%)"),
        ] {
            assert_eq!(line(used, window), expected);
        }
    }

    #[test]
    fn numbers_as_javascript_writes_them() {
        for (value, expected) in [
            (0.0, "0"),
            (1.0005, "1.001"),
            (1.0004, "1"),
            (0.9996, "1"),
            (999.9996, "1,000"),
            (1234.5, "1,234.5"),
            (0.05, "0.05"),
            (100_000_000_000.0, "100,000,000,000"),
        ] {
            assert_eq!(en_us(value), expected);
        }
    }

    fn lines(used: f64, id: &str, window: Option<f64>) -> Vec<String> {
        draft(&EnvironmentDetailsParams {
            usage: Some(Usage {
                tokens_in: Some(used),
                ..Usage::default()
            }),
            model: Some(ModelRef::Info(ModelInfo {
                id: id.to_owned(),
                context_window: window,
                provider: None,
            })),
            ..EnvironmentDetailsParams::default()
        })
        .lines
    }

    #[test]
    fn the_newest_models_get_usage_late() {
        assert!(lines(119_999.0, "claude-sonnet-4-20250514", None).is_empty());
        assert_eq!(
            lines(120_000.0, "claude-sonnet-4-20250514", None),
            ["120,000 / 200K tokens used (60%)"]
        );
        assert_eq!(
            lines(1.0, "claude-3-5-haiku", None),
            ["1 / 200K tokens used (0%)"]
        );
        assert!(lines(239_999.0, "gpt-5", None).is_empty());
        assert!(!lines(240_000.0, "gpt-5", None).is_empty());
    }

    #[test]
    fn implausible_numbers_are_clamped() {
        for used in [f64::NAN, -5.0, f64::NEG_INFINITY] {
            assert_eq!(lines(used, "x", None), ["0 / 128K tokens used (0%)"]);
        }
        for window in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            assert_eq!(
                lines(64_000.0, "x", Some(window)),
                ["64,000 / 128K tokens used (50%)"]
            );
        }
        assert_eq!(
            lines(f64::INFINITY, "x", Some(1.0)),
            ["1,000,000,000,000 / 0.001K tokens used (100000000000000%)"]
        );
    }

    #[test]
    fn no_usage_makes_no_section() {
        assert!(draft(&EnvironmentDetailsParams::default()).lines.is_empty());
    }
}
