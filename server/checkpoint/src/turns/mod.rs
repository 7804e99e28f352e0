//! Turns: each prompt of an agent, with the states before and after what it changed.
//!
//! [`log`] is the file that records them. It has the names, which are never used again, the
//! prompts, and the ids of the checkpoints before and after each turn. It is never pushed. A killed
//! process leaves a turn without an end, or a checkpoint that the log does not name: the checkpoint
//! names its turn, too.

mod blame;
mod changes;
pub(crate) mod log;
mod name;
mod process;
mod recorded;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use sightline_access::AccessView;
use sightline_base::clock::now_millis;
use sightline_protocol::checkpoint::AgentTurn;

use super::{
    checkpoints::Checkpoints,
    job::Job,
    list::Filter,
    metadata::{
        Checkpoint, CheckpointMetadata, CreateIf, Purpose, Request,
        head::{Head, head_of},
    },
    store::object::Oid,
    worktree::dirty_set::ChangeSource,
};
use crate::error::Error;

pub use changes::{ListedTurn, TurnFilter};
use log::{Event, Log, LogWriter};
pub use name::TurnName;
pub use process::AgentProcess;
use recorded::RecordedChanges;
pub use recorded::{ChangedFile, ChangedFiles, Outside};

/// Maximum length of a stored prompt, in characters.
const MAX_PROMPT_CHARS: usize = 60;
/// Time after which a turn without an end has ended, if its process is not known, in milliseconds.
const MAX_UNKNOWN: u64 = 12 * 3600 * 1000;

/// A turn of an agent. The log has what is known when it begins; the other events of the turn complete it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Its name.
    pub name: TurnName,
    /// The agent.
    pub agent: String,
    /// The session, as the agent names it.
    pub session: String,
    /// Time of the prompt, in milliseconds since the epoch.
    #[serde(rename = "at")]
    pub started: u64,
    /// The turn, as the agent names it.
    pub key: Option<String>,
    /// The first characters of the prompt.
    pub prompt: Option<String>,
    /// Branch and commit when it began.
    pub head: Option<Head>,
    process: Option<AgentProcess>,
    /// When it ended. `None` if it is still running or was interrupted.
    #[serde(skip)]
    pub ended: Option<u64>,
    /// The state before its first edit. `None` if it edited nothing.
    #[serde(skip)]
    pub before: Option<Oid>,
    /// The state when it ended. `None` if it edited nothing, is running, or could not be saved.
    #[serde(skip)]
    pub after: Option<Oid>,
    #[serde(skip)]
    changes: Option<RecordedChanges>,
}

impl Turn {
    /// Returns whether the turn has not ended: no end is recorded, and its agent is still running.
    pub fn is_running(&self) -> bool {
        self.ended.is_none()
            && match self.process {
                Some(process) => process.is_alive(),
                None => now().saturating_sub(self.started) < MAX_UNKNOWN,
            }
    }

    fn is_of(&self, at: &AgentTurn) -> bool {
        self.agent == at.agent && self.session == at.session
    }

    /// Returns whether `at` names this turn: by its name, or as the agent names it.
    fn is_named(&self, at: &AgentTurn) -> bool {
        self.is_of(at) && (self.name.to_string() == at.turn || self.key.as_ref() == Some(&at.turn))
    }
}

/// What is known when a turn begins.
#[derive(Clone, Debug, Default)]
pub struct TurnStart {
    /// The agent.
    pub agent: String,
    /// The session, as the agent names it.
    pub session: String,
    /// The turn, as the agent names it.
    pub key: Option<String>,
    /// The prompt. `None` if prompts are not stored.
    pub prompt: Option<String>,
    /// The process of the agent.
    pub process: Option<AgentProcess>,
}

/// What the other records of a root say about its checkpoints.
#[derive(Debug)]
pub struct Related {
    log: Log,
    /// Undo points whose restore was undone, and the undo points of those undos.
    undone: HashMap<Oid, Oid>,
}

