//! Property tests of append, truncation, compaction, rewind, rollback and undo: nothing is
//! removed from the file, an undo restores the earlier state, and memory matches the file.

use std::collections::HashMap;

use crate::support::{Scratch, at, raw, says, texts, undo_compaction};
use proptest::{collection::vec, prelude::*};
use serde_json::{json, value::RawValue};
use sightline_base::cancel::Cancel;
use sightline_conversation::{ContextHistory, DeletedRange};
use sightline_protocol::compaction::CompactionTrigger;
use sightline_tasks::{
    CommitResult, CompactedMessage, Compaction, Conversation, EntryMeta, RewindId, RewindPoint,
    TaskStore, TruncationState,
};

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Mask { end: usize, edited: usize },
    Compact { retained: usize },
    UndoCompaction,
    Rewind { nth: usize, by_time: bool },
    UndoRewind(usize),
    Rollback { back: i64 },
    Tear,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..5_usize).prop_map(Step::Append),
        3 => (0..9_usize, 0..9_usize).prop_map(|(end, edited)| Step::Mask { end, edited }),
        2 => (0..5_usize).prop_map(|retained| Step::Compact { retained }),
        1 => Just(Step::UndoCompaction),
        2 => (0..30_usize, any::<bool>())
            .prop_map(|(nth, by_time)| Step::Rewind { nth, by_time }),
        2 => (0..9_usize).prop_map(Step::UndoRewind),
        2 => (0..120_i64).prop_map(|back| Step::Rollback { back }),
        1 => Just(Step::Tear),
    ]
}

/// The expected conversation.
#[derive(Clone, Default)]
struct Model {
    messages: Vec<String>,
    truncation: TruncationState,
    /// Deleted ranges logged since the last compaction, with the number of messages and the time.
    ranges: Vec<(usize, i64, Option<DeletedRange>)>,
    /// The state before each compaction, and its time.
    compactions: Vec<(Box<Model>, i64)>,
}

fn is_summary(message: &str) -> bool {
    message.contains("summary")
}

impl Model {
    fn log(&mut self, truncation: TruncationState, time: i64) {
        self.ranges
            .push((self.messages.len(), time, truncation.deleted_range));
        self.truncation = truncation;
    }

    fn undo_compaction(&mut self) -> bool {
        let Some((before, _)) = self.compactions.pop() else {
            return false;
        };
        let later = std::mem::replace(self, *before).messages;
        for message in later {
            if !is_summary(&message) && !self.messages.contains(&message) {
                self.messages.push(message);
            }
        }
        true
    }

    fn rollback(&mut self, time: i64) {
        let mut undone = None;
        while self
            .compactions
            .last()
            .is_some_and(|(_, made)| *made > time)
        {
            let before = self.compactions.last().unwrap().0.messages.len();
            self.undo_compaction();
            undone = Some(before);
        }
        let mut truncation = self.truncation.clone();
        truncation.history.rollback(&time.into());
        if !self.ranges.is_empty() {
            let kept = self.ranges.iter().rev().find(|(_, made, _)| *made <= time);
            truncation.deleted_range = kept.and_then(|(_, _, range)| *range);
        }
        if truncation != self.truncation {
            let behind = undone.unwrap_or(self.messages.len());
            self.ranges.push((behind, time, truncation.deleted_range));
            self.truncation = truncation;
        }
    }
}

struct Run {
    scratch: Scratch,
    now: i64,
    counted: usize,
    model: Model,
    rewinds: Vec<(RewindId, Model)>,
    /// The entry and time after each step.
    moments: Vec<(uuid::Uuid, i64, Model)>,
}

impl Run {
    fn meta(&self) -> EntryMeta {
        EntryMeta {
            now: self.now,
            ..EntryMeta::default()
        }
    }

    fn load(&self, store: &TaskStore) -> std::sync::Arc<Conversation> {
        store.load(&at("t"), &Cancel::default()).unwrap()
    }

    fn note(&mut self) {
        let entry = self.load(&self.scratch.store).entry.unwrap();
        self.moments.push((entry, self.now, self.model.clone()));
    }

    fn append(&mut self, count: usize) {
        let mut new = Vec::new();
        for _ in 0..count {
            new.push(says(
                ["user", "assistant"][self.counted % 2],
                &format!("n{}", self.counted),
            ));
            self.counted += 1;
        }
        let messages: Vec<&str> = new.iter().map(String::as_str).collect();
        self.scratch.append("t", &messages, self.now);
        self.model.messages.extend(new);
    }

