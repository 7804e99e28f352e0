//! Branch and commit of the user's repository.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sightline_access::AccessView;
use sightline_context::git::Repository;

/// Branch and commit of the user's repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Name of the branch. `None` if a commit is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Commit in hexadecimal digits.
    pub commit: String,
}

impl Head {
    /// Returns those of the repository that contains a folder. `None` without a commit, and if the access
    /// rules deny it.
    pub fn of(view: &AccessView, dir: &Path) -> Option<Self> {
        let repository = Repository::discover(view, dir)?;
        Some(Self {
            branch: repository.branch(),
            commit: repository.head()?,
        })
    }
}
