//! Classifies errors from model providers: whether the conversation exceeds the context window,
//! and whether the same request may be retried.
//!
//! Providers report these cases in many formats, and clients wrap them. Status and message are
//! therefore read from every known location. A rejected request counts as too long only if its
//! message is about length.

use serde_json::Value;
use sightline_protocol::conversation::ClassifyErrorResult;

use super::error_patterns::{
    Atom::{Digits, OneOf, Whitespace, WordBoundary},
    Pattern, is_match,
};

const CONTEXT_LENGTH: Pattern = &[&[
    WordBoundary,
    OneOf(&["context"]),
    Whitespace,
    OneOf(&["length", "window"]),
    WordBoundary,
]];
const MAXIMUM_CONTEXT: Pattern = &[&[
    WordBoundary,
    OneOf(&["maximum"]),
    Whitespace,
    OneOf(&["context"]),
    WordBoundary,
]];
const TOKENS_EXCEED: Pattern = &[&[
    WordBoundary,
    OneOf(&["tokens", "token"]),
    Whitespace,
    OneOf(&["exceed"]),
]];
const INPUT_TOKENS_EXCEED: Pattern = &[&[
    WordBoundary,
    OneOf(&["input"]),
    Whitespace,
    OneOf(&["tokens", "token"]),
    Whitespace,
    OneOf(&["exceed"]),
]];

/// OpenRouter and compatible providers.
const OPENROUTER: &[Pattern] = &[
    CONTEXT_LENGTH,
    MAXIMUM_CONTEXT,
    TOKENS_EXCEED,
    INPUT_TOKENS_EXCEED,
    &[&[
        WordBoundary,
        OneOf(&["too"]),
        Whitespace,
        OneOf(&["many"]),
        Whitespace,
        OneOf(&["tokens", "token"]),
        WordBoundary,
    ]],
];

const BEDROCK: &[Pattern] = &[
    &[
        &[OneOf(&["maximum tokens"])],
        &[OneOf(&["exceeds"])],
        &[OneOf(&["model limit"])],
    ],
    &[&[OneOf(&["input length and max_tokens exceed context limit"])]],
    &[&[OneOf(&["context length"])], &[OneOf(&["exceeds"])]],
    &[
        &[OneOf(&["total number of tokens"])],
        &[OneOf(&["exceeds"])],
        &[OneOf(&["limit"])],
    ],
    &[
        &[OneOf(&["requested"])],
        &[OneOf(&["tokens"])],
        &[OneOf(&["exceeds"])],
        &[OneOf(&["limit"])],
    ],
    &[
        &[OneOf(&["reduce"])],
        &[OneOf(&["length"])],
        &[OneOf(&["messages"])],
        &[OneOf(&["completion"])],
    ],
    &[&[OneOf(&["input is too long"])]],
];

/// Vercel's AI gateway and the providers behind it.
const VERCEL: &[Pattern] = &[
    &[&[OneOf(&["input is too long"])]],
    &[
        &[OneOf(&["input token count exceeds"])],
        &[OneOf(&["maximum"])],
        &[OneOf(&["tokens allowed", "token allowed"])],
    ],
    &[&[OneOf(&["input exceeds"])], &[OneOf(&["context window"])]],
    &[
        &[OneOf(&["requested input length"])],
        &[OneOf(&["exceeds"])],
        &[OneOf(&["maximum input length"])],
    ],
    &[
        &[OneOf(&["prompt is too long"])],
        &[
            OneOf(&["tokens", "token"]),
            Whitespace,
            OneOf(&[">"]),
            Whitespace,
            Digits,
            Whitespace,
            OneOf(&["maximum"]),
        ],
    ],
    &[
        &[
            WordBoundary,
            OneOf(&["context"]),
            Whitespace,
            OneOf(&["length", "window"]),
            WordBoundary,
        ],
        &[OneOf(&["exceed"])],
    ],
    MAXIMUM_CONTEXT,
    TOKENS_EXCEED,
    INPUT_TOKENS_EXCEED,
    &[&[
        OneOf(&["too"]),
        Whitespace,
        OneOf(&["many"]),
        Whitespace,
        OneOf(&["tokens"]),
    ]],
];

