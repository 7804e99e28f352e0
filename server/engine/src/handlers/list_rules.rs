//! `sightline/listRules`.

use std::time::UNIX_EPOCH;

use sightline_access::AccessView;
use sightline_base::path::{AbsPath, Location, RelPath};
use sightline_context::listing::{self, Entry, ListOptions};
use sightline_protocol::{
    error::ErrorKind,
    files::FileKind,
    rules::{DeniedEntry, ListRulesParams, ListRulesResult, RuleFile, RuleFileState},
    settings::IgnoredFiles,
};

use crate::{error::Error, request_context::RequestContext, session::named_root};

/// Maximum number of entries of a root that are searched for denied ones.
const MAX_SEARCHED: u32 = 50_000;
/// Number of denied entries without `limit`.
const DEFAULT_LIMIT: u32 = 1000;

/// Lists the rule files and the denied entries.
pub fn run(
    context: &RequestContext<'_>,
    params: ListRulesParams,
) -> Result<ListRulesResult, Error> {
    let view = context.view();
    let only = params
        .root
        .map(|name| named_root(view.roots(), &name))
        .transpose()?;
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT) as usize;
    let options = ListOptions {
        limit: MAX_SEARCHED,
        ignored: IgnoredFiles::Lock,
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
                let denied = listing.entries.iter().filter(|entry| entry.denied);
                result
                    .entries
                    .extend(denied.map(|entry| denied_entry(&view, root, entry)));
                result.truncated |= listing.truncated;
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error.into()),
            Err(error) => result.problem = Some(error.to_string()),
        }
    }
    result.truncated |= result.entries.len() > limit;
    result.entries.truncate(limit);
    // After the search, which finds the files in folders.
    let files = context.snapshot.access.get().rule_files().into_iter();
    result.files = files
        .filter_map(|file| {
            let modified_at = file
                .changed_at
                .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
                .and_then(|since| i64::try_from(since.as_millis()).ok());
            Some(RuleFile {
                uri: AbsPath::new(&file.path)?.to_uri(),
                source: file.source,
                state: match (&file.problem, file.is_held) {
                    (Some(_), _) => RuleFileState::Unusable,
                    (None, true) => RuleFileState::Held,
                    (None, false) => RuleFileState::InForce,
                },
                rules: u32::try_from(file.rules).unwrap_or(u32::MAX),
                modified_at,
                problem: file.problem,
            })
        })
        .collect();
    Ok(result)
}

fn denied_entry(view: &AccessView, root: usize, entry: &Entry) -> DeniedEntry {
    let is_dir = entry.kind == FileKind::Directory;
    let denial = view.check_entry(root, &entry.rel, is_dir);
    let location = Location::Inside {
        root,
        rel: entry.rel.clone(),
    };
    let (path, path_encoded) = entry.rel.to_wire();
    DeniedEntry {
        path,
        uri: view.roots().absolute(&location).to_uri(),
        kind: entry.kind,
        rule: denial.and_then(|denial| denial.rule),
        path_encoded,
    }
}
