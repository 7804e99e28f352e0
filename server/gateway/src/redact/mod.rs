//! Takes the contents of denied files out of requests.
//!
//! Each string that a client wrote is checked by its content, and as a whole if it is the result of a
//! call that names a denied file. What is decided is stored before the request leaves, and stays
//! for the task, also when the rules or the files change. Only tighter rules hide more.
//!
//! Modules:
//!
//! - `strings`: the strings of a request
//! - `tree`: new denied files
//! - `decisions`: what was decided
//! - `mask`: replaces old results of a conversation that became too long

mod decisions;
mod mask;
mod strings;
mod tree;

use std::{
    borrow::Cow,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use sightline_access::{
    Access, AccessView,
    redact::{HiddenContents, Redactor, contents_notice},
};
use sightline_base::{
    decision_log,
    path::{AbsPath, Root, Roots},
    storage::Storage,
};
use sightline_conversation::wire::json::decode;
use sightline_protocol::{
    access::AccessKind,
    decision::HiddenFile,
    settings::{LogSettings, Secrets},
};
use twox_hash::XxHash3_128;

use self::{
    decisions::{Decision, Decisions, Edit},
    strings::{Call, Piece, Strings},
    tree::{Tree, hash_of},
};

/// Time after which denied files are looked for again, whatever changed.
const REREAD: Duration = Duration::from_secs(60);
/// Shortest line that is recognized, in bytes.
const MIN_LINE_BYTES: usize = 12;
/// Maximum depth of JSON in strings of JSON.
const MAX_QUOTED: usize = 3;
/// Folder with what was decided about conversations, in that of the gateway.
pub(crate) const TASKS: &str = "tasks";
/// Name of the gateway in the log of decisions.
const DOOR: &str = "gateway";

/// Checks requests against the rules of all roots.
pub(crate) struct Redaction {
    access: Access,
    state: Mutex<State>,
    decisions: Decisions,
    storage: Storage,
    seed: u64,
    /// Copies that are made later do not make lines public.
    started: SystemTime,
    is_dry: bool,
}

#[derive(Default)]
struct State {
    tree: Tree,
    contents: Arc<HiddenContents>,
    rules: u64,
    read: Option<Instant>,
}

/// A checked request.
pub(crate) struct Checked {
    /// The request to send, if it differs.
    pub(crate) text: Option<String>,
    /// Number of strings that were changed.
    pub(crate) changed: usize,
    /// Whether all denied files fit into the limits.
    pub(crate) is_complete: bool,
}

impl Redaction {
    /// Reads the denied files below `roots`. `seed` makes hashes of strings unpredictable.
    pub(crate) fn new(
        roots: &[PathBuf],
        secrets: Secrets,
        storage: Storage,
        seed: u64,
        is_dry: bool,
    ) -> Result<Self, String> {
        let mut found = Vec::new();
        for root in roots {
            match AbsPath::new(root) {
                Some(path) if root.is_dir() => found.push(Root::new(path, None)),
                _ => return Err(format!("not a directory: {}", root.display())),
            }
        }
        let redaction = Self {
            access: Access::new(Arc::new(Roots::new(found)), Vec::new(), secrets),
            state: Mutex::default(),
            decisions: Decisions::new(storage.gateway().join(TASKS)),
            storage,
            seed,
            started: SystemTime::now(),
            is_dry,
        };
        // So that the first request waits less.
        let _ = redaction.refresh();
        Ok(redaction)
    }

    /// Returns the current rules with their hash, and the contents of denied files.
    fn refresh(&self) -> Result<(AccessView, u64, Arc<HiddenContents>), String> {
        let (view, _) = self.access.view();
        let roots = 0..view.roots().as_slice().len();
        if let Some(why) = roots.clone().find_map(|root| view.unusable(root)) {
            return Err(format!("cannot tell what is denied: {why}"));
        }
        let mut state = self.state.lock();
        let is_denied_new = state.tree.refresh(&view);
        let texts: Vec<String> = roots
            .map(|root| format!("{:?}", view.entry_rules(root)))
            .collect();
        let rules = hash_of(&(texts, state.tree.rules(&view)));
        let is_old = state.read.is_none_or(|read| read.elapsed() > REREAD);
        if is_denied_new || is_old || rules != state.rules || !state.contents.is_current() {
            state.contents = Arc::new(self.read(&view));
            state.rules = rules;
            state.read = Some(Instant::now());
        }
        Ok((view, rules, state.contents.clone()))
    }

    fn read(&self, view: &AccessView) -> HiddenContents {
        HiddenContents::read_lines(view, MIN_LINE_BYTES).with_public_lines(self.started)
    }

    /// Checks a request of a task, valid JSON.
    ///
    /// # Errors
    /// If it cannot be checked, or a decision cannot be stored.
    pub(crate) fn check(&self, task: &str, text: &str) -> Result<Checked, String> {
        let (view, rules, contents) = self.refresh()?;
        let strings = Strings::find(text).map_err(|_| "it is nested too deeply".to_owned())?;
        let decisions = self.decisions.task(self.hash(&[task]))?;
        let mut task = decisions.lock();
        let mut judge = Judge {
            view: &view,
            redactor: Redactor::new(&view, &contents, None),
            calls: strings.calls.iter().map(|call| (call, None)).collect(),
            hidden: Vec::new(),
        };
        let mut decided = Vec::new();
        let mut changes: Vec<(&Piece, String)> = Vec::new();
        for piece in &strings.pieces {
            let literal = text.get(piece.range.clone()).unwrap_or_default();
            let key = self.key(text, piece, &strings);
            let new;
            let decision = match task.get(key) {
                Some(Decision::Clean(known)) if *known == rules => continue,
                Some(known @ Decision::Changed { .. }) => known,
                _ => {
                    new = judge.decide(&decode(literal), piece.call, rules);
                    decided.push((key, new.clone()));
                    &new
                }
            };
            if let Decision::Changed { edits, .. } = decision {
                changes.push((piece, apply(&decode(literal), edits)));
            }
        }
        let is_complete = contents.is_complete();
        let changed = changes.len();
        if self.is_dry {
            return Ok(Checked {
                text: None,
                changed,
                is_complete,
            });
        }
        if !decided.is_empty() {
            task.add(decided)?;
        }
        let hidden: Vec<_> = decision_log::redactions(DOOR, &judge.hidden).collect();
        decision_log::record(&self.storage, &LogSettings::default(), &hidden);
        Ok(Checked {
            text: (changed > 0).then(|| splice(text, &changes)),
            changed,
            is_complete,
        })
    }

    /// Returns the key of a string in the decisions.
    fn key(&self, text: &str, piece: &Piece, strings: &Strings<'_>) -> u128 {
        let literal = text.get(piece.range.clone()).unwrap_or_default();
        match piece.call.and_then(|call| strings.calls.get(call)) {
            // The same text is the result of other calls too.
            Some(call) if !call.paths.is_empty() => self.hash(&[literal, &call.key]),
            _ => self.hash(&[literal]),
        }
    }

    /// Returns a hash that others cannot predict.
    pub(crate) fn hash(&self, parts: &[&str]) -> u128 {
        match parts {
            [one] => XxHash3_128::oneshot_with_seed(self.seed, one.as_bytes()),
            parts => XxHash3_128::oneshot_with_seed(self.seed, parts.join("\0").as_bytes()),
        }
    }
}

/// The text in place of a result, if it is the content of a denied file.
type Notice = Option<(String, HiddenFile)>;

/// Decides about strings.
struct Judge<'a> {
    view: &'a AccessView,
    redactor: Redactor<'a>,
    /// Calls, with the notice of the denied file that each names, once that is known.
    calls: Vec<(&'a Call<'a>, Option<Notice>)>,
    /// Files whose contents were replaced.
    hidden: Vec<HiddenFile>,
}

