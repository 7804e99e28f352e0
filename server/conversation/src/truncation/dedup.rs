//! Finds file reads that a later read of the same file made obsolete, and replaces them with a
//! notice.
//!
//! File content enters a conversation through the result of a read, the result of an edit, or a
//! mention by the user. A result starts with a header. The file follows it, or is in the next
//! block (an old format), or is the first block of a native tool result. All occurrences of a
//! file but the newest are replaced.

use std::collections::{HashMap, HashSet};

use serde_json::{Number, Value};
use sightline_base::{cancel::Cancel, error::Error};
use sightline_protocol::settings::ConversationProfile as Profile;

use crate::wire::{Block, BlockKind, Message, Role, json::decode};

use super::{
    context_history::{ContextHistory, EditKind, Update},
    file_markers::{FILE_CONTENT, FINAL_FILE_CONTENT, FileTool, ResultHeader, parse_header},
};

/// Number of leading blocks that are searched for mentions. Cline's value.
const MAX_MENTION_BLOCKS: usize = 3;

/// One occurrence of a file.
struct Occurrence {
    message: usize,
    block: usize,
    replacement: Replacement,
}

/// How an occurrence is replaced once it is outdated.
enum Replacement {
    /// Replaces the whole text of the block.
    Text(EditKind, String),
    /// Replaces the nth mention in the block, of this path.
    Mention(usize, String),
    /// Replaces nothing: the occurrence holds no file content.
    Nothing,
}

/// The occurrences of files, grouped by file.
struct FileReads<'a> {
    messages: &'a [Message<'a>],
    history: &'a ContextHistory,
    profile: Profile,
    notice: &'a str,
    files: Vec<Vec<Occurrence>>,
    file_indexes: HashMap<String, usize>,
    /// All paths mentioned in each message.
    mentioned: HashMap<usize, Vec<Value>>,
}

