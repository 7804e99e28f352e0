//! The sections of denied files in diffs, and in the output of `head` and `tail`.

use memchr::memmem;

/// First words of lines between the heading of a diff and its changes.
const HEADERS: [&str; 13] = [
    "index ",
    "old mode ",
    "new mode ",
    "deleted file ",
    "new file ",
    "copy ",
    "rename ",
    "similarity ",
    "dissimilarity ",
    "Binary files ",
    "--- ",
    "+++ ",
    "\\ ",
];

/// Characters of the graph of `git log --graph`.
const GRAPH: [char; 6] = ['|', '*', '\\', '/', '_', ' '];

/// Starts of the lines with which sections begin, without the graph.
const HEADINGS: [&str; 3] = ["diff -", "==> ", "--- "];

/// Returns whether a text may contain the heading of a section.
pub(super) fn may_begin(text: &str) -> bool {
    let has = |heading: &&str| memmem::find(text.as_bytes(), heading.as_bytes()).is_some();
    HEADINGS.iter().any(has)
}

/// Follows a text line by line.
#[derive(Debug, Default)]
pub(super) struct Sections {
    state: State,
    /// Lines of the old and the new version that are left in the current hunk.
    left: (u32, u32),
    /// The heading that names a denied file.
    denied: Option<String>,
    /// Width of the graph that `git log --graph` prints before each line of the diff, in bytes.
    graph: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Outside,
    /// After `diff -…`.
    Git,
    /// In changes without a count of lines, to the next heading.
    Uncounted,
    /// After `--- name` without `diff -…`.
    Plain,
    /// After `==> name <==` of `head` and `tail`, to the next one.
    Head,
}

impl Sections {
    /// Processes the next line. `rest` is the text after it: prose and code have lines that look like the
    /// heading of a diff, but no changes follow. Returns the heading of the section if the line belongs to
    /// one of a denied file. `names_denied` returns whether a heading names one.
    pub(super) fn next(
        &mut self,
        line: &str,
        rest: &str,
        names_denied: impl FnOnce(&str) -> bool,
    ) -> Option<&str> {
        let plain = line.trim_start_matches(GRAPH);
        let following = rest.lines().next().unwrap_or_default();
        let is_diff = plain.starts_with("diff -") && is_header(following.trim_start_matches(GRAPH));
        if is_diff {
            self.graph = line.len() - plain.len();
        }
        let line = line.get(self.graph..).unwrap_or_default();
        if self.is_change(line) {
            return self.denied.as_deref();
        }
        let heads = |start| line.starts_with(start);
        let is_commit = heads("commit ") || is_diff;
        if is_diff {
            self.begin(State::Git, line, names_denied(line));
        } else if heads("==> ") && line.ends_with(" <==") {
            self.begin(State::Head, line, names_denied(line));
        } else if self.state == State::Head || self.state == State::Uncounted && !is_commit {
        } else if heads("@@@ ") || heads("GIT binary patch") {
            self.state = State::Uncounted;
        } else if let Some(counts) = hunk(line) {
            self.left = counts;
        } else if heads("--- ") && self.state != State::Git && following.contains("+++ ") {
            self.begin(State::Plain, line, names_denied(line));
        } else if heads("+++ ") && self.state == State::Plain {
            if self.denied.is_none() && names_denied(line) {
                self.denied = Some(line.to_owned());
            }
        } else if !is_header(line)
            && (self.state != State::Git || !line.starts_with(['+', '-', ' ']))
        {
            self.begin(State::Outside, line, false);
            self.graph = 0;
        }
        self.denied.as_deref()
    }

    fn begin(&mut self, state: State, heading: &str, is_denied: bool) {
        self.state = state;
        self.denied = is_denied.then(|| heading.to_owned());
    }

    /// Returns whether a line belongs to the current hunk.
    fn is_change(&mut self, line: &str) -> bool {
        let (old, new) = &mut self.left;
        if *old == 0 && *new == 0 {
            return false;
        }
        match line.bytes().next() {
            Some(b'-') => *old = old.saturating_sub(1),
            Some(b'+') => *new = new.saturating_sub(1),
            Some(b' ') | None => {
                *old = old.saturating_sub(1);
                *new = new.saturating_sub(1);
            }
            Some(b'\\') => {}
            Some(_) => {
                self.left = (0, 0);
                return false;
            }
        }
        true
    }
}

fn is_header(line: &str) -> bool {
    line.starts_with("@@ ") || HEADERS.iter().any(|header| line.starts_with(header))
}

/// Returns the last path of a heading, without the prefixes of git.
pub(super) fn path_of_heading(heading: &str) -> &str {
    let (name, _) = heading.split_once('\t').unwrap_or((heading, ""));
    let name = name.trim_end_matches(" <==");
    let last = name.rsplit(' ').next().unwrap_or(name).trim_matches('"');
    ["a/", "b/"]
        .iter()
        .find_map(|side| last.strip_prefix(side))
        .unwrap_or(last)
}

/// Returns the numbers of lines in `@@ -1,2 +3,4 @@`.
fn hunk(line: &str) -> Option<(u32, u32)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => Some(1),
    };
    Some((count(old)?, count(new)?))
}
