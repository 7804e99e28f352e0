//! The context of an operation: access rules, settings, cancellation and progress.

use sightline_access::AccessView;
use sightline_base::cancel::Cancel;
use sightline_protocol::error::ErrorKind;
use sightline_protocol::settings::CheckpointSettings;

use crate::error::Error;

/// Progress of a long operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Current stage: "scanning files", "storing", "restoring", …
    pub stage: &'static str,
    /// Items processed so far.
    pub done: u64,
    /// Total number of items, if known.
    pub total: Option<u64>,
}

/// Context of one operation on the checkpoints of a root.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// Access rules in force.
    pub view: &'a AccessView,
    /// Index of the root in the view.
    pub root: usize,
    /// Capture settings.
    pub settings: &'a CheckpointSettings,
    /// Checked in every loop.
    pub cancel: &'a Cancel,
    /// Called often and from several threads; the listener throttles.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

impl Job<'_> {
    /// The same for another root.
    pub(crate) fn in_root(&self, root: usize) -> Self {
        Self { root, ..*self }
    }

    /// Returns an error if the access rules cannot be used. Everything would be denied: a
    /// checkpoint would be empty, and no difference would be found.
    ///
    /// # Errors
    /// `accessDenied` names the rules and the problem.
    pub(crate) fn require_rules(&self) -> Result<(), Error> {
        match self.view.unusable(self.root) {
            None => Ok(()),
            Some(why) => Err(Error::new(
                ErrorKind::AccessDenied,
                format!("{why}; checkpoints cannot be created, compared or restored until then"),
            )),
        }
    }
}
