//! Diagnostics: problems in open `.clineignore` files, and open files that changed since
//! the last checkpoint.
//!
//! The main loop calls [`Diagnostics::schedule`] when something may have changed. After a
//! delay, all open documents are checked in the thread pool, and differences from the
//! published diagnostics are sent.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use sightline_access::lint::{self, IncludeProblem, Line};
use sightline_base::{
    escape::one_line,
    path::{Location, Root, uri_to_path},
};
use sightline_engine::{
    error::Error,
    handlers,
    jobs::Keys,
    request_context::RequestContext,
    services::Services,
    session::{Phase, normalize_uri},
};
use sightline_protocol::{
    checkpoint::{DiffCheckpointsParams, DifferenceStatus, FileDifference},
    error::ErrorKind,
    settings::Secrets,
};

use super::{
    checkpoint_commands::latest,
    rule_file::{RuleFile, text_units},
};

/// Delay between a change and the check.
const SETTLE: Duration = Duration::from_millis(200);

/// LSP's severities.
const ERROR: u32 = 1;
const WARNING: u32 = 2;
const INFORMATION: u32 = 3;
const HINT: u32 = 4;

/// The diagnostics sent to the client.
#[derive(Default)]
pub struct Diagnostics {
    scheduled: AtomicBool,
    /// By URI; documents without diagnostics are absent.
    published: Mutex<BTreeMap<String, Vec<Value>>>,
}

impl Diagnostics {
    /// Schedules a check.
    pub fn schedule(self: &Arc<Self>, services: &Arc<Services>) {
        if self.scheduled.swap(true, Ordering::AcqRel) {
            return;
        }
        let this = self.clone();
        services.run_after(SETTLE, |services| {
            let worker = services.clone();
            services
                .jobs
                .run(Keys::new(), "diagnostics", move |snapshot| {
                    this.check(&RequestContext::new(&worker, snapshot));
                });
        });
    }

    /// Checks all open documents, and publishes differences.
    fn check(&self, context: &RequestContext<'_>) {
        // Later changes schedule another check.
        self.scheduled.store(false, Ordering::Release);
        if context.snapshot.phase != Phase::Running {
            return;
        }
        // Held during the check, so that results are published in order.
        let mut published = self.published.lock();
        match find_all(context) {
            Ok(found) => {
                publish_changed(context.services, &published, &found);
                *published = found;
            }
            Err(error) => tracing::info!(%error, "cannot compute diagnostics"),
        }
    }
}

/// Returns the diagnostics of all open documents, by URI.
fn find_all(context: &RequestContext<'_>) -> Result<BTreeMap<String, Vec<Value>>, Error> {
    let settings = context.snapshot.settings.diagnostics;
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    if settings.rules {
        for (uri, _) in context.snapshot.editor.documents() {
            let Some(file) = RuleFile::open(&context.snapshot, uri) else {
                continue;
            };
            found.insert(uri.to_owned(), rule_problems(context, &file)?);
        }
    }
    if settings.changed_files {
        for (uri, diagnostic) in changed_files(context)? {
            found.entry(uri).or_default().push(diagnostic);
        }
    }
    found.retain(|_, diagnostics| !diagnostics.is_empty());
    Ok(found)
}

fn publish_changed(
    services: &Services,
    published: &BTreeMap<String, Vec<Value>>,
    found: &BTreeMap<String, Vec<Value>>,
) {
    for (uri, diagnostics) in found {
        if published.get(uri) != Some(diagnostics) {
            publish(services, uri, diagnostics);
        }
    }
    let gone = published.keys().filter(|uri| !found.contains_key(*uri));
    gone.for_each(|uri| publish(services, uri, &[]));
}

fn publish(services: &Services, uri: &str, diagnostics: &[Value]) {
    let params = json!({ "uri": uri, "diagnostics": diagnostics });
    let client = &services.client;
    client.notify_latest("textDocument/publishDiagnostics", uri, &params);
}

fn diagnostic(line: usize, end: u32, severity: u32, code: &str, message: String) -> Value {
    json!({
        "range": {
            "start": { "line": line, "character": 0 },
            "end": { "line": line, "character": end },
        },
        "severity": severity,
        "source": "sightline",
        "code": code,
        "message": message,
    })
}

