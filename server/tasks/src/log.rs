//! The log file of a task: reads it incrementally and appends to it.
//!
//! What was read is kept in memory. The next read costs a `stat`, and reads only the new part
//! if the file grew. A writer holds the task's lock and first reads what other processes
//! appended. If a writer was killed, the file may not end with a line break; the next writer
//! adds one, so that only the torn line is lost.
//!
//! A reader without the lock cannot distinguish a torn line from one that is being written. It
//! tries to take the lock: if that succeeds, the line is torn and counts as dropped.

use std::{
    io::{self, BufReader, Read, Seek, SeekFrom},
    sync::{Arc, atomic::AtomicBool},
};

use sightline_base::{
    cancel::Cancel,
    error::Error,
    storage::{LogStamp, TaskDir, TaskLock, UnsyncedWrite},
};
use sightline_protocol::{error::ErrorKind, task::Recovered};

use super::{
    conversation::{Conversation, Entries},
    entry::{
        LogEntry, LogLine,
        jsonl::{for_each_line, trimmed},
        truncation_record::TruncationState,
    },
};
use crate::failed;
use sightline_conversation::ContextHistory;

/// File name of the log.
pub(super) const LOG_FILE: &str = "conversation.jsonl";
/// File name of the truncation, shared with Cline.
pub(super) const HISTORY_FILE: &str = "context_history.json";

/// Length of the start of the last line that identifies the file, in bytes. It includes the
/// uuid.
const HEAD_BYTES: usize = 64;
/// Maximum size of a changed log that is read again completely, in bytes. This takes about a
/// millisecond and detects changes to old lines.
const REREAD_BYTES: u64 = 256 * 1024;
const BUFFER_BYTES: usize = 256 * 1024;

/// The known content of a log.
#[derive(Debug, Default)]
pub(super) struct Log {
    stamp: Option<LogStamp>,
    /// Offset up to which the file was read.
    read_to: u64,
    /// Whether the last line has no line break.
    lacks_newline: bool,
    /// Whether the last line is not a valid entry.
    has_partial_line: bool,
    /// Whether the partial line is known to be torn.
    is_torn: bool,
    /// Offset and start of the last line.
    last_line: (u64, Vec<u8>),
    lines: u64,
    dropped: u64,
    /// The truncation if the log does not record it.
    unlogged: TruncationState,
    pub(super) entries: Entries,
    /// Whether the directory entry of the file is durable.
    is_name_durable: Arc<AtomicBool>,
}

impl Log {
    /// Reads what was appended since the last read. Returns whether the file exists.
    ///
    /// # Errors
    /// Kind `storage`, `cancelled`.
    pub(super) fn catch_up(&mut self, dir: &TaskDir, cancel: &Cancel) -> Result<bool, Error> {
        let is_there = self.read_new(dir, cancel)?;
        if self.has_partial_line && !self.is_torn {
            // No process is writing, so the line stays partial.
            if let Ok(Some(_lock)) = dir.try_lock() {
                self.read_new(dir, cancel)?;
                self.is_torn = self.has_partial_line;
            }
        }
        Ok(is_there)
    }

    /// Like [`Self::catch_up`], for a caller that holds the lock.
    ///
    /// # Errors
    /// Kind `storage`, `cancelled`.
    pub(super) fn catch_up_locked(
        &mut self,
        dir: &TaskDir,
        cancel: &Cancel,
    ) -> Result<bool, Error> {
        let is_there = self.read_new(dir, cancel)?;
        self.is_torn = self.has_partial_line;
        Ok(is_there)
    }

    fn read_new(&mut self, dir: &TaskDir, cancel: &Cancel) -> Result<bool, Error> {
        let Some(stamp) = dir.stamp(LOG_FILE)? else {
            *self = Self::default();
            return Ok(false);
        };
        if self.stamp == Some(stamp) {
            return Ok(true);
        }
        let Some((mut file, stamp)) = dir.open_log(LOG_FILE)? else {
            *self = Self::default();
            return Ok(false);
        };
        let path = dir.path().join(LOG_FILE);
        let failed = || failed("read", path.display());
        if self.read_to <= REREAD_BYTES || !self.is_prefix_of(&mut file, stamp).map_err(failed())? {
            *self = Self::default();
        }
        if self.has_partial_line {
            self.lacks_newline = false;
        }
        self.has_partial_line = false;
        self.is_torn = false;
        let new = stamp.len.saturating_sub(self.read_to);
        let read = file.seek(SeekFrom::Start(self.read_to)).map(|_| ());
        read.map_err(failed())?;
        let reader = BufReader::with_capacity(BUFFER_BYTES, file.take(new));
        for_each_line(reader, cancel, |line, is_whole, length| {
            self.take_line(line, is_whole, length);
        })?
        .map_err(failed())?;
        self.stamp = Some(stamp);
        Ok(true)
    }

