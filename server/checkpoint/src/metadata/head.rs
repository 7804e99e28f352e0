//! Branch and commit of the user's repository.

use std::path::Path;

use sightline_access::AccessView;
use sightline_context::git::Repository;
pub use sightline_protocol::checkpoint::CheckpointHead as Head;

/// Returns those of the repository that contains a folder. `None` without a commit, and if the access
/// rules deny it.
pub fn head_of(view: &AccessView, dir: &Path) -> Option<Head> {
    let repository = Repository::discover(view, dir)?;
    Some(Head {
        branch: repository.branch(),
        commit: repository.head()?,
    })
}
