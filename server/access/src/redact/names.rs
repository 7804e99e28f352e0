//! Detects lines of text that name a denied file.
//!
//! Terminal output is free text, so every word of a line that could be a path is resolved against
//! each root and the terminal's directory, and checked by name. A doubtful line counts as denied: a
//! missing line is a nuisance, a denied name is a leak.

use std::{
    cell::OnceCell,
    collections::HashMap,
    ffi::OsStr,
    path::{Component, Path},
};

use super::files;
use crate::{AccessView, Denial};
use sightline_base::{
    escape::{decode_octal, is_invisible},
    limits,
    path::{AbsPath, Location, RelPath, uri_to_path},
};

/// Characters that often surround a path and are rare in one.
const SEPARATORS: &[char] = &[
    '\'', '"', '`', '(', ')', '[', ']', '{', '}', '<', '>', ',', ':', '=', ';', '|', '&', '#', '@',
    '$', '%', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{ab}', '\u{bb}', '\u{2026}',
    '\u{2190}', '\u{2192}', '\u{2500}', '\u{2502}', '\u{b7}', '\u{2022}', '\u{3001}', '\u{3002}',
    '\u{ff0c}',
];
/// Characters before a path in diffs, mentions, lists and Markdown.
const MARKS_BEFORE: &[char] = &['+', '-', '@', '*', '!', '_', '~'];
/// Characters after a path: punctuation, marks of `ls -F`, Markdown.
const MARKS_AFTER: &[char] = &['.', '!', '?', '*', '@', '~', '_', '\u{2026}'];
/// Maximum hyphens of a word at which a file name may end.
const MAX_HYPHENS: usize = 16;
/// Maximum entries of a root that are searched for denied files. In a larger one, each name without its start
/// counts as denied.
const MAX_SEARCHED: usize = 20_000;

/// Checks lines of one terminal. Caches the verdict of each word.
#[derive(Debug)]
pub(super) struct Names<'a> {
    view: &'a AccessView,
    /// Directories that relative paths may start from, each below a root.
    bases: Vec<(usize, RelPath)>,
    /// Whether roots are nested, so that a path below one may belong to another.
    nested: bool,
    known: HashMap<String, bool>,
    /// The denied files below the roots, found on first use. `None` if there are too many entries.
    denied_files: OnceCell<Option<Vec<String>>>,
}

/// Returns the possible file names in `name-12-text` and `name-text`, the format of context lines
/// in search results.
fn before_hyphens(word: &str) -> impl Iterator<Item = &str> {
    let hyphens = word.match_indices('-').map(|(at, _)| at);
    hyphens.take(MAX_HYPHENS).filter_map(|at| {
        let (name, rest) = (word.get(..at)?, word.get(at + 1..)?);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let numbered = digits > 0 && rest.as_bytes().get(digits) == Some(&b'-');
        // An ordinary hyphenated word is not a file name.
        (numbered || name.contains(['.', '/'])).then_some(name)
    })
}

/// Returns the ends of names in a line of `git diff --stat` that has no room for their start, such as
/// `/dir/name` of ` .../dir/name | 2 +-`. Without a slash at its start, an end may begin within a name.
fn ends_of_names(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start_matches([' ', '\t', '|', '*', '/', '\\']);
    let (name, change) = line.rsplit_once(" | ")?;
    let change = change.trim_start();
    let is_stat = change.starts_with(|c: char| c.is_ascii_digit()) || change.starts_with("Bin");
    let is_cut = name.starts_with("...") || name.contains("{...") || name.contains("=> ...");
    if !is_stat || !is_cut {
        return None;
    }
    let name = name.trim_end().replace("...", "");
    if let Some(names) = renamed(&name) {
        return Some(names.into());
    }
    // The start of `{old => new}/name` is cut off.
    let (old, new) = name.split_once(" => ").unwrap_or(("", &name));
    let (new, after) = new.split_once('}').unwrap_or((new, ""));
    let ends = [old, new].into_iter().filter(|end| !end.is_empty());
    Some(
        ends.map(|end| format!("{end}{after}").replace("//", "/"))
            .collect(),
    )
}

/// Returns both names of a rename in git's format `dir/{old => new}/name`.
fn renamed(line: &str) -> Option<[String; 2]> {
    let (before, rest) = line.split_once('{')?;
    let (old, rest) = rest.split_once(" => ")?;
    let (new, after) = rest.split_once('}')?;
    let before = before.rsplit(char::is_whitespace).next()?;
    let after = after.split(char::is_whitespace).next()?;
    Some([old, new].map(|part| format!("{before}{part}{after}").replace("//", "/")))
}

