//! `sightline.explainAccess`.

use sightline_access::AccessView;
use sightline_base::escape::one_line;
use sightline_engine::{error::Error, request_context::RequestContext};
use sightline_protocol::access::AccessKind;

use super::{
    command_result::{self, CommandResult},
    document_arg::DocumentArg,
};

/// Tells whether agents may see a file, and which rule decides.
///
/// # Errors
/// `invalidParams` without a document.
pub(crate) fn run(
    context: &RequestContext<'_>,
    target: DocumentArg,
) -> Result<CommandResult, Error> {
    let document = target.document(context)?;
    command_result::message(context, explain_access(&context.view(), &document))
}

/// Explains in one line why agents may or may not see a path.
pub(super) fn explain_access(view: &AccessView, written: &str) -> String {
    let (location, verdict) = view.check_written(written);
    let name = match &location {
        Some(location) => view.roots().result_path(location).0,
        None => written.to_owned(),
    };
    let why = match (&verdict.rule, &verdict.reason) {
        (Some(rule), _) if rule.line == 0 => {
            "files with access rules and settings are hidden from agents".to_owned()
        }
        (Some(rule), _) => format!("line {} of {}: {}", rule.line, rule.source, rule.pattern),
        (None, Some(reason)) => reason.clone(),
        (None, None) => String::new(),
    };
    let (name, why) = (one_line(&name), one_line(&why));
    match verdict.access {
        AccessKind::Allowed => format!("agents may see {name}"),
        AccessKind::Denied => format!("{name} is hidden from agents: {why}"),
        AccessKind::Outside => format!("{name} is hidden from agents: it is outside the workspace"),
    }
}
