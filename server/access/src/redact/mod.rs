//! Takes the contents of denied files out of any text.
//!
//! [`HiddenContents`] knows the secret values and the lines of the denied files of all roots. A [`Redactor`]
//! replaces them in a text, and the sections of denied files in diffs. Values are compared exactly, also as
//! written in addresses, JSON and Base64. There are no patterns, so other hashes, tokens and signed addresses
//! stay as they are.
//!
//! What an allowed file that git tracks contains is not secret. Short values, values in other encodings, and
//! files that are not text are not recognized.
//!
//! ```
//! use std::{fs, sync::Arc};
//!
//! use sightline_access::{
//!     Access,
//!     redact::{HiddenContents, Redactor},
//! };
//! use sightline_base::path::{AbsPath, Root, Roots};
//! use sightline_protocol::settings::Secrets;
//!
//! let folder = tempfile::tempdir()?;
//! fs::write(folder.path().join(".env"), "API_KEY=sk-live-51H8x9JkLmNoP\n")?;
//! let path = AbsPath::new(folder.path()).ok_or("the folder has no absolute path")?;
//! let root = Root::new(path, None);
//! let access = Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Deny);
//! let (view, _) = access.view();
//!
//! let contents = HiddenContents::read(&view);
//! let redacted = Redactor::new(&view, &contents, None).redact("curl -H 'X-Key: sk-live-51H8x9JkLmNoP'");
//! assert_eq!(redacted.text, "curl -H 'X-Key: [hidden: .env]'");
//! assert_eq!(redacted.hidden[0].path, ".env");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod files;
mod kept;
mod names;
mod public;
mod search;
mod sections;
mod values;

use std::{borrow::Cow, collections::HashMap, fmt, hash::BuildHasher, time::SystemTime};

use foldhash::quality::RandomState;
use parking_lot::Mutex;
use sightline_base::path::Location;
use sightline_protocol::{access::AccessRule, decision::HiddenFile};
use zeroize::Zeroizing;

pub use self::{
    kept::KeptContents, names::names_denied_file, values::MIN_BYTES as MIN_VALUE_BYTES,
};
use self::{
    names::Names,
    search::{Match, Spellings},
    sections::{Sections, path_of_heading},
};
use crate::AccessView;

/// Maximum size of all values, in bytes. More are not recognized.
const MAX_VALUE_BYTES: usize = 4 << 20;
/// Maximum number of values. Each has about ten spellings.
const MAX_VALUES: usize = 20_000;
/// Maximum number of lines.
const MAX_LINES: usize = 200_000;
/// Maximum number of denied files that are read.
const MAX_FILES: usize = 2_000;
/// Maximum number of files and folders that are searched for denied files.
const MAX_ENTRIES: usize = 500_000;
/// Maximum prefixes of a line that are removed: marks of diffs, line numbers, file names.
const MAX_PREFIXES: usize = 4;

/// Returns the text in place of the contents of a file.
pub fn contents_notice(path: &str, rule: Option<&AccessRule>) -> String {
    let by = match rule {
        Some(rule) if rule.line > 0 => format!(" by {}:{}", rule.source, rule.line),
        Some(rule) => format!(" by {}", rule.source),
        None => String::new(),
    };
    format!("[Sightline: the contents of {path} are hidden from agents{by}.]")
}

/// Returns the text in place of a single value of a file.
pub fn value_notice(path: &str) -> String {
    format!("[hidden: {path}]")
}

/// The contents of the denied files at one point in time. Values are kept in memory only, and erased when
/// they are dropped; of lines, only hashes are kept.
#[derive(Default)]
pub struct HiddenContents {
    files: Vec<File>,
    values: Vec<SecretValue>,
    spellings: Spellings,
    lines: HashMap<u64, u32, foldhash::fast::FixedState>,
    hasher: RandomState,
    /// Length of the shortest line, in bytes.
    min_line: usize,
    /// Whether allowed files contain a value or line, by its hash.
    public: Mutex<HashMap<u64, bool>>,
    /// The same for lines in files that git does not track, if files before this time count.
    older: Option<(SystemTime, Mutex<HashMap<u64, bool>>)>,
    rules: u64,
    complete: bool,
}

struct SecretValue {
    text: Zeroizing<Box<str>>,
    file: u32,
}

struct File {
    shown: String,
    rule: Option<AccessRule>,
}

/// Shows no content.
impl fmt::Debug for HiddenContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HiddenContents")
            .field("files", &self.files.len())
            .field("values", &self.values.len())
            .finish_non_exhaustive()
    }
}