/// Decodes octal escapes such as `\303\251`. Returns `None` if there are none.
fn without_octal(word: &str) -> Option<String> {
    let decoded = decode_octal(word.as_bytes());
    (decoded.len() < word.len()).then(|| String::from_utf8_lossy(&decoded).into_owned())
}

/// Decodes percent-encoding such as `%2E`. Returns `None` if there is none.
fn without_percent(word: &str) -> Option<String> {
    let decoded = percent_encoding::percent_decode_str(word).decode_utf8_lossy();
    (decoded != word).then(|| decoded.into_owned())
}

/// Removes shell quotes, as in `'a'$'\303'`. Returns `None` if there are none.
fn without_quotes(word: &str) -> Option<String> {
    let has = word.contains(['\'', '"']);
    has.then(|| word.replace("$'", "").replace(['\'', '"'], ""))
}

/// Verdict on a word.
enum NameVerdict {
    Clean,
    /// Denied if it is a file name at all.
    PossiblyDenied,
    Denied,
}

/// Returns whether a line of `text` names a file that the rules of `view` deny.
pub fn names_denied_file(view: &AccessView, text: &str) -> bool {
    let mut names = Names::new(view, None);
    text.lines().any(|line| names.in_line(line))
}

impl<'a> Names<'a> {
    /// Creates the check for the output of a terminal with working directory `cwd`.
    pub(super) fn new(view: &'a AccessView, cwd: Option<&str>) -> Self {
        let roots = view.roots();
        let mut bases: Vec<_> = (0..roots.as_slice().len())
            .map(|root| (root, RelPath::default()))
            .collect();
        if let Some(Ok(Location::Inside { root, rel })) = cwd.map(|cwd| roots.locate(cwd))
            && !rel.is_root()
        {
            bases.push((root, rel));
        }
        let nested = roots.as_slice().iter().any(|inner| {
            let mut others = roots.as_slice().iter().filter(|outer| *outer != inner);
            others.any(|outer| inner.canonical.relative_to(&outer.canonical).is_some())
        });
        Self {
            view,
            bases,
            nested,
            known: HashMap::new(),
            denied_files: OnceCell::new(),
        }
    }

    /// Returns whether `line` names a denied file.
    pub(super) fn in_line(&mut self, line: &str) -> bool {
        if line.contains(is_invisible) {
            let visible = line.replace(is_invisible, "");
            if self.in_visible_line(&visible) {
                return true;
            }
        }
        self.in_visible_line(line)
    }

    fn in_visible_line(&mut self, line: &str) -> bool {
        let ends = ends_of_names(line).unwrap_or_default();
        if ends.iter().any(|end| self.is_end_denied(end)) {
            return true;
        }
        // Names with spaces: alone on the line, or in quotes.
        let quotes = ['\'', '"', '`'];
        let quoted = quotes
            .into_iter()
            .filter(|quote| line.contains(*quote))
            .flat_map(|quote| line.split(quote));
        if quoted
            .chain([line.trim()])
            .any(|name| name.contains(char::is_whitespace) && self.is_denied(name))
        {
            return true;
        }
        if renamed(line).is_some_and(|names| names.iter().any(|name| self.is_denied(name))) {
            return true;
        }
        line.split_whitespace().any(|word| {
            self.is_denied_marked(word)
                || before_hyphens(word).any(|name| self.is_denied_marked(name))
                || without_quotes(word).is_some_and(|name| self.is_denied_marked(&name))
                || (word.contains(SEPARATORS)
                    && word
                        .split(SEPARATORS)
                        .any(|part| self.is_denied_marked(part)))
        })
    }

    /// Returns whether a denied file may have a name with this end: by a rule for any folder, by a rule for one
    /// folder, or because such a file exists.
    fn is_end_denied(&mut self, end: &str) -> bool {
        let is_cut = !end.starts_with('/');
        let end = end.trim_start_matches('/');
        let by_rule = |pattern: &String| {
            let mut folders = Path::new(pattern).ancestors().skip(1);
            is_cut && pattern.ends_with(end)
                || folders.any(|folder| self.check_path(&format!("{}/{end}", folder.display())))
        };
        let has_end = |file: &String| {
            let start = file.strip_suffix(end);
            start.is_some_and(|start| is_cut || start.is_empty() || start.ends_with('/'))
        };
        anchored_patterns(self.view).iter().any(by_rule)
            || self
                .denied_files()
                .is_none_or(|files| files.iter().any(has_end))
            || self.is_denied(end)
    }