impl Related {
    /// Returns the turn of a checkpoint. `None` if it was not recorded on this machine.
    pub fn turn_of(&self, checkpoint: &Checkpoint) -> Option<Turn> {
        self.log.turn(&saved_name(checkpoint)?)
    }

    /// Returns the undo point of the undo of the restore whose undo point this is.
    pub fn undone_by(&self, id: Oid) -> Option<Oid> {
        self.undone.get(&id).copied()
    }
}

fn is_undo(checkpoint: &Checkpoint) -> bool {
    !checkpoint.metadata.fetched && checkpoint.metadata.is_undo()
}

impl Checkpoints {
    /// Returns the path of the log of turns, which may not exist.
    pub fn turns_file(&self) -> PathBuf {
        self.state_dir().join(log::FILE)
    }

    /// Reads what is known about the checkpoints of this root.
    ///
    /// # Errors
    /// `storage`.
    pub fn related(&self) -> Result<Related, Error> {
        let checkpoints = self.list(&Filter::default())?;
        let undo_points: HashSet<Oid> = checkpoints
            .iter()
            .filter(|one| is_undo(one))
            .map(|one| one.id)
            .collect();
        // The newest undo of each is the first one.
        let mut undone = HashMap::new();
        for one in &checkpoints {
            if let Purpose::Undo {
                restoring: Some(restoring),
                ..
            } = &one.metadata.purpose
                && is_undo(one)
                && undo_points.contains(restoring)
            {
                undone.entry(*restoring).or_insert(one.id);
            }
        }
        Ok(Related {
            log: Log::read(&self.state_dir())?,
            undone,
        })
    }

    /// [`Self::related`] for one checkpoint, which does not read the others unless it is an undo point.
    ///
    /// # Errors
    /// `storage`.
    pub fn related_to(&self, checkpoint: &Checkpoint) -> Result<Related, Error> {
        if is_undo(checkpoint) {
            return self.related();
        }
        Ok(Related {
            log: Log::read(&self.state_dir())?,
            undone: HashMap::new(),
        })
    }

    /// Records that a turn begins, and returns it. An earlier turn of the session without an end ends.
    ///
    /// # Errors
    /// `storage`.
    pub fn begin_turn(&self, view: &AccessView, start: TurnStart) -> Result<Turn, Error> {
        let mut writer = self.turn_writer()?;
        let last = writer.log.last_of(&start.agent, &start.session);
        let name = match &last {
            Some(last) => TurnName {
                number: last.name.number + 1,
                ..last.name.clone()
            },
            None => {
                let known = match writer.log.last_session(&start.agent) {
                    0 => self.last_saved_session(&start.agent)?,
                    known => known,
                };
                TurnName::new(&start.agent, known + 1, 1)
            }
        };
        let at = now();
        let mut events = Vec::new();
        if let Some(last) = last.filter(|last| last.ended.is_none()) {
            events.push(Event::End {
                name: last.name,
                at,
                id: None,
            });
        }
        let turn = Turn {
            name,
            agent: start.agent,
            session: start.session,
            started: at,
            key: start.key,
            prompt: start
                .prompt
                .map(|prompt| shortened(&prompt))
                .filter(|prompt| !prompt.is_empty()),
            head: head_of(view, self.work_tree()),
            process: start.process,
            ended: None,
            before: None,
            after: None,
            changes: None,
        };
        events.push(Event::Begin(Box::new(turn.clone())));
        writer.append(&events)?;
        Ok(turn)
    }

    /// Returns the highest session number in the names of stored checkpoints: the file with the turns may
    /// have been deleted.
    fn last_saved_session(&self, agent: &str) -> Result<u64, Error> {
        let of_agent = TurnName::new(agent, 1, 1).session();
        let start = of_agent.trim_end_matches('1');
        let checkpoints = self.list(&Filter::default())?;
        let names = checkpoints.iter().filter_map(|one| saved_name(one));
        Ok(names
            .filter(|name| name.session().starts_with(start))
            .map(|name| name.session)
            .max()
            .unwrap_or_default())
    }

