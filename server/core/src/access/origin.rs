//! Where a file lay when an editor opened it.
//!
//! An editor keeps the text of a file that it opened through a link, whatever
//! becomes of the link. So the names that led to the text are kept with it, and
//! what is denied by one of them stays denied.

use std::sync::Arc;

use super::{AccessView, Denial, RuleScope, Verdict, rules::Rules, through_link};
use crate::{
    error::Error,
    path::{AbsPath, Location, Roots},
};

/// The names a file had when it was opened, besides the one it was opened by.
/// That of a document that is no file has none.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// What it was called by each link on the way, and at last its path without
    /// links; nothing where no link was on the way.
    names: Arc<[AbsPath]>,
    /// They could not be found out.
    is_unknown: bool,
}

impl Origin {
    /// The names of the file that `path` leads to now. Reads no rules.
    pub fn of(roots: &Arc<Roots>, path: &AbsPath) -> Self {
        let scopes = roots.as_slice().iter();
        let view = AccessView {
            roots: roots.clone(),
            loose: Arc::default(),
            rule_files: Arc::default(),
            scopes: scopes
                .map(|root| RuleScope::new(&root.path, Some(root), Rules::None))
                .collect(),
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
    /// Judges a file by the names it was opened by, whatever they lead to now. What
    /// it is called now is judged by [`Self::check`].
    pub fn check_origin(&self, origin: &Origin) -> Verdict {
        if origin.is_unknown {
            return Verdict::Denied(Denial {
                reason: "what it led to when it was opened could not be found out".to_owned(),
                rule: None,
            });
        }
        let mut names = origin.names.iter();
        if let Some(denial) = names.find_map(|name| self.denial_of(name, || false)) {
            return Verdict::Denied(through_link(denial));
        }
        match origin.names.last() {
            Some(real) if !self.is_inside(real) && !self.loose.contains(real) => Verdict::Outside,
            _ => Verdict::Allowed,
        }
    }

    /// [`Self::check_origin`] as a condition; errors name `location`.
    ///
    /// # Errors
    /// As [`Self::require`].
    pub fn require_origin(
        &self,
        origin: &Origin,
        location: &Location,
        outside_allowed: bool,
    ) -> Result<(), Error> {
        self.admit(self.check_origin(origin), location, outside_allowed)
    }
}