impl HiddenContents {
    /// Reads the denied files below the roots of a view.
    pub fn read(view: &AccessView) -> Self {
        let mut tree = files::Tree::new(MAX_ENTRIES);
        tree.refresh(view);
        Self::of(&tree, view, values::MIN_LINE_BYTES, None)
    }

    /// Reads the denied files of a tree. See [`KeptContents::with_public_lines`].
    fn of(
        tree: &files::Tree,
        view: &AccessView,
        min_line: usize,
        public_before: Option<SystemTime>,
    ) -> Self {
        let denied = tree.denied();
        let mut complete = tree.is_complete() && denied.len() <= MAX_FILES;
        let mut contents = Self {
            min_line,
            older: public_before.map(|before| (before, Mutex::default())),
            rules: tree.rules(view),
            ..Self::default()
        };
        for (file, rule) in denied.into_iter().take(MAX_FILES) {
            let (root, rel) = (file.root, file.rel.clone());
            contents.files.push(File {
                shown: view.roots().block_path(&Location::Inside { root, rel }).0,
                rule: rule.cloned(),
            });
            let text = files::read(&file.path);
            complete &= text.is_none_or(|text| contents.add(&text));
        }
        contents.complete = complete;
        contents
    }

    /// Returns a hash of the roots and rules by which the files are denied, the same in each process.
    pub fn rules(&self) -> u64 {
        self.rules
    }

    /// Adds the content of the last file. Returns whether there is room for all of it.
    fn add(&mut self, text: &str) -> bool {
        let file = u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX);
        let values = values::secret_values(text);
        let mut size: usize = self.values.iter().map(|value| value.text.len()).sum();
        for value in &values {
            size += value.len();
            if size > MAX_VALUE_BYTES || self.values.len() >= MAX_VALUES {
                return false;
            }
            let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
            self.spellings.add(number, value);
            self.values.push(SecretValue {
                text: Zeroizing::new((*value).into()),
                file,
            });
        }
        for line in text.lines().map(str::trim) {
            if values::is_distinctive(line, self.min_line)
                && !values.iter().any(|value| line.contains(value))
            {
                if self.lines.len() >= MAX_LINES {
                    return false;
                }
                self.lines.entry(self.hash(line)).or_insert(file);
            }
        }
        true
    }

    /// Returns whether all denied files fit into the limits.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }

    /// Returns the file with a line, which may have marks and numbers before it.
    fn file_of_line<'l>(&self, line: &'l str) -> Option<(u32, &'l str)> {
        let mut line = line.trim();
        for _ in 0..=MAX_PREFIXES {
            if line.len() < self.min_line || self.lines.is_empty() {
                return None;
            }
            if let Some(file) = self.lines.get(&self.hash(line)) {
                return Some((*file, line));
            }
            line = without_prefix(line)?.trim();
        }
        None
    }
}

/// Removes what diffs, search tools and viewers print before a line: a mark, a number, or a name.
fn without_prefix(line: &str) -> Option<&str> {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits > 0 {
        let rest = &line[digits..];
        let marks = [':', '-', '\t', ' ', '|', '\u{2192}', '\u{2502}', ')'];
        return rest.strip_prefix(marks);
    }
    let marks = ['+', '-', '>', '<', '|', '\u{2502}'];
    line.strip_prefix(marks).or_else(|| {
        let (name, rest) = line.split_once(':')?;
        (!name.contains(char::is_whitespace)).then_some(rest)
    })
}

/// A text without the contents of denied files.
#[derive(Clone, Debug, PartialEq)]
pub struct Redacted<'t> {
    /// The text, with notices in place of what was hidden.
    pub text: Cow<'t, str>,
    /// The files whose contents were hidden.
    pub hidden: Vec<HiddenFile>,
    /// Number of lines that were left out.
    pub left_out: u32,
}

/// Replaces the contents of denied files in texts.
#[derive(Debug)]
pub struct Redactor<'a> {
    view: &'a AccessView,
    contents: &'a HiddenContents,
    names: Names<'a>,
}

/// What becomes of a line.
enum Fate {
    Kept,
    /// It is left out without a notice.
    LeftOut,
    /// It is content of the file with this number in `hidden`.
    Content(usize),
}

impl<'a> Redactor<'a> {
    /// Creates a redactor for texts of a program. `folder`: its working directory, if it is known.
    pub fn new(view: &'a AccessView, contents: &'a HiddenContents, folder: Option<&str>) -> Self {
        Self {
            view,
            contents,
            names: Names::new(view, folder),
        }
    }

    /// Returns whether a line names a denied file.
    pub fn names_denied(&mut self, line: &str) -> bool {
        self.names.in_line(line)
    }

