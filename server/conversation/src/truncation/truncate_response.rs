//! Conversions from the parameters and to the result of `sightline/truncateHistory`.

use serde::Serialize;
use serde_json::value::RawValue;
use sightline_protocol::conversation::{
    Message, MessageEdit, MessageRepair, Strategy, TruncateHistoryParams, TruncateHistoryResult,
    TruncateReply,
};

use crate::ContextWindow;

use super::{SentMessage, TruncateAction, TruncateOutcome};

impl TruncateAction {
    /// Returns the action that the parameters request, for the model's window.
    pub fn from_params(params: &TruncateHistoryParams, window: ContextWindow) -> Self {
        if let Some(keep) = params.keep {
            return Self::Truncate(keep);
        }
        match params.strategy {
            Strategy::Apply => Self::Apply,
            Strategy::Deduplicate => Self::Deduplicate,
            Strategy::Auto => Self::Auto {
                used: params
                    .previous_request
                    .as_ref()
                    .map(|request| request.usage.total()),
                limit: window.limit(params.threshold_percentage),
            },
        }
    }
}

/// The result of `sightline/truncateHistory`. Borrows the messages, which can be megabytes.
#[derive(Debug, Serialize)]
pub struct TruncateResponse<'a> {
    /// All fields but the messages.
    #[serde(flatten)]
    pub result: TruncateHistoryResult,
    /// Messages to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<&'a RawValue>>,
}

impl TruncateOutcome {
    /// Returns the result for `messages`, without token counts.
    pub fn response<'a>(
        &'a self,
        messages: &[&'a RawValue],
        reply: TruncateReply,
    ) -> TruncateResponse<'a> {
        let mut result = TruncateHistoryResult {
            deleted_range: self.deleted_range.map(|range| range.0),
            updated_deleted_range: self.updated_deleted_range,
            context_history: self.history.clone().into_value(),
            context_history_changed: self.history_changed,
            messages: None,
            edits: None,
            repairs: None,
            decision: self.decision,
            characters_saved: self.characters_saved,
            need_to_truncate: self.need_to_truncate,
            tokens: None,
        };
        let messages = match reply {
            TruncateReply::Messages => Some(self.messages(messages)),
            TruncateReply::Edits => {
                let (edits, repairs) = edits(&self.sent);
                result.edits = Some(edits);
                result.repairs = Some(repairs);
                None
            }
        };
        TruncateResponse { result, messages }
    }

    /// Returns the messages to send.
    pub fn messages<'a>(&'a self, messages: &[&'a RawValue]) -> Vec<&'a RawValue> {
        self.sent
            .iter()
            .filter_map(|sent| sent.message(messages))
            .collect()
    }
}

fn edits(sent: &[SentMessage]) -> (Vec<MessageEdit>, Vec<MessageRepair>) {
    let mut edits = Vec::new();
    let mut repairs = Vec::new();
    for sent in sent {
        let message = sent.index as u64;
        edits.extend(sent.edits.iter().map(|edit| MessageEdit {
            message,
            block: edit.block as u64,
            text: edit.text.clone(),
        }));
        if sent.repaired {
            repairs.extend(sent.edited.clone().map(|edited| MessageRepair {
                message,
                replacement: Message(edited),
            }));
        }
    }
    (edits, repairs)
}
