//! What was decided about the strings of a task. A decision is kept, so that each request of the task
//! repeats the bytes of the one before: providers bind caches and thinking to them.
//!
//! Files hold hashes of strings, and the notices in place of what was hidden, no other content.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sightline_base::storage::atomic_file;

/// Maximum number of tasks in memory.
const MAX_TASKS: usize = 64;
/// Age after which the decisions of an unused task are deleted.
const MAX_AGE: Duration = Duration::from_secs(60 * 24 * 3600);

/// Part of a string that is replaced, in bytes of the decoded string.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Edit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) text: String,
}

/// What was decided about a string.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Decision {
    /// It passes while the rules stay the same, which have this hash.
    Clean(u64),
    /// It is changed, whatever the rules are later.
    Changed { edits: Vec<Edit> },
}

#[derive(Deserialize, Serialize)]
struct Line {
    /// Hash of the string.
    string: String,
    #[serde(flatten)]
    decision: Decision,
}

/// The decisions of all tasks.
pub(crate) struct Decisions {
    folder: PathBuf,
    tasks: Mutex<HashMap<u128, Arc<Mutex<Task>>>>,
}

/// The decisions of a task.
pub(crate) struct Task {
    path: PathBuf,
    file: File,
    known: HashMap<u128, Decision>,
}

impl Decisions {
    /// Uses a folder, which exists. Deletes old decisions.
    pub(crate) fn new(folder: PathBuf) -> Self {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|found| found.modified());
            let is_old = |time: SystemTime| time.elapsed().is_ok_and(|age| age > MAX_AGE);
            if modified.is_ok_and(is_old) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Self {
            folder,
            tasks: Mutex::default(),
        }
    }

    /// Returns the decisions of a task.
    pub(crate) fn task(&self, key: u128) -> Result<Arc<Mutex<Task>>, String> {
        let mut tasks = self.tasks.lock();
        if let Some(task) = tasks.get(&key) {
            return Ok(task.clone());
        }
        if tasks.len() >= MAX_TASKS {
            // Those in use stay; the others are read again.
            tasks.retain(|_, task| Arc::strong_count(task) > 1);
        }
        let path = self.folder.join(format!("{key:032x}.jsonl"));
        let task = Task::read(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let task = Arc::new(Mutex::new(task));
        tasks.insert(key, task.clone());
        Ok(task)
    }
}

impl Task {
    fn read(path: &Path) -> io::Result<Self> {
        let mut options = atomic_file::private_options();
        options.read(true).append(true).create(true);
        let mut file = atomic_file::open(path, &mut options)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // The process was killed while it wrote.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64)?;
            file.seek(io::SeekFrom::End(0))?;
        }
        let mut known = HashMap::new();
        for line in text[..whole].lines() {
            let line: Line = serde_json::from_str(line)?;
            let key = u128::from_str_radix(&line.string, 16).map_err(io::Error::other)?;
            known.insert(key, line.decision);
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            known,
        })
    }

    /// Returns what was decided about a string.
    pub(crate) fn get(&self, string: u128) -> Option<&Decision> {
        self.known.get(&string)
    }

    /// Stores decisions. Those that change a string are durable then.
    pub(crate) fn add(&mut self, decisions: Vec<(u128, Decision)>) -> Result<(), String> {
        let mut text = String::new();
        for (string, decision) in &decisions {
            let line = Line {
                string: format!("{string:032x}"),
                decision: decision.clone(),
            };
            text.push_str(&serde_json::to_string(&line).map_err(|error| error.to_string())?);
            text.push('\n');
        }
        let is_changed =
            |(_, decision): &(u128, Decision)| matches!(decision, Decision::Changed { .. });
        let written = self.file.write_all(text.as_bytes()).and_then(|()| {
            match decisions.iter().any(is_changed) {
                true => self.file.sync_all(),
                false => Ok(()),
            }
        });
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
        self.known.extend(decisions);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_survive_a_process_that_is_killed_while_it_writes() {
        let folder = tempfile::tempdir().unwrap();
        let changed = Decision::Changed {
            edits: vec![Edit {
                start: 1,
                end: 2,
                text: "n".to_owned(),
            }],
        };
        let added = vec![(1, changed.clone()), (2, Decision::Clean(u64::MAX))];
        let decisions = Decisions::new(folder.path().to_owned());
        decisions.task(7).unwrap().lock().add(added).unwrap();
        let path = folder.path().join(format!("{:032x}.jsonl", 7));
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"stri")).unwrap();
        let task = Decisions::new(folder.path().to_owned()).task(7).unwrap();
        assert_eq!(task.lock().get(1), Some(&changed));
        task.lock().add(vec![(3, Decision::Clean(1))]).unwrap();
        let task = Decisions::new(folder.path().to_owned()).task(7).unwrap();
        assert_eq!(task.lock().get(2), Some(&Decision::Clean(u64::MAX)));
        assert_eq!(task.lock().get(3), Some(&Decision::Clean(1)));
        fs::write(&path, "damaged\n").unwrap();
        assert!(Decisions::new(folder.path().to_owned()).task(7).is_err());
    }
}
