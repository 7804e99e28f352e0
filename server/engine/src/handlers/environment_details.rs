//! `sightline/environmentDetails`.

use sightline_access::AccessView;
use sightline_base::{
    cancel::Cancel,
    clock::{now_millis, now_nanos},
    decision_log, limits,
    path::RelPath,
};
use sightline_context::{
    environment::{self, CliTools, FileList, Inputs},
    listing::{self, ListOptions},
    tracker,
};
use sightline_protocol::environment::{
    EnvironmentDetailsParams, EnvironmentDetailsResult, ModelRef,
};

use super::tracking::shared::unsaved;
use crate::{
    error::Error,
    request_context::{OnDelivered, Response, TaskContext},
    settings::models,
};

/// Builds the block and marks its contents as delivered.
pub fn run(
    context: &TaskContext<'_>,
    mut params: EnvironmentDetailsParams,
) -> Result<Response<EnvironmentDetailsResult>, Error> {
    check_numbers(&params)?;
    let snapshot = &context.snapshot;
    let conversation = &snapshot.settings.conversation;
    params.model = params
        .model
        .map(|model| models::model(conversation, &model));
    let view = context.view();
    let tracker = match &params.task_id {
        Some(task) => Some(context.tracker(task)?),
        None => None,
    };
    let modified = match &tracker {
        Some(tracker) => {
            let unsaved = unsaved(&view, snapshot);
            let now = params.now.unwrap_or_else(now_millis);
            let scan = tracker.scan(&unsaved, now, now_nanos(), &context.cancel)?;
            scan.recently_modified
        }
        None => Vec::new(),
    };
    let shown: Vec<environment::ModifiedFile> = modified
        .iter()
        .map(|modified| environment::ModifiedFile {
            path: modified.file.path.clone(),
            deleted: modified.deleted,
            location: view.roots().place(modified.file.abs.clone()),
        })
        .chain(changed_files(&view, &params.changed_files))
        .collect();

    let options = ListOptions {
        limit: params.max_files,
        ignored: snapshot.settings.environment.ignored_files,
        ..ListOptions::default()
    };
    let files = |cancel: &Cancel| -> Result<FileList, sightline_base::error::Error> {
        let top = RelPath::default();
        let listing = listing::list(&view, 0, &top, &options, cancel)?;
        Ok(FileList {
            text: listing::format(&listing, &top),
            omitted: listing.omitted.saturating_add(listing.outside),
        })
    };
    let tools = snapshot
        .tools
        .get_or_init(|| CliTools::detect(&std::env::var_os("PATH").unwrap_or_default()));
    let inputs = Inputs {
        params: &params,
        settings: &snapshot.settings.environment,
        host: &snapshot.client_info.host,
        editor: &snapshot.editor,
        access: &view,
        hidden_contents: &|| context.hidden_contents(&view),
        recently_modified: &shown,
        files: &files,
        cli_tools: tools,
    };
    let block = environment::build(&inputs, &context.cancel)?;
    let mut on_delivered: Option<OnDelivered> = None;
    if params.consume {
        // From here on, the request is not cancelled, so the block is delivered.
        context.cancel.commit()?;
        let delivered: Vec<tracker::UndeliveredChange> = modified
            .into_iter()
            .filter(|modified| block.delivered_files.contains(&modified.file.path))
            .collect();
        let hidden: Vec<_> = decision_log::redactions("block", &block.hidden).collect();
        context.record(&hidden);
        let terminals = block.delivered_terminals.clone();
        on_delivered = Some(Box::new(move |session| {
            session.consume_terminals(&terminals);
        }));
        if let Some(Err(error)) = tracker.map(|tracker| tracker.acknowledge(&delivered)) {
            // They will be delivered again, which is harmless.
            tracing::warn!(%error, "cannot mark modified files as delivered");
        }
    }
    let answer = snapshot
        .revisions
        .lock()
        .answer(block, params.since_revision, params.consume);
    Ok(Response {
        on_delivered,
        ..answer.into()
    })
}

/// Returns the files that the client reports as changed.
fn changed_files<'a>(
    view: &'a AccessView,
    uris: &'a [String],
) -> impl Iterator<Item = environment::ModifiedFile> + 'a {
    uris.iter()
        .take(limits::MAX_EDITOR_ITEMS)
        .filter_map(|uri| {
            let location = view.roots().locate(uri).ok()?;
            let path = view.roots().absolute(&location);
            Some(environment::ModifiedFile {
                path: uri.clone(),
                deleted: std::fs::symlink_metadata(path.as_path()).is_err(),
                location,
            })
        })
}

/// Rejects negative and non-finite numbers.
fn check_numbers(params: &EnvironmentDetailsParams) -> Result<(), Error> {
    let usage = params.usage.unwrap_or_default();
    let window = params.model.as_ref().and_then(ModelRef::context_window);
    for (name, value, least) in [
        ("usage.tokensIn", usage.tokens_in, 0.0),
        ("usage.tokensOut", usage.tokens_out, 0.0),
        ("usage.cacheWrites", usage.cache_writes, 0.0),
        ("usage.cacheReads", usage.cache_reads, 0.0),
        ("model.contextWindow", window, 1.0),
    ] {
        if let Some(value) = value
            && (!value.is_finite() || value < least)
        {
            let message = format!("{name} is {value}; it must be {least} or more");
            return Err(Error::invalid(message));
        }
    }
    Ok(())
}
