//! Classifies errors from model providers: whether the conversation exceeds the context window,
//! and whether the same request may be retried.
//!
//! Providers report these cases in many formats, and clients wrap them. Status and message are
//! therefore read from every known location. A rejected request counts as too long only if its
//! message is about length.

use std::sync::LazyLock;

use regex::RegexSet;
use serde_json::Value;
use sightline_base::words::is_one_of;
use sightline_protocol::conversation::ClassifyErrorResult;

/// How the errors of one source say that a conversation is too long.
struct ErrorFormat {
    /// Returns whether the request was rejected for this message.
    is_rejected: fn(&ProviderError<'_>, message: &str) -> bool,
    messages: Messages,
    /// Whether the patterns are case-sensitive. The others match the message in lower case.
    is_case_sensitive: bool,
    /// Regular expressions in the syntax of JavaScript, as the providers' clients write them.
    patterns: &'static [&'static str],
}

/// Where the message of an error is.
enum Messages {
    /// The first text that is not empty.
    First(&'static [&'static str]),
    /// Any of [`MESSAGES`].
    Any,
    /// Any of [`MESSAGES`], or the error, if it is a bare string.
    AnyOrBare,
}

/// Fields that may hold the message.
const MESSAGES: [&str; 6] = [
    "/message",
    "/error/message",
    "/error/param/message",
    "/error/param/error",
    "/error/error/message",
    "/error/value/error_message",
];

