//! The file with the turns of a root. Events are only added to it, one a line. A line that a killed
//! process left unfinished is skipped.

use std::{
    fs::File,
    io::{Read, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use memchr::{memchr, memmem, memrchr};
use serde::{Deserialize, Serialize};
use sightline_base::{
    cancel::Cancel,
    storage::atomic_file::{self, failed},
};

use super::{Turn, TurnName, recorded::RecordedChanges};
use crate::{
    error::Error,
    store::{lock, object::Oid},
};

/// Name of the file in the state directory.
pub(crate) const FILE: &str = "turns.jsonl";
/// Maximum time to wait for other writers, which write a few lines.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of the last events among which open turns are searched.
const RECENT_EVENTS: usize = 2000;

/// How the first line of each turn begins.
const BEGIN: &[u8] = b"{\"event\":\"begin\"";

/// What happened to a turn.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub(super) enum Event {
    Begin(Box<Turn>),
    /// The state before the first edit was saved.
    Before {
        name: TurnName,
        id: Oid,
    },
    /// The turn ended. An id is missing if it edited nothing, or if its state could not be saved. A
    /// later event replaces it: an agent may go on.
    End {
        name: TurnName,
        at: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Oid>,
    },
    /// What changed in the turn, and before it.
    Changes {
        name: TurnName,
        changes: RecordedChanges,
    },
}

impl Event {
    pub(super) fn name(&self) -> &TurnName {
        match self {
            Self::Begin(begin) => &begin.name,
            Self::Before { name, .. } | Self::End { name, .. } | Self::Changes { name, .. } => name,
        }
    }
}

/// The text of the file.
#[derive(Debug)]
pub(crate) struct Log(Vec<u8>);

impl Log {
    /// Reads the file. Without one, there are no turns.
    pub(crate) fn read(state_dir: &Path) -> Result<Self, Error> {
        let text = atomic_file::read(&state_dir.join(FILE))?;
        Ok(Self(text.unwrap_or_default()))
    }

    /// Returns whether there are no events.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the lines that begin before an offset, the last one first, with their offsets.
    fn lines_before(&self, mut end: usize) -> impl Iterator<Item = (usize, &[u8])> {
        std::iter::from_fn(move || {
            if end == 0 {
                return None;
            }
            let lines = &self.0[..end];
            let text = lines.strip_suffix(b"\n").unwrap_or(lines);
            let start = memrchr(b'\n', text).map_or(0, |at| at + 1);
            end = start;
            Some((start, &text[start..]))
        })
    }

    /// Returns the lines that begin a turn, the last one first.
    fn begins_before(&self, end: usize) -> impl Iterator<Item = (usize, &[u8])> {
        self.lines_before(end)
            .filter(|(_, line)| line.starts_with(BEGIN))
    }

    /// Returns the turn with this name.
    pub(super) fn turn(&self, name: &TurnName) -> Option<Turn> {
        self.turn_at(memmem::rfind(&self.0, begin_of(name).as_bytes())?)
    }

    /// Returns the turn whose first line is at this offset.
    fn turn_at(&self, start: usize) -> Option<Turn> {
        let text = &self.0[start..];
        let end = memchr(b'\n', text).unwrap_or(text.len());
        let Event::Begin(mut turn) = parse(&text[..end])? else {
            return None;
        };
        let wanted = format!("\"name\":\"{}\"", turn.name);
        for at in memmem::find_iter(&text[end..], &wanted) {
            let start = memrchr(b'\n', &text[..end + at]).map_or(0, |at| at + 1);
            let line = text[start..].split(|byte| *byte == b'\n').next()?;
            match parse(line) {
                Some(Event::Before { name, id }) if name == turn.name => turn.before = Some(id),
                Some(Event::End { name, at, id }) if name == turn.name => {
                    turn.ended = Some(at);
                    turn.after = id.or(turn.after);
                }
                Some(Event::Changes { name, changes }) if name == turn.name => {
                    turn.changes = Some(changes);
                }
                _ => {}
            }
        }
        Some(*turn)
    }

    /// Returns the last turn of a session.
    pub(super) fn last_of(&self, agent: &str, session: &str) -> Option<Turn> {
        let quoted = serde_json::to_string(session).ok()?;
        let finder = memmem::Finder::new(&quoted);
        let mut begins = self.begins_before(self.0.len());
        let is_last = |(_, line): &(usize, &[u8])| {
            finder.find(line).is_some()
                && matches!(parse(line), Some(Event::Begin(begin)) if begin.agent == agent && begin.session == session)
        };
        self.turn_at(begins.find(is_last)?.0)
    }

    /// Returns the turns that began before the named one, or all, newest first. Without the named
    /// one, there are none.
    pub(super) fn turns(&self, before: Option<&TurnName>) -> impl Iterator<Item = Turn> {
        let end = match before {
            Some(name) => memmem::find(&self.0, begin_of(name).as_bytes()).unwrap_or_default(),
            None => self.0.len(),
        };
        self.begins_before(end)
            .filter_map(|(start, _)| self.turn_at(start))
    }

    /// Returns the first turns that began after the named one.
    pub(super) fn following(&self, name: &TurnName, most: usize) -> Vec<Turn> {
        let Some(start) = memmem::rfind(&self.0, begin_of(name).as_bytes()) else {
            return Vec::new();
        };
        // The first one is the named turn.
        memmem::find_iter(&self.0[start..], BEGIN)
            .skip(1)
            .take(most)
            .filter_map(|at| self.turn_at(start + at))
            .collect()
    }

    /// Returns the recent turns without an end.
    pub(super) fn open_turns(&self) -> Vec<Turn> {
        let recent = self.lines_before(self.0.len()).take(RECENT_EVENTS);
        recent
            .filter(|(_, line)| line.starts_with(BEGIN))
            .filter_map(|(start, _)| self.turn_at(start))
            .filter(|turn| turn.ended.is_none())
            .collect()
    }

    /// Returns the highest number of a session of an agent, or 0.
    pub(super) fn last_session(&self, agent: &str) -> u64 {
        let name = TurnName::new(agent, 1, 1).session();
        let start = format!("\"name\":\"{}", name.trim_end_matches('1'));
        memmem::find_iter(&self.0, &start)
            .filter_map(|at| {
                let rest = &self.0[at + start.len()..];
                let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
                let digits = str::from_utf8(&rest[..end]).ok()?;
                (rest[end] == b'.').then(|| digits.parse().ok())?
            })
            .max()
            .unwrap_or_default()
    }
}

fn parse(line: &[u8]) -> Option<Event> {
    serde_json::from_slice(line).ok()
}

/// Returns how the first line of a turn begins.
fn begin_of(name: &TurnName) -> String {
    format!("{{\"event\":\"begin\",\"name\":\"{name}\"")
}

/// The open file, locked for other writers.
pub(crate) struct LogWriter {
    path: PathBuf,
    file: File,
    pub(super) log: Log,
}

impl LogWriter {
    /// Opens, locks and reads the file, or creates it.
    pub(super) fn open(state_dir: &Path) -> Result<Self, Error> {
        let path = state_dir.join(FILE);
        let opened = || {
            let mut options = atomic_file::private_options();
            options.read(true).append(true).create(true);
            atomic_file::open(&path, &mut options)
        };
        let mut file = opened().map_err(|error| failed("open", &path, error))?;
        lock::wait(
            &file,
            &path,
            &Cancel::default(),
            Instant::now() + LOCK_TIMEOUT,
        )?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)
            .map_err(|error| failed("read", &path, error))?;
        Ok(Self {
            path,
            file,
            log: Log(text),
        })
    }

    /// Adds events with one write.
    pub(super) fn append(&mut self, events: &[Event]) -> Result<(), Error> {
        let mut lines = Vec::new();
        // A killed process may have left a part of a line.
        if self.log.0.last().is_some_and(|last| *last != b'\n') {
            lines.push(b'\n');
        }
        for event in events {
            serde_json::to_writer(&mut lines, event)
                .map_err(|error| failed("write", &self.path, error.into()))?;
            lines.push(b'\n');
        }
        self.file
            .write_all(&lines)
            .map_err(|error| failed("write", &self.path, error))?;
        self.log.0.extend_from_slice(&lines);
        Ok(())
    }

    /// Adds the turns of another root whose names are not used here.
    pub(crate) fn append_all(&mut self, other: &Log) -> Result<(), Error> {
        let own: Vec<TurnName> = self.log.turns(None).map(|turn| turn.name).collect();
        let lines = other.0.split(|byte| *byte == b'\n').filter_map(parse);
        let events: Vec<Event> = lines.filter(|event| !own.contains(event.name())).collect();
        self.append(&events)
    }
}