    /// Replaces values, lines and sections of diffs.
    pub fn redact<'t>(&mut self, text: &'t str) -> Redacted<'t> {
        self.redact_after("", text, false)
    }

    /// [`Self::redact`] for the rest of a text that started with `before`. `leave_out_names`: lines that name a
    /// denied file, and those with its contents, are left out without a notice.
    pub fn redact_after<'t>(
        &mut self,
        before: &str,
        text: &'t str,
        leave_out_names: bool,
    ) -> Redacted<'t> {
        if let Cow::Owned(plain) = without_colors(text) {
            let redacted = self.redact_after(before, &plain, leave_out_names);
            let is_changed = !redacted.hidden.is_empty() || redacted.left_out > 0;
            return Redacted {
                text: match is_changed {
                    true => Cow::Owned(redacted.text.into_owned()),
                    false => Cow::Borrowed(text),
                },
                ..redacted
            };
        }
        let mut redacted = Redacted {
            text: Cow::Borrowed(text),
            hidden: Vec::new(),
            left_out: 0,
        };
        let matches = self.secret_matches(text);
        let lines = self.secret_lines(text);
        let has_sections = || [before, text].into_iter().any(sections::may_begin);
        if matches.is_empty() && lines.is_empty() && !leave_out_names && !has_sections() {
            return redacted;
        }
        let mut matches = matches.into_iter().peekable();
        let mut lines = lines.into_iter().peekable();
        let mut sections = Sections::default();
        let mut start = 0;
        for line in before.split_inclusive('\n') {
            start += line.len();
            let rest = if start < before.len() {
                &before[start..]
            } else {
                text
            };
            let line = line.trim_end_matches(['\n', '\r']);
            sections.next(line, rest, |heading| self.names.in_line(heading));
        }
        let mut shown = String::new();
        let mut is_changed = false;
        let mut last = None;
        start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            let rest = &text[end..];
            let secret = lines.next_if(|(at, _)| *at == start).map(|(_, file)| file);
            let hidden = &mut redacted.hidden;
            let fate = self.fate(line, rest, secret, &mut sections, leave_out_names, hidden);
            is_changed |= !matches!(fate, Fate::Kept);
            let before = last;
            last = None;
            match fate {
                Fate::Kept => {
                    let mut from = start;
                    while let Some(found) = matches.next_if(|found| found.range.start < end) {
                        let file = &self.contents.files
                            [self.contents.values[found.value as usize].file as usize];
                        shown.push_str(&text[from..found.range.start.max(from)]);
                        shown.push_str(&value_notice(&file.shown));
                        count(&mut redacted.hidden, &file.shown, file.rule.as_ref(), 1);
                        from = found.range.end;
                        is_changed = true;
                    }
                    shown.push_str(&text[from.min(end)..end]);
                }
                Fate::LeftOut => redacted.left_out += 1,
                Fate::Content(file) => {
                    last = Some(file);
                    if before != Some(file) {
                        let hidden = &redacted.hidden[file];
                        shown.push_str(&contents_notice(&hidden.path, hidden.rule.as_ref()));
                        if line.ends_with('\n') {
                            shown.push('\n');
                        }
                    }
                }
            }
            while matches.next_if(|found| found.range.start < end).is_some() {}
            start = end;
        }
        if is_changed {
            redacted.text = Cow::Owned(shown);
        }
        redacted
    }

    fn fate(
        &mut self,
        line: &str,
        rest: &str,
        secret: Option<u32>,
        sections: &mut Sections,
        leave_out_names: bool,
        hidden: &mut Vec<HiddenFile>,
    ) -> Fate {
        let line = line.trim_end_matches(['\n', '\r']);
        if let Some(heading) = sections.next(line, rest, |heading| self.names.in_line(heading)) {
            let (path, rule) = self.file_of_heading(heading);
            let file = count(hidden, &path, rule.as_ref(), 1);
            return if leave_out_names {
                Fate::LeftOut
            } else {
                Fate::Content(file)
            };
        }
        if leave_out_names && self.names.in_line(line) {
            return Fate::LeftOut;
        }
        let Some(file) = secret else {
            return Fate::Kept;
        };
        let file = &self.contents.files[file as usize];
        let number = count(hidden, &file.shown, file.rule.as_ref(), 1);
        if leave_out_names {
            Fate::LeftOut
        } else {
            Fate::Content(number)
        }
    }

    fn file_of_heading(&self, heading: &str) -> (String, Option<AccessRule>) {
        let path = path_of_heading(heading);
        let rule = self.view.check_written(path).1.rule;
        (path.to_owned(), rule)
    }

    /// Returns the values in a text that no allowed file contains.
    fn secret_matches(&self, text: &str) -> Vec<Match> {
        let mut matches = self.contents.spellings.find(text);
        let values = matches
            .iter()
            .map(|found| &*self.contents.values[found.value as usize].text);
        let values: Vec<&str> = values.map(|value| &**value).collect();
        self.look_up(&values);
        matches.retain(|found| {
            let value = &self.contents.values[found.value as usize].text;
            !self.is_public(value)
        });
        matches
    }

    /// Returns whether an allowed file that git tracks contains a text.
    fn is_public(&self, text: &str) -> bool {
        self.look_up(&[text]);
        let hash = self.contents.hash(text);
        let public = self.contents.public.lock();
        public.get(&hash).copied().unwrap_or(false)
    }

    /// Returns the lines of a text that only denied files contain: where they start, and the numbers of
    /// the files.
    fn secret_lines(&self, text: &str) -> Vec<(usize, u32)> {
        let mut start = 0;
        let mut found = Vec::new();
        for line in text.split_inclusive('\n') {
            if let Some((file, content)) = self.contents.file_of_line(line) {
                found.push((start, file, content));
            }
            start += line.len();
        }
        let lines: Vec<&str> = found.iter().map(|(.., line)| *line).collect();
        self.look_up(&lines);
        self.look_up_older(lines);
        found.retain(|(.., line)| !self.is_public(line) && !self.is_older(line));
        found
            .into_iter()
            .map(|(start, file, _)| (start, file))
            .collect()
    }

    /// Determines which of these lines older allowed files contain.
    fn look_up_older(&self, mut lines: Vec<&str>) {
        let Some((before, known)) = &self.contents.older else {
            return;
        };
        let mut known = known.lock();
        lines
            .retain(|line| !known.contains_key(&self.contents.hash(line)) && !self.is_public(line));
        if lines.is_empty() {
            return;
        }
        let public = public::in_older_files(self.view, &lines, *before);
        for line in lines {
            known.insert(self.contents.hash(line), public.contains(line));
        }
    }

    /// Returns whether an older allowed file contains a line.
    fn is_older(&self, line: &str) -> bool {
        let hash = self.contents.hash(line);
        let known = |known: &Mutex<HashMap<u64, bool>>| known.lock().get(&hash) == Some(&true);
        self.contents
            .older
            .as_ref()
            .is_some_and(|(_, lines)| known(lines))
    }

    /// Determines which of these texts are public, with one process for all.
    fn look_up(&self, texts: &[&str]) {
        let mut unknown: Vec<&str> = texts.to_vec();
        {
            let known = self.contents.public.lock();
            unknown.retain(|text| !known.contains_key(&self.contents.hash(text)));
        }
        if unknown.is_empty() {
            return;
        }
        let public = public::in_tracked_files(self.view, &unknown);
        let mut known = self.contents.public.lock();
        for text in unknown {
            known.insert(self.contents.hash(text), public.contains(text));
        }
    }
}