/// Anthropic, for errors about length.
const ANTHROPIC: &[Pattern] = &[
    &[&[OneOf(&["prompt is too long"])]],
    &[&[OneOf(&["input is too long"])]],
    &[
        &[OneOf(&["exceed"])],
        &[OneOf(&[
            "context limit",
            "context window",
            "context length",
        ])],
    ],
    CONTEXT_LENGTH,
    TOKENS_EXCEED,
];

/// Other providers, with status 400.
const OTHER_PROVIDERS: &[Pattern] = &[
    // Gemini.
    &[
        &[OneOf(&["input token count"])],
        &[OneOf(&["exceeds the maximum number of tokens"])],
    ],
    // xAI.
    &[
        &[OneOf(&["maximum prompt length is"])],
        &[OneOf(&["request contains"])],
    ],
    // llama.cpp.
    &[&[OneOf(&["exceeds the available context size"])]],
    // Z.ai.
    &[&[OneOf(&["prompt exceeds max length"])]],
];

/// Messages that are unambiguous in any context, because clients wrap errors in unpredictable
/// ways.
const UNAMBIGUOUS: &[Pattern] = &[
    // Anthropic.
    &[&[
        OneOf(&["prompt is too long:"]),
        Whitespace,
        Digits,
        Whitespace,
        OneOf(&["token"]),
    ]],
    &[
        &[OneOf(&["input length and"])],
        &[OneOf(&["exceed context limit"])],
    ],
    // Gemini.
    &[
        &[OneOf(&["input token count"])],
        &[OneOf(&["exceeds the maximum number of tokens allowed"])],
    ],
    // xAI.
    &[
        &[OneOf(&["maximum prompt length is"]), Whitespace, Digits],
        &[OneOf(&["but the request contains"])],
    ],
];

/// HTTP statuses of errors that may be temporary.
const TRANSIENT_STATUSES: [&str; 15] = [
    "408", "409", "425", "429", "500", "502", "503", "504", "520", "521", "522", "523", "524",
    "529", "530",
];

/// Names and codes of errors that may be temporary, in lower case.
const TRANSIENT_CODES: &[&str] = &[
    "api_error",
    "apiconnectionerror",
    "apiconnectiontimeouterror",
    "deadline_exceeded",
    "eai_again",
    "econnaborted",
    "econnrefused",
    "econnreset",
    "epipe",
    "etimedout",
    "internalserverexception",
    "modelnotreadyexception",
    "modeltimeoutexception",
    "overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "resource_exhausted",
    "server_error",
    "serviceunavailableexception",
    "throttlingexception",
    "timeouterror",
    "timeout_error",
    "toomanyrequestsexception",
    "unavailable",
    "und_err_body_timeout",
    "und_err_connect_timeout",
    "und_err_headers_timeout",
    "und_err_socket",
];

/// Maximum bytes read of a text in an error. The relevant message is at the start.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Codes of errors that remain until the account is paid, whatever the status.
const PERMANENT_CODES: &[&str] = &["insufficient_quota", "billing_hard_limit_reached"];

/// Classifies an error. `provider` is the id of the provider that sent it.
pub fn classify_error(provider: Option<&str>, error: &Value) -> ClassifyErrorResult {
    let context_window_exceeded = has_code(error, &["context_length_exceeded"])
        || is_unambiguous(provider, error)
        || is_openai(provider, error)
        || is_openrouter(error)
        || is_anthropic(error)
        || is_cerebras(error)
        || is_bedrock(error)
        || is_vercel(error)
        || is_other(error);
    let retryable =
        !context_window_exceeded && !has_code(error, PERMANENT_CODES) && is_transient(error);
    ClassifyErrorResult {
        context_window_exceeded,
        retryable,
    }
}

/// A bare string counts only if the provider is known, because it could be any text.
fn is_unambiguous(provider: Option<&str>, error: &Value) -> bool {
    // A status other than 400 means another problem.
    let status = error_status(error).map(to_js_string).unwrap_or_default();
    if status != "400" && !status.is_empty() && status.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let bare = match (error, provider) {
        (Value::String(text), Some(_)) => Some(text.clone()),
        _ => error
            .pointer("/error")
            .and_then(Value::as_str)
            .map(str::to_owned),
    };
    message_candidates(error)
        .chain(bare)
        .any(|message| matches_any(&message.to_ascii_lowercase(), UNAMBIGUOUS))
}

