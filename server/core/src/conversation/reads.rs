//! Which file reads of a conversation are out of date because the file was
//! read again, and their replacement by a notice.
//!
//! A file comes into a conversation by the result of reading it, by the result
//! of changing it, or because the user mentioned it. Results begin with a
//! header and hold the file behind it, in the block after it (an old form), or
//! as the first block of a native tool result. All but the newest are replaced.

use std::collections::{HashMap, HashSet};

use serde_json::{Number, Value};
use sightline_protocol::settings::ConversationProfile as Profile;

use crate::{cancel::Cancel, error::Error};

use super::{
    history::{ContextHistory, EditKind, Update},
    json::decode,
    message::{Block, Kind, Message, Role},
    tags::{FINAL, Header, MENTION, Tool, header},
};

/// Blocks of a message that are searched for mentions.
const MENTION_BLOCKS: usize = 3;

/// One occurrence of a file.
struct Read {
    message: usize,
    block: usize,
    what: What,
}

/// What is replaced when the occurrence is out of date.
enum What {
    /// The block's whole text.
    Text(EditKind, String),
    /// The nth mention in it, of this path.
    Mention(usize, String),
    /// Nothing: it holds no text of the file.
    Nothing,
}

/// The occurrences of files, by file.
struct Reads<'a> {
    messages: &'a [Message<'a>],
    history: &'a ContextHistory,
    profile: Profile,
    notice: &'a str,
    files: Vec<Vec<Read>>,
    places: HashMap<String, usize>,
    /// By message: all paths its mentions name.
    mentioned: HashMap<usize, Vec<Value>>,
}