impl Judge<'_> {
    fn decide(&mut self, text: &str, call: Option<usize>, rules: u64) -> Decision {
        if let Some((notice, file)) = call.and_then(|call| self.denied_file(call))
            && !text.is_empty()
        {
            let edit = Edit {
                start: 0,
                end: text.len(),
                text: notice,
            };
            self.hidden.push(file);
            return Decision::Changed { edits: vec![edit] };
        }
        match redact(&mut self.redactor, text, 0, &mut self.hidden) {
            Some(changed) => Decision::Changed {
                edits: vec![difference(text, &changed)],
            },
            None => Decision::Clean(rules),
        }
    }

    /// Returns the notice in place of the result of a call that names a denied file.
    fn denied_file(&mut self, call: usize) -> Notice {
        let (call, known) = self.calls.get_mut(call)?;
        let view = self.view;
        let find = || {
            call.paths.iter().find_map(|path| {
                let (location, answer) = view.check_written(path);
                // What is no path cannot be read either.
                let location = location.filter(|_| answer.access == AccessKind::Denied)?;
                let shown = view.roots().block_path(&location).0;
                let notice = contents_notice(&shown, answer.rule.as_ref());
                let file = HiddenFile {
                    path: shown,
                    rule: answer.rule,
                    count: 1,
                };
                Some((notice, file))
            })
        };
        known.get_or_insert_with(find).clone()
    }
}

