//! Edits made to a conversation, in the format of Cline's `context_history.json`.
//!
//! ```text
//! [[message, [kind, [[block, [[time, "text", [text], metadata], ...]], ...]]], ...]
//! ```
//!
//! The newest update of a block replaces its text. Older updates are kept so that a rollback
//! can restore them. `metadata` is `[]`; for a text with file mentions it is `[paths replaced
//! so far, all paths]`. Entries are in the order in which they were made.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Number, Value, json};

use sightline_base::error::Error;

/// What kind of message was edited. The numbers are Cline's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EditKind {
    Unknown = 0,
    /// Result of reading a file.
    ReadFile = 2,
    /// Result of editing a file.
    AlterFile = 3,
    /// Text with file mentions.
    FileMention = 4,
}

/// Edits made to a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContextHistory {
    messages: InsertionOrderedMap<MessageEdits>,
}

/// Edits of one message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MessageEdits {
    kind: Value,
    blocks: InsertionOrderedMap<Vec<Update>>,
}

/// One update of a block in its stored form. Unknown fields are preserved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Update(Vec<Value>);

impl Update {
    /// Creates an update with a new text. `mentions` holds the replaced and all mentioned paths.
    pub(super) fn text(
        time: &Number,
        text: String,
        mentions: Option<(Vec<Value>, Vec<Value>)>,
    ) -> Self {
        let mentions = mentions.map_or_else(|| json!([]), |(done, all)| json!([done, all]));
        Self(vec![json!(time), json!("text"), json!([text]), mentions])
    }

    /// Returns the new text, if the update changes a text.
    pub(super) fn new_text(&self) -> Option<&str> {
        match self.0.get(1)?.as_str()? {
            "text" => self.0.get(2)?.get(0)?.as_str(),
            _ => None,
        }
    }

    /// Returns the mentioned paths replaced so far, and all mentioned paths.
    pub(super) fn mentions(&self) -> Option<(&[Value], &[Value])> {
        let mentions = self.0.get(3)?;
        Some((mentions.get(0)?.as_array()?, mentions.get(1)?.as_array()?))
    }

    fn is_newer_than(&self, time: &Number) -> bool {
        let made = self.0.first().and_then(Value::as_f64);
        matches!((made, time.as_f64()), (Some(made), Some(time)) if made > time)
    }
}

impl MessageEdits {
    pub(super) fn has_kind(&self, kind: EditKind) -> bool {
        self.kind == kind as i32
    }

    /// Returns the updates of the block that was edited first.
    pub(super) fn first_block(&self) -> Option<&[Update]> {
        self.blocks.entries.first().map(|(_, updates)| &**updates)
    }

    /// Returns the updates of a block, oldest first.
    pub(super) fn block(&self, block: usize) -> &[Update] {
        self.blocks.get(block).map_or(&[], |updates| updates)
    }

    /// Returns the edited blocks with their newest text.
    pub(super) fn texts(&self) -> impl Iterator<Item = (usize, &str)> {
        self.blocks
            .entries
            .iter()
            .filter_map(|(block, updates)| Some((*block, updates.last()?.new_text()?)))
    }
}

impl ContextHistory {
    /// Parses the serialized form.
    ///
    /// # Errors
    /// `invalidParams` with the location of the malformed entry.
    pub fn from_value(value: Value) -> Result<Self, Error> {
        let entries = list(value, "contextHistory")?;
        let mut history = Self::default();
        for (entry_index, entry) in entries.into_iter().enumerate() {
            let location = format!("contextHistory[{entry_index}]");
            let [message, edits] = pair(entry, &location)?;
            let [kind, blocks] = pair(edits, &location)?;
            let mut edits = MessageEdits {
                kind,
                blocks: InsertionOrderedMap::default(),
            };
            // Cline reads `null` as no blocks.
            let blocks = match blocks {
                Value::Null => Vec::new(),
                blocks => list(blocks, &location)?,
            };
            for block in blocks {
                let [block, updates] = pair(block, &location)?;
                let updates = list(updates, &location)?
                    .into_iter()
                    .map(|update| list(update, &location).map(Update))
                    .collect::<Result<_, _>>()?;
                edits.blocks.set(index(&block, &location)?, updates);
            }
            history.messages.set(index(&message, &location)?, edits);
        }
        Ok(history)
    }

    /// Converts to the serialized form.
    pub fn into_value(self) -> Value {
        let update = |update: Update| Value::Array(update.0);
        let block = |(block, updates): (usize, Vec<Update>)| {
            json!([block, updates.into_iter().map(update).collect::<Value>()])
        };
        let message = |(message, edits): (usize, MessageEdits)| {
            let blocks: Value = edits.blocks.entries.into_iter().map(block).collect();
            json!([message, [edits.kind, blocks]])
        };
        self.messages.entries.into_iter().map(message).collect()
    }

    /// Removes the updates newer than `time`. Goes backwards from the newest and stops at the first
    /// that is not newer. Returns whether anything was removed.
    pub fn rollback(&mut self, time: &Number) -> bool {
        let mut changed = false;
        self.messages.retain(|edits| {
            edits.blocks.retain(|updates| {
                let newer = updates
                    .iter()
                    .rev()
                    .take_while(|update| update.is_newer_than(time))
                    .count();
                updates.truncate(updates.len() - newer);
                changed |= newer > 0;
                newer == 0 || !updates.is_empty()
            });
            let is_left = !edits.blocks.entries.is_empty();
            changed |= !is_left;
            is_left
        });
        changed
    }

    /// Returns the indexes of the edited messages.
    pub fn edited(&self) -> impl Iterator<Item = usize> {
        self.messages.entries.iter().map(|(message, _)| *message)
    }

