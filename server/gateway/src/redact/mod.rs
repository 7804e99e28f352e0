//! Takes the contents of denied files out of requests.
//!
//! Each string that a client wrote is checked by its content, and as a whole if it is the result of a
//! call that names a denied file. What is decided is stored before the request leaves, and stays
//! for the task, also when the rules or the files change. Only tighter rules hide more.
//!
//! Modules:
//!
//! - `strings`: the strings of a request
//! - `workspaces`: the rules that apply, and the contents of denied files
//! - `decisions`: what was decided
//! - `mask`: replaces old results of a conversation that became too long

mod decisions;
mod mask;
mod strings;
mod workspaces;

use std::{borrow::Cow, collections::HashMap};

use sightline_access::{
    AccessView,
    redact::{Redactor, contents_notice},
};
use sightline_agents::hook::ToolCall;
use sightline_base::{decision_log, storage::Storage};
use sightline_conversation::wire::json::decode;
use sightline_protocol::{
    access::AccessKind,
    decision::{Decision as DecisionRecord, HiddenFile},
    settings::{LogSettings, RecursiveReaders},
};
use twox_hash::XxHash3_128;

use crate::body::RequestBody;

use self::{
    decisions::{Decision, Decisions, Edit},
    strings::{Call, Piece, Strings},
    workspaces::MIN_LINE_BYTES,
};

/// Maximum depth of JSON in strings of JSON.
const MAX_QUOTED: usize = 3;

pub(crate) use self::workspaces::{Workspace, Workspaces};

/// Folder with what was decided about conversations, in that of the gateway.
pub(crate) const TASKS: &str = "tasks";
/// Name of the gateway in the log of decisions.
const DOOR: &str = "gateway";

/// Checks requests against the rules of workspaces.
pub(crate) struct Redaction {
    pub(crate) workspaces: Workspaces,
    decisions: Decisions,
    storage: Storage,
    seed: u64,
    is_dry: bool,
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
    /// `seed` makes hashes of strings unpredictable.
    pub(crate) fn new(workspaces: Workspaces, storage: Storage, seed: u64, is_dry: bool) -> Self {
        Self {
            workspaces,
            decisions: Decisions::new(storage.gateway().join(TASKS)),
            storage,
            seed,
            is_dry,
        }
    }

    /// Checks a request of a task and an agent, valid JSON.
    ///
    /// # Errors
    /// If it cannot be checked, or a decision cannot be stored.
    pub(crate) fn check(
        &self,
        workspace: &Workspace,
        task: &str,
        agent: Option<&str>,
        body: &RequestBody,
    ) -> Result<Checked, String> {
        let text = &*body.text;
        let (view, contents) = workspace.denied()?;
        let rules = contents.rules();
        let strings = Strings::find(text, &body.values);
        let decisions = self.decisions.task(self.hash(&[task]))?;
        let mut task = decisions.lock();
        let mut judge = Judge {
            view: &view,
            redactor: Redactor::new(&view, &contents, None),
            calls: &strings.calls,
            notices: HashMap::new(),
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
        let hidden: Vec<_> = decision_log::redactions(DOOR, &judge.hidden)
            .map(|decision| DecisionRecord {
                agent: agent.map(str::to_owned),
                ..decision
            })
            .collect();
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
            Some(call) => self.hash(&[literal, &call.key]),
            None => self.hash(&[literal]),
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
    calls: &'a [Call<'a>],
    /// The notices of the denied files that calls read, by their names and arguments.
    notices: HashMap<(&'a str, &'a str), Notice>,
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

    /// Returns the notice in place of the result of a call that reads a denied file.
    fn denied_file(&mut self, call: usize) -> Notice {
        let call = self.calls.get(call)?;
        let view = self.view;
        let find = || {
            let file = denied_file(view, &call.name, &call.arguments)?;
            Some((contents_notice(&file.path, file.rule.as_ref()), file))
        };
        let known = self.notices.entry((&call.name, &call.arguments));
        known.or_insert_with(find).clone()
    }
}

/// Returns the denied file whose content is the result of a call: by a path, or by a command that
/// does nothing else.
fn denied_file(view: &AccessView, name: &str, arguments: &str) -> Option<HiddenFile> {
    let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into());
    let call = ToolCall::of_mcp_tool(name, &arguments).ok()?;
    let of_path = |path: &String| {
        let (location, answer) = view.check_written(path);
        // What is no path cannot be read either.
        let location = location.filter(|_| answer.access == AccessKind::Denied)?;
        Some((view.roots().block_path(&location).0, answer.rule))
    };
    let of_command = |command: &String| {
        let is_simple = !command.trim().contains([';', '|', '&', '\n', '`', '$']);
        let answer = is_simple
            .then(|| view.check_command_with(command, RecursiveReaders::Allow))
            .filter(|answer| answer.instead.is_none())?;
        answer
            .denied
            .iter()
            .find_map(|operand| of_path(&operand.path))
    };
    let (path, rule) = call
        .paths
        .iter()
        .find_map(of_path)
        .or_else(|| call.commands.iter().find_map(of_command))?;
    Some(HiddenFile {
        path,
        rule,
        count: 1,
    })
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
        let inner = (part.len() >= MIN_LINE_BYTES)
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
