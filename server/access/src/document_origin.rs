//! The paths of a file at the time an editor opened it.
//!
//! An editor keeps the text of a file it opened through a symlink, even if the symlink changes later. So the names
//! that led to the text are kept with it, and the text stays denied if a rule denies one of them.

use std::sync::Arc;

use sightline_protocol::settings::Secrets;

use super::{
    AccessView, Denial, RuleScope, Verdict,
    rules::{Rules, ScopeKind},
    through_link,
};
use crate::{
    error::Error,
    path::{AbsPath, Location, Roots},
};

/// The names of a document when it was opened, other than its own path. Empty for a document that is not a file.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The names of the symlinks on the way, then the path without symlinks. Empty if there was no symlink.
    names: Arc<[AbsPath]>,
    /// Whether the names could not be determined.
    is_unknown: bool,
}

impl Origin {
    /// Resolves `path`. Reads no rules.
    pub fn of(roots: &Arc<Roots>, path: &AbsPath) -> Self {
        let scopes = roots.as_slice().iter();
        let view = AccessView {
            roots: roots.clone(),
            open_files: Arc::default(),
            rule_files: Arc::default(),
            scopes: scopes
                .map(|root| {
                    let kind = ScopeKind::Workspace(Secrets::Allow);
                    RuleScope::new(&root.path, Some(root), kind, Rules::None)
                })
                .collect(),
            outside: Rules::None,
            nested: None,
            links: Arc::default(),
        };
        match view.resolve(path) {
            Ok(place) if place.linked => Self {
                names: place.names().collect(),
                is_unknown: false,
            },
            Ok(_) => Self::default(),
            Err(_) => Self {
                names: Arc::default(),
                is_unknown: true,
            },
        }
    }
}

impl AccessView {
    /// Checks the names by which a file was opened. [`Self::check`] checks its current path.
    pub fn check_origin(&self, origin: &Origin) -> Verdict {
        if origin.is_unknown {
            return Verdict::Denied(Denial {
                reason: "cannot determine which file it was when it was opened".to_owned(),
                rule: None,
            });
        }
        let mut names = origin.names.iter();
        if let Some(denial) = names.find_map(|name| self.denial_of(name, || false)) {
            return Verdict::Denied(through_link(denial));
        }
        match origin.names.last() {
            Some(real) if !self.is_inside(real) && !self.open_files.contains(real) => {
                Verdict::Outside
            }
            _ => Verdict::Allowed,
        }
    }

    /// Requires that [`Self::check_origin`] allows reading. Errors name `location`.
    ///
    /// # Errors
    /// As [`Self::require`].
    pub fn require_origin(
        &self,
        origin: &Origin,
        location: &Location,
        outside_allowed: bool,
    ) -> Result<(), Error> {
        self.require_verdict(self.check_origin(origin), location, outside_allowed)
    }
}