    /// Returns the denied files below the roots, or `None` if not all were found.
    fn denied_files(&self) -> Option<&Vec<String>> {
        let found = self.denied_files.get_or_init(|| {
            let mut tree = files::Tree::new(MAX_SEARCHED);
            tree.refresh(self.view);
            let paths = tree.denied().into_iter().map(|(file, _)| &file.rel);
            let names = paths.map(|rel| rel.as_path().to_string_lossy().into_owned());
            tree.is_complete().then(|| names.collect())
        });
        found.as_ref()
    }

    fn is_denied_marked(&mut self, word: &str) -> bool {
        let bare = word
            .trim_start_matches(MARKS_BEFORE)
            .trim_end_matches(MARKS_AFTER);
        self.is_denied(word) || (bare.len() < word.len() && self.is_denied(bare))
    }

    fn is_denied(&mut self, word: &str) -> bool {
        if word.is_empty() || word.len() > limits::MAX_PATH_BYTES {
            return false;
        }
        if let Some(known) = self.known.get(word) {
            return *known;
        }
        let denied = self.check_spellings(word);
        self.known.insert(word.to_owned(), denied);
        denied
    }

    fn check_spellings(&self, word: &str) -> bool {
        if let Ok(Some(path)) = uri_to_path(word) {
            return self.check_absolute(path);
        }
        let decoded = [without_octal(word), without_percent(word)];
        if decoded
            .into_iter()
            .flatten()
            .any(|word| self.check_diff_sides(&word))
        {
            return true;
        }
        self.check_diff_sides(word)
    }

    fn check_diff_sides(&self, word: &str) -> bool {
        self.check_path(word)
            || (word.contains('\\') && self.check_path(&word.replace('\\', "/")))
            // git prefixes both sides of a diff with `a/` and `b/`.
            || ["a/", "b/"]
                .iter()
                .filter_map(|side| word.strip_prefix(side))
                .any(|path| self.check_path(path))
    }

    fn check_path(&self, word: &str) -> bool {
        let path = Path::new(word);
        if let Some(path) = AbsPath::new(path) {
            return self.check_absolute(path);
        }
        let mut components = path.components();
        if let (Some(Component::Normal(name)), None) = (components.next(), components.next()) {
            let is_dir = word.ends_with('/');
            return self
                .bases
                .iter()
                .any(|(root, base)| self.check_name(*root, base, name, is_dir));
        }
        self.bases.iter().any(|(root, base)| {
            let below = base.as_path().join(path);
            if !self.nested
                && let Some(rel) = RelPath::new(&below)
            {
                return !matches!(self.check(*root, &rel), NameVerdict::Clean);
            }
            let Some(root) = self.view.roots().get(*root) else {
                return false;
            };
            let absolute = root.path.as_path().join(below);
            AbsPath::new(&absolute).is_some_and(|path| self.check_absolute(path))
        })
    }

    /// Checks a single word. An ordinary word counts as a file name only if the rule targets such
    /// names or a file of that name exists.
    fn check_name(&self, root: usize, base: &RelPath, name: &OsStr, is_dir: bool) -> bool {
        let rel = base.child(name);
        match self.check(root, &rel) {
            NameVerdict::Clean => false,
            NameVerdict::Denied => true,
            NameVerdict::PossiblyDenied => is_dir || self.exists(root, &rel),
        }
    }

    fn check_absolute(&self, path: AbsPath) -> bool {
        match self.view.roots().place(path) {
            Location::Outside(_) => false,
            Location::Inside { root, rel } => !matches!(self.check(root, &rel), NameVerdict::Clean),
        }
    }

    fn check(&self, root: usize, rel: &RelPath) -> NameVerdict {
        let Some(parent) = rel.parent() else {
            return NameVerdict::Clean;
        };
        let mut folder = RelPath::default();
        for name in parent.components() {
            folder = folder.child(name);
            if self.view.check_entry(root, &folder, true).is_some() {
                return NameVerdict::Denied;
            }
        }
        match self.view.judge_entry(root, rel, false) {
            Some(denial) if denies_everything(&denial) => NameVerdict::PossiblyDenied,
            Some(_) => NameVerdict::Denied,
            None if self.view.check_entry(root, rel, true).is_some() => NameVerdict::PossiblyDenied,
            None => NameVerdict::Clean,
        }
    }

    fn exists(&self, root: usize, rel: &RelPath) -> bool {
        self.view
            .roots()
            .get(root)
            .is_some_and(|root| std::fs::symlink_metadata(root.path.join(rel).as_path()).is_ok())
    }
}

