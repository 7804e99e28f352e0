//! The rules of one directory, and the paths by which the directory is known.

use std::{
    cell::LazyCell,
    io,
    sync::{Arc, OnceLock},
};

use ignore::Match;
use sightline_protocol::access::AccessRule;

use super::{Rules, ScopeKind};
use crate::{
    Denial,
    gitignore::{Decision, Rule, bytes_of},
    strictest, symlinks,
};
use sightline_base::{
    escape::one_line,
    fs::dir::Dir,
    path::{AbsPath, RelPath, Root},
};

/// A directory with rules: a root, the directory of an open file, or one above these.
#[derive(Debug)]
pub(crate) struct RuleScope {
    /// All known paths of the directory, without duplicates: the written one first, the one without symlinks last.
    pub(crate) paths: Vec<AbsPath>,
    /// Device and inode number.
    pub(crate) identity: Option<(u64, u64)>,
    pub(crate) is_root: bool,
    pub(crate) kind: ScopeKind,
    /// Whether it contains another scope or is contained in one.
    pub(crate) overlaps: bool,
    pub(crate) rules: Rules,
    /// The directory at the path without symlinks. Opened on first use.
    pub(crate) dir: OnceLock<Result<Arc<Dir>, io::ErrorKind>>,
}

impl RuleScope {
    pub(crate) fn new(path: &AbsPath, root: Option<&Root>, kind: ScopeKind, rules: Rules) -> Self {
        let real = sightline_base::path::canonicalize(path.as_path())
            .ok()
            .and_then(|real| AbsPath::new(&real));
        let mut paths = vec![path.clone()];
        for other in root
            .map(|root| root.canonical.clone())
            .into_iter()
            .chain(real)
        {
            // The path added last stays last.
            paths.retain(|known| *known != other || *known == *path);
            if !paths.contains(&other) {
                paths.push(other);
            }
        }
        Self {
            identity: symlinks::file_id(path.as_path()),
            is_root: root.is_some(),
            kind,
            overlaps: false,
            paths,
            rules,
            dir: OnceLock::new(),
        }
    }

    pub(crate) fn path(&self) -> &AbsPath {
        &self.paths[0]
    }

    pub(crate) fn real(&self) -> &AbsPath {
        self.paths.last().unwrap_or(&self.paths[0])
    }

    pub(crate) fn relative(&self, path: &AbsPath) -> Option<RelPath> {
        self.paths.iter().find_map(|base| path.relative_to(base))
    }

    pub(crate) fn touches(&self, other: &RuleScope) -> bool {
        self.paths.iter().any(|path| other.relative(path).is_some())
            || other.paths.iter().any(|path| self.relative(path).is_some())
    }

    /// Checks `rel` against the rules of this scope. `is_dir` is called only if the result depends on it.
    pub(crate) fn denial(&self, rel: &RelPath, is_dir: impl FnOnce() -> bool) -> Option<Denial> {
        self.rules.denial(rel, is_dir)
    }
}

impl Rules {
    /// Checks a path relative to the directory of the rules.
    pub(crate) fn denial(&self, rel: &RelPath, is_dir: impl FnOnce() -> bool) -> Option<Denial> {
        let versions = match self {
            Rules::None => return None,
            Rules::Broken(why) => {
                return Some(Denial::new(why.to_string()));
            }
            Rules::Patterns(versions) => versions,
        };
        let path = bytes_of(rel.as_path());
        let is_dir = LazyCell::new(is_dir);
        let denials = versions.iter().filter_map(|version| {
            let Decision { as_file, as_dir } = version.patterns.deciding(&path);
            let depends_on_kind = as_file.is_ignore() != as_dir.is_ignore();
            match if depends_on_kind && *is_dir {
                as_dir
            } else {
                as_file
            } {
                Match::Ignore(rule) => Some(Denial {
                    reason: if rule.line == 0 {
                        "rule files are hidden".to_owned()
                    } else {
                        let AccessRule {
                            source,
                            line,
                            pattern,
                        } = rule.to_wire();
                        format!("{source}:{line}: {}", one_line(&pattern))
                    },
                    rule: Some(rule.to_wire()),
                    by_content: rule.is_by_content(),
                }),
                Match::Whitelist(_) | Match::None => None,
            }
        });
        strictest(denials)
    }

    /// Returns the lines that lift built-in rules for secrets.
    pub(crate) fn lifting(&self) -> Vec<AccessRule> {
        let Rules::Patterns(versions) = self else {
            return Vec::new();
        };
        let rules = versions
            .iter()
            .flat_map(|version| version.patterns.lifting());
        rules.map(Rule::to_wire).collect()
    }

    /// Returns the line that lifts the built-in rule for a path, if one does.
    pub(crate) fn lifted_by(&self, rel: &RelPath) -> Option<AccessRule> {
        let Rules::Patterns(versions) = self else {
            return None;
        };
        versions.iter().find_map(|version| {
            let patterns = &version.patterns;
            patterns.lifting().next()?;
            // A line can also lift the rule for a folder above.
            let mut paths = rel.as_path().ancestors();
            paths.find_map(|path| {
                let Decision { as_file, as_dir } = patterns.deciding(&bytes_of(path));
                [as_file, as_dir]
                    .into_iter()
                    .find_map(|decision| match decision {
                        Match::Whitelist(rule) if rule.is_lifting() => Some(rule.to_wire()),
                        _ => None,
                    })
            })
        })
    }
}

impl Rule {
    fn to_wire(&self) -> AccessRule {
        AccessRule {
            source: self.source.to_string(),
            line: self.line,
            pattern: self.pattern.clone(),
        }
    }
}
