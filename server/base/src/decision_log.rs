//! What agents were refused, and what was hidden from them: a file in the data directory.
//!
//! Each decision is one line of JSON, appended by one write. Several processes append at the same time. A lock
//! protects only the removal of old lines; an end of a process leaves at most an incomplete line,
//! which readers skip. The log contains no contents, prompts or arguments.

use std::{
    fs::{self, File, TryLockError},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};
use sightline_protocol::{
    access::AccessRule,
    decision::{Decision, DecisionVerdict, HiddenFile},
    settings::{LogSettings, LoggedCommands},
};

use crate::{
    clock::now_millis,
    error::Error,
    escape::hex,
    storage::{
        Storage,
        atomic_file::{self, open, open_regular, private_options},
        entries,
    },
};

/// Maximum size of the log, in bytes. The newest part of a larger one is kept.
const MAX_BYTES: u64 = 5_000_000;
/// Size that is kept of a larger log, in bytes.
const KEPT_BYTES: usize = 4_000_000;
/// Maximum age of a decision, in milliseconds.
const MAX_AGE: i64 = 30 * 86_400_000;
/// Age of the decisions that are kept when older ones are removed, so that not every append removes one.
const KEPT_AGE: i64 = 29 * 86_400_000;
/// Maximum length of a subject, in characters.
const MAX_SUBJECT: usize = 1_000;
/// Time to wait for another process that removes old lines.
const PATIENCE: Duration = Duration::from_millis(200);
/// Number of digits of a command's hash.
const HASH_DIGITS: usize = 12;

/// Appends decisions. A failure is only reported in the log of the server.
pub fn record(storage: &Storage, settings: &LogSettings, decisions: &[Decision]) {
    let mut lines = Vec::new();
    for decision in decisions {
        if decision.verdict == DecisionVerdict::Allowed && !settings.allowed {
            continue;
        }
        let mut decision = decision.clone();
        if decision.subject.len() > MAX_SUBJECT {
            decision.subject = decision.subject.chars().take(MAX_SUBJECT).collect();
        }
        if serde_json::to_writer(&mut lines, &decision).is_ok() {
            lines.push(b'\n');
        }
    }
    if lines.is_empty() {
        return;
    }
    if let Err(error) = append(storage, &lines) {
        tracing::warn!(%error, "cannot record a decision");
    }
}

/// Returns the decisions, newest first.
///
/// # Errors
/// If the log cannot be read.
pub fn read(storage: &Storage) -> Result<Vec<Decision>, Error> {
    let path = path(storage);
    let failed = |source| failed("read", &path, source);
    let file = match open_regular(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let oldest = now_millis() - MAX_AGE;
    let mut decisions = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(failed)?;
        if let Some(decision) = parsed(&line)
            && decision.at >= oldest
        {
            decisions.push(decision);
        }
    }
    // Of the same millisecond, what was appended last is newer.
    decisions.reverse();
    decisions.sort_by_key(|decision| std::cmp::Reverse(decision.at));
    Ok(decisions)
}

/// Returns a decision of now about a subject.
pub fn decision(door: &str, subject: String, verdict: DecisionVerdict) -> Decision {
    Decision {
        at: now_millis(),
        agent: None,
        session: None,
        door: door.to_owned(),
        tool: None,
        subject,
        verdict,
        rule: None,
    }
}

/// Returns the decision of now that a subject is denied.
pub fn denied(door: &str, subject: String, rule: Option<AccessRule>) -> Decision {
    Decision {
        rule,
        ..decision(door, subject, DecisionVerdict::Denied)
    }
}

/// Returns the decisions about the files whose contents were replaced.
pub fn redactions<'a>(
    door: &'a str,
    hidden: &'a [HiddenFile],
) -> impl Iterator<Item = Decision> + 'a {
    hidden.iter().map(move |file| Decision {
        rule: file.rule.clone(),
        ..decision(door, file.path.clone(), DecisionVerdict::Redacted)
    })
}

/// Returns what is kept of a command: its first word and a hash, or all of it.
pub fn command_subject(settings: &LogSettings, command: &str) -> String {
    if settings.commands == LoggedCommands::Full {
        return command.to_owned();
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/+-".contains(c);
    // Assignments and quoted words may contain secrets.
    let first = command
        .split_whitespace()
        .next()
        .filter(|word| word.chars().all(is_plain));
    let hash = hex(&Sha256::digest(command));
    format!("{} #{}", first.unwrap_or("..."), &hash[..HASH_DIGITS])
}

/// Returns the path of the log, which may not exist.
pub fn path(storage: &Storage) -> PathBuf {
    storage.dir().join(entries::DECISIONS).join("log.jsonl")
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Storage {
        action,
        path: path.to_owned(),
        source,
    }
}

fn parsed(line: &[u8]) -> Option<Decision> {
    serde_json::from_slice(line).ok()
}

fn append(storage: &Storage, lines: &[u8]) -> Result<(), Error> {
    let folder = storage.dir().join(entries::DECISIONS);
    storage.make_dir(&folder)?;
    let path = path(storage);
    let failed = |source| failed("append to", &path, source);
    let mut options = private_options();
    options.read(true).append(true).create(true);
    let lock = open(&folder.join("lock"), &mut options).map_err(failed)?;
    let is_locked = lock_within(&lock, PATIENCE);
    if is_locked {
        remove_old(&path)?;
    }
    let mut file = open(&path, &mut options).map_err(failed)?;
    let mut text = Vec::with_capacity(lines.len() + 1);
    if !ends_with_line(&mut file).map_err(failed)? {
        text.push(b'\n');
    }
    text.extend_from_slice(lines);
    file.write_all(&text).map_err(failed)
}

fn lock_within(lock: &File, patience: Duration) -> bool {
    let end = Instant::now() + patience;
    loop {
        match lock.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(_) => return false,
        }
    }
}