    /// Returns the turns that have no end although they are not running: those of a session whose next
    /// prompt or end has come, and those of ended processes.
    ///
    /// # Errors
    /// `storage`.
    pub fn interrupted_turns(&self, agent: &str, session: &str) -> Result<Vec<Turn>, Error> {
        let open = Log::read(&self.state_dir())?.open_turns();
        Ok(open
            .into_iter()
            .filter(|turn| (turn.agent == agent && turn.session == session) || !turn.is_running())
            .collect())
    }

    /// Returns what changes when a turn begins or ends, or gets a checkpoint.
    pub fn turns_version(&self) -> Option<(SystemTime, u64)> {
        let metadata = self.state_dir().join(log::FILE).metadata().ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }

    /// Returns the newest running turn whose agent is one of these processes.
    ///
    /// # Errors
    /// `storage`.
    pub fn running_turn(&self, processes: &[u32]) -> Result<Option<Turn>, Error> {
        let open = Log::read(&self.state_dir())?.open_turns().into_iter();
        let is_of_these = |turn: &Turn| {
            turn.process
                .is_some_and(|process| processes.contains(&process.pid))
        };
        Ok(open
            .filter(|turn| is_of_these(turn) && turn.is_running())
            .max_by_key(|turn| turn.started))
    }

    /// Returns the last turn of a session.
    ///
    /// # Errors
    /// `storage`.
    pub fn last_turn(&self, agent: &str, session: &str) -> Result<Option<Turn>, Error> {
        Ok(Log::read(&self.state_dir())?.last_of(agent, session))
    }

    /// Returns the turns of a session, newest first, at most this many.
    ///
    /// # Errors
    /// `storage`.
    pub fn session_turns(
        &self,
        agent: &str,
        session: &str,
        limit: usize,
    ) -> Result<Vec<Turn>, Error> {
        let log = Log::read(&self.state_dir())?;
        let is_of = |turn: &Turn| turn.agent == agent && turn.session == session;
        Ok(log.turns(None).filter(is_of).take(limit).collect())
    }

    /// Returns the turn with this name.
    ///
    /// # Errors
    /// `storage`.
    pub fn turn(&self, name: &TurnName) -> Result<Option<Turn>, Error> {
        let turn = Log::read(&self.state_dir())?.turn(name);
        turn.map(|turn| self.completed(turn)).transpose()
    }

    /// Adds the checkpoints of a turn that a killed process did not record.
    fn completed(&self, mut turn: Turn) -> Result<Turn, Error> {
        if turn.ended.is_some() && (turn.before.is_none() || turn.after.is_some()) {
            return Ok(turn);
        }
        for checkpoint in self.list(&Filter::default())? {
            let metadata = &checkpoint.metadata;
            if saved_name(&checkpoint).as_ref() != Some(&turn.name) {
                continue;
            }
            if !metadata.turn_end {
                turn.before = turn.before.or(Some(checkpoint.id));
            } else if turn.after.is_none() {
                turn.after = Some(checkpoint.id);
                turn.ended = turn.ended.or(Some(metadata.created));
            }
        }
        Ok(turn)
    }