/// Returns the problems of a rule file.
fn rule_problems(context: &RequestContext<'_>, file: &RuleFile) -> Result<Vec<Value>, Error> {
    let text = file.text.as_bytes();
    let effects = lint::effects(&file.folder, text, &context.cancel)?;
    let encoding = context.snapshot.client_info.encoding;
    let denies_secrets = context.snapshot.settings.access.secrets == Secrets::Deny;
    let lines = lint::lines(&file.folder, text);
    let mut found = Vec::new();
    for (index, (line, written)) in lines.into_iter().zip(file.text.split('\n')).enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let is_idle = effects.complete && !effects.by_line.contains_key(&number);
        let end = text_units(written.trim_end_matches('\r'), encoding);
        let secret = effects.by_line.get(&number);
        if let Some(secret) = secret.and_then(|effect| effect.secret.as_ref())
            && denies_secrets
        {
            let message = format!(
                "This line allows no secrets: {} stays hidden. Allow one by its name, such as !.env.",
                one_line(secret)
            );
            found.push(diagnostic(
                index,
                end,
                INFORMATION,
                "secret-stays-hidden",
                message,
            ));
            continue;
        }
        let (severity, code, message) = match line {
            Line::Nothing => continue,
            Line::Unmatchable => (
                WARNING,
                "unmatchable",
                "This pattern can never match; it has no effect.".to_owned(),
            ),
            Line::TooLarge => (
                ERROR,
                "pattern-too-large",
                "This pattern is too large; everything in this folder is hidden until it is shorter."
                    .to_owned(),
            ),
            Line::Include {
                name,
                problem: Some(IncludeProblem::Missing),
            } => (
                WARNING,
                "missing-include",
                format!("There is no file {name}; this line adds no rules."),
            ),
            Line::Include {
                name,
                problem: Some(IncludeProblem::Unusable(why)),
            } => (
                ERROR,
                "unusable-include",
                format!("{name} {why}; everything in this folder is hidden until this is fixed."),
            ),
            Line::Pattern { .. } if is_idle => (
                HINT,
                "idle-rule",
                "This pattern matches no existing file.".to_owned(),
            ),
            Line::Pattern { .. } | Line::Include { .. } => continue,
        };
        found.push(diagnostic(index, end, severity, code, message));
    }
    Ok(found)
}

/// Returns the open files that changed since the last checkpoint of their folder.
fn changed_files(context: &RequestContext<'_>) -> Result<Vec<(String, Value)>, Error> {
    let view = context.view();
    let roots = view.roots();
    let mut open: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (uri, _) in context.snapshot.editor.documents() {
        let path = uri_to_path(uri).ok().flatten();
        if let Some(Location::Inside { root, .. }) = path.map(|path| roots.place(path)) {
            open.entry(root).or_default().push(uri.to_owned());
        }
    }
    let mut found = Vec::new();
    for (root, uris) in open {
        let Some(root) = roots.get(root) else {
            continue;
        };
        match changed_in_root(context, root, &uris) {
            Ok(changed_in_root) => found.extend(changed_in_root),
            // There is no checkpoint yet.
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn changed_in_root(
    context: &RequestContext<'_>,
    root: &Root,
    uris: &[String],
) -> Result<Vec<(String, Value)>, Error> {
    let since = latest(context, root)?;
    let params = DiffCheckpointsParams {
        from: since.id.clone(),
        paths: Some(uris.to_vec()),
        ..DiffCheckpointsParams::default()
    };
    let files = handlers::checkpoint::diff_checkpoints::run(context, params)?.files;
    let published = files.into_iter().filter_map(|file| {
        let uri = normalize_uri(&file.uri);
        let message = format!("{} since {since}", describe_change(&file));
        let hint = diagnostic(0, 0, HINT, "changed", message);
        uris.contains(&uri).then_some((uri, hint))
    });
    Ok(published.collect())
}

fn describe_change(file: &FileDifference) -> String {
    let what = match file.status {
        DifferenceStatus::Added => "new",
        DifferenceStatus::Deleted => "deleted",
        DifferenceStatus::Modified | DifferenceStatus::Renamed | DifferenceStatus::TypeChanged => {
            "changed"
        }
    };
    if file.binary {
        what.to_owned()
    } else {
        format!("{what} (+{} -{})", file.additions, file.deletions)
    }
}