    /// Returns whether the file still starts with what was read. A file that was truncated and
    /// extended has a different last line.
    fn is_prefix_of(&self, file: &mut std::fs::File, stamp: LogStamp) -> io::Result<bool> {
        let is_same = self
            .stamp
            .is_some_and(|known| known.is_of_same_file(&stamp));
        if !is_same || stamp.len < self.read_to {
            return Ok(false);
        }
        let (start, head) = &self.last_line;
        let mut now = Vec::with_capacity(head.len());
        file.seek(SeekFrom::Start(*start))?;
        file.by_ref()
            .take(head.len() as u64)
            .read_to_end(&mut now)?;
        Ok(now == *head)
    }

    /// Adds a line of `length` bytes.
    fn take_line(&mut self, line: &[u8], is_whole: bool, length: u64) {
        let start = self.read_to;
        let text = trimmed(line);
        let is_blank = text.is_empty() && !line.contains(&0);
        let entry = LogEntry::read(text);
        if !is_whole && !is_blank && entry.is_none() {
            self.has_partial_line = true;
            self.lacks_newline = true;
            return;
        }
        self.lacks_newline = !is_whole;
        self.read_to += length;
        if is_blank {
            return;
        }
        let head = line.get(..HEAD_BYTES).unwrap_or(line);
        self.last_line = (start, head.to_vec());
        if entry.is_some_and(|entry| self.entries.push(entry)) {
            self.lines += 1;
        } else {
            self.dropped += 1;
        }
    }

    /// Reads the truncation if the log does not record it. Returns it.
    ///
    /// # Errors
    /// Kind `storage`.
    pub(super) fn read_unlogged_truncation(
        &mut self,
        dir: &TaskDir,
    ) -> Result<&TruncationState, Error> {
        self.unlogged = if self.entries.is_truncation_logged() {
            TruncationState::default()
        } else {
            unlogged_truncation(dir)?
        };
        Ok(&self.unlogged)
    }

    /// Returns the current conversation, with the truncation that was read last.
    pub(super) fn conversation(&mut self) -> Arc<Conversation> {
        let recovered = Recovered {
            lines: self.lines,
            dropped: self.dropped + u64::from(self.is_torn),
        };
        self.entries.conversation(recovered, &self.unlogged)
    }

    /// Appends lines. On failure, none is appended; a killed process may leave the first of them.
    /// The caller must have caught up.
    ///
    /// # Errors
    /// `tooLarge`, kind `storage`.
    pub(super) fn append(
        &mut self,
        lock: &TaskLock,
        lines: &[LogLine<'_>],
    ) -> Result<UnsyncedWrite, Error> {
        let mut text = Vec::new();
        if self.lacks_newline {
            text.push(b'\n');
        }
        for line in lines {
            line.write(&mut text)?;
        }
        let written = lock.append(LOG_FILE, &text, &self.is_name_durable)?;
        let is_as_known = match self.stamp {
            Some(known) => {
                known.is_of_same_file(&written.before) && known.len == written.before.len
            }
            None => written.before.len == 0,
        };
        if !is_as_known {
            // Another program wrote without the lock. Read everything again next time.
            *self = Self::default();
            return Ok(written);
        }
        if self.has_partial_line {
            // The line break completes the partial line.
            self.has_partial_line = false;
            self.is_torn = false;
            self.dropped += 1;
            self.read_to = written.before.len;
        }
        let added = for_each_line(&*text, &Cancel::default(), |line, is_whole, length| {
            self.take_line(line, is_whole, length);
        });
        self.stamp = Some(written.stamp);
        if !matches!(added, Ok(Ok(()))) {
            *self = Self::default();
        }
        Ok(written)
    }

    /// Returns whether the log has never been written.
    pub(super) fn is_never_written(&self) -> bool {
        self.lines + self.dropped == 0 && !self.has_partial_line
    }

    /// Returns the approximate memory use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.entries.bytes()
    }

    /// Returns the state of the file that was read.
    pub(super) fn stamp(&self) -> Option<LogStamp> {
        self.stamp
    }
}

/// Reads the truncation of a task that Cline wrote or that was copied by hand. Invalid content is
/// no truncation.
///
/// # Errors
/// Kind `storage`.
fn unlogged_truncation(dir: &TaskDir) -> Result<TruncationState, Error> {
    let text = dir.read(HISTORY_FILE)?.unwrap_or_default();
    Ok(TruncationState {
        deleted_range: None,
        history: serde_json::from_slice(&text).unwrap_or_default(),
    })
}

