//! Model families: which encoding counts their text, and with which corrections.
//!
//! Only OpenAI publishes its tokenizers, and publishes how messages are framed only for
//! gpt-oss. All other values are estimates with bounds taken from published measurements,
//! without a guarantee. Usage reported by a provider takes precedence; see
//! [`super::Calibration`].

use super::{
    encoding::Encoding,
    measure::{FrameCounts, Measure},
};
use crate::model_info::bare_id;

/// An estimate with lower and upper bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) low: f64,
    pub(super) likely: f64,
    pub(super) high: f64,
}

const fn bounds(low: f64, likely: f64, high: f64) -> Bounds {
    Bounds { low, likely, high }
}

/// Models that count tokens alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    name: &'static str,
    encoding: Encoding,
    scale: Option<Scale>,
    framing: Framing,
}

/// Tokens of the family per token of the encoding.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    /// For ASCII text: prose and code.
    ascii: Bounds,
    /// For other scripts, in which vocabularies differ most.
    non_ascii: Bounds,
}

/// Tokens of message framing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Framing {
    message: Bounds,
    call: Bounds,
    result: Bounds,
    image: Bounds,
}

/// OpenAI's cookbook ("How to count tokens with tiktoken") adds 3 tokens per message and 1 for
/// its role. Tool calls are not documented. Images (guide "Images and vision"): 85 at low
/// detail, 85 + 170 per tile for up to 8 tiles, or up to 1,536 patches times 1.62.
const OPENAI: Framing = Framing {
    message: bounds(4.0, 4.0, 4.0),
    call: bounds(3.0, 8.0, 24.0),
    result: bounds(2.0, 4.0, 16.0),
    image: bounds(70.0, 765.0, 2_500.0),
};

/// gpt-4o-mini charges 2,833 + 5,667 per tile (same guide).
const OPENAI_4O_MINI: Framing = Framing {
    image: bounds(2_833.0, 25_501.0, 48_169.0),
    ..OPENAI
};

/// Anthropic's counting endpoint counts about 7 tokens more than the text for a message of two
/// words. Tool calls are written as markup. Images (docs, "Vision"): width × height / 750, at
/// most about 1,600.
const ANTHROPIC: Framing = Framing {
    message: bounds(2.0, 5.0, 10.0),
    call: bounds(10.0, 30.0, 80.0),
    result: bounds(5.0, 15.0, 50.0),
    image: bounds(10.0, 1_600.0, 1_600.0),
};

/// Since Opus 4.7, images keep 2,576 pixels: up to 4,784 tokens (docs, "What's new in Claude
/// Opus 4.7").
const ANTHROPIC_47: Framing = Framing {
    image: bounds(10.0, 1_600.0, 4_784.0),
    ..ANTHROPIC
};

/// ai.google.dev/gemini-api/docs/tokens: 258 tokens per image or tile. Gemini 3 uses 1,120 at
/// its default resolution, at most 2,240.
const GOOGLE: Framing = Framing {
    message: bounds(1.0, 4.0, 8.0),
    call: bounds(3.0, 12.0, 40.0),
    result: bounds(3.0, 8.0, 32.0),
    image: bounds(258.0, 1_120.0, 2_600.0),
};

/// Chat templates of open models: a few markers per message, tool calls as JSON.
const OTHER: Framing = Framing {
    message: bounds(2.0, 5.0, 12.0),
    call: bounds(3.0, 15.0, 60.0),
    result: bounds(3.0, 8.0, 40.0),
    image: bounds(64.0, 1_000.0, 5_000.0),
};

const fn exact(encoding: Encoding) -> Family {
    exact_framed(encoding, OPENAI)
}

const fn exact_framed(encoding: Encoding, framing: Framing) -> Family {
    Family {
        name: "OpenAI",
        encoding,
        scale: None,
        framing,
    }
}

const fn scaled(name: &'static str, framing: Framing, ascii: Bounds, non_ascii: Bounds) -> Family {
    Family {
        name,
        encoding: Encoding::O200kBase,
        scale: Some(Scale { ascii, non_ascii }),
        framing,
    }
}

