//! How it is asked and answered over the wire.

use serde_json::value::RawValue;
use sightline_protocol::conversation::{
    Message, MessageEdit, MessageRepair, Strategy, TruncateHistoryParams, TruncateHistoryResult,
    TruncateReply,
};

use super::{Action, Outcome, Sent, Window};

impl Action {
    /// What the params allow.
    pub fn of(params: &TruncateHistoryParams) -> Self {
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
                limit: Window::of_model(&params.model).limit(params.threshold_percentage),
            },
        }
    }
}

impl Outcome {
    /// The answer about `messages`, without token counts.
    pub fn into_result(
        self,
        messages: &[&RawValue],
        reply: TruncateReply,
    ) -> TruncateHistoryResult {
        let mut result = TruncateHistoryResult {
            deleted_range: self.deleted_range.map(|range| range.0),
            updated_deleted_range: self.updated_deleted_range,
            context_history: self.history.into_value(),
            context_history_changed: self.history_changed,
            messages: None,
            edits: None,
            repairs: None,
            decision: self.decision,
            characters_saved: self.characters_saved,
            need_to_truncate: self.need_to_truncate,
            tokens: None,
        };
        match reply {
            TruncateReply::Messages => {
                let sent = self.sent.iter();
                let sent = sent.filter_map(|sent| sent.message(messages));
                result.messages = Some(sent.map(|raw| Message(raw.to_owned())).collect());
            }
            TruncateReply::Edits => {
                let (edits, repairs) = edits(self.sent);
                result.edits = Some(edits);
                result.repairs = Some(repairs);
            }
        }
        result
    }
}

fn edits(sent: Vec<Sent>) -> (Vec<MessageEdit>, Vec<MessageRepair>) {
    let mut edits = Vec::new();
    let mut repairs = Vec::new();
    for sent in sent {
        let message = sent.index as u64;
        edits.extend(sent.edits.into_iter().map(|edit| MessageEdit {
            message,
            block: edit.block as u64,
            text: edit.text,
        }));
        if sent.repaired {
            repairs.extend(sent.edited.map(|edited| MessageRepair {
                message,
                replacement: Message(edited),
            }));
        }
    }
    (edits, repairs)
}
