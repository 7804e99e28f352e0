//! Calibrates token counts with the usage that providers report.
//!
//! Reported usage is exact for the model and includes parts that are not counted here: the
//! system prompt and the tool definitions. A later count of the same task therefore starts from
//! the last report and adds the change since, scaled by the rate between two reports.

use serde::{Deserialize, Serialize};
use sightline_protocol::tokens::CountTokensResult;

use super::Family;

/// Plausible rates. A rate outside has another cause than the tokenizer, such as a changed set
/// of tools.
const PLAUSIBLE_RATES: std::ops::RangeInclusive<f64> = 0.5..=2.5;

/// Minimum change from which a rate is computed, in tokens. Smaller changes are too noisy.
const MIN_RATE_CHANGE_TOKENS: u64 = 500;

/// The last report of a task, and the count of the same request.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Calibration {
    /// Family of the model that reported. Other families count differently.
    family: String,
    /// Tokens reported by the provider.
    reported: u64,
    /// Tokens counted for the same request.
    counted: u64,
    /// Reported tokens per counted token, for the change between reports.
    rate: f64,
    /// Number of changes that determined the rate.
    changes: u32,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            family: String::new(),
            reported: 0,
            counted: 0,
            rate: 1.0,
            changes: 0,
        }
    }
}

impl Calibration {
    /// Returns the calibration if it applies to the family, else an empty one.
    #[must_use]
    pub fn for_family(&self, family: Family) -> Self {
        if self.family == family.name() {
            self.clone()
        } else {
            Self::default()
        }
    }

    /// Records that a model of `family` reported `reported` tokens for a request that was counted
    /// as `counted`.
    pub fn observe(&mut self, family: Family, reported: u64, counted: u64) {
        *self = self.for_family(family);
        family.name().clone_into(&mut self.family);
        if reported == 0 || counted == 0 {
            return;
        }
        if self.is_known() && counted >= self.counted + MIN_RATE_CHANGE_TOKENS {
            let more = reported.saturating_sub(self.reported) as f64;
            let rate = clamp(more / (counted - self.counted) as f64);
            // Weight the newest change most.
            self.rate = if self.changes == 0 {
                rate
            } else {
                f64::midpoint(clamp(self.rate), rate)
            };
            self.changes = self.changes.saturating_add(1);
        }
        self.reported = reported;
        self.counted = counted;
    }

    /// Returns whether usage was reported.
    pub fn is_known(&self) -> bool {
        self.reported > 0 && self.counted > 0
    }

    /// Returns the reported tokens per counted token of the last report.
    pub fn factor(&self) -> Option<f64> {
        self.is_known()
            .then(|| self.reported as f64 / self.counted as f64)
    }

    /// Adjusts a count with the last report. Returns it unchanged if there is none.
    #[must_use]
    pub fn apply(&self, count: CountTokensResult) -> CountTokensResult {
        if !self.is_known() {
            return count;
        }
        let base = self.reported as f64;
        let change = count.tokens as f64 - self.counted as f64;
        let ratio =
            |bound: Option<u64>| bound.unwrap_or(count.tokens) as f64 / count.tokens.max(1) as f64;
        let likely = change * clamp(self.rate);
        let ends = [
            change * ratio(count.lower),
            change * ratio(count.upper),
            likely,
        ];
        let low = ends.into_iter().fold(f64::INFINITY, f64::min);
        let high = ends.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let tokens = |change: f64| (base + change).round().max(0.0) as u64;
        CountTokensResult {
            tokens: tokens(likely),
            lower: Some(tokens(low)),
            upper: Some(tokens(high)),
            exact: false,
            method: format!("reported usage; changes since by {}", count.method),
            ..count
        }
    }
}

fn clamp(rate: f64) -> f64 {
    rate.clamp(*PLAUSIBLE_RATES.start(), *PLAUSIBLE_RATES.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family() -> Family {
        Family::of_model("gpt-4o")
    }

    fn count(tokens: u64) -> CountTokensResult {
        CountTokensResult {
            tokens,
            method: "m".to_owned(),
            lower: Some(tokens * 9 / 10),
            upper: Some(tokens * 12 / 10),
            ..CountTokensResult::default()
        }
    }

    #[test]
    fn counts_are_unchanged_without_a_report() {
        let mut calibration = Calibration::default();
        calibration.observe(family(), 0, 5);
        calibration.observe(family(), 5, 0);
        assert_eq!(calibration.apply(count(10)), count(10));
        assert_eq!(calibration.factor(), None);
    }

    #[test]
    fn a_report_is_the_base_of_later_counts() {
        let mut calibration = Calibration::default();
        calibration.observe(family(), 15_000, 10_000);
        assert_eq!(calibration.factor(), Some(1.5));
        let same = calibration.apply(count(10_000));
        assert_eq!(
            (same.lower, same.tokens, same.upper),
            (Some(15_000), 15_000, Some(15_000))
        );
        assert!(!same.exact);
        let grown = calibration.apply(count(11_000));
        assert_eq!(
            (grown.lower, grown.tokens, grown.upper),
            (Some(15_900), 16_000, Some(16_200))
        );
        let cut = calibration.apply(count(5_000));
        assert_eq!(
            (cut.lower, cut.tokens, cut.upper),
            (Some(9_000), 10_000, Some(10_500))
        );
    }

    #[test]
    fn two_reports_determine_the_rate() {
        let mut calibration = Calibration::default();
        calibration.observe(family(), 15_000, 10_000);
        calibration.observe(family(), 15_001, 10_001);
        assert_eq!(calibration.apply(count(11_001)).tokens, 16_001);
        calibration.observe(family(), 17_601, 12_001);
        assert_eq!(calibration.apply(count(13_001)).tokens, 18_901);
        calibration.observe(family(), 90_000, 13_001);
        assert!(calibration.apply(count(14_001)).tokens <= 92_500);
    }

    #[test]
    fn calibration_round_trips() {
        let mut calibration = Calibration::default();
        calibration.observe(family(), 15_000, 10_000);
        let stored = serde_json::to_string(&calibration).unwrap();
        assert_eq!(
            serde_json::from_str::<Calibration>(&stored).unwrap(),
            calibration
        );
        let broken: Calibration =
            serde_json::from_str(r#"{"reported":5,"counted":5,"rate":-1e300}"#).unwrap();
        let got = broken.apply(count(100));
        assert!(got.lower <= Some(got.tokens) && Some(got.tokens) <= got.upper);
    }

    #[test]
    fn a_report_applies_to_its_family_only() {
        let mut calibration = Calibration::default();
        calibration.observe(family(), 15_000, 10_000);
        assert!(calibration.for_family(family()).is_known());
        let other = Family::of_model("claude-sonnet-4");
        assert!(!calibration.for_family(other).is_known());
        calibration.observe(other, 900, 800);
        assert_eq!(calibration.for_family(other).factor(), Some(1.125));
        assert!(!calibration.for_family(family()).is_known());
    }
}
