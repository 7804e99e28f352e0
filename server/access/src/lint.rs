//! Explains the lines of a rule file: their meaning, and the existing paths they match.
//!
//! Works on text that need not be saved. The results name denied paths, so they are for the user's editor and never
//! for an agent.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use ignore::Match;

use super::{
    gitignore::glob::NoGlob,
    gitignore::{self, CompileError, Origin, PatternSet, RuleLine, bytes_of},
    rules::{
        built_in,
        file::{
            Content, RULE_FILE, RulePart, Source, include_of, include_path, includes_of, rule_parts,
        },
    },
};
use sightline_base::{
    cancel::Cancel,
    error::Error,
    path::{AbsPath, RelPath},
};

/// Number of paths that are matched.
const MAX_PATHS: usize = 200_000;
/// How long paths are matched.
const BUDGET: Duration = Duration::from_secs(2);
/// Number of paths between two checks of the clock and of the cancel flag.
const STRIDE: usize = 512;
/// Number of examples for a line.
const EXAMPLES: usize = 5;

/// The meaning of a line of a rule file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A blank line or a comment.
    Nothing,
    /// A pattern.
    Pattern {
        /// Whether it starts with `!` and allows paths again.
        negated: bool,
    },
    /// A pattern that git never matches.
    Unmatchable,
    /// A pattern over a size limit. Everything is denied because of it.
    TooLarge,
    /// An `!include` line.
    Include {
        /// The name of the included file.
        name: String,
        /// The problem of that file.
        problem: Option<IncludeProblem>,
    },
}

/// A problem of an included file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncludeProblem {
    /// The file does not exist and adds no rules.
    Missing,
    /// The file cannot be used for this reason. Everything is denied because of it.
    Unusable(String),
}

/// The existing paths that a line decides about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Number of paths. Paths below a denied directory are not counted.
    pub count: u64,
    /// Some of the paths, the topmost first. Directories end in `/`.
    pub examples: Vec<String>,
    /// A path that a general exception matches and that stays denied, because it is a secret.
    pub secret: Option<String>,
}

/// The effects of all lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// By line number, from 1. Lines without effect are missing.
    pub by_line: BTreeMap<u32, Effect>,
    /// Whether all paths were matched.
    pub complete: bool,
}

/// Returns the meaning of each line of a rule file in `folder`.
pub fn lines(folder: &AbsPath, text: &[u8]) -> Vec<Line> {
    let includes = includes_of(folder, text);
    let content = |name: &str| {
        let path = include_path(folder, name)?;
        includes.iter().find(|source| source.path == path)
    };
    gitignore::lines(text)
        .map(|(_, line)| {
            if let Some(name) = include_of(line) {
                let problem = match content(&name).map(|source| &source.content) {
                    Some(Content::Text(_)) => None,
                    Some(Content::None) => Some(IncludeProblem::Missing),
                    Some(Content::Unusable(why)) => Some(IncludeProblem::Unusable(why.clone())),
                    None if include_path(folder, &name).is_some() => None,
                    None => {
                        let why = "is outside this folder".to_owned();
                        Some(IncludeProblem::Unusable(why))
                    }
                };
                return Line::Include { name, problem };
            }
            if gitignore::is_blank(line) {
                return Line::Nothing;
            }
            match gitignore::is_negated(line) {
                Ok(negated) => Line::Pattern { negated },
                Err(NoGlob::NeverMatches) => Line::Unmatchable,
                Err(NoGlob::TooLarge) => Line::TooLarge,
            }
        })
        .collect()
}