    /// Creates the checkpoint before the first edit of a turn, or at its end. The turn begins if it has
    /// not begun. At the end, no checkpoint is created if the turn edited nothing or nothing changed.
    ///
    /// # Errors
    /// Those of [`Self::create`].
    pub fn create_in_turn(
        &self,
        job: &Job<'_>,
        request: &Request,
        changes: Option<&dyn ChangeSource>,
    ) -> Result<Arc<Checkpoint>, Error> {
        let CheckpointMetadata {
            turn,
            turn_end,
            automatic,
            ..
        } = &request.metadata;
        let (turn_end, at) = match turn {
            Some(at) if !automatic => (*turn_end, at),
            _ => return self.create(job, request, changes),
        };
        let last = self.last_turn(&at.agent, &at.session)?;
        let named = match at.turn.parse() {
            Ok(name) => self.turn(&name)?,
            Err(_) => None,
        };
        let known = [named, last].into_iter().flatten();
        let turn = match known.into_iter().find(|turn| turn.is_named(at)) {
            Some(turn) => turn,
            None => self.begin_turn(
                job.view,
                TurnStart {
                    agent: at.agent.clone(),
                    session: at.session.clone(),
                    key: Some(at.turn.clone()),
                    ..TurnStart::default()
                },
            )?,
        };
        let name = turn.name;
        let mut request = request.clone();
        if turn_end {
            request.create_if = CreateIf::Changed;
        }
        request.metadata.turn = Some(AgentTurn {
            turn: name.to_string(),
            ..at.clone()
        });
        let checkpoint = self.create(job, &request, changes)?;
        let id = checkpoint.id;
        let event = if turn_end {
            Event::End {
                name,
                at: now(),
                id: Some(id),
            }
        } else {
            Event::Before { name, id }
        };
        let ended = turn_end.then(|| event.name().clone());
        self.turn_writer()?.append(&[event])?;
        if let Some(name) = ended {
            // A list compares them, if it fails.
            let _ = self.record_changes(job, &name);
        }
        Ok(checkpoint)
    }

    /// Records that a turn ended without an edit, or that its state could not be saved.
    ///
    /// # Errors
    /// `storage`.
    pub fn end_turn(&self, name: &TurnName) -> Result<(), Error> {
        self.turn_writer()?.append(&[Event::End {
            name: name.clone(),
            at: now(),
            id: None,
        }])
    }

    /// Returns the checkpoint with the state before a turn: the newest one before it, if it edited
    /// nothing.
    ///
    /// # Errors
    /// `notFound`; `storage`.
    pub fn state_before(&self, turn: &Turn) -> Result<Oid, Error> {
        if let Some(id) = turn.before {
            return self.saved_state(id, turn, "before");
        }
        let checkpoints = self.list(&Filter::default())?;
        let mut older = checkpoints.iter().filter(|one| {
            one.metadata.created <= turn.started && !one.metadata.fetched && !is_undo(one)
        });
        let missing = || {
            Error::NotFound(format!(
                "no checkpoint is as old as {}, which edited nothing",
                turn.name
            ))
        };
        Ok(older.next().ok_or_else(missing)?.id)
    }

    /// Returns the checkpoint with the state after a turn; that before it, if it edited nothing. `None`
    /// if the turn is running.
    ///
    /// # Errors
    /// `notFound`; `storage`.
    pub fn state_after(&self, turn: &Turn) -> Result<Option<Oid>, Error> {
        match (turn.after, turn.before) {
            (Some(id), _) => self.saved_state(id, turn, "after").map(Some),
            _ if turn.is_running() => Ok(None),
            (None, None) => self.state_before(turn).map(Some),
            (None, Some(_)) => Err(Error::NotFound(format!(
                "the state after {} was not saved: the turn was interrupted",
                turn.name
            ))),
        }
    }

    fn saved_state(&self, id: Oid, turn: &Turn, side: &str) -> Result<Oid, Error> {
        match self.get(id) {
            Err(Error::NotFound(_)) => Err(Error::NotFound(format!(
                "the checkpoint {side} {} was removed; list the checkpoints to see those that are kept",
                turn.name
            ))),
            found => Ok(found?.id),
        }
    }

    pub(crate) fn turn_writer(&self) -> Result<LogWriter, Error> {
        self.storage.make_dir(&self.state_dir())?;
        LogWriter::open(&self.state_dir())
    }
}

/// Returns the name of the turn that a checkpoint of this machine belongs to.
pub(crate) fn saved_name(checkpoint: &Checkpoint) -> Option<TurnName> {
    let turn = checkpoint.metadata.turn.as_ref()?;
    turn.turn
        .parse()
        .ok()
        .filter(|_| !checkpoint.metadata.fetched)
}

fn now() -> u64 {
    now_millis().cast_unsigned()
}

/// Returns the first line of a prompt that is not empty, shortened.
fn shortened(prompt: &str) -> String {
    let line = prompt
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    match line.char_indices().nth(MAX_PROMPT_CHARS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}