/// Returns whether the last line of a file is complete.
fn ends_with_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Removes old lines if there are some, or too many lines. The caller holds the lock.
fn remove_old(path: &Path) -> Result<(), Error> {
    let Ok(mut file) = open_regular(path) else {
        return Ok(());
    };
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    let mut first = Vec::new();
    let has_first = BufReader::new(&mut file).read_until(b'\n', &mut first);
    let first = has_first.ok().and_then(|_| parsed(&first));
    let is_old = first.is_some_and(|first| first.at < now_millis() - MAX_AGE);
    if size <= MAX_BYTES && !is_old {
        return Ok(());
    }
    // Windows does not replace an open file.
    drop(file);
    let text = fs::read(path).map_err(|source| failed("read", path, source))?;
    let newest = &text[text.len() - text.len().min(KEPT_BYTES)..];
    let is_whole = newest.len() == text.len();
    let oldest = now_millis() - KEPT_AGE;
    let kept: Vec<&[u8]> = newest
        .split_inclusive(|byte| *byte == b'\n')
        // The first line is cut.
        .skip(usize::from(!is_whole))
        .filter(|line| parsed(line).is_some_and(|decision| decision.at >= oldest))
        .collect();
    atomic_file::replace(path, &kept.concat())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn storage() -> (tempfile::TempDir, Storage) {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::open(&folder.path().join("data")).unwrap();
        (folder, storage)
    }

    fn denied(subject: &str) -> Decision {
        super::denied("hook", subject.to_owned(), None)
    }

    #[test]
    fn many_writers_lose_nothing() {
        let (_folder, storage) = storage();
        let storage = Arc::new(storage);
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let storage = storage.clone();
                thread::spawn(move || {
                    for number in 0..50 {
                        let subject = format!("{writer}-{number}");
                        record(&storage, &LogSettings::default(), &[denied(&subject)]);
                    }
                })
            })
            .collect();
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        let mut subjects: Vec<String> = (read(&storage).unwrap().into_iter())
            .map(|decision| decision.subject)
            .collect();
        subjects.sort();
        subjects.dedup();
        assert_eq!(subjects.len(), 400);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(path(&storage)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn decisions_of_one_millisecond_are_listed_newest_first() {
        let (_folder, storage) = storage();
        for subject in ["a", "b", "c"] {
            let at = now_millis() / 1_000_000 * 1_000_000;
            let decision = Decision {
                at,
                ..denied(subject)
            };
            record(&storage, &LogSettings::default(), &[decision]);
        }
        let read = read(&storage).unwrap();
        let subjects: Vec<&str> = read.iter().map(|it| it.subject.as_str()).collect();
        assert_eq!(subjects, ["c", "b", "a"]);
    }

    #[test]
    fn an_incomplete_line_is_skipped() {
        let (_folder, storage) = storage();
        record(&storage, &LogSettings::default(), &[denied("a")]);
        let mut text = fs::read(path(&storage)).unwrap();
        text.extend_from_slice(b"{\"at\":1,\"doo");
        fs::write(path(&storage), text).unwrap();
        record(&storage, &LogSettings::default(), &[denied("b")]);
        let read = read(&storage).unwrap();
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn old_and_large_logs_are_cut() {
        let (_folder, storage) = storage();
        let settings = LogSettings::default();
        record(&storage, &settings, &[denied("x")]);
        let old = Decision {
            at: now_millis() - MAX_AGE - 1,
            ..denied("old")
        };
        let line = serde_json::to_string(&old).unwrap();
        let young = serde_json::to_string(&denied("young")).unwrap();
        fs::write(path(&storage), format!("{line}\n{young}\n")).unwrap();
        assert_eq!(read(&storage).unwrap().len(), 1);
        record(&storage, &settings, &[denied("new")]);
        let text = fs::read_to_string(path(&storage)).unwrap();
        assert!(!text.contains("old") && text.contains("young") && text.contains("new"));
        let many = format!("{young}\n").repeat(MAX_BYTES as usize / young.len() + 1);
        fs::write(path(&storage), many).unwrap();
        record(&storage, &settings, &[denied("last")]);
        let text = fs::read_to_string(path(&storage)).unwrap();
        assert!(text.len() <= KEPT_BYTES + 200 && text.starts_with('{'));
        assert_eq!(read(&storage).unwrap()[0].subject, "last");
    }

    #[test]
    fn commands_are_kept_as_their_first_word_and_a_hash() {
        let mut settings = LogSettings::default();
        let subject = command_subject(&settings, "cat .env --password=x");
        assert!(subject.starts_with("cat #") && subject.len() == 5 + HASH_DIGITS);
        assert!(command_subject(&settings, "TOKEN=abc curl x").starts_with("... #"));
        settings.commands = LoggedCommands::Full;
        assert_eq!(command_subject(&settings, "cat .env"), "cat .env");
    }

    #[test]
    fn allowed_calls_are_kept_if_the_user_wants() {
        let (_folder, storage) = storage();
        let allowed = decision("hook", "a".to_owned(), DecisionVerdict::Allowed);
        let mut settings = LogSettings::default();
        record(&storage, &settings, std::slice::from_ref(&allowed));
        assert!(read(&storage).unwrap().is_empty());
        settings.allowed = true;
        record(&storage, &settings, &[allowed]);
        assert_eq!(read(&storage).unwrap().len(), 1);
    }
}
