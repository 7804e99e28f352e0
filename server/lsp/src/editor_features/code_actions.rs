//! `textDocument/codeAction`: the commands that apply to a document.
//!
//! Editors send this on every cursor movement, so only the access rules are evaluated.
//! Editors offer actions of this kind on request, without a light bulb.

use serde::Deserialize;
use serde_json::{Value, json};
use sightline_access::Verdict;
use sightline_base::path::Location;
use sightline_engine::{
    error::Error, params_compat, request_context::RequestContext, session::normalize_uri,
};
use sightline_protocol::editor::Range;

use super::checkpoint_commands::show_turns;

/// Kind of our code actions. Editors list this kind on request and show no light bulb for
/// it.
pub const CODE_ACTION_KIND: &str = "source.sightline";

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
/// Params of `textDocument/codeAction`.
pub struct Params {
    text_document: Document,
    range: Option<Range>,
    context: ActionContext,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Document {
    uri: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ActionContext {
    only: Option<Vec<String>>,
}

/// Parses the params.
///
/// # Errors
/// `invalidParams`.
pub fn read(method: &str, params: &str) -> Result<Params, Error> {
    let mut params = params_compat::parse_object(method, Some(params))?;
    params_compat::drop_nulls(&mut params);
    serde_json::from_value(params).map_err(|error| Error::invalid(format!("{method}: {error}")))
}

/// Returns the actions for a document.
///
/// # Errors
/// None.
pub(crate) fn run(context: &RequestContext<'_>, params: Params) -> Result<Vec<Value>, Error> {
    if let Some(range) = params.range {
        let uri = normalize_uri(&params.text_document.uri);
        if let Some(agents) = context.services.agents() {
            agents.derive_selection(&context.snapshot, &uri, range);
        }
    }
    let actions = if params.context.only.as_deref().is_none_or(accepts_kind) {
        actions_for(context, &params)
    } else {
        Vec::new()
    };
    let literals = context.snapshot.client_info.action_literals;
    let actions = actions
        .into_iter()
        .map(|(title, command, argument)| {
            let arguments = argument.map(|argument| vec![argument]);
            let command = json!({
                "title": title,
                "command": command,
                "arguments": arguments.unwrap_or_default(),
            });
            if literals {
                json!({ "title": title, "kind": CODE_ACTION_KIND, "command": command })
            } else {
                command
            }
        })
        .collect();
    Ok(actions)
}

/// Returns whether our kind is one of these kinds or a descendant of one.
fn accepts_kind(only: &[String]) -> bool {
    only.iter().any(|kind| {
        let rest = CODE_ACTION_KIND.strip_prefix(kind.as_str());
        kind.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

type Action = (String, &'static str, Option<Value>);

fn actions_for(context: &RequestContext<'_>, params: &Params) -> Vec<Action> {
    let uri = &params.text_document.uri;
    let agents = context.services.agents();
    let mut actions: Vec<Action> = Vec::new();
    if let Some(what) = context.services.confirmations.waiting() {
        actions.push((format!("Sightline: allow: {what}"), "sightline.allow", None));
        actions.push((format!("Sightline: deny: {what}"), "sightline.deny", None));
    }
    let mut offer = |title: &str, command, argument| {
        actions.push((format!("Sightline: {title}"), command, argument));
    };
    offer(
        "show environment details",
        "sightline.showEnvironment",
        None,
    );
    if let Some(agents) = agents.filter(|agents| agents.is_open()) {
        let title = if agents.is_paused() {
            "show the selection to agents again"
        } else {
            "stop showing the selection to agents"
        };
        let is_paused = json!({ "isPaused": !agents.is_paused() });
        offer(title, "sightline.pauseBridges", Some(is_paused));
    }
    let view = context.view();
    if view.roots().is_empty() {
        return actions;
    }
    let line = params.range.map_or(0, |range| range.start.line);
    if let Some(named) = show_turns::at_line(context, uri, line) {
        let about = Some(json!({ "id": named }));
        offer(
            &format!("show the changes of {named}"),
            "sightline.showChanges",
            about.clone(),
        );
        let side = if named.contains('.') { "before " } else { "" };
        let title = format!("restore everything to {side}{named}...");
        offer(&title, "sightline.restoreAll", about);
    }
    offer("create checkpoint", "sightline.checkpointNow", None);
    if context.snapshot.client_info.shows_documents {
        offer("open page in a browser", "sightline.openPage", None);
    }
    // An unsaved document is in no folder, which is not an error.
    let place = sightline_base::path::uri_to_path(uri).ok().flatten();
    let place = place.map(|path| view.roots().place(path));
    let verdict = place.as_ref().map(|place| view.check(place));
    let about = Some(json!({ "uri": uri }));
    if let Some(Location::Inside { root, .. }) = &place
        && verdict == Some(Verdict::Allowed)
        && has_checkpoints(context, *root)
    {
        offer(
            "show changes since the last checkpoint",
            "sightline.showChanges",
            None,
        );
        offer(
            "restore this file from the last checkpoint...",
            "sightline.restoreFile",
            about.clone(),
        );
        offer(
            "restore everything from the last checkpoint...",
            "sightline.restoreAll",
            None,
        );
    }
    if has_any_checkpoints(context) {
        offer("show turns and checkpoints", "sightline.showTurns", None);
    }
    if verdict == Some(Verdict::Allowed)
        && matches!(place, Some(Location::Inside { .. }))
        && agents.is_some_and(|agents| agents.can_mention() && !agents.is_paused())
    {
        let mut selected = json!({ "uri": uri });
        if let Some(range) = params.range {
            selected["range"] = json!(range);
        }
        offer("send to agent", "sightline.sendToAgent", Some(selected));
    }
    if can_undo_restore(context) {
        offer(
            "undo the last restore...",
            "sightline.undoLastRestore",
            None,
        );
    }
    let explain = match verdict {
        Some(Verdict::Allowed) => "check whether agents see this file",
        _ => "explain why agents cannot see this file",
    };
    if verdict.is_some() {
        offer(explain, "sightline.explainAccess", about);
    }
    actions
}

fn has_any_checkpoints(context: &RequestContext<'_>) -> bool {
    let roots = context.snapshot.access.roots().as_slice().len();
    (0..roots).any(|root| has_checkpoints(context, root))
}

fn has_checkpoints(context: &RequestContext<'_>, root: usize) -> bool {
    let root = context.snapshot.access.roots().get(root);
    let opened = root.map(|root| context.checkpoints(root));
    opened.is_some_and(|opened| opened.is_ok_and(|root| root.store.git_dir().exists()))
}

fn can_undo_restore(context: &RequestContext<'_>) -> bool {
    let mut roots = context.snapshot.access.roots().as_slice().iter();
    roots.any(|root| {
        let opened = context.checkpoints(root);
        opened.is_ok_and(|root| matches!(root.store.last_undo(), Ok(Some(_))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestor_kinds_are_accepted() {
        let wanted = |kind: &str| accepts_kind(&[kind.to_owned()]);
        assert!(wanted("source") && wanted("source.sightline") && wanted(""));
        assert!(!wanted("sour") && !wanted("quickfix") && !wanted("source.sightline.more"));
        assert!(!accepts_kind(&[]));
    }
}