    fn step(&mut self, step: &Step) {
        self.now += 10;
        let (cancel, meta, task) = (Cancel::default(), self.meta(), at("t"));
        let store = self.scratch.store.clone();
        let count = self.model.messages.len();
        match step {
            Step::Append(count) => self.append(*count),
            Step::Mask { end, edited } => {
                let truncation = self.truncation(*end % (count + 1), *edited % count.max(1));
                let seen = self.load(&store);
                let stored = store.store_truncation(
                    &task,
                    &seen,
                    &truncation,
                    &self.now.into(),
                    &meta,
                    &cancel,
                );
                assert!(matches!(stored.unwrap(), CommitResult::Stored));
                if truncation != self.model.truncation {
                    self.model.log(truncation, self.now);
                }
            }
            Step::Compact { retained } => self.compact(count.saturating_sub(*retained)),
            Step::UndoCompaction => {
                let undone = undo_compaction(&store, "t", self.now);
                assert_eq!(undone, self.model.undo_compaction());
            }
            Step::Rewind { nth, by_time } => {
                let (entry, time, then) = self.moments[nth % self.moments.len()].clone();
                let to = match by_time {
                    true => RewindPoint::Time(time),
                    false => RewindPoint::Entry(entry),
                };
                let counted = (then.messages.len() as u64, then.compactions.len() as u64);
                let id = store.rewind(&task, to, Some(counted), &meta, &cancel);
                self.rewinds.push((id.unwrap(), self.model.clone()));
                self.model = then;
            }
            Step::UndoRewind(nth) => {
                if self.rewinds.is_empty() {
                    return;
                }
                let nth = nth % self.rewinds.len();
                let (id, before) = self.rewinds[nth].clone();
                let id: RewindId = id.to_string().parse().unwrap();
                let undo = store.undo_rewind(&task, id, &meta, &cancel).unwrap();
                self.rewinds.push((undo, self.model.clone()));
                self.model = before;
            }
            Step::Rollback { back } => {
                let time = self.now - back;
                let history = store.rollback(&task, &time.into(), &meta, &cancel).unwrap();
                self.model.rollback(time);
                assert_eq!(history, self.model.truncation.history);
            }
            Step::Tear => {
                use std::io::Write;
                let path = self.scratch.log_path("t");
                let mut log = std::fs::OpenOptions::new().append(true).open(path).unwrap();
                log.write_all(b"{\"uuid\":\"torn").unwrap();
            }
        }
    }

    fn truncation(&self, end: usize, edited: usize) -> TruncationState {
        let edits = json!([[edited, [0, [[0, [[self.now, "text", ["less"], []]]]]]]]);
        TruncationState {
            deleted_range: (end > 2).then(|| DeletedRange([2, end as i64 - 1])),
            history: ContextHistory::from_value(edits).unwrap(),
        }
    }

    fn compact(&mut self, from: usize) {
        let seen = self.load(&self.scratch.store);
        let summary = raw(&says("user", &format!("summary at {}", self.now)));
        let summary = CompactedMessage {
            message: &summary,
            source: None,
        };
        let retained = seen.messages.iter().enumerate().skip(from);
        let retained = retained.map(|(index, stored)| CompactedMessage {
            message: &stored.message,
            source: Some(index),
        });
        let compaction = Compaction {
            trigger: CompactionTrigger::Auto,
            pre_tokens: 10,
            post_tokens: 5,
            fallback_reason: None,
            messages: [summary].into_iter().chain(retained).collect(),
        };
        let (meta, cancel) = (self.meta(), Cancel::default());
        let store = &self.scratch.store;
        let stored = store.compact(&at("t"), &seen, &compaction, &meta, &cancel);
        assert!(matches!(stored.unwrap(), CommitResult::Stored));
        let raw = |message: &CompactedMessage<'_>| RawValue::get(message.message).to_owned();
        let messages = compaction.messages.iter().map(raw).collect();
        let before = std::mem::take(&mut self.model);
        self.model.compactions.clone_from(&before.compactions);
        self.model.compactions.push((Box::new(before), self.now));
        self.model.messages = messages;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_conversation_matches_the_model(steps in vec(step(), 1..30)) {
        let mut run = Run {
            scratch: Scratch::new(),
            now: 1_000,
            counted: 0,
            model: Model::default(),
            rewinds: Vec::new(),
            moments: Vec::new(),
        };
        run.append(3);
        run.note();
        let mut log = run.scratch.log("t");
        for step in steps {
            run.step(&step);
            run.note();
            let written = run.scratch.log("t");
            prop_assert!(written.starts_with(&log), "{step:?} changed what stood there");
            log = written;
            let fresh = run.scratch.again();
            for store in [&run.scratch.store, &fresh] {
                let now = run.load(store);
                prop_assert_eq!(texts(&now), run.model.messages.clone(), "{:?}", step);
                prop_assert_eq!(&*now.truncation, &run.model.truncation, "{:?}", step);
                let compactions = run.model.compactions.len() as u64;
                prop_assert_eq!(now.info.compactions, compactions, "{:?}", step);
            }
            let (kept, fresh) = (run.load(&run.scratch.store), run.load(&fresh));
            prop_assert_eq!(kept.recovered, fresh.recovered);
            prop_assert_eq!(&kept.info, &fresh.info);
        }
        // Each message was written once, not counting copies.
        let mut times: HashMap<usize, usize> = HashMap::new();
        for line in log.lines().filter(|line| !line.contains("copyOf")) {
            for nth in 0..run.counted {
                if line.contains(&format!("\"n{nth}\"")) {
                    *times.entry(nth).or_default() += 1;
                }
            }
        }
        prop_assert!((0..run.counted).all(|nth| times.get(&nth) == Some(&1)));
    }
}
