//! Include and exclude options of programs that read directories.

use super::{
    invocation::Invocation,
    options::{ProgramUse, excluded_path},
    program_table::{FolderReader, PatternStyle, Precedence, has},
    words::expand_braces,
};
use crate::access::git_glob::{Case, Matcher, NoGlob, Subject, Syntax};

/// Maximum filter options of one command. Further ones are ignored.
const MAX_FILTERS: usize = 500;

/// An entry of a directory tree.
pub(super) struct TreeEntry<'a> {
    /// Path as the program would print it.
    pub(super) path: &'a str,
    pub(super) is_dir: bool,
    /// Depth below the start directory; 1 for its direct entries.
    pub(super) depth: usize,
}

/// A pattern for entry names or paths.
pub(super) struct NamePattern {
    /// `None` for a pattern that matches nothing.
    matcher: Option<Matcher>,
    is_too_large: bool,
    style: PatternStyle,
    has_separator: bool,
    is_anchored: bool,
    ignores_case: bool,
}

impl NamePattern {
    pub(super) fn new(text: &str, style: PatternStyle) -> Self {
        let relative = text.strip_prefix("./").unwrap_or(text);
        let is_anchored = text.len() != relative.len() || text.starts_with('/');
        let plain = match style {
            PatternStyle::Exact => text,
            _ => relative.trim_matches('/'),
        };
        let syntax = Syntax::git(Case::Sensitive);
        let matcher = match style {
            _ if plain.is_empty() => Err(NoGlob::NeverMatches),
            PatternStyle::Whole | PatternStyle::Exact => {
                syntax.matcher(joined(plain).as_bytes(), Subject::Name)
            }
            _ => syntax.matcher(plain.as_bytes(), Subject::Path),
        };
        Self {
            is_too_large: matches!(matcher, Err(NoGlob::TooLarge)),
            matcher: matcher.ok(),
            style,
            has_separator: plain.contains('/'),
            is_anchored,
            ignores_case: false,
        }
    }

    /// Creates a case-insensitive pattern.
    pub(super) fn ignoring_case(text: &str, style: PatternStyle) -> Self {
        Self {
            ignores_case: true,
            ..Self::new(&text.to_lowercase(), style)
        }
    }

    /// Returns whether the pattern exceeds a size limit, so that its matches are unknown.
    pub(super) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    pub(super) fn matches(&self, entry: &TreeEntry<'_>) -> bool {
        let Some(matcher) = &self.matcher else {
            return false;
        };
        let lower;
        let written = if self.ignores_case {
            lower = entry.path.to_lowercase();
            &lower
        } else {
            entry.path
        };
        let path = relative(written);
        let name = path.rsplit('/').next().unwrap_or(path);
        match self.style {
            PatternStyle::Exact => matcher.is_match(joined(written).as_bytes()),
            PatternStyle::Whole => matcher.is_match(joined(path).as_bytes()),
            _ if !self.has_separator && !self.is_anchored => matcher.is_match(name.as_bytes()),
            PatternStyle::Name => false,
            PatternStyle::Suffix if !self.is_anchored => {
                let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
                let mut ends = std::iter::once(path).chain(ends);
                ends.any(|end| matcher.is_match(end.as_bytes()))
            }
            PatternStyle::Suffix | PatternStyle::Gitignore => matcher.is_match(path.as_bytes()),
        }
    }
}

/// Converts a path to a single name, so that `*` also matches separators.
fn joined(path: &str) -> String {
    path.replace('/', "\u{1}")
}

/// Removes `./` and `/` from the start of a path.
fn relative(path: &str) -> &str {
    let mut path = path.trim_start_matches('/');
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    path
}

struct FilterRule {
    pattern: NamePattern,
    excludes: bool,
    files: bool,
    folders: bool,
}

/// The filter options of a command.
pub(super) struct NameFilter {
    rules: Vec<FilterRule>,
    precedence: Precedence,
    /// Whether files without a matching pattern are skipped.
    only_included: bool,
    /// Whether patterns include entries that the program would skip by default.
    pub(super) overrides: bool,
}