static FORMATS: [ErrorFormat; 8] = [
    // Messages that are unambiguous in any context, because clients wrap errors in unpredictable
    // ways: of Anthropic (two), Gemini and xAI.
    ErrorFormat {
        is_rejected: |error, _| error.has_no_other_status(),
        messages: Messages::AnyOrBare,
        is_case_sensitive: false,
        patterns: &[
            r"prompt is too long:\s*\d+\s*token",
            "input length and.*exceed context limit",
            "input token count.*exceeds the maximum number of tokens allowed",
            r"maximum prompt length is\s*\d+.*but the request contains",
        ],
    },
    // OpenAI. Errors that a proxy created have the status in `code`.
    ErrorFormat {
        is_rejected: |error, _| error.is_of_openai() && error.is_400(&["/code"]),
        messages: Messages::First(&["/message"]),
        is_case_sensitive: true,
        patterns: &["token", "context length"],
    },
    // OpenRouter and compatible providers.
    ErrorFormat {
        is_rejected: |error, message| match embedded_status(message) {
            Some(status) => status == "400",
            None => error.is_400(STATUS),
        },
        messages: Messages::First(&["/message", "/error/message"]),
        is_case_sensitive: false,
        patterns: &[
            r"\bcontext\s*(length|window)\b",
            r"\bmaximum\s*context\b",
            r"\b(input\s*)?tokens?\s*exceed",
            r"\btoo\s*many\s*tokens?\b",
        ],
    },
    // Anthropic, for errors about length.
    ErrorFormat {
        is_rejected: |error, _| {
            ["/error/error/type", "/error/type", "/type"]
                .iter()
                .any(|path| error.is(path, "invalid_request_error"))
        },
        messages: Messages::Any,
        is_case_sensitive: false,
        patterns: &[
            "prompt is too long",
            "input is too long",
            "exceed.*context (limit|window|length)",
            r"\bcontext\s*(length|window)\b",
            r"\btokens?\s*exceed",
        ],
    },
    // Cerebras.
    ErrorFormat {
        is_rejected: |error, _| error.is_400(STATUS),
        messages: Messages::First(&["/message", "/error/message"]),
        is_case_sensitive: true,
        patterns: &["Please reduce the length of the messages or completion"],
    },
    // Amazon Bedrock.
    ErrorFormat {
        is_rejected: |error, _| {
            let name = first(error.0, &["/name", "/error/type", "/__type"]);
            name.is_some_and(|name| name == "ValidationException" || name == "AI_APICallError")
                || error.is_400(&["/code", "/error/code", "/$metadata/httpStatusCode"])
                || error.is_400(&["/error/param/statusCode", "/details/code"])
                || error.is("/code", "stream_initialization_failed")
        },
        messages: Messages::First(&[
            "/message",
            "/error/message",
            "/error/param/message",
            "/error/param/error",
        ]),
        is_case_sensitive: false,
        patterns: &[
            "maximum tokens.*exceeds.*model limit",
            "input length and max_tokens exceed context limit",
            "context length.*exceeds",
            "total number of tokens.*exceeds.*limit",
            "requested.*tokens.*exceeds.*limit",
            "reduce.*length.*messages.*completion",
            "input is too long",
        ],
    },
    // Vercel's AI gateway and the providers behind it.
    ErrorFormat {
        is_rejected: |error, _| {
            error.is_400(&["/status", "/error/param/statusCode", "/statusCode"])
                || error
                    .text("/error/value/error_message")
                    .is_some_and(|text| {
                        text.contains(r#""code":400"#) || text.contains(r#""code": 400"#)
                    })
        },
        messages: Messages::Any,
        is_case_sensitive: false,
        patterns: &[
            "input is too long",
            "input token count exceeds.*maximum.*tokens? allowed",
            "input exceeds.*context window",
            "requested input length.*exceeds.*maximum input length",
            r"prompt is too long.*tokens?\s*>\s*\d+\s*maximum",
            r"\bcontext\s*(length|window)\b.*exceed",
            r"\bmaximum\s*context\b",
            r"\b(input\s*)?tokens?\s*exceed",
            r"too\s*many\s*tokens",
        ],
    },
    // Gemini, xAI, llama.cpp and Z.ai.
    ErrorFormat {
        is_rejected: |error, message| {
            embedded_status(message).as_deref() == Some("400")
                || error.is_400(STATUS)
                || error.is_400(&["/error/code", "/statusCode", "/error/param/statusCode"])
        },
        messages: Messages::Any,
        is_case_sensitive: false,
        patterns: &[
            "input token count.*exceeds the maximum number of tokens",
            "maximum prompt length is.*request contains",
            "exceeds the available context size",
            "prompt exceeds max length",
        ],
    },
];

/// The patterns of each of [`FORMATS`], compiled. Matching takes time linear in the message.
static PATTERNS: LazyLock<Vec<RegexSet>> = LazyLock::new(|| {
    FORMATS
        .iter()
        .map(|format| {
            let patterns = format.patterns.iter().map(|pattern| translate(pattern));
            RegexSet::new(patterns).unwrap_or_default()
        })
        .collect()
});

/// Translates the classes of JavaScript, which differ: `.` matches no line break, `\s` other
/// whitespace, `\b` and `\d` only ASCII.
fn translate(pattern: &str) -> String {
    pattern
        .replace('.', r"[^\n\r\x{2028}\x{2029}]")
        .replace(
            r"\s",
            r"[\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]",
        )
        .replace(r"\b", r"(?-u:\b)")
        .replace(r"\d", "[0-9]")
}

/// Fields that may hold the HTTP status.
const STATUS: &[&str] = &["/status", "/code", "/error/status", "/response/status"];

/// HTTP statuses of errors that may be temporary.
const TRANSIENT_STATUSES: [&str; 15] = [
    "408", "409", "425", "429", "500", "502", "503", "504", "520", "521", "522", "523", "524",
    "529", "530",
];

/// Names and codes of errors that may be temporary, in lower case.
const TRANSIENT_CODES: &str = "api_error apiconnectionerror apiconnectiontimeouterror deadline_exceeded eai_again econnaborted econnrefused \
     econnreset epipe etimedout internalserverexception modelnotreadyexception modeltimeoutexception \
     overloaded_error rate_limit_error rate_limit_exceeded resource_exhausted server_error \
     serviceunavailableexception throttlingexception timeouterror timeout_error toomanyrequestsexception \
     unavailable und_err_body_timeout und_err_connect_timeout und_err_headers_timeout und_err_socket";

/// Maximum bytes read of a text in an error. The relevant message is at the start.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Codes of errors that remain until the account is paid, whatever the status.
const PERMANENT_CODES: &str = "insufficient_quota billing_hard_limit_reached";

/// Classifies an error. `provider` is the id of the provider that sent it.
pub fn classify_error(provider: Option<&str>, error: &Value) -> ClassifyErrorResult {
    let of_provider = ProviderError(error, provider);
    let context_window_exceeded = has_code(error, "context_length_exceeded")
        || FORMATS
            .iter()
            .zip(PATTERNS.iter())
            .any(|(format, patterns)| of_provider.says_too_long(format, patterns));
    let retryable =
        !context_window_exceeded && !has_code(error, PERMANENT_CODES) && is_transient(error);
    ClassifyErrorResult {
        context_window_exceeded,
        retryable,
    }
}

/// An error, and the id of the provider that sent it.
struct ProviderError<'a>(&'a Value, Option<&'a str>);

impl ProviderError<'_> {
    fn says_too_long(&self, format: &ErrorFormat, patterns: &RegexSet) -> bool {
        let matches = |message: &String| {
            (format.is_rejected)(self, message)
                && if format.is_case_sensitive {
                    patterns.is_match(message)
                } else {
                    patterns.is_match(&message.to_ascii_lowercase())
                }
        };
        match format.messages {
            Messages::First(paths) => matches(&first_text(self.0, paths)),
            Messages::Any => message_candidates(self.0).any(|message| matches(&message)),
            Messages::AnyOrBare => message_candidates(self.0)
                .chain(self.bare())
                .any(|message| matches(&message)),
        }
    }

    /// Returns the error if it is a string, or if a client wrapped one. A bare string counts only
    /// if the provider is known, because it could be any text.
    fn bare(&self) -> Option<String> {
        match self {
            Self(Value::String(text), Some(_)) => Some(text.clone()),
            _ => self.text("/error").map(str::to_owned),
        }
    }

    /// A status other than 400 means another problem.
    fn has_no_other_status(&self) -> bool {
        let status = first(self.0, STATUS).map(to_js_string).unwrap_or_default();
        status == "400" || !status.bytes().all(|byte| byte.is_ascii_digit()) || status.is_empty()
    }

    /// Only errors of OpenAI's library have all of these properties.
    fn is_of_openai(&self) -> bool {
        self.1 == Some("openai")
            || ["requestID", "param", "type"]
                .iter()
                .all(|key| self.0.get(key).is_some())
    }

    /// Returns whether the first value that is not null is the status 400.
    fn is_400(&self, paths: &[&str]) -> bool {
        first(self.0, paths).is_some_and(|value| to_js_string(value) == "400")
    }

    fn is(&self, path: &str, text: &str) -> bool {
        self.text(path) == Some(text)
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.0.pointer(path)?.as_str()
    }
}