/// Models before Opus 4.7. Relative to o200k_base: 1.16 for English articles, 1.21 for
/// mathematics, 1.30 for Python (comparison of Claude 3.5 Sonnet and GPT-4o, 2025).
/// github.com/sammcj/ingest uses 1.18.
const CLAUDE: Family = scaled(
    "Claude",
    ANTHROPIC,
    bounds(1.0, 1.18, 1.5),
    bounds(0.9, 1.5, 2.4),
);

/// Opus 4.7 and later models. Anthropic documents up to 1.35 times the tokens of earlier
/// models. Measurements of April 2026 show 1.13 to 1.47 for prose and code, and no change for
/// Chinese, Japanese and Korean. github.com/sammcj/ingest uses 1.53 relative to o200k_base.
const CLAUDE_47: Family = scaled(
    "Claude since 4.7",
    ANTHROPIC_47,
    bounds(1.1, 1.53, 2.1),
    bounds(0.9, 1.5, 2.4),
);

/// "About four characters" per token (Google's guide), with a vocabulary of the size of
/// o200k_base. Measured: 0.99 for a page of text, 1.24 for a table.
const GEMINI: Family = scaled(
    "Gemini",
    GOOGLE,
    bounds(0.85, 1.1, 1.5),
    bounds(0.6, 1.0, 1.6),
);

/// Llama 3, Qwen, DeepSeek, Mistral, Grok and similar models: vocabularies of 100,000 to
/// 260,000 tokens, most with single digits.
const OPEN: Family = scaled(
    "open models",
    OTHER,
    bounds(0.8, 1.1, 1.7),
    bounds(0.5, 1.1, 2.2),
);

/// OpenAI models whose encoding is not published yet. The last three generations did not change
/// it.
const OPENAI_NEW: Family = scaled(
    // Stored with calibrations, so it does not change.
    "OpenAI, not known yet",
    OPENAI,
    bounds(0.8, 1.0, 1.4),
    bounds(0.7, 1.0, 1.6),
);

/// All other models.
const UNKNOWN: Family = scaled(
    "unknown model",
    OTHER,
    bounds(0.7, 1.2, 2.2),
    bounds(0.5, 1.2, 2.6),
);

const O200K: Family = exact(Encoding::O200kBase);
const CL100K: Family = exact(Encoding::Cl100kBase);
const P50K: Family = exact(Encoding::P50kBase);
const P50K_EDIT: Family = exact(Encoding::P50kEdit);
const R50K: Family = exact(Encoding::R50kBase);

/// Families by the start of the model id. The match must end at the end of the id, at a version
/// (`.2`) or at a separator. The first match wins. OpenAI's rows follow
/// github.com/openai/tiktoken, model.py.
const FAMILIES: &[(&str, Family)] = &[
    ("gpt-5", O200K),
    ("gpt-4.5", O200K),
    ("gpt-4.1", O200K),
    (
        "gpt-4o-mini",
        exact_framed(Encoding::O200kBase, OPENAI_4O_MINI),
    ),
    ("gpt-4o", O200K),
    ("chatgpt-4o", O200K),
    ("o1", O200K),
    ("o3", O200K),
    ("o4-mini", O200K),
    ("codex-mini", O200K),
    ("gpt-oss", exact(Encoding::O200kHarmony)),
    ("gpt-4", CL100K),
    ("gpt-3.5", CL100K),
    ("gpt-35", CL100K),
    ("text-embedding-3", CL100K),
    ("text-embedding-ada-002", CL100K),
    ("davinci-002", CL100K),
    ("babbage-002", CL100K),
    ("text-davinci-edit", P50K_EDIT),
    ("code-davinci-edit", P50K_EDIT),
    ("text-davinci-002", P50K),
    ("text-davinci-003", P50K),
    ("code-davinci", P50K),
    ("code-cushman", P50K),
    ("davinci-codex", P50K),
    ("cushman-codex", P50K),
    ("text-davinci", R50K),
    ("text-curie", R50K),
    ("text-babbage", R50K),
    ("text-ada", R50K),
    ("text-similarity", R50K),
    ("text-search", R50K),
    ("code-search", R50K),
    ("gpt2", R50K),
    ("gpt-2", R50K),
];

