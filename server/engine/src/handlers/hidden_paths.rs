//! `sightline/hiddenPaths`.

use std::collections::BTreeSet;

use sightline_protocol::{
    access::{HiddenPath, HiddenPathsParams, HiddenPathsResult},
    error::ErrorKind,
};

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
    if !wanted.is_empty() && wanted != own {
        return Err(Error::invalid("the server has other workspace folders"));
    }
    let unsupported = |message: String| Error::new(ErrorKind::Unsupported, message);
    let mut result = HiddenPathsResult::default();
    for hidden in context
        .hidden_paths(&view)
        .map_err(|error| unsupported(error.to_string()))?
    {
        let Ok(path) = hidden.path.into_os_string().into_string() else {
            return Err(unsupported("a hidden path is not UTF-8".to_owned()));
        };
        let cover = hidden.cover;
        result.paths.push(HiddenPath { path, cover });
    }
    Ok(result)
}