    /// Moves the edits of each message to the index that `new` returns, or removes them.
    pub fn reindex(&mut self, new: impl Fn(usize) -> Option<usize>) {
        for (message, edits) in std::mem::take(&mut self.messages).entries {
            if let Some(message) = new(message) {
                self.messages.set(message, edits);
            }
        }
    }

    pub(super) fn message(&self, message: usize) -> Option<&MessageEdits> {
        self.messages.get(message)
    }

    /// Adds an update. `kind` is stored only with the first update of a message.
    pub(super) fn add(&mut self, message: usize, kind: EditKind, block: usize, update: Update) {
        let new = || MessageEdits {
            kind: json!(kind as i32),
            blocks: InsertionOrderedMap::default(),
        };
        let edits = self.messages.get_or_add(message, new);
        edits.blocks.get_or_add(block, Vec::new).push(update);
    }
}

impl Serialize for ContextHistory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.clone().into_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContextHistory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A map that iterates in insertion order.
#[derive(Clone, Debug)]
struct InsertionOrderedMap<T> {
    entries: Vec<(usize, T)>,
    positions: HashMap<usize, usize>,
}

impl<T> Default for InsertionOrderedMap<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            positions: HashMap::new(),
        }
    }
}

impl<T: PartialEq> PartialEq for InsertionOrderedMap<T> {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl<T> InsertionOrderedMap<T> {
    fn get(&self, key: usize) -> Option<&T> {
        let position = *self.positions.get(&key)?;
        self.entries.get(position).map(|(_, value)| value)
    }

    fn get_or_add(&mut self, key: usize, new: impl FnOnce() -> T) -> &mut T {
        let position = *self.positions.entry(key).or_insert_with(|| {
            self.entries.push((key, new()));
            self.entries.len() - 1
        });
        &mut self.entries[position].1
    }

    /// Like JavaScript's `Map`: setting an existing key keeps its position.
    fn set(&mut self, key: usize, value: T) {
        match self.positions.get(&key) {
            Some(position) => self.entries[*position].1 = value,
            None => {
                self.positions.insert(key, self.entries.len());
                self.entries.push((key, value));
            }
        }
    }

    fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        self.entries.retain_mut(|(_, value)| keep(value));
        let keys = self.entries.iter().enumerate();
        self.positions = keys.map(|(position, (key, _))| (*key, position)).collect();
    }
}

fn list(value: Value, location: &str) -> Result<Vec<Value>, Error> {
    match value {
        Value::Array(list) => Ok(list),
        other => Err(type_mismatch(location, "a list", &other)),
    }
}

fn pair(value: Value, location: &str) -> Result<[Value; 2], Error> {
    let mut parts = list(value, location)?.into_iter();
    match (parts.next(), parts.next()) {
        (Some(first), Some(second)) => Ok([first, second]),
        _ => Err(Error::invalid(format!(
            "{location}: expected a list of two elements; pass the contextHistory of an earlier result"
        ))),
    }
}

fn index(value: &Value, location: &str) -> Result<usize, Error> {
    let index = value.as_u64().and_then(|index| usize::try_from(index).ok());
    index.ok_or_else(|| type_mismatch(location, "an index", value))
}

fn type_mismatch(location: &str, expected: &str, found: &Value) -> Error {
    let mut found = found.to_string();
    if let Some((end, _)) = found.char_indices().nth(40) {
        found.truncate(end);
        found.push('…');
    }
    Error::invalid(format!(
        "{location}: expected {expected}, found {found}; pass the contextHistory of an earlier result"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ContextHistory, Error> {
        ContextHistory::from_value(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn unknown_data_is_preserved() {
        let text =
            r#"[[7,[9,[[3,[[1.5,"image",["x"],{"a":1},"more"],["?"]]],[0,[]]]]],[2,[null,[]]]]"#;
        let history = read(text).unwrap();
        assert_eq!(history.into_value().to_string(), text);
    }

    #[test]
    fn a_duplicate_key_keeps_its_position_and_the_later_value() {
        let history = read(r#"[[1,[0,[]]],[2,[0,[]]],[1,[4,[[0,[]],[1,[]],[0,[[1]]]]]]]"#).unwrap();
        assert_eq!(
            history.into_value().to_string(),
            "[[1,[4,[[0,[[1]]],[1,[]]]]],[2,[0,[]]]]"
        );
    }

    #[test]
    fn reindexed_messages_stay_accessible() {
        let mut history = read("[[5,[0,[]]],[3,[0,[]]],[1,[9,[]]]]").unwrap();
        history.reindex(|index| (index < 3).then_some(index + 1));
        assert_eq!(history.edited().collect::<Vec<_>>(), [2]);
        assert!(history.message(5).is_none() && history.message(3).is_none());
        assert_eq!(history.message(2).unwrap().kind, 9);
        let update = Update::text(&Number::from(1), "new".to_owned(), None);
        history.add(2, EditKind::Unknown, 0, update);
        assert_eq!(
            history.into_value().to_string(),
            r#"[[2,[9,[[0,[[1,"text",["new"],[]]]]]]]]"#
        );
    }

    #[test]
    fn malformed_entries_are_located() {
        for (text, named) in [
            ("{}", "contextHistory: expected a list, found {}"),
            ("[[1]]", "contextHistory[0]"),
            (
                "[[1,[0,[]]],[-1,[0,[]]]]",
                "contextHistory[1]: expected an index, found -1",
            ),
            ("[[1,[0,[[0,5]]]]]", "expected a list, found 5"),
            ("[[1,[0,[[0,[5]]]]]]", "expected a list, found 5"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(named), "{message}");
        }
    }
}