/// OpenAI errors that a proxy created have the status in `code`.
fn is_openai(provider: Option<&str>, error: &Value) -> bool {
    // Only errors of OpenAI's library have all of these properties.
    let is_theirs = provider == Some("openai")
        || ["requestID", "param", "type"]
            .iter()
            .all(|key| error.get(key).is_some());
    let message = first_text(error, &["/message"]);
    is_theirs
        && is_400(error.get("code"))
        && ["token", "context length"]
            .iter()
            .any(|words| message.contains(words))
}

fn is_openrouter(error: &Value) -> bool {
    let message = first_text(error, &["/message", "/error/message"]);
    let is_refused = match embedded_status(&message) {
        Some(status) => status == "400",
        None => is_400(error_status(error)),
    };
    is_refused && matches_any(&message.to_ascii_lowercase(), OPENROUTER)
}

fn is_anthropic(error: &Value) -> bool {
    let is_refused = ["/error/error/type", "/error/type", "/type"]
        .iter()
        .any(|path| error.pointer(path).and_then(Value::as_str) == Some("invalid_request_error"));
    is_refused
        && message_candidates(error)
            .any(|message| matches_any(&message.to_ascii_lowercase(), ANTHROPIC))
}

fn is_cerebras(error: &Value) -> bool {
    let message = first_text(error, &["/message", "/error/message"]);
    is_400(error_status(error))
        && message.contains("Please reduce the length of the messages or completion")
}

fn is_bedrock(error: &Value) -> bool {
    let name = first(error, &["/name", "/error/type", "/__type"]);
    let code = first(
        error,
        &["/code", "/error/code", "/$metadata/httpStatusCode"],
    );
    let nested_code = first(error, &["/error/param/statusCode", "/details/code"]);
    let is_refused = ["ValidationException", "AI_APICallError"]
        .iter()
        .any(|refusal| name.is_some_and(|name| name == refusal))
        || is_400(code)
        || is_400(nested_code)
        || error
            .get("code")
            .is_some_and(|code| code == "stream_initialization_failed");
    let nested = first(error, &["/error/param/message", "/error/param/error"]);
    let mut message = first_text(error, &["/message", "/error/message"]);
    if message.is_empty() {
        message = nested.map(to_js_string).unwrap_or_default();
    }
    is_refused && matches_any(&message.to_ascii_lowercase(), BEDROCK)
}

fn is_vercel(error: &Value) -> bool {
    let status = first(
        error,
        &["/status", "/error/param/statusCode", "/statusCode"],
    );
    let embedded = error
        .pointer("/error/value/error_message")
        .and_then(Value::as_str);
    let is_refused = is_400(status)
        || embedded
            .is_some_and(|text| text.contains(r#""code":400"#) || text.contains(r#""code": 400"#));
    is_refused
        && message_candidates(error).any(|message| matches_any(&message.to_lowercase(), VERCEL))
}

fn is_other(error: &Value) -> bool {
    message_candidates(error).any(|message| {
        let is_refused = embedded_status(&message).as_deref() == Some("400")
            || is_400(error_status(error))
            || is_400(first(
                error,
                &["/error/code", "/statusCode", "/error/param/statusCode"],
            ));
        is_refused && matches_any(&message.to_ascii_lowercase(), OTHER_PROVIDERS)
    })
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
fn has_code(error: &Value, names: &[&str]) -> bool {
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
        .any(|name| names.contains(&&*name.to_ascii_lowercase()))
}

/// Returns the status field of the error.
fn error_status(error: &Value) -> Option<&Value> {
    first(
        error,
        &["/status", "/code", "/error/status", "/response/status"],
    )
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

/// Returns every field that may hold the message.
fn message_candidates(error: &Value) -> impl Iterator<Item = String> {
    [
        "/message",
        "/error/message",
        "/error/param/message",
        "/error/param/error",
        "/error/error/message",
        "/error/value/error_message",
    ]
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

fn is_400(value: Option<&Value>) -> bool {
    value.is_some_and(|value| to_js_string(value) == "400")
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

fn matches_any(message: &str, patterns: &[Pattern]) -> bool {
    patterns.iter().any(|pattern| is_match(message, pattern))
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
