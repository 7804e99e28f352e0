//! May this be seen? The one place that decides.
//!
//! [`Access`] holds the compiled rules of every root and looks, each time it is
//! asked for an [`AccessView`], whether a rule file changed. A view is
//! immutable: one request works with one view.

use std::{
    fs::{File, Metadata, OpenOptions},
    io,
    path::PathBuf,
    sync::Arc,
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use sightline_protocol::{
    access::{AccessRule, CommandAccess, DeniedOperand},
    error::ErrorKind,
};

use crate::{
    error::Error,
    path::{AbsPath, Location, RelPath, Roots},
};

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

    /// [`Self::check`] as a condition; `allow_outside` also lets through what
    /// is below no root.
    ///
    /// # Errors
    /// `accessDenied`, with the rule when one decided.
    pub fn require(&self, location: &Location, allow_outside: bool) -> Result<(), Error> {
        let path = self.roots.result_path(location).0;
        match self.check(location) {
            Verdict::Allowed => Ok(()),
            Verdict::Outside if allow_outside => Ok(()),
            Verdict::Outside => Err(Error::new(
                ErrorKind::AccessDenied,
                format!("{path} is outside the workspace folders"),
            )
            .with_path(path)),
            Verdict::Denied(denial) => Err(Error::new(
                ErrorKind::AccessDenied,
                format!("{path} may not be seen: {}", denial.reason),
            )
            .with_path(path)
            .with_rule(denial.rule)),
        }
    }

    /// Opens what may be seen, without waiting for a writer of a named pipe.
    ///
    /// # Errors
    /// `accessDenied` as [`Self::require`]; `notFound`; `unsupported` when the
    /// system refuses.
    pub fn open_for_read(
        &self,
        location: &Location,
        allow_outside: bool,
    ) -> Result<(File, Metadata, PathBuf), Error> {
        self.require(location, allow_outside)?;
        let name = self.roots.result_path(location).0;
        let refuse = |error: io::Error| {
            let kind = match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ErrorKind::NotFound,
                _ => ErrorKind::Unsupported,
            };
            Error::new(kind, format!("{name} cannot be opened: {error}")).with_path(name.clone())
        };
        let path = self.roots.absolute(location);
        let real = std::fs::canonicalize(path.as_path()).map_err(refuse)?;
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        }
        let file = options.open(&real).map_err(refuse)?;
        let metadata = file.metadata().map_err(refuse)?;
        Ok((file, metadata, real))
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