/// Replaces outdated reads in the messages from `start` on by adding updates to `history`.
/// Returns the replaced blocks.
pub(super) fn replace_duplicates(
    messages: &[Message<'_>],
    start: usize,
    history: &mut ContextHistory,
    time: &Number,
    profile: Profile,
    notice: &str,
    cancel: &Cancel,
) -> Result<HashSet<(usize, usize)>, Error> {
    let mut reads = FileReads {
        messages,
        history,
        profile,
        notice,
        files: Vec::new(),
        file_indexes: HashMap::new(),
        mentioned: HashMap::new(),
    };
    for index in start..messages.len() {
        cancel.check()?;
        reads.scan_message(index);
    }
    let FileReads {
        files, mentioned, ..
    } = reads;

    let mut replaced = HashSet::new();
    // Mentions in one text are replaced together, last.
    let mut mention_edits: Vec<MentionEdits> = Vec::new();
    let mut edits_by_block = HashMap::new();
    for mut occurrences in files {
        occurrences.pop();
        for occurrence in occurrences {
            let position = (occurrence.message, occurrence.block);
            match occurrence.replacement {
                Replacement::Nothing => continue,
                Replacement::Text(kind, text) => {
                    let update = Update::text(time, text, None);
                    history.add(occurrence.message, kind, occurrence.block, update);
                }
                Replacement::Mention(nth, path) => {
                    let edit = *edits_by_block.entry(position).or_insert_with(|| {
                        mention_edits.push(MentionEdits {
                            message: occurrence.message,
                            block: occurrence.block,
                            mentions: Vec::new(),
                        });
                        mention_edits.len() - 1
                    });
                    mention_edits[edit].mentions.push((nth, path));
                }
            }
            replaced.insert(position);
        }
    }
    for edits in mention_edits {
        cancel.check()?;
        let all = mentioned.get(&edits.message).cloned().unwrap_or_default();
        let message = &messages[edits.message];
        let string = message.string(&message.blocks()[edits.block]);
        let original = decode(string.unwrap_or_default());
        let (text, done) = edits.apply(&original, history, notice);
        let update = Update::text(time, text, Some((done, all)));
        history.add(edits.message, EditKind::FileMention, edits.block, update);
    }
    Ok(replaced)
}

/// Mentions to replace in one block.
struct MentionEdits {
    message: usize,
    block: usize,
    /// Positions of the mentions in the original text, and their paths.
    mentions: Vec<(usize, String)>,
}

impl MentionEdits {
    /// Returns the newest text of the block with the mentions replaced, and the paths replaced in
    /// it so far.
    fn apply(
        &self,
        original: &str,
        history: &ContextHistory,
        notice: &str,
    ) -> (String, Vec<Value>) {
        let edits = history.message(self.message);
        let last = edits.and_then(|edits| edits.block(self.block).last());
        let text = last.and_then(Update::new_text).unwrap_or(original);
        let mut done = last
            .and_then(Update::mentions)
            .map_or_else(Vec::new, |(done, _)| done.to_vec());

        // An earlier edit may have moved the mentions, but did not change them.
        let found: Vec<_> = FILE_CONTENT.all(original).collect();
        let mut remaining: HashMap<&str, usize> = HashMap::new();
        for (nth, path) in &self.mentions {
            *remaining
                .entry(&original[found[*nth].range.clone()])
                .or_default() += 1;
            done.push(Value::from(path.as_str()));
        }
        let mut replaced = String::with_capacity(text.len());
        let mut copied = 0;
        for tagged in FILE_CONTENT.all(text) {
            if let Some(count) = remaining.get_mut(&text[tagged.range.clone()])
                && *count > 0
            {
                *count -= 1;
                replaced.push_str(&text[copied..tagged.content.start]);
                replaced.push_str(notice);
                copied = tagged.content.end;
            }
        }
        replaced.push_str(&text[copied..]);
        (replaced, done)
    }
}

impl<'a> FileReads<'a> {
    fn scan_message(&mut self, index: usize) {
        let messages = self.messages;
        let Some(message) = messages
            .get(index)
            .filter(|message| message.role == Role::User)
        else {
            return;
        };
        if self.profile == Profile::Cline && self.replaced_mentions(index, 0).is_none() {
            return;
        }
        let results = self.record_results(index, message);
        let Some(first) = message.blocks().first() else {
            return;
        };
        if message.string(first).is_some() && !results.contains(&0) {
            self.record_mentions(index, message, &results);
        }
    }

    /// Records the tool results that contain files. Returns their blocks.
    fn record_results(&mut self, index: usize, message: &Message<'_>) -> HashSet<usize> {
        // Cline makes one tool call at a time and checks only the first block.
        let searched_blocks = match self.profile {
            Profile::Default => message.blocks().len(),
            Profile::Cline => 1,
        };
        let mut found = HashSet::new();
        for (block_index, block) in message.blocks().iter().enumerate().take(searched_blocks) {
            if found.contains(&block_index) {
                continue;
            }
            let Some(header) = message.string(block).and_then(parse_header) else {
                continue;
            };
            let in_next = header.is_alone && block.kind == BlockKind::Text;
            let target = block_index + usize::from(in_next);
            let content = message.blocks().get(target);
            let Some(replacement) = self.replacement_for(message, &header, content, in_next) else {
                continue;
            };
            found.extend([block_index, target]);
            if self.replaced_mentions(index, target).is_some() {
                self.record(&header.path, index, target, replacement);
            }
        }
        found
    }

    /// Returns the replacement for a tool result that contains a file, or `None` for the result of
    /// an edit without text.
    fn replacement_for(
        &self,
        message: &Message<'_>,
        header: &ResultHeader,
        content: Option<&Block>,
        in_next: bool,
    ) -> Option<Replacement> {
        let text = content.filter(|block| !in_next || block.kind == BlockKind::Text);
        match header.tool {
            // An old-format header without content is recorded as in Cline, but the edit has no
            // block to apply to.
            FileTool::Read if in_next && (content.is_none() || text.is_some()) => Some(
                Replacement::Text(EditKind::ReadFile, self.notice.to_owned()),
            ),
            FileTool::Read if header.is_alone => Some(Replacement::Nothing),
            FileTool::Read => {
                let text = format!("{}\n{}", header.text, self.notice);
                Some(Replacement::Text(EditKind::ReadFile, text))
            }
            FileTool::Edit => {
                let string = message.string(text?)?;
                Some(self.edit_replacement(string))
            }
        }
    }

    fn edit_replacement(&self, string: &str) -> Replacement {
        if !string.contains(FINAL_FILE_CONTENT.needle) {
            return Replacement::Nothing;
        }
        let text = decode(string);
        let Some(tagged) = FINAL_FILE_CONTENT.find(&text, 0) else {
            return Replacement::Nothing;
        };
        let (before, after) = (&text[..tagged.content.start], &text[tagged.content.end..]);
        let text = format!("{before} {} {after}", self.notice);
        Replacement::Text(EditKind::AlterFile, text)
    }

    /// Records the files mentioned in the first text that has mentions.
    fn record_mentions(&mut self, index: usize, message: &Message<'_>, results: &HashSet<usize>) {
        for (block_index, block) in message.blocks().iter().enumerate().take(MAX_MENTION_BLOCKS) {
            let string = message.string(block).unwrap_or_default();
            if results.contains(&block_index) || !string.contains(FILE_CONTENT.needle) {
                continue;
            }
            let text = decode(string);
            let paths: Vec<&str> = FILE_CONTENT
                .all(&text)
                .map(|tagged| &text[tagged.path])
                .collect();
            if paths.is_empty() {
                continue;
            }
            let Some(done) = self.replaced_mentions(index, block_index) else {
                return;
            };
            let done: HashSet<&str> = done.iter().filter_map(Value::as_str).collect();
            let all = paths.iter().map(|path| Value::from(*path)).collect();
            self.mentioned.insert(index, all);
            for (nth, path) in paths.into_iter().enumerate() {
                if !done.contains(path) {
                    self.record(
                        path,
                        index,
                        block_index,
                        Replacement::Mention(nth, path.to_owned()),
                    );
                }
            }
            return;
        }
    }

    fn record(&mut self, path: &str, message: usize, block: usize, replacement: Replacement) {
        if matches!(
            (&replacement, self.profile),
            (Replacement::Nothing, Profile::Cline)
        ) {
            return;
        }
        let file = match self.profile {
            Profile::Default => normalize_path(path),
            Profile::Cline => path.to_owned(),
        };
        let file_index = *self.file_indexes.entry(file).or_insert_with(|| {
            self.files.push(Vec::new());
            self.files.len() - 1
        });
        self.files[file_index].push(Occurrence {
            message,
            block,
            replacement,
        });
    }

    /// Returns the mentioned paths that are already replaced in a block, or `None` if nothing is
    /// left to replace. The Cline profile checks the whole message instead of the block.
    fn replaced_mentions(&self, message: usize, block: usize) -> Option<&'a [Value]> {
        let history = self.history;
        let Some(edits) = history.message(message) else {
            return Some(&[]);
        };
        let updates = match self.profile {
            Profile::Default => edits.block(block),
            Profile::Cline if !edits.has_kind(EditKind::FileMention) => return None,
            Profile::Cline => edits.first_block().unwrap_or_default(),
        };
        match updates.last() {
            None => Some(&[]),
            Some(update) => {
                let (done, all) = update.mentions()?;
                (done.len() != all.len()).then_some(done)
            }
        }
    }
}

/// Normalizes a path lexically: `./a//b/../c` becomes `a/c`.
pub(crate) fn normalize_path(path: &str) -> String {
    let is_separator = |c: char| c == '/' || (cfg!(windows) && c == '\\');
    let rooted = path.starts_with(is_separator);
    let mut parts = Vec::new();
    for part in path.split(is_separator) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    let root = if rooted { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::normalize_path;

    #[test]
    fn paths_are_normalized() {
        for (path, normal) in [
            ("a/b", "a/b"),
            ("./a//b/", "a/b"),
            ("a/../../b", "../b"),
            ("../../b", "../../b"),
            ("/../a/./b", "/a/b"),
            (".", ""),
            ("a.b/..c", "a.b/..c"),
        ] {
            assert_eq!(normalize_path(path), normal, "{path}");
        }
        #[cfg(not(windows))]
        assert_eq!(normalize_path(r"a\b"), r"a\b");
    }
}