/// Models without variants.
const UNVERSIONED_R50K: &[&str] = &["davinci", "curie", "babbage", "ada"];

/// Suffixes that OpenAI uses in model names. Other suffixes are other vendors' models.
const VARIANTS: &[&str] = &[
    "16k", "32k", "ada", "audio", "babbage", "chat", "codex", "curie", "davinci", "deep", "high",
    "instruct", "large", "latest", "low", "max", "medium", "mini", "nano", "preview", "pro",
    "realtime", "search", "small", "turbo", "vision",
];

/// Families by the start of the model id, whatever follows.
const PREFIX_FAMILIES: &[(&str, Family)] = &[
    ("gemini", GEMINI),
    ("gemma", GEMINI),
    ("gpt-", OPENAI_NEW),
    ("o4", OPENAI_NEW),
    ("o5", OPENAI_NEW),
    ("llama", OPEN),
    ("meta-llama", OPEN),
    ("qwen", OPEN),
    ("qwq", OPEN),
    ("deepseek", OPEN),
    ("mistral", OPEN),
    ("mixtral", OPEN),
    ("codestral", OPEN),
    ("devstral", OPEN),
    ("magistral", OPEN),
    ("grok", OPEN),
    ("kimi", OPEN),
    ("glm", OPEN),
    ("minimax", OPEN),
    ("phi", OPEN),
];

impl Family {
    /// Returns the family of a model id.
    pub fn of_model(id: &str) -> Self {
        let id = bare_id(id);
        // The id of a fine-tuned model is `ft:` and the id of its base model.
        let id = id.strip_prefix("ft:").unwrap_or(&id);
        if let Some(version) = id.strip_prefix("claude") {
            return claude(version);
        }
        if UNVERSIONED_R50K.contains(&id) {
            return R50K;
        }
        let named = FAMILIES.iter().find(|(name, _)| is_model(id, name));
        let by_prefix = || {
            PREFIX_FAMILIES
                .iter()
                .find(|(start, _)| id.starts_with(start))
        };
        named
            .or_else(by_prefix)
            .map_or(UNKNOWN, |(_, family)| *family)
    }

    /// Returns a family that counts with `encoding`, without corrections.
    pub fn of_encoding(encoding: Encoding) -> Self {
        exact(encoding)
    }

    /// Returns the encoding that counts text.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns whether the encoding is the family's own.
    pub fn is_exact(&self) -> bool {
        self.scale.is_none()
    }

    /// Returns whether the framing of messages is published.
    pub(super) fn is_framing_published(&self) -> bool {
        matches!(self.encoding, Encoding::O200kBase | Encoding::Cl100kBase)
    }

    /// Returns the display name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the tokens of a measure.
    pub(super) fn tokens(&self, measure: &Measure) -> Bounds {
        let factor = self.factor(measure);
        let sure = measure.lower.saturating_sub(measure.uncertain);
        let mut sum = Bounds {
            low: (sure as f64 * factor.low).floor(),
            likely: (measure.tokens as f64 * factor.likely).round(),
            high: (measure.upper as f64 * factor.high).ceil(),
        };
        for (count, each) in self.frames(&measure.frames) {
            sum.low += count as f64 * each.low;
            sum.likely += count as f64 * each.likely;
            sum.high += count as f64 * each.high;
        }
        let pages = document_tokens(&measure.frames);
        sum.low += pages.low;
        sum.likely += pages.likely;
        sum.high += pages.high;
        sum
    }

    /// Returns the framing elements with their tokens.
    fn frames(&self, frames: &FrameCounts) -> [(u64, Bounds); 4] {
        [
            (frames.messages, self.framing.message),
            (frames.calls, self.framing.call),
            (frames.results, self.framing.result),
            (frames.images, self.framing.image),
        ]
    }

