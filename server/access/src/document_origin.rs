//! The paths of a file at the time an editor opened it.
//!
//! An editor keeps the text of a file it opened through a symlink, even if the symlink changes later. So the names
//! that led to the text are kept with it, and the text stays denied if a rule denies one of them.

use std::sync::Arc;

use ropey::Rope;
use sightline_protocol::settings::Secrets;

use super::{
    AccessView, Content, Denial, RuleScope, Verdict,
    rules::{Rules, ScopeKind},
    strictest, through_link,
};
use sightline_base::{
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
    /// Checks the names by which a document with this text was opened. [`Self::check_kind`] checks its current path.
    pub fn check_origin(&self, origin: &Origin, text: &Rope) -> Verdict {
        if origin.is_unknown {
            let reason = "cannot determine which file it was when it was opened";
            return Verdict::Denied(Denial::new(reason.to_owned()));
        }
        let names = origin.names.iter();
        let denial = strictest(names.filter_map(|name| self.denial_of(name, || false)));
        if let Some(denial) = denial.and_then(|denial| denial.of_text(text)) {
            return Verdict::Denied(through_link(denial));
        }
        match origin.names.last() {
            Some(real) if !self.is_inside(real) && !self.open_files.contains(real) => {
                Verdict::Outside
            }
            _ => Verdict::Allowed,
        }
    }

    /// Requires that a document with this text may be read: its current path, and the names by which it was opened.
    ///
    /// # Errors
    /// As [`Self::require`].
    pub fn require_document(
        &self,
        location: &Location,
        origin: &Origin,
        text: &Rope,
        outside_allowed: bool,
    ) -> Result<(), Error> {
        self.require_content(location, Content::Text(text), outside_allowed)?;
        let verdict = self.check_origin(origin, text);
        self.require_verdict(verdict, location, outside_allowed)
    }
}