/// Replaces the contents of denied files in a text, and in the JSON strings that it contains. Returns
/// `None` if there are none.
fn redact(
    redactor: &mut Redactor<'_>,
    text: &str,
    depth: usize,
    hidden: &mut Vec<HiddenFile>,
) -> Option<String> {
    let redacted = redactor.redact(text);
    for file in redacted.hidden {
        if !hidden.iter().any(|known| known.path == file.path) {
            hidden.push(file);
        }
    }
    let mut is_changed = matches!(redacted.text, Cow::Owned(_));
    let plain = redacted.text;
    // Agents and their scripts print results as JSON.
    let has_json = depth < MAX_QUOTED && (plain.contains('\\') || plain.contains("\":"));
    if !has_json {
        return is_changed.then(|| plain.into_owned());
    }
    let mut changed = String::with_capacity(plain.len());
    for (at, part) in between_quotes(&plain).enumerate() {
        if at > 0 {
            changed.push('"');
        }
        // Not the start of a diff.
        let is_command = part.starts_with("diff ") && !part.contains("\\n");
        let inner = (part.len() >= MIN_LINE_BYTES && !is_command)
            .then(|| redact(redactor, &decode(part), depth + 1, hidden))
            .flatten();
        match inner {
            Some(inner) => {
                let quoted = serde_json::Value::from(inner).to_string();
                changed.push_str(&quoted[1..quoted.len() - 1]);
                is_changed = true;
            }
            None => changed.push_str(part),
        }
    }
    is_changed.then_some(changed)
}

/// Splits a text at the quotes that are not escaped.
fn between_quotes(text: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    text.split(move |c: char| {
        let is_quote = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_quote
    })
}

/// Returns the part in which two texts differ.
fn difference(before: &str, after: &str) -> Edit {
    let start = before
        .char_indices()
        .zip(after.chars())
        .find(|((_, before), after)| before != after)
        .map_or(before.len().min(after.len()), |((at, _), _)| at);
    let (left, right) = (&before[start..], &after[start..]);
    let common: usize = left
        .chars()
        .rev()
        .zip(right.chars().rev())
        .take_while(|(before, after)| before == after)
        .map(|(c, _)| c.len_utf8())
        .sum();
    Edit {
        start,
        end: before.len() - common,
        text: right[..right.len() - common].to_owned(),
    }
}

/// Applies the edits of a string, which are in order.
fn apply(text: &str, edits: &[Edit]) -> String {
    let mut changed = String::new();
    let mut from = 0;
    for edit in edits {
        changed.push_str(text.get(from..edit.start).unwrap_or_default());
        changed.push_str(&edit.text);
        from = edit.end;
    }
    changed.push_str(text.get(from..).unwrap_or_default());
    changed
}

/// Replaces strings of a request. All other bytes stay.
fn splice(text: &str, changes: &[(&Piece, String)]) -> String {
    let mut changed = String::with_capacity(text.len());
    let mut from = 0;
    for (piece, string) in changes {
        changed.push_str(text.get(from..piece.range.start).unwrap_or_default());
        changed.push_str(&serde_json::Value::from(string.as_str()).to_string());
        from = piece.range.end;
    }
    changed.push_str(text.get(from..).unwrap_or_default());
    changed
}