    /// Returns the tokens per token of the encoding, for the measured share of non-ASCII text.
    pub(super) fn factor(&self, measure: &Measure) -> Bounds {
        let Some(Scale { ascii, non_ascii }) = self.scale else {
            return bounds(1.0, 1.0, 1.0);
        };
        let share = measure.non_ascii_bytes as f64 / measure.bytes.max(1) as f64;
        let blend = |ascii: f64, non_ascii: f64| ascii + (non_ascii - ascii) * share;
        Bounds {
            low: blend(ascii.low, non_ascii.low),
            likely: blend(ascii.likely, non_ascii.likely),
            high: blend(ascii.high, non_ascii.high),
        }
    }
}

/// Estimates pages from bytes: a page has 2 to 300 KB. Anthropic (docs, "PDF support") counts
/// 1,500 to 3,000 tokens per page, Google 258 to 560.
fn document_tokens(frames: &FrameCounts) -> Bounds {
    let pages = |bytes: u64| (frames.document_bytes.div_ceil(bytes)).max(frames.documents) as f64;
    Bounds {
        low: 258.0 * pages(300_000),
        likely: 2_000.0 * pages(60_000),
        high: 3_000.0 * pages(2_000),
    }
}

/// Returns whether `id` names the model or a variant of it.
fn is_model(id: &str, name: &str) -> bool {
    let Some(rest) = id.strip_prefix(name) else {
        return false;
    };
    // `gpt-5.2` is a variant of GPT-5, but `gpt-4.7` would not be one of GPT-4.
    let rest = match rest.strip_prefix('.') {
        Some(version) if name == "gpt-5" => {
            version.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        _ => rest,
    };
    // Accepts `gpt-4-0613`, `o3-mini-high` and `ft:gpt-4o:me:task`, but not `gpt-4-alpaca`.
    match rest.chars().next() {
        None | Some(':' | '@') => true,
        Some('-') => {
            let variant = rest[1..].split(['-', ':', '@']).next().unwrap_or_default();
            VARIANTS.contains(&variant) || variant.starts_with(|c: char| c.is_ascii_digit())
        }
        Some(_) => false,
    }
}

/// Returns the family by generation: the first short numbers in `-opus-4-7-20260415`,
/// `-3.5-sonnet` or `-sonnet-5`. An id without numbers is a current model.
fn claude(version: &str) -> Family {
    let mut numbers = version
        .split(|c: char| !c.is_ascii_alphanumeric())
        .skip_while(|part| short_number(part).is_none())
        .map_while(short_number);
    let generation = numbers
        .next()
        .map(|major| (major, numbers.next().unwrap_or(0)));
    match generation {
        Some(generation) if generation < (4, 7) => CLAUDE,
        _ => CLAUDE_47,
    }
}

fn short_number(part: impl AsRef<str>) -> Option<u8> {
    let part = part.as_ref();
    (part.len() <= 2).then(|| part.parse().ok())?
}

#[cfg(test)]
mod tests {
    use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};

    use super::*;

    #[test]
    fn models_map_to_families() {
        for (id, family) in [
            ("gpt-4o", O200K),
            ("openai/GPT-4o-2024-08-06", O200K),
            ("gpt-4o:extended", O200K),
            ("gpt-5.2-codex", O200K),
            ("gpt-5", O200K),
            ("o3-pro", O200K),
            ("gpt-oss-120b", exact(Encoding::O200kHarmony)),
            ("gpt-4", CL100K),
            ("gpt-4-32k", CL100K),
            ("gpt-3.5-turbo-0125", CL100K),
            ("ft:gpt-3.5-turbo:org:name:id", CL100K),
            ("gpt-4.7", OPENAI_NEW),
            ("gpt-6-mini", OPENAI_NEW),
            ("o5-mini", OPENAI_NEW),
            ("claude-3-7-sonnet-20250219", CLAUDE),
            ("anthropic/claude-3.5-haiku", CLAUDE),
            ("us.anthropic.claude-sonnet-4-20250514-v1:0", CLAUDE),
            ("claude-opus-4.6", CLAUDE),
            ("claude-2.1", CLAUDE),
            ("claude-opus-4-7", CLAUDE_47),
            ("claude-opus-4.10", CLAUDE_47),
            ("claude-sonnet-5", CLAUDE_47),
            ("claude-latest", CLAUDE_47),
            ("models/gemini-2.5-pro", GEMINI),
            ("deepseek-chat", OPEN),
            ("qwen3-coder:free", OPEN),
            ("office-model", UNKNOWN),
            ("o1x", UNKNOWN),
            ("", UNKNOWN),
        ] {
            assert_eq!(Family::of_model(id), family, "{id}");
        }
    }

    #[test]
    fn the_table_matches_tiktoken() {
        for id in [
            "o1",
            "o1-mini",
            "o3",
            "o3-mini",
            "o4-mini",
            "gpt-5",
            "gpt-5-mini",
            "gpt-4.5-preview",
            "gpt-4.1",
            "gpt-4.1-nano",
            "gpt-4o",
            "gpt-4o-mini",
            "chatgpt-4o-latest",
            "codex-mini-latest",
            "gpt-4",
            "gpt-4-turbo",
            "gpt-4-32k-0314",
            "gpt-3.5-turbo",
            "gpt-3.5",
            "gpt-35-turbo",
            "gpt-3.5-turbo-16k",
            "gpt-oss-20b",
            "davinci-002",
            "babbage-002",
            "text-embedding-ada-002",
            "text-embedding-3-large",
            "text-davinci-003",
            "text-davinci-002",
            "text-davinci-001",
            "text-curie-001",
            "text-babbage-001",
            "text-ada-001",
            "davinci",
            "curie",
            "babbage",
            "ada",
            "code-davinci-002",
            "code-davinci-001",
            "code-cushman-002",
            "davinci-codex",
            "cushman-codex",
            "text-davinci-edit-001",
            "code-davinci-edit-001",
            "text-similarity-davinci-001",
            "text-search-ada-doc-001",
            "code-search-babbage-code-001",
            "gpt2",
            "gpt-2",
        ] {
            let reference = match get_tokenizer(id).unwrap() {
                Tokenizer::O200kHarmony => Encoding::O200kHarmony,
                Tokenizer::O200kBase => Encoding::O200kBase,
                Tokenizer::Cl100kBase => Encoding::Cl100kBase,
                Tokenizer::P50kBase => Encoding::P50kBase,
                Tokenizer::P50kEdit => Encoding::P50kEdit,
                Tokenizer::R50kBase | Tokenizer::Gpt2 => Encoding::R50kBase,
            };
            let family = Family::of_model(id);
            assert!(family.is_exact(), "{id}");
            assert_eq!(family.encoding(), reference, "{id}");
        }
    }

    #[test]
    fn all_bounds_are_in_order() {
        let in_order = |range: Bounds| {
            assert!(
                range.low <= range.likely && range.likely <= range.high,
                "{range:?}"
            );
        };
        for (_, family) in FAMILIES.iter().chain(PREFIX_FAMILIES).chain([
            &("", UNKNOWN),
            &("", CLAUDE),
            &("", CLAUDE_47),
        ]) {
            if let Some(scale) = family.scale {
                in_order(scale.ascii);
                in_order(scale.non_ascii);
            }
            let framing = family.framing;
            for range in [framing.message, framing.call, framing.result, framing.image] {
                in_order(range);
            }
        }
        for document_bytes in [0, 1, 60_000, 5_000_000] {
            in_order(document_tokens(&FrameCounts {
                documents: 1,
                document_bytes,
                ..FrameCounts::default()
            }));
        }
        assert_eq!(document_tokens(&FrameCounts::default()), Bounds::default());
    }

    #[test]
    fn other_scripts_have_their_own_factor() {
        let measure = |non_ascii_bytes| Measure {
            tokens: 1_000,
            lower: 1_000,
            upper: 1_000,
            bytes: 3_000,
            non_ascii_bytes,
            ..Measure::default()
        };
        assert_eq!(
            CLAUDE.tokens(&measure(0)),
            bounds(1_000.0, 1_180.0, 1_500.0)
        );
        assert_eq!(
            CLAUDE.tokens(&measure(3_000)),
            bounds(900.0, 1_500.0, 2_400.0)
        );
        assert_eq!(
            O200K.tokens(&measure(3_000)),
            bounds(1_000.0, 1_000.0, 1_000.0)
        );
    }
}
