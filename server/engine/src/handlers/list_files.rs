//! `sightline/listFiles`.

use sightline_base::path::{Location, RelPath};
use sightline_context::listing::{self, ListOptions};
use sightline_protocol::{
    error::ErrorKind,
    files::{ListFilesParams, ListFilesResult},
};

use crate::{error::Error, request_context::ReadContext};

/// Lists a directory of a workspace root.
pub fn run(context: &ReadContext<'_>, params: ListFilesParams) -> Result<ListFilesResult, Error> {
    let view = context.view();
    let roots = view.roots();
    let location = match &params.path {
        Some(path) => roots.locate(path)?,
        None if roots.is_empty() => {
            let message = "no folder is open; open one, or name an open file";
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        None => Location::Inside {
            root: 0,
            rel: RelPath::default(),
        },
    };
    let Location::Inside { root, rel } = location else {
        let path = params.path.unwrap_or_default();
        let message = format!("cannot list {path}: it is outside the workspace");
        return Err(Error::new(ErrorKind::AccessDenied, message).with_path(path));
    };
    let options = ListOptions {
        recursive: params.recursive,
        limit: params.limit,
        ignored: context.snapshot.settings.environment.ignored_files,
        ..ListOptions::default()
    };
    let progress = context.progress(params.work_done_token, "Listing files");
    let listing = listing::list_with(
        &view,
        root,
        &rel,
        &options,
        &context.cancel,
        &mut |entries| progress.report(None, || format!("{entries} entries")),
    )?;
    Ok(listing::list_result(roots, root, &rel, &listing))
}
