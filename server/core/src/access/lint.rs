//! A rule file as the person who writes it sees it: what each line is, and what
//! it does to what is there now.
//!
//! Works on text that need not be saved. What it finds names denied paths: it is
//! for the user's editor, never for an agent.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    git_glob::NoGlob,
    gitignore::{self, CompileError, PatternSet, RuleLine, bytes_of},
    rule_file::{
        Content, RULE_FILE, RulePart, Source, include_of, include_path, includes_of, rule_parts,
    },
};
use crate::{
    cancel::Cancel,
    error::Error,
    path::{AbsPath, RelPath},
};

/// Paths looked at for what lines do, and for how long.
const MAX_PATHS: usize = 200_000;
const BUDGET: Duration = Duration::from_secs(2);
/// Paths between two looks at the clock and at the cancel flag.
const STRIDE: usize = 512;
/// Paths named for one line.
const EXAMPLES: usize = 5;

/// What a line of a rule file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Blank or a comment.
    Nothing,
    /// A pattern; `!` at its front lets in again.
    Pattern {
        /// Does it let in?
        negated: bool,
    },
    /// What git matches with nothing, whatever there is.
    Unmatchable,
    /// A pattern over a size limit. Everything is denied for that.
    TooLarge,
    /// `!include` and the name of a file.
    Include {
        /// The name.
        name: String,
        /// What is wrong with the file.
        problem: Option<IncludeProblem>,
    },
}

/// What is wrong with an included file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncludeProblem {
    /// It is not there, and adds no rules.
    Missing,
    /// It cannot be used, in words, and everything is denied for that.
    Unusable(String),
}

/// What one line does to what is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Paths it decides on; what is below a denied folder is not counted.
    pub count: u64,
    /// Some of them, the uppermost first; folders end in `/`.
    pub examples: Vec<String>,
}

/// What all lines do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// By line, from 1; lines that decide on nothing are not in it.
    pub by_line: BTreeMap<u32, Effect>,
    /// Everything was looked at. Else there may be more.
    pub complete: bool,
}

/// The lines of a rule file that stands, or would stand, in `folder`: the first
/// is line 1.
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
                        let why = "lies outside this folder".to_owned();
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

/// What the lines of a rule file would do to the paths in `folder`.
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
            // As access sees it: a link is what it leads to, and not entered.
            let is_dir =
                is_folder || kind.is_ok_and(|kind| kind.is_symlink()) && entry.path().is_dir();
            let decision = rules.deciding(&bytes_of(&rel)).of(is_dir);
            if let Some(rule) = decision.inner() {
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
        }));
    }
    PatternSet::access_rules(rule_lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> (tempfile::TempDir, AbsPath) {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(&fs::canonicalize(dir.path()).unwrap()).unwrap();
        for file in files {
            let path = root.as_path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        (dir, root)
    }

    #[test]
    fn lines_are_what_git_takes_them_for() {
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
    fn each_path_counts_for_the_line_that_decides_on_it() {
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
    fn it_can_be_stopped() {
        let (_dir, root) = folder(&["a"]);
        let cancel = Cancel::default();
        cancel.cancel();
        assert!(effects(&root, b"a\n", &cancel).is_err());
    }
}