fn is_transient(error: &Value) -> bool {
    let statuses = [
        "/status",
        "/statusCode",
        "/code",
        "/error/status",
        "/error/code",
        "/error/error/code",
        "/response/status",
        "/$metadata/httpStatusCode",
        "/error/param/statusCode",
    ];
    let has_status = statuses
        .iter()
        .filter_map(|path| error.pointer(path))
        .any(|status| {
            TRANSIENT_STATUSES
                .iter()
                .any(|transient| to_js_string(status) == *transient)
        });
    has_status
        || has_code(error, TRANSIENT_CODES)
        || message_candidates(error).any(|message| {
            let message_status = embedded_status(&message);
            message_status.is_some_and(|status| TRANSIENT_STATUSES.contains(&&*status))
        })
}

/// Returns whether the name, type or code of the error is in `names`.
fn has_code(error: &Value, names: &str) -> bool {
    let paths = [
        "/name",
        "/type",
        "/code",
        "/__type",
        "/status",
        "/cause/code",
        "/cause/name",
        "/error/type",
        "/error/code",
        "/error/status",
        "/error/error/type",
        "/error/error/code",
    ];
    paths
        .iter()
        .filter_map(|path| error.pointer(path)?.as_str())
        .any(|name| is_one_of(&name.to_ascii_lowercase(), names))
}

/// Returns the status in a message that quotes a JSON response.
fn embedded_status(message: &str) -> Option<String> {
    let keys = ["\"code\":", "\"status\":"];
    let ends = keys.iter().flat_map(|key| {
        let paths = message.match_indices(key);
        paths.map(|(at, key)| at + key.len())
    });
    let mut ends: Vec<usize> = ends.collect();
    ends.sort_unstable();
    ends.into_iter().find_map(|end| {
        let rest = message.get(end..)?.trim_start();
        let status: String = rest.chars().take_while(char::is_ascii_digit).collect();
        (!status.is_empty()).then_some(status)
    })
}

fn message_candidates(error: &Value) -> impl Iterator<Item = String> {
    MESSAGES
        .into_iter()
        .filter_map(|path| error.pointer(path).map(to_js_string))
}

/// Returns the first value that is not null.
fn first<'a>(error: &'a Value, paths: &[&str]) -> Option<&'a Value> {
    paths
        .iter()
        .filter_map(|path| error.pointer(path))
        .find(|value| !value.is_null())
}

