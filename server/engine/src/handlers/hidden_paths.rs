//! `sightline/hiddenPaths`.

use std::collections::BTreeSet;

use sightline_protocol::{
    access::{HiddenPath, HiddenPathsParams, HiddenPathsResult},
    error::ErrorKind,
};

use sightline_exec::mount_namespace;

use crate::{error::Error, request_context::ReadContext};

/// Lists what `sightline exec` hides.
pub fn run(
    context: &ReadContext<'_>,
    params: HiddenPathsParams,
) -> Result<HiddenPathsResult, Error> {
    let view = context.view();
    let mut own = BTreeSet::new();
    own.extend(
        view.roots()
            .as_slice()
            .iter()
            .map(|root| root.canonical.to_uri()),
    );
    let wanted: BTreeSet<String> = params.roots.into_iter().collect();
    if params
        .mounts
        .is_some_and(|mounts| Some(mounts) != mount_namespace())
    {
        return Err(Error::invalid("the server sees other file systems"));
    }
    if !wanted.is_empty() && wanted != own {
        return Err(Error::invalid("the server has other workspace folders"));
    }
    let unsupported = |message: String| Error::new(ErrorKind::Unsupported, message);
    let mut result = HiddenPathsResult::default();
    for hidden in context
        .hidden_paths(&view)
        .map_err(|why| unsupported(format!("no list of denied files is kept: {why}")))?
    {
        let Ok(path) = hidden.path.into_os_string().into_string() else {
            return Err(unsupported("a hidden path is not UTF-8".to_owned()));
        };
        let cover = hidden.cover;
        result.paths.push(HiddenPath { path, cover });
    }
    Ok(result)
}
