//! `sightline/listRules`.

use std::time::Duration;

use sightline_access::{AccessView, Denial, Verdict};
use sightline_base::{
    clock::millis_of,
    path::{AbsPath, Location, RelPath},
};
use sightline_context::listing::{self, Entry, ListOptions};
use sightline_protocol::{
    error::ErrorKind,
    files::{DeniedEntry, FileKind, ListRulesParams, ListRulesResult, RuleFile, RuleFileState},
};

use crate::{error::Error, request_context::ReadContext, session::named_root};

/// Time limit of the search for denied entries of a root.
const BUDGET: Duration = Duration::from_secs(3);
/// Number of denied entries without `limit`.
const DEFAULT_LIMIT: u32 = 1000;

/// Lists the rule files and the denied entries.
pub fn run(context: &ReadContext<'_>, params: ListRulesParams) -> Result<ListRulesResult, Error> {
    let view = context.view();
    let only = params
        .root
        .map(|name| named_root(view.roots(), &name))
        .transpose()?;
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let options = ListOptions {
        limit,
        only_denied: true,
        budget: BUDGET,
        ..ListOptions::default()
    };
    let mut result = ListRulesResult::default();
    for root in 0..view.roots().as_slice().len() {
        if only.is_some_and(|only| only != root) {
            continue;
        }
        let top = RelPath::default();
        match listing::list(&view, root, &top, &options, &context.cancel) {
            Ok(listing) => {
                let denied = listing.entries.iter();
                result
                    .entries
                    .extend(denied.map(|entry| denied_entry(&view, root, entry)));
                result.truncated |= listing.truncated;
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error.into()),
            Err(error) => {
                let why = view.unusable(root).map(|why| why.to_string());
                result.problem = Some(why.unwrap_or_else(|| error.to_string()));
            }
        }
    }
    result.truncated |= result.entries.len() > limit as usize;
    result.entries.truncate(limit as usize);
    // After the search, which finds the files in folders.
    let files = context.snapshot.access.get().rule_files().into_iter();
    result.files = files
        .filter_map(|file| {
            Some(RuleFile {
                uri: AbsPath::new(&file.path)?.to_uri(),
                source: file.source,
                state: match (&file.problem, file.is_held) {
                    (Some(_), _) => RuleFileState::Unusable,
                    (None, true) => RuleFileState::Held,
                    (None, false) => RuleFileState::InForce,
                },
                rules: u32::try_from(file.rules).unwrap_or(u32::MAX),
                modified_at: file.changed_at.and_then(millis_of),
                problem: file.problem,
            })
        })
        .collect();
    Ok(result)
}

fn denied_entry(view: &AccessView, root: usize, entry: &Entry) -> DeniedEntry {
    let is_dir = entry.kind == FileKind::Directory;
    let location = Location::Inside {
        root,
        rel: entry.rel.clone(),
    };
    // A link is denied by its name or by where it leads.
    let by_name = view.check_entry(root, &entry.rel, is_dir);
    let verdict = by_name.map_or_else(|| view.check(&location), Verdict::Denied);
    let (rule, reason) = match verdict {
        Verdict::Denied(Denial {
            rule: None, reason, ..
        }) => (None, Some(reason)),
        Verdict::Denied(denial) => (denial.rule, None),
        Verdict::Outside => (None, Some("it leads outside the workspace".to_owned())),
        Verdict::Allowed => (None, None),
    };
    let (path, path_encoded) = entry.rel.to_wire();
    DeniedEntry {
        path,
        uri: view.roots().absolute(&location).to_uri(),
        kind: entry.kind,
        rule,
        reason,
        path_encoded,
    }
}