/// Returns the first text that is not empty.
fn first_text(error: &Value, paths: &[&str]) -> String {
    paths
        .iter()
        .filter_map(|path| error.pointer(path))
        .map(to_js_string)
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// Converts a value to a string as JavaScript does.
fn to_js_string(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => {
            let end = text.floor_char_boundary(MAX_TEXT_BYTES);
            text[..end].to_owned()
        }
        Value::Bool(_) => value.to_string(),
        Value::Number(number) => match number.as_f64() {
            Some(float) => float.to_string(),
            None => number.to_string(),
        },
        Value::Array(items) => items.iter().map(to_js_string).collect::<Vec<_>>().join(","),
        Value::Object(_) => "[object Object]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn retryable(error: Value) -> bool {
        classify_error(None, &error).retryable
    }

    #[test]
    fn temporary_errors_are_retryable() {
        for error in [
            json!({"status": 429, "message": "slow down"}),
            json!({"name": "ThrottlingException", "message": "Too many tokens, please wait"}),
            json!({"error": {"type": "overloaded_error", "message": "Overloaded"}}),
            json!({"code": "ECONNRESET"}),
            json!({"message": "fetch failed", "cause": {"code": "UND_ERR_SOCKET"}}),
            json!({"message": "Mid-Stream Error: {\"code\": 502}"}),
        ] {
            assert!(retryable(error.clone()), "{error}");
        }
        for error in [
            json!({"status": 401, "message": "bad key"}),
            json!({"status": 429, "code": "insufficient_quota"}),
            json!({"status": 400, "message": "context length exceeded"}),
            json!({"status": 400, "message": "see \"code\": none"}),
            json!(null),
            json!("ECONNRESET"),
        ] {
            assert!(!retryable(error.clone()), "{error}");
        }
    }

    fn openrouter_says_too_long(message: &str) -> bool {
        let error = json!({"status": 400, "message": message});
        ProviderError(&error, None).says_too_long(&FORMATS[2], &PATTERNS[2])
    }

    #[test]
    fn all_patterns_compile() {
        for (format, patterns) in FORMATS.iter().zip(PATTERNS.iter()) {
            assert_eq!(format.patterns.len(), patterns.len());
        }
    }

    #[test]
    fn words_and_whitespace_are_those_of_javascript() {
        for text in [
            "context length",
            "the contextwindow.",
            "超context\u{feff}\n window限",
            "contexts context length",
            "Context LENGTH",
        ] {
            assert!(openrouter_says_too_long(text), "{text}");
        }
        for text in [
            "",
            "context_length",
            "subcontext length",
            "context lengths",
            "context\u{85}length",
        ] {
            assert!(!openrouter_says_too_long(text), "{text}");
        }
    }

    #[test]
    fn parts_of_a_message_are_on_one_line() {
        let says_too_long = |message: &str| {
            let error = json!({"status": 400, "message": message});
            ProviderError(&error, None).says_too_long(&FORMATS[6], &PATTERNS[6])
        };
        assert!(says_too_long("prompt is too long: 5 tokens > 4 maximum"));
        assert!(says_too_long(
            "prompt is too long\nprompt is too long: 5 token>\n4maximum"
        ));
        for message in [
            "prompt is too long:\n5 tokens > 4 maximum",
            "prompt is too long:\u{2028}5 tokens > 4 maximum",
            "prompt is too long: tokens > x maximum",
            "tokens > 4 maximum, prompt is too long",
        ] {
            assert!(!says_too_long(message), "{message}");
        }
    }

    #[test]
    fn unambiguous_messages_are_recognized_in_any_wrapping() {
        let anthropic = "prompt is too long: 200001 tokens > 200000 maximum";
        let gemini = "The input token count (1200000) exceeds the maximum number of tokens \
            allowed (1048576).";
        let xai = "This model's maximum prompt length is 131072 but the request contains 140000 \
            tokens.";
        let limit = "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000";
        for error in [
            json!({ "message": anthropic }),
            json!({ "message": format!("400 {{\"message\":\"{anthropic}\"}}") }),
            json!({ "status": 400, "message": limit }),
            json!({ "code": 400, "message": gemini, "status": "INVALID_ARGUMENT" }),
            json!({ "error": xai }),
        ] {
            let meaning = classify_error(None, &error);
            assert!(
                meaning.context_window_exceeded && !meaning.retryable,
                "{error}"
            );
        }
        // A bare string may be any text.
        let bare = json!(anthropic);
        assert!(!classify_error(None, &bare).context_window_exceeded);
        assert!(classify_error(Some("anthropic"), &bare).context_window_exceeded);
        let other = json!({ "message": "prompt is too long for comfort" });
        assert!(!classify_error(Some("anthropic"), &other).context_window_exceeded);
    }
}
