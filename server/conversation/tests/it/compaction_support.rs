//! Test utilities: a conversation and a workspace for compaction.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, json, value::RawValue};
use sightline_base::{cancel::Cancel, error::Error};
use sightline_conversation::{
    ContextWindow,
    compaction::{
        CompactedConversation, CompactionInput, IndexedMessage, KeyFileText, TrackedFile,
        WorkspaceAccess, apply, plan,
    },
    tokens::{Calibration, Counter, Encoding, Family},
};
use sightline_protocol::{
    compaction::{ApplyCompactionParams, PlanCompactionParams, PlanCompactionResult},
    environment::ModelRef,
};

static COUNTER: LazyLock<Counter> = LazyLock::new(Counter::default);

/// Paths and commands that contain this are denied.
pub(crate) const DENIED: &str = "hidden/";

/// A conversation and its environment.
pub(crate) struct Case {
    pub(crate) messages: Vec<Box<RawValue>>,
    /// Index of the first message.
    pub(crate) start: usize,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) tracked: Vec<TrackedFile>,
    pub(crate) window: ContextWindow,
    pub(crate) calibration: Calibration,
    pub(crate) counter: &'static Counter,
    pub(crate) cancel: Cancel,
}

impl Case {
    pub(crate) fn new(messages: Vec<Value>) -> Self {
        let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
        let mut case = Self {
            messages: Vec::new(),
            start: 0,
            files: BTreeMap::new(),
            tracked: Vec::new(),
            window: ContextWindow::with_size(128_000.0),
            calibration: Calibration::default(),
            counter: &COUNTER,
            cancel: Cancel::default(),
        };
        case.messages = case.raw(&texts);
        case
    }

    pub(crate) fn file(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.to_owned());
    }

    pub(crate) fn push(&mut self, message: Value) {
        let raw = RawValue::from_string(message.to_string());
        self.messages.push(raw.unwrap());
    }

    pub(crate) fn raw(&self, texts: &[String]) -> Vec<Box<RawValue>> {
        let raw = texts.iter().cloned().map(RawValue::from_string);
        raw.collect::<Result<_, _>>().unwrap()
    }

    /// Returns the first message.
    pub(crate) fn first(&self) -> &str {
        self.messages[0].get()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        let texts = self.messages.iter().map(|message| message.get());
        texts.map(str::to_owned).collect()
    }

    pub(crate) fn items(&self) -> Vec<IndexedMessage<'_>> {
        let messages = self.messages.iter().enumerate();
        let item = |(at, message)| IndexedMessage {
            index: self.start + at,
            message,
        };
        messages
            .map(|(at, message)| item((at, &**message)))
            .collect()
    }

    pub(crate) fn messages_of(&self, applied: &CompactedConversation) -> Vec<String> {
        let items = self.items();
        let messages = applied.messages(&items).into_iter();
        messages.map(|raw| raw.get().to_owned()).collect()
    }

    pub(crate) fn family() -> Family {
        Family::of_encoding(Encoding::O200kBase)
    }

    pub(crate) fn tokens(&self, text: &str) -> u64 {
        let counts = self.counter.texts(&[text], Self::family(), &self.cancel);
        let counts = counts.unwrap();
        counts.upper.unwrap_or(counts.tokens)
    }

    fn with<T>(&self, act: impl FnOnce(&CompactionInput<'_>) -> T) -> T {
        let name = |path: &str| {
            let path = path.strip_prefix("./").unwrap_or(path);
            (!path.contains(DENIED)).then(|| path.to_owned())
        };
        let workspace = WorkspaceAccess {
            name: &name,
            may_name_command: &|command| !command.contains(DENIED),
            read: &|path, max_lines, max_bytes| {
                let text = self.files.get(path)?;
                let lines = text.split_inclusive('\n').take(max_lines as usize);
                let mut shown: String = lines.collect();
                shown.truncate(max_bytes as usize);
                Some(KeyFileText {
                    path: path.to_owned(),
                    text: shown,
                    total_lines: text.lines().count() as u64,
                })
            },
        };
        act(&CompactionInput {
            items: &self.items(),
            family: Self::family(),
            window: self.window,
            counter: self.counter,
            calibration: &self.calibration,
            tracked: &self.tracked,
            workspace: &workspace,
        })
    }

    pub(crate) fn plan(
        &self,
        options: &PlanCompactionParams,
    ) -> Result<PlanCompactionResult, Error> {
        self.with(|conversation| plan(conversation, options, &self.cancel))
    }

    pub(crate) fn apply(
        &self,
        options: &ApplyCompactionParams,
    ) -> Result<CompactedConversation, Error> {
        self.with(|conversation| apply(conversation, options, &self.cancel))
    }

    /// Compacts the conversation with this summary.
    pub(crate) fn compact(&mut self, summary: &str) {
        let options = ApplyCompactionParams {
            summary: Some(summary.into()),
            ..ApplyCompactionParams::default()
        };
        let applied = self.apply(&options).unwrap();
        self.messages = self.raw(&self.messages_of(&applied));
    }
}

pub(crate) fn user(blocks: &[Value]) -> Value {
    json!({"role": "user", "content": blocks})
}

pub(crate) fn assistant(blocks: &[Value]) -> Value {
    json!({"role": "assistant", "content": blocks})
}

pub(crate) fn call(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

pub(crate) fn result(id: &str, text: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]})
}

pub(crate) fn plan_params() -> PlanCompactionParams {
    PlanCompactionParams::new(ModelRef::Id("gpt-4o".to_owned()))
}
