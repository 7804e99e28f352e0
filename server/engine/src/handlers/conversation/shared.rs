//! Parts that several requests about conversations use.

use std::path::Path;

use serde_json::{Number, value::RawValue};
use sightline_base::clock::now_millis;
use sightline_context::git::Repository;
use sightline_conversation::{self as conversation, TruncateAction, TruncateOutcome};
use sightline_protocol::{conversation::Message, task::MessageMeta};
use sightline_tasks::{Conversation, EntryMeta, EntryOrigin};

use crate::{error::Error, request_context::TaskContext};

/// Borrows the messages of a request.
pub(in crate::handlers) fn raw(messages: &[Message]) -> Vec<&RawValue> {
    messages.iter().map(|message| &*message.0).collect()
}

/// Copies stored messages into a response.
pub(in crate::handlers) fn owned(messages: &[&RawValue]) -> Vec<Message> {
    let messages = messages.iter().copied();
    messages.map(|raw| Message(raw.to_owned())).collect()
}

/// Returns the metadata recorded with stored messages.
pub(in crate::handlers) fn entry_meta(context: &TaskContext<'_>, given: MessageMeta) -> EntryMeta {
    let snapshot = &context.snapshot;
    let root = snapshot.access.roots().primary();
    let root = root.map(|root| root.path.as_path().to_string_lossy().into_owned());
    let cwd = given.cwd.or(root);
    let branch = || {
        let view = context.view();
        Repository::discover(&view, Path::new(cwd.as_deref()?))?.branch()
    };
    let version = match snapshot.client_info.version.as_str() {
        "" => env!("CARGO_PKG_VERSION"),
        version => version,
    };
    EntryMeta {
        origin: EntryOrigin {
            git_branch: given.git_branch.or_else(branch),
            session_id: given
                .session_id
                .or_else(|| Some(context.session_id().to_owned())),
            version: given.version.or_else(|| Some(version.to_owned())),
            cwd,
        },
        now: given.now.unwrap_or_else(now_millis),
    }
}

/// Returns what would be sent of a stored conversation.
pub(in crate::handlers) fn messages_to_send(
    context: &TaskContext<'_>,
    stored: &Conversation,
    messages: &[&RawValue],
) -> Result<TruncateOutcome, Error> {
    let request = conversation::TruncateRequest {
        messages,
        deleted_range: stored.truncation.deleted_range,
        history: stored.truncation.history.clone(),
        action: TruncateAction::Apply,
        time: &Number::from(now_millis()),
        settings: &context.snapshot.settings.conversation,
    };
    Ok(conversation::truncate_scanned(
        request,
        &stored.outlines(),
        &context.cancel,
    )?)
}
