//! `sightline/redact` and `sightline/listDecisions`.

use sightline_access::redact::Redactor;
use sightline_base::decision_log;
use sightline_protocol::decision::{
    DecisionVerdict, ListDecisionsParams, ListDecisionsResult, RedactParams, RedactResult,
};

use crate::{error::Error, request_context::ReadContext};

/// Replaces the contents of denied files in texts.
pub(crate) fn redact(
    context: &ReadContext<'_>,
    params: RedactParams,
) -> Result<RedactResult, Error> {
    let view = context.view();
    let contents = context.hidden_contents(&view);
    let mut redactor = Redactor::new(&view, &contents, params.cwd.as_deref());
    let mut result = RedactResult::default();
    for text in &params.texts {
        context.cancel.check()?;
        let redacted = redactor.redact(text);
        for file in redacted.hidden {
            let known = result
                .hidden
                .iter_mut()
                .find(|known| known.path == file.path);
            match known {
                Some(known) => known.count = known.count.saturating_add(file.count),
                None => result.hidden.push(file),
            }
        }
        result.texts.push(redacted.text.into_owned());
    }
    Ok(result)
}

/// Lists the decisions in the log, newest first.
pub(crate) fn list(
    context: &ReadContext<'_>,
    params: ListDecisionsParams,
) -> Result<ListDecisionsResult, Error> {
    let mut decisions = decision_log::read(&context.storage()?)?;
    decisions.retain(|decision| {
        (params.all || decision.verdict != DecisionVerdict::Allowed)
            && params.since.is_none_or(|since| decision.at >= since)
            && (params.agent.is_none() || params.agent == decision.agent)
    });
    let limit = params.limit.map_or(usize::MAX, |limit| limit as usize);
    decisions.truncate(limit);
    Ok(ListDecisionsResult { decisions })
}