/// Matches the existing paths in `folder` with the lines of a rule file.
///
/// # Errors
/// `cancelled`.
pub fn effects(folder: &AbsPath, text: &[u8], cancel: &Cancel) -> Result<Effects, Error> {
    let includes = includes_of(folder, text);
    let Ok(rules) = compile(folder, text, &includes) else {
        return Ok(Effects::default());
    };
    let mut effects = Effects {
        complete: true,
        ..Effects::default()
    };
    if rules.is_empty() {
        return Ok(effects);
    }
    let lifting: BTreeSet<u32> = gitignore::lines(text)
        .filter(|(_, line)| built_in::lifts(line))
        .map(|(number, _)| number)
        .collect();
    let until = Instant::now() + BUDGET;
    let mut seen = 0;
    let mut folders = VecDeque::from([PathBuf::new()]);
    while let Some(at) = folders.pop_front() {
        cancel.check()?;
        let Ok(entries) = fs::read_dir(folder.as_path().join(&at)) else {
            effects.complete = false;
            continue;
        };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            seen += 1;
            if seen % STRIDE == 0 {
                cancel.check()?;
            }
            if seen > MAX_PATHS || seen % STRIDE == 0 && Instant::now() > until {
                effects.complete = false;
                return Ok(effects);
            }
            let rel = at.join(entry.file_name());
            let kind = entry.file_type();
            let is_folder = kind.as_ref().is_ok_and(fs::FileType::is_dir);
            // As in access checks, a symlink counts as its target. It is not entered.
            let is_dir =
                is_folder || kind.is_ok_and(|kind| kind.is_symlink()) && entry.path().is_dir();
            let decision = rules.deciding(&bytes_of(&rel)).of(is_dir);
            let is_lifting = |line| lifting.contains(&line);
            if let Match::Whitelist(rule) = decision
                && !is_lifting(rule.line)
                && let Some(name) = RelPath::new(&rel)
                && built_in::rules().denial(&name, || is_dir).is_some()
            {
                let effect = effects.by_line.entry(rule.line).or_default();
                effect.secret.get_or_insert_with(|| name.to_wire().0);
            } else if let Some(rule) = decision.inner() {
                let effect = effects.by_line.entry(rule.line).or_default();
                effect.count += 1;
                if effect.examples.len() < EXAMPLES
                    && let Some(name) = RelPath::new(&rel)
                {
                    let end = if is_dir { "/" } else { "" };
                    effect.examples.push(format!("{}{end}", name.to_wire().0));
                }
            }
            if is_folder && !decision.is_ignore() {
                folders.push_back(rel);
            }
        }
    }
    Ok(effects)
}

/// Compiles the rules of a text. Those of an included file are reported for the line that includes it.
fn compile(folder: &AbsPath, text: &[u8], includes: &[Source]) -> Result<PatternSet, CompileError> {
    let source: Arc<str> = RULE_FILE.into();
    let mut rule_lines = Vec::new();
    for part in rule_parts(folder, text, includes) {
        let (number, texts) = match part {
            RulePart::Line(number, text) => (number, vec![text]),
            RulePart::Include(number, _, text) => (
                number,
                gitignore::lines(text).map(|(_, line)| line).collect(),
            ),
        };
        rule_lines.extend(texts.into_iter().map(|text| RuleLine {
            source: source.clone(),
            number,
            text,
            origin: Origin::User,
        }));
    }
    PatternSet::access_rules(rule_lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> (tempfile::TempDir, AbsPath) {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(&sightline_base::path::canonicalize(dir.path()).unwrap()).unwrap();
        for file in files {
            let path = root.as_path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        (dir, root)
    }

    #[test]
    fn lines_mean_what_they_mean_in_git() {
        let (_dir, root) = folder(&["more"]);
        let text = b"# c\n\n*.key\n!a.key\r\n!\n/\na\\\n[a\n!include more\n!include none\n!include ../x\n   ";
        let pattern = |negated| Line::Pattern { negated };
        let include = |name: &str, problem| Line::Include {
            name: name.to_owned(),
            problem,
        };
        let found = lines(&root, text);
        assert_eq!(
            found[..4],
            [Line::Nothing, Line::Nothing, pattern(false), pattern(true)]
        );
        assert_eq!(found[4..6], [Line::Unmatchable, Line::Unmatchable]);
        assert_eq!(found[8], include("more", None));
        assert_eq!(found[9], include("none", Some(IncludeProblem::Missing)));
        assert!(
            matches!(&found[10], Line::Include { problem: Some(IncludeProblem::Unusable(why)), .. } if why.contains("outside")),
            "{:?}",
            found[10]
        );
        assert_eq!(found[11], Line::Nothing);
    }

    #[test]
    fn each_path_counts_for_its_deciding_line() {
        let (_dir, root) = folder(&["a.key", "b/b.key", "b/keep.key", "out/x/y.key", "c.txt"]);
        fs::write(root.as_path().join("more"), "*.txt\n").unwrap();
        let text = b"*.key\n!keep.key\nout/\nout/x\nnothing\n!include more\n";
        let effects = effects(&root, text, &Cancel::default()).unwrap();
        assert!(effects.complete);
        let of = |line: u32| {
            let effect = effects.by_line.get(&line).cloned().unwrap_or_default();
            (effect.count, effect.examples.join(" "))
        };
        assert_eq!(of(1), (2, "a.key b/b.key".to_owned()));
        assert_eq!(of(2), (1, "b/keep.key".to_owned()));
        assert_eq!(of(3), (1, "out/".to_owned()));
        assert_eq!((of(4).0, of(5).0), (0, 0));
        assert_eq!(of(6), (1, "c.txt".to_owned()));
    }

    #[test]
    fn matching_can_be_cancelled() {
        let (_dir, root) = folder(&["a"]);
        let cancel = Cancel::default();
        cancel.cancel();
        assert!(effects(&root, b"a\n", &cancel).is_err());
    }
}