/// Replaces the out-of-date reads in the messages from `start` on, by updates
/// of `history`. Returns the blocks that are replaced now.
pub(super) fn replace_duplicates(
    messages: &[Message<'_>],
    start: usize,
    history: &mut ContextHistory,
    time: &Number,
    profile: Profile,
    notice: &str,
    cancel: &Cancel,
) -> Result<HashSet<(usize, usize)>, Error> {
    let mut reads = Reads {
        messages,
        history,
        profile,
        notice,
        files: Vec::new(),
        places: HashMap::new(),
        mentioned: HashMap::new(),
    };
    for index in start..messages.len() {
        cancel.check()?;
        reads.look_at(index);
    }
    let Reads {
        files, mentioned, ..
    } = reads;

    let mut replaced = HashSet::new();
    // The mentions of one text are replaced together, after everything else.
    let mut texts: Vec<MentionEdits> = Vec::new();
    let mut places = HashMap::new();
    for mut occurrences in files {
        occurrences.pop();
        for read in occurrences {
            let place = (read.message, read.block);
            match read.what {
                What::Nothing => continue,
                What::Text(kind, text) => {
                    let update = Update::text(time, text, None);
                    history.add(read.message, kind, read.block, update);
                }
                What::Mention(nth, path) => {
                    let text = *places.entry(place).or_insert_with(|| {
                        texts.push(MentionEdits {
                            message: read.message,
                            block: read.block,
                            mentions: Vec::new(),
                        });
                        texts.len() - 1
                    });
                    texts[text].mentions.push((nth, path));
                }
            }
            replaced.insert(place);
        }
    }
    for edits in texts {
        cancel.check()?;
        let all = mentioned.get(&edits.message).cloned().unwrap_or_default();
        let message = &messages[edits.message];
        let original = message.string(&message.blocks()[edits.block]);
        let original = decode(original.unwrap_or_default());
        let (text, done) = edits.apply(&original, history, notice);
        let update = Update::text(time, text, Some((done, all)));
        history.add(edits.message, EditKind::Mention, edits.block, update);
    }
    Ok(replaced)
}

/// The mentions to replace in one block.
struct MentionEdits {
    message: usize,
    block: usize,
    /// Which of those in its original text, and their paths.
    mentions: Vec<(usize, String)>,
}

impl MentionEdits {
    /// The block's newest text with the mentions replaced, and the paths
    /// replaced in it so far.
    fn apply(
        &self,
        original: &str,
        history: &ContextHistory,
        notice: &str,
    ) -> (String, Vec<Value>) {
        let edits = history.message(self.message);
        let last = edits.and_then(|edits| edits.block(self.block).last());
        let text = last.and_then(Update::new_text).unwrap_or(original);
        let done = last.and_then(Update::mentions);
        let mut done = done.map_or_else(Vec::new, |(done, _)| done.to_vec());

        // In a text edited before they stand elsewhere, but unchanged.
        let found: Vec<_> = MENTION.all(original).collect();
        let mut wanted: HashMap<&str, usize> = HashMap::new();
        for (nth, path) in &self.mentions {
            *wanted
                .entry(&original[found[*nth].place.clone()])
                .or_default() += 1;
            done.push(Value::from(path.as_str()));
        }
        let mut replaced = String::with_capacity(text.len());
        let mut copied = 0;
        for tagged in MENTION.all(text) {
            if let Some(count) = wanted.get_mut(&text[tagged.place.clone()])
                && *count > 0
            {
                *count -= 1;
                replaced.push_str(&text[copied..tagged.body.start]);
                replaced.push_str(notice);
                copied = tagged.body.end;
            }
        }
        replaced.push_str(&text[copied..]);
        (replaced, done)
    }
}

impl<'a> Reads<'a> {
    fn look_at(&mut self, index: usize) {
        let messages = self.messages;
        let Some(message) = messages
            .get(index)
            .filter(|message| message.role == Role::User)
        else {
            return;
        };
        if self.profile == Profile::Cline && self.replaced_in(index, 0).is_none() {
            return;
        }
        let results = self.results(index, message);
        let Some(first) = message.blocks().first() else {
            return;
        };
        if message.string(first).is_some() && !results.contains(&0) {
            self.mentions(index, message, &results);
        }
    }

    /// Notes the tool results that hold files; the blocks that are such.
    fn results(&mut self, index: usize, message: &Message<'_>) -> HashSet<usize> {
        // Cline makes one call at a time and looks at the first block only.
        let looked_at = match self.profile {
            Profile::Default => message.blocks().len(),
            Profile::Cline => 1,
        };
        let mut found = HashSet::new();
        for (place, block) in message.blocks().iter().enumerate().take(looked_at) {
            if found.contains(&place) {
                continue;
            }
            let Some(header) = message.string(block).and_then(header) else {
                continue;
            };
            let in_next = header.alone && block.kind == Kind::Text;
            let target = place + usize::from(in_next);
            let content = message.blocks().get(target);
            let Some(what) = self.result(message, &header, content, in_next) else {
                continue;
            };
            found.extend([place, target]);
            if self.replaced_in(index, target).is_some() {
                self.note(&header.path, index, target, what);
            }
        }
        found
    }

    /// What to replace in a tool result that holds a file; `None` when it is
    /// the result of a change without any text.
    fn result(
        &self,
        message: &Message<'_>,
        header: &Header,
        content: Option<&Block>,
        in_next: bool,
    ) -> Option<What> {
        let text = content.filter(|block| !in_next || block.kind == Kind::Text);
        match header.tool {
            // An old header whose content is not there is replaced all the
            // same, as Cline does; nothing comes of it.
            Tool::Read if in_next && (content.is_none() || text.is_some()) => {
                Some(What::Text(EditKind::Read, self.notice.to_owned()))
            }
            Tool::Read if header.alone => Some(What::Nothing),
            Tool::Read => {
                let text = format!("{}\n{}", header.text, self.notice);
                Some(What::Text(EditKind::Read, text))
            }
            Tool::Change => {
                let string = message.string(text?)?;
                Some(self.change(string))
            }
        }
    }

    fn change(&self, string: &str) -> What {
        if !string.contains(FINAL.sign) {
            return What::Nothing;
        }
        let text = decode(string);
        let Some(tagged) = FINAL.find(&text, 0) else {
            return What::Nothing;
        };
        let (before, after) = (&text[..tagged.body.start], &text[tagged.body.end..]);
        let text = format!("{before} {} {after}", self.notice);
        What::Text(EditKind::Change, text)
    }

    /// Notes the files mentioned in the first text that mentions any.
    fn mentions(&mut self, index: usize, message: &Message<'_>, results: &HashSet<usize>) {
        for (place, block) in message.blocks().iter().enumerate().take(MENTION_BLOCKS) {
            let string = message.string(block).unwrap_or_default();
            if results.contains(&place) || !string.contains(MENTION.sign) {
                continue;
            }
            let text = decode(string);
            let paths: Vec<&str> = MENTION
                .all(&text)
                .map(|tagged| &text[tagged.path])
                .collect();
            if paths.is_empty() {
                continue;
            }
            let Some(done) = self.replaced_in(index, place) else {
                return;
            };
            let done: HashSet<&str> = done.iter().filter_map(Value::as_str).collect();
            let all = paths.iter().map(|path| Value::from(*path)).collect();
            self.mentioned.insert(index, all);
            for (nth, path) in paths.into_iter().enumerate() {
                if !done.contains(path) {
                    self.note(path, index, place, What::Mention(nth, path.to_owned()));
                }
            }
            return;
        }
    }

    fn note(&mut self, path: &str, message: usize, block: usize, what: What) {
        if matches!((&what, self.profile), (What::Nothing, Profile::Cline)) {
            return;
        }
        let file = match self.profile {
            Profile::Default => normalised(path),
            Profile::Cline => path.to_owned(),
        };
        let place = *self.places.entry(file).or_insert_with(|| {
            self.files.push(Vec::new());
            self.files.len() - 1
        });
        self.files[place].push(Read {
            message,
            block,
            what,
        });
    }

    /// The mentioned paths already replaced in a block; `None` when there is
    /// nothing left to replace. Cline asks this of the whole message.
    fn replaced_in(&self, message: usize, block: usize) -> Option<&'a [Value]> {
        let history = self.history;
        let Some(edits) = history.message(message) else {
            return Some(&[]);
        };
        let updates = match self.profile {
            Profile::Default => edits.block(block),
            Profile::Cline if !edits.is(EditKind::Mention) => return None,
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

/// A path without what makes no difference: `./a//b/../c` is `a/c`.
pub(crate) fn normalised(path: &str) -> String {
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
    use super::normalised;

    #[test]
    fn spellings_of_a_path() {
        for (path, normal) in [
            ("a/b", "a/b"),
            ("./a//b/", "a/b"),
            ("a/../../b", "../b"),
            ("../../b", "../../b"),
            ("/../a/./b", "/a/b"),
            (".", ""),
            ("a.b/..c", "a.b/..c"),
        ] {
            assert_eq!(normalised(path), normal, "{path}");
        }
        #[cfg(not(windows))]
        assert_eq!(normalised(r"a\b"), r"a\b");
    }
}