/// Returns a text without escape sequences of terminals, which divide values and stand before lines.
pub fn without_colors(text: &str) -> Cow<'_, str> {
    let Some((start, mut rest)) = text.split_once('\u{1b}') else {
        return Cow::Borrowed(text);
    };
    let mut plain = start.to_owned();
    loop {
        let mut left = rest.chars();
        match left.next() {
            Some('[') => drop(left.find(|c| ('@'..='~').contains(c))),
            // An address, up to BEL or `ESC \`.
            Some(']') => {
                let end = left.find(|c| matches!(c, '\u{7}' | '\u{1b}'));
                let _ = end.filter(|c| *c == '\u{1b}').and_then(|_| left.next());
            }
            _ => {}
        }
        rest = left.as_str();
        let Some((text, next)) = rest.split_once('\u{1b}') else {
            plain.push_str(rest);
            return Cow::Owned(plain);
        };
        plain.push_str(text);
        rest = next;
    }
}

/// Counts a hidden piece of a file. Returns the number of the file.
fn count(hidden: &mut Vec<HiddenFile>, path: &str, rule: Option<&AccessRule>, more: u32) -> usize {
    let known = hidden.iter().position(|file| file.path == path);
    let at = known.unwrap_or_else(|| {
        hidden.push(HiddenFile {
            path: path.to_owned(),
            rule: rule.cloned(),
            count: 0,
        });
        hidden.len() - 1
    });
    hidden[at].count = hidden[at].count.saturating_add(more);
    at
}