/// Returns the patterns of rules for files of one folder, with `x` in place of wildcards in folder names.
fn anchored_patterns(view: &AccessView) -> Vec<String> {
    let roots = 0..view.roots().as_slice().len();
    let rules = roots.flat_map(|root| view.entry_rules(root));
    let mut patterns = Vec::new();
    for content in rules.filter_map(|rules| rules.content.ok()) {
        for line in String::from_utf8_lossy(&content).lines() {
            let line = line.trim_end();
            let is_anchored = line.trim_start_matches('/').contains('/') && !line.ends_with('/');
            if is_anchored && !line.starts_with(['#', '!', '*']) {
                patterns.push(line.trim_start_matches('/').replace(['*', '?'], "x"));
            }
        }
    }
    patterns
}

/// Returns whether the deciding pattern matches every name (`*`, `/**`).
fn denies_everything(denial: &Denial) -> bool {
    denial.rule.as_ref().is_some_and(|rule| {
        let pattern = rule.pattern.trim();
        pattern.contains('*') && pattern.chars().all(|c| matches!(c, '*' | '/'))
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use super::*;
    use crate::Access;
    use sightline_base::path::{Root, Roots};
    use sightline_protocol::settings::Secrets;

    fn view(folder: &Path, rules: &str) -> AccessView {
        fs::write(folder.join(".clineignore"), rules).unwrap();
        let root = Root::new(AbsPath::new(folder).unwrap(), None);
        Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Allow)
            .view()
            .0
    }

    #[test]
    fn denied_names_are_found_anywhere_in_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let view = view(
            folder.path(),
            "*.secret\n/config/keys.env\nprivate/\nmy notes.txt\n",
        );
        let root = folder.path().display().to_string();
        let mut names = Names::new(&view, None);
        for line in [
            "x.secret",
            "-rw-r--r-- 1 me me 0 Jan  1 00:00 x.secret",
            "sub/x.secret:12:3: error",
            "error in \"x.secret\".",
            "--file=x.secret",
            "see (x.secret), please",
            "what about x.secret?",
            "x.secret*",
            "@x.secret",
            "sub\\x.secret",
            "X.SECRET",
            "config/keys.env",
            "./config/keys.env",
            "src/../config/keys.env",
            "diff --git a/config/keys.env b/config/keys.env",
            &format!("{root}/config/keys.env"),
            &format!("file://{root}/config/keys.env"),
            "private/",
            "private/anything",
            "a  my notes.txt".trim_start_matches("a  "),
            "cat 'my notes.txt'",
        ] {
            assert!(names.in_line(line), "{line}");
        }
        for line in [
            "",
            "secret",
            "x.secrets",
            "keys.env",
            "other/config/keys.env",
            "my notes",
            "a private matter",
            "/etc/passwd",
            "http://example.org/x",
        ] {
            assert!(!names.in_line(line), "{line}");
        }
    }

    #[test]
    fn a_word_matching_a_directory_rule_counts_if_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let view = view(folder.path(), "build/\n");
        assert!(!Names::new(&view, None).in_line("build finished"));
        fs::create_dir(folder.path().join("build")).unwrap();
        assert!(Names::new(&view, None).in_line("build src"));
        // A context line of a search has a number.
        assert!(Names::new(&view, None).in_line("build-12-text"));
        assert!(!Names::new(&view, None).in_line("build-12"));
        assert!(!Names::new(&view, None).in_line("build-time"));
    }

    #[test]
    fn a_rule_that_denies_everything_does_not_hide_ordinary_words() {
        let folder = tempfile::tempdir().unwrap();
        let view = view(folder.path(), "*\n!/src/\n!/src/**\n");
        fs::write(folder.path().join("id_rsa"), "").unwrap();
        let mut names = Names::new(&view, None);
        assert!(!names.in_line("compiling, please wait..."));
        assert!(!names.in_line("src/main.rs is fine"));
        assert!(names.in_line("id_rsa"));
        assert!(names.in_line("other/main.rs"));
    }

    #[test]
    fn a_root_inside_another_has_its_own_rules() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join(".clineignore"), "/keys.env\n").unwrap();
        let roots = [folder.path(), inner.as_path()]
            .map(|path| Root::new(AbsPath::new(path).unwrap(), None));
        let roots = Arc::new(Roots::new(roots.into()));
        let view = Access::new(roots, Vec::new(), Secrets::Allow).view().0;
        assert!(Names::new(&view, None).in_line("edited inner/keys.env"));
    }

    #[test]
    fn names_are_also_relative_to_the_terminals_folder() {
        let folder = tempfile::tempdir().unwrap();
        let view = view(folder.path(), "/config/keys.env\n");
        let cwd = folder.path().join("config").display().to_string();
        assert!(Names::new(&view, Some(&cwd)).in_line("keys.env"));
        assert!(!Names::new(&view, Some("/")).in_line("keys.env"));
    }
}
