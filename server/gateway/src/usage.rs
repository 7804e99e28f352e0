//! Tokens that providers report, read from a copy of each response, and the file with one line for
//! each request.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use sightline_base::{clock::now_millis, storage::atomic_file};

use crate::failure::Api;

/// Size from which the file is moved to `.1` when the gateway starts, in bytes.
const MAX_FILE_BYTES: u64 = 32 << 20;
/// Maximum size of a line of a stream, or of a response that is no stream, in bytes. The usage in
/// a longer one is not read.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// Tokens of a request. A number that was not reported is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Usage {
    /// Read, without those of caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<u64>,
    /// Read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read: Option<u64>,
    /// Written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write: Option<u64>,
    /// Those of `cache_write` that are kept for an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_hour: Option<u64>,
    /// Written by the model, with its reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<u64>,
    /// Those of `output` that are reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<u64>,
}

impl Usage {
    /// Adds what a response or an event of a stream reports. Later events count.
    fn add(&mut self, event: &Value, api: Api) {
        let usage = ["/message/usage", "/response/usage", "/usage"]
            .iter()
            .find_map(|place| event.pointer(place).filter(|usage| usage.is_object()));
        let gemini = ["/usageMetadata", "/response/usageMetadata"]
            .iter()
            .find_map(|place| event.pointer(place));
        let set = |slot: &mut Option<u64>, value: Option<u64>| *slot = value.or(*slot);
        if let Some(usage) = gemini {
            let count = |name: &str| usage[name].as_u64();
            let cached = count("cachedContentTokenCount");
            let thoughts = count("thoughtsTokenCount");
            // Includes those of caches.
            let input =
                count("promptTokenCount").map(|all| all.saturating_sub(cached.unwrap_or(0)));
            let output = count("candidatesTokenCount").or(thoughts.map(|_| 0));
            set(&mut self.input, input);
            set(&mut self.cache_read, cached);
            set(
                &mut self.output,
                output.map(|output| output + thoughts.unwrap_or(0)),
            );
            set(&mut self.reasoning, thoughts);
        } else if let Some(usage) = usage {
            let count = |place: &str| usage.pointer(place).and_then(Value::as_u64);
            let either = |a: &str, b: &str| count(a).or_else(|| count(b));
            if api == Api::Messages {
                set(&mut self.input, count("/input_tokens"));
                set(&mut self.cache_read, count("/cache_read_input_tokens"));
                set(&mut self.cache_write, count("/cache_creation_input_tokens"));
                let hour = count("/cache_creation/ephemeral_1h_input_tokens");
                set(&mut self.cache_write_hour, hour);
                set(&mut self.output, count("/output_tokens"));
                return;
            }
            let cached = either(
                "/input_tokens_details/cached_tokens",
                "/prompt_tokens_details/cached_tokens",
            );
            // Includes those of caches.
            let all = either("/input_tokens", "/prompt_tokens");
            set(
                &mut self.input,
                all.map(|all| all.saturating_sub(cached.unwrap_or(0))),
            );
            set(&mut self.cache_read, cached);
            set(
                &mut self.output,
                either("/output_tokens", "/completion_tokens"),
            );
            let reasoning = either(
                "/output_tokens_details/reasoning_tokens",
                "/completion_tokens_details/reasoning_tokens",
            );
            set(&mut self.reasoning, reasoning);
        }
    }
}

/// Reads the usage from a copy of a response.
pub(crate) struct Meter {
    api: Api,
    is_stream: bool,
    /// The response, or the last line of a stream.
    buffer: Vec<u8>,
    is_too_long: bool,
    usage: Usage,
}

impl Meter {
    /// Creates a meter for a response; `is_stream`: it has events.
    pub(crate) fn new(api: Api, is_stream: bool) -> Self {
        Self {
            api,
            is_stream,
            buffer: Vec::new(),
            is_too_long: false,
            usage: Usage::default(),
        }
    }