/// Writes the truncation where Cline reads it. Errors are ignored, because the log is
/// authoritative.
pub(super) fn write_history_file(dir: &TaskDir, lock: &TaskLock, history: &ContextHistory) {
    let text = history.clone().into_value().to_string();
    let is_current = match dir.read(HISTORY_FILE) {
        Ok(Some(known)) => known == text.as_bytes(),
        Ok(None) => text == "[]",
        Err(_) => false,
    };
    if !is_current {
        let _ = lock.write(HISTORY_FILE, text.as_bytes());
    }
}

pub(super) fn not_found(task: &sightline_base::storage::TaskId) -> Error {
    Error::Failed(
        ErrorKind::NotFound,
        format!("task {task} has no stored conversation; list the tasks to see their ids"),
    )
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, OpenOptions},
        io::Write,
        path::PathBuf,
    };

    use serde_json::value::RawValue;

    use super::{super::entry::EntryOrigin, *};
    use sightline_base::storage::{Storage, TaskId};

    struct TestLog {
        _folder: tempfile::TempDir,
        dir: TaskDir,
        path: PathBuf,
    }

    fn test_log() -> TestLog {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::open(&folder.path().join("data")).unwrap();
        let dir = storage.task(&TaskId::new("t").unwrap());
        let path = dir.path().join(LOG_FILE);
        TestLog {
            _folder: folder,
            dir,
            path,
        }
    }

    fn message(text: &str) -> Box<RawValue> {
        let text = format!(r#"{{"role":"user","content":"{text}"}}"#);
        RawValue::from_string(text).unwrap()
    }

    fn line(message: &RawValue) -> LogLine<'_> {
        LogLine::message(None, 0, &EntryOrigin::default(), message).unwrap()
    }

    impl TestLog {
        fn append(&self, log: &mut Log, lock: &TaskLock, text: &str) {
            let written = log.append(lock, &[line(&message(text))]).unwrap();
            written.sync().unwrap();
        }

        /// Writes without the lock, like another program.
        fn write(&self, bytes: &[u8]) {
            let mut file = OpenOptions::new().append(true).open(&self.path).unwrap();
            file.write_all(bytes).unwrap();
        }

        /// Returns the numbers of valid and dropped lines, for a log that was read incrementally
        /// and for a new one.
        fn lines(&self, log: &mut Log) -> [(u64, u64); 2] {
            let mut fresh = Log::default();
            [log, &mut fresh].map(|log| {
                log.catch_up(&self.dir, &Cancel::default()).unwrap();
                (log.lines, log.dropped + u64::from(log.is_torn))
            })
        }
    }

    #[test]
    fn writes_without_the_lock_are_read_next_time() {
        for is_replaced in [false, true] {
            let test_log = test_log();
            let mut log = Log::default();
            {
                let lock = test_log.dir.lock().unwrap();
                test_log.append(&mut log, &lock, "one");
                log.catch_up_locked(&test_log.dir, &Cancel::default())
                    .unwrap();
                if is_replaced {
                    // Replaced by another file of the same length.
                    let old = fs::read(&test_log.path).unwrap();
                    let beside = test_log.path.with_extension("beside");
                    fs::write(&beside, vec![b'x'; old.len()]).unwrap();
                    fs::rename(&beside, &test_log.path).unwrap();
                } else {
                    let mut foreign = Vec::new();
                    line(&message("foreign")).write(&mut foreign).unwrap();
                    test_log.write(&foreign);
                }
                test_log.append(&mut log, &lock, "two");
            }
            let expected = if is_replaced { (0, 1) } else { (3, 0) };
            assert_eq!(test_log.lines(&mut log), [expected; 2], "{is_replaced}");
        }
    }

    #[test]
    fn a_torn_line_is_counted_once() {
        let test_log = test_log();
        let mut log = Log::default();
        let long = "x".repeat(usize::try_from(REREAD_BYTES).unwrap());
        {
            let lock = test_log.dir.lock().unwrap();
            test_log.append(&mut log, &lock, &long);
            test_log.write(b"{\"uuid\":");
            log.catch_up_locked(&test_log.dir, &Cancel::default())
                .unwrap();
            test_log.append(&mut log, &lock, "two");
            let mut foreign = Vec::new();
            line(&message("foreign")).write(&mut foreign).unwrap();
            test_log.write(&foreign);
        }
        assert_eq!(test_log.lines(&mut log), [(3, 1); 2]);
    }
}
