//! The client's notifications about its editor: tabs, visible editors, terminals,
//! diagnostics and focus.

use std::sync::Arc;

use serde_json::Value;
use sightline_protocol::method::{
    DidChangeDiagnostics, DidChangeTabs, DidChangeTerminals, DidChangeVisibleEditors, DidFocus,
    Notification,
};

use crate::{
    error::Error,
    params_compat,
    services::Services,
    session::{Session, normalize_uri},
};

/// Returns whether a method is one of these notifications.
pub fn handles(method: &str) -> bool {
    [
        DidChangeTabs::NAME,
        DidChangeVisibleEditors::NAME,
        DidChangeTerminals::NAME,
        DidChangeDiagnostics::NAME,
        DidFocus::NAME,
    ]
    .contains(&method)
}

/// Applies a notification.
///
/// # Errors
/// `invalidParams` for malformed params; nothing is changed then.
pub fn handle(
    services: &Arc<Services>,
    session: &mut Session,
    method: &str,
    params: Option<&str>,
) -> Result<(), Error> {
    services.inject_fault(method);
    match method {
        DidChangeTabs::NAME => {
            let mut tabs = read::<DidChangeTabs>(params)?.tabs;
            for tab in &mut tabs {
                tab.uri = normalize_uri(&tab.uri);
            }
            session.edit(|editor| editor.set_tabs(tabs));
        }
        DidChangeVisibleEditors::NAME => {
            let mut editors = read::<DidChangeVisibleEditors>(params)?.editors;
            for editor in &mut editors {
                editor.uri = normalize_uri(&editor.uri);
            }
            session.edit(|state| state.set_visible(editors));
        }
        DidChangeTerminals::NAME => {
            let terminals = read::<DidChangeTerminals>(params)?.terminals;
            session.edit(|editor| editor.set_terminals(terminals));
        }
        DidChangeDiagnostics::NAME => {
            let params = read::<DidChangeDiagnostics>(params)?;
            let uri = normalize_uri(&params.uri);
            session.edit(|editor| editor.set_diagnostics(uri, params.diagnostics));
        }
        DidFocus::NAME => {
            let focused = read::<DidFocus>(params)?.text_document;
            let uri = focused.map(|document| normalize_uri(&document.uri));
            session.edit(|editor| editor.set_focus(uri));
        }
        _ => {}
    }
    session.open_files_changed();
    services.context_changed(&session.snapshot());
    Ok(())
}

fn read<N: Notification>(params: Option<&str>) -> Result<N::Params, Error> {
    let mut params = params_compat::parse_object(N::NAME, params)?;
    params_compat::drop_nulls(&mut params);
    // Lua encodes an empty table as `[]`, which means no focus.
    if params.get("textDocument").is_some_and(is_empty)
        && let Some(fields) = params.as_object_mut()
    {
        fields.remove("textDocument");
    }
    serde_json::from_value(params).map_err(|error| Error::invalid(format!("{}: {error}", N::NAME)))
}

fn is_empty(value: &Value) -> bool {
    matches!(value, Value::Array(items) if items.is_empty())
        || matches!(value, Value::Object(fields) if fields.is_empty())
}