impl NameFilter {
    pub(super) fn new(reader: &FolderReader, used: &ProgramUse) -> Self {
        let mut rules = Vec::new();
        let is_tar = has(used.program.names, "tar");
        for set in used.options.iter().take(MAX_FILTERS) {
            let Some(value) = &set.value else { continue };
            // `tar` applies an exclusion only to the operands after it.
            if is_tar && set.behind > 0 {
                continue;
            }
            let (mut excludes, mut text) = (true, value.as_str());
            let (files, folders) = if has(reader.exclude, &set.name) {
                (true, true)
            } else if has(reader.exclude_files, &set.name) {
                (true, false)
            } else if has(reader.exclude_folders, &set.name) {
                (false, true)
            } else if has(reader.include_files, &set.name) {
                excludes = false;
                (true, false)
            } else if has(reader.globs, &set.name) {
                excludes = value.starts_with('!');
                text = value.trim_start_matches('!');
                (true, excludes)
            } else {
                continue;
            };
            if has(used.program.names, "7z") {
                text = text.split_once('!').map_or("", |(_, text)| text);
            }
            let texts = match reader.style {
                PatternStyle::Gitignore => expand_braces(text).unwrap_or_default(),
                _ => vec![text.to_owned()],
            };
            // An exclusion counts in any case only if that is certain.
            let ignores_case = has(reader.ignores_case, &set.name)
                || !excludes && used.is_set(reader.ignores_case);
            let pattern = match ignores_case {
                true => NamePattern::ignoring_case,
                false => NamePattern::new,
            };
            rules.extend(texts.iter().map(|text| FilterRule {
                pattern: pattern(text, reader.style),
                excludes,
                files: files && !text.ends_with('/'),
                folders,
            }));
        }
        let includes = |rule: &&FilterRule| !rule.excludes;
        let only_included = match reader.precedence {
            Precedence::Last if reader.globs.is_empty() => rules.first().filter(includes).is_some(),
            Precedence::Last => rules.iter().any(|rule| !rule.excludes),
            Precedence::First | Precedence::Exclusion => false,
        };
        Self {
            overrides: !reader.globs.is_empty() && only_included,
            rules,
            precedence: reader.precedence,
            only_included,
        }
    }

    /// Collects the excluding pathspecs of git. Paths are relative to the top of the work tree;
    /// `below` is git's working directory.
    pub(super) fn of_pathspecs(invocation: &Invocation, used: &ProgramUse, below: &str) -> Self {
        let excluded = used
            .operands
            .iter()
            .filter_map(|at| excluded_path(invocation.exact(*at)?));
        let rules = excluded
            .take(MAX_FILTERS)
            .map(|(path, from_top)| FilterRule {
                pattern: NamePattern::new(&below_top(path, below, from_top), PatternStyle::Whole),
                excludes: true,
                files: true,
                folders: true,
            })
            .collect();
        Self {
            rules,
            precedence: Precedence::Exclusion,
            only_included: false,
            overrides: false,
        }
    }

    /// Returns whether the entry is read, or a directory is entered.
    pub(super) fn keeps(&self, entry: &TreeEntry<'_>) -> bool {
        let mut matching = self.rules.iter().filter(|rule| {
            let meant = if entry.is_dir {
                rule.folders
            } else {
                rule.files
            };
            // With unknown matches, more is read: nothing is excluded, everything is included.
            let may_include = rule.pattern.is_too_large() && !rule.excludes;
            meant && (may_include || rule.pattern.matches(entry))
        });
        let deciding = match self.precedence {
            Precedence::First => matching.next(),
            Precedence::Last => matching.next_back(),
            Precedence::Exclusion => matching.find(|rule| rule.excludes),
        };
        match deciding {
            Some(rule) => !rule.excludes,
            None => entry.is_dir || !self.only_included,
        }
    }
}

/// Returns a pathspec relative to the top of the work tree; empty for the top itself.
pub(super) fn below_top(path: &str, below: &str, from_top: bool) -> String {
    let mut names: Vec<&str> = Vec::new();
    let below = if from_top { "" } else { below };
    for name in below.split('/').chain(path.split('/')) {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.join("/")
}