    /// Reads the next bytes.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while self.is_stream
            && let Some(end) = bytes.iter().position(|byte| *byte == b'\n')
        {
            self.keep(&bytes[..end]);
            self.event();
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > MAX_EVENT_BYTES {
            self.is_too_long = true;
        }
        if !self.is_too_long {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Reads what is kept.
    fn event(&mut self) {
        let bytes = std::mem::take(&mut self.buffer);
        if std::mem::take(&mut self.is_too_long) {
            return;
        }
        let data = if self.is_stream {
            bytes.strip_prefix(b"data:").unwrap_or_default()
        } else {
            &bytes
        };
        // Only a few events have it.
        let has_usage = data.windows(5).any(|word| word == b"usage");
        if !has_usage {
            return;
        }
        match serde_json::from_slice(data) {
            // A stream of Gemini without events.
            Ok(Value::Array(events)) => {
                for event in &events {
                    self.usage.add(event, self.api);
                }
            }
            Ok(event) => self.usage.add(&event, self.api),
            Err(_) => {}
        }
    }

    /// Returns what was reported until now.
    pub(crate) fn finish(&mut self) -> Usage {
        self.event();
        self.usage
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    /// With the whole response.
    Complete,
    /// The response broke off, or the agent left.
    Broken,
    /// The gateway answered itself.
    Refused,
}

/// A line of the file. Has no content and no credential.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// Milliseconds since 1970, when the request ended.
    pub(crate) at: i64,
    /// Id of the conversation.
    pub(crate) task: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<&'static str>,
    pub(crate) upstream: String,
    /// Path at the provider, without its query.
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Context window of the model, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<f64>,
    /// Whether the account pays no price by token.
    pub(crate) is_subscription: bool,
    pub(crate) status: u16,
    pub(crate) outcome: Outcome,
    pub(crate) usage: Usage,
    /// Number of texts that were changed.
    pub(crate) redacted: usize,
}

/// A request whose response is being read.
pub(crate) struct Recording {
    pub(crate) meter: Meter,
    pub(crate) record: Record,
    pub(crate) log: Log,
}

impl Recording {
    /// Writes the line.
    pub(crate) fn end(mut self, outcome: Outcome) {
        self.record.usage = self.meter.finish();
        self.record.outcome = outcome;
        self.log.add(self.record);
    }
}

/// The file.
#[derive(Clone)]
pub(crate) struct Log(Arc<(PathBuf, Mutex<File>)>);

impl Log {
    /// Opens or creates the file, for the user only.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let open = || -> io::Result<File> {
            if fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > MAX_FILE_BYTES)
            {
                let mut older = path.as_os_str().to_owned();
                older.push(".1");
                fs::rename(path, older)?;
            }
            let mut options = atomic_file::private_options();
            options.append(true).create(true);
            atomic_file::open(path, &mut options)
        };
        let file = open().map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        Ok(Self(Arc::new((path.to_owned(), Mutex::new(file)))))
    }

    /// Adds a line.
    pub(crate) fn add(&self, mut record: Record) {
        record.at = now_millis();
        let Ok(mut line) = serde_json::to_vec(&record) else {
            return;
        };
        line.push(b'\n');
        let (path, file) = &*self.0;
        if let Err(error) = file.lock().write_all(&line) {
            let _ = writeln!(
                io::stderr(),
                "sightline: cannot write {}: {error}",
                path.display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(api: Api, events: &[Value]) -> Value {
        let mut meter = Meter::new(api, true);
        let text: String = events
            .iter()
            .map(|event| format!("event: x\ndata: {event}\n\n"))
            .collect();
        // In pieces that cut lines.
        for piece in text.as_bytes().chunks(7) {
            meter.feed(piece);
        }
        json!(meter.finish())
    }

    #[test]
    fn the_numbers_of_each_api_are_kept_apart() {
        let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 30, "cache_creation": {"ephemeral_1h_input_tokens": 10}, "output_tokens": 1}}});
        let delta = json!({"type": "message_delta", "usage": {"output_tokens": 9}});
        assert_eq!(
            usage(Api::Messages, &[start, delta]),
            json!({"input": 5, "cacheRead": 100, "cacheWrite": 30, "cacheWriteHour": 10, "output": 9})
        );
        let completed = json!({"response": {"usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60},
            "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 15}}}});
        assert_eq!(
            usage(
                Api::Responses,
                &[json!({"response": {"usage": null}}), completed]
            ),
            json!({"input": 40, "cacheRead": 60, "output": 20, "reasoning": 15})
        );
        let chunk = json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}});
        assert_eq!(
            usage(Api::Completions, &[json!({"usage": null}), chunk]),
            json!({"input": 7, "output": 3})
        );
        let chunks = [1, 8].map(|output| {
            json!({"usageMetadata": {"promptTokenCount": 50, "cachedContentTokenCount": 20,
                "candidatesTokenCount": output, "thoughtsTokenCount": 4}})
        });
        assert_eq!(
            usage(Api::Gemini, &chunks),
            json!({"input": 30, "cacheRead": 20, "output": 12, "reasoning": 4})
        );
        let login = json!({"response": {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 1}}});
        assert_eq!(
            usage(Api::Gemini, &[login]),
            json!({"input": 5, "output": 1})
        );
        assert_eq!(usage(Api::Messages, &[]), json!({}));
    }

    #[test]
    fn a_response_that_is_no_stream_has_them_too() {
        let mut meter = Meter::new(Api::Messages, false);
        for piece in [
            &b"{\"usage\": {\"input_tokens\":\n"[..],
            b" 2, \"output_tokens\": 3}}",
        ] {
            meter.feed(piece);
        }
        assert_eq!(json!(meter.finish()), json!({"input": 2, "output": 3}));
    }
}
