//! May this be seen? The one place that decides.
//!
//! [`Access`] holds the compiled rules of every root and looks, each time it is
//! asked for an [`AccessView`], whether a rule file changed. A view is
//! immutable: one request works with one view.

use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use sightline_protocol::access::{AccessRule, CommandAccess, DeniedOperand};

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
        let rules = self.roots.as_slice().iter().map(|root| {
            let mut builder = GitignoreBuilder::new(root.path.as_path());
            let _ = builder.case_insensitive(true);
            let _ = builder.add(root.path.as_path().join(".clineignore"));
            builder.build().unwrap_or_else(|_| Gitignore::empty())
        });
        (
            AccessView {
                rules: Arc::new(rules.collect()),
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
    rules: Arc<Vec<Gitignore>>,
}

impl AccessView {
    /// The roots these rules are for.
    pub fn roots(&self) -> &Arc<Roots> {
        &self.roots
    }

    /// Judges a place: its written path, and what it resolves to.
    pub fn check(&self, location: &Location) -> Verdict {
        let real = self.roots.absolute(location);
        let real = std::fs::canonicalize(real.as_path())
            .ok()
            .and_then(|path| AbsPath::new(&path))
            .map(|path| self.roots.place(path));
        let mut verdict = Verdict::Outside;
        for location in [Some(location), real.as_ref()].into_iter().flatten() {
            verdict = match location {
                Location::Outside(_) => Verdict::Outside,
                Location::Inside { root, rel } => match self.lexical(*root, rel) {
                    Some(denial) => return Verdict::Denied(denial),
                    None => Verdict::Allowed,
                },
            };
        }
        verdict
    }

    fn lexical(&self, root: usize, rel: &RelPath) -> Option<Denial> {
        let mut at = Some(rel.clone());
        while let Some(rel) = at.filter(|rel| !rel.is_root()) {
            let is_dir = self.roots.get(root)?.path.join(&rel).as_path().is_dir();
            let denial = self.check_entry(root, &rel, is_dir);
            if denial.is_some() {
                return denial;
            }
            at = rel.parent();
        }
        None
    }

    /// Judges an entry met while walking below `root`, by name only: the caller
    /// knows what kind it is and came there without following a link.
    pub fn check_entry(&self, root: usize, rel: &RelPath, is_dir: bool) -> Option<Denial> {
        let matched = self.rules.get(root)?.matched(rel.as_path(), is_dir);
        let glob = matched.inner().filter(|_| matched.is_ignore())?;
        Some(Denial {
            reason: "denied".to_owned(),
            rule: Some(AccessRule {
                source: ".clineignore".to_owned(),
                line: 0,
                pattern: glob.original().to_owned(),
            }),
        })
    }

    /// Judges a shell command.
    pub fn check_command(&self, command: &str) -> CommandAccess {
        let mut answer = CommandAccess {
            allowed: true,
            denied: Vec::new(),
        };
        for word in command.split([' ', '\n', '\t', '\'', '"']) {
            let Some(rel) = RelPath::new(std::path::Path::new(word)) else {
                continue;
            };
            if let Some(denial) = self.lexical(0, &rel) {
                answer.allowed = false;
                answer.denied.push(DeniedOperand {
                    path: word.to_owned(),
                    reason: denial.reason,
                    rule: denial.rule,
                });
            }
        }
        answer
    }
}
