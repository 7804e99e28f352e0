//! Turns and checkpoints as one list, newest first.

use std::cmp::Reverse;

use anstyle::Style;
use jiff::{Timestamp, Zoned, tz::TimeZone};
use serde::Serialize;
use sightline_protocol::checkpoint::{
    Checkpoint, CheckpointHead, CheckpointKind, ListedTurn, OutsideChanges, TurnFile, short_id,
};

use super::{ADDED, BOLD, CHANGED, DIM, REMOVED};
use sightline_base::{escape::one_line, plural::plural};

/// Turns, and all checkpoints. As JSON, it is the result of `sightline/listCheckpoints`.
#[derive(Serialize)]
pub struct Timeline {
    /// The checkpoints.
    pub checkpoints: Vec<Checkpoint>,
    /// The turns.
    #[serde(skip)]
    pub turns: Vec<ListedTurn>,
}

/// A turn or a checkpoint of the list. The texts are escaped.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// When it began.
    pub at: i64,
    /// Time of the first state that belongs to it, which orders the list: a turn begins with its first edit.
    pub order: i64,
    /// Name or id, as requests accept it.
    pub id: String,
    /// True for a turn, whose name means the state before it.
    pub is_turn: bool,
    /// Agent and session.
    pub session: Option<String>,
    /// Name in the list.
    pub name: String,
    /// Prompt of the turn.
    pub prompt: Option<String>,
    /// Changed lines or files, with their colors.
    pub counts: Vec<(Style, String)>,
    /// Number of changed files.
    pub files: Option<String>,
    /// What kind of state it is.
    pub notes: Vec<String>,
    /// Labels and tasks.
    pub labels: Vec<String>,
    /// What changed between the turn before and this one.
    pub outside: Option<String>,
    /// The changed files that are known.
    pub paths: Vec<String>,
    /// Whether its state was removed, so that it cannot be restored.
    pub is_removed: bool,
}

impl Timeline {
    /// Returns whether there are neither turns nor checkpoints.
    pub fn is_empty(&self) -> bool {
        self.checkpoints.is_empty() && self.turns.is_empty()
    }

    /// Returns the turns, and the checkpoints without one, newest first.
    pub fn rows(&self) -> Vec<Row> {
        let turns = self.turns.iter().map(|turn| self.turn_row(turn));
        let without_turn = self.checkpoints.iter().filter(|one| !self.is_of_turn(one));
        let mut rows: Vec<Row> = turns
            .chain(without_turn.map(|one| self.checkpoint_row(one)))
            .collect();
        rows.sort_by_key(|row| Reverse(row.order));
        rows
    }

    /// Formats at most `limit` rows, in groups by session if wanted.
    pub fn text(&self, clock: &Clock, limit: usize, by_session: bool) -> String {
        let mut rows = self.rows();
        rows.truncate(limit);
        if by_session {
            return self.grouped(clock, &rows);
        }
        rows.iter().map(|row| row.text(clock)).collect()
    }

    /// Groups rows by session, at the place of the newest row of each.
    fn grouped(&self, clock: &Clock, rows: &[Row]) -> String {
        let mut lines = String::new();
        let mut done: Vec<&String> = Vec::new();
        for row in rows {
            let Some(session) = &row.session else {
                lines.push_str(&row.text(clock));
                continue;
            };
            if done.contains(&session) {
                continue;
            }
            done.push(session);
            let title = self.session_title(clock, session);
            lines.push_str(&format!("{BOLD}{}{BOLD:#}\n", one_line(&title)));
            let of_session = rows
                .iter()
                .filter(|row| row.session.as_ref() == Some(session));
            for text in of_session.map(|row| row.text(clock)) {
                lines.extend(text.lines().map(|line| format!("  {line}\n")));
            }
        }
        lines
    }

    /// Returns the title of a session: its name, number of turns and start, or what is stored if it was not
    /// recorded here.
    fn session_title(&self, clock: &Clock, session: &str) -> String {
        let turns = || {
            self.turns
                .iter()
                .filter(|turn| session_line(turn) == session)
        };
        let Some(first) = turns().min_by_key(|turn| turn.started_at) else {
            return session.to_owned();
        };
        format!(
            "{}  {} since {}",
            session_name(first),
            plural(turns().count(), "turn"),
            clock.time(first.started_at)
        )
    }

    /// Returns whether a checkpoint is shown with its turn.
    fn is_of_turn(&self, one: &Checkpoint) -> bool {
        let name = one.turn.as_ref().and_then(|turn| turn.name.as_ref());
        name.is_some_and(|name| self.turns.iter().any(|turn| turn.name == *name))
    }

    fn created_at(&self, id: Option<&String>) -> Option<i64> {
        let found = self.checkpoints.iter().find(|one| Some(&one.id) == id);
        found.map(|one| one.created_at)
    }

    /// Returns what a restore led to: the name of the state, or the id of its checkpoint.
    fn state_name(&self, id: &str) -> String {
        let found = self.checkpoints.iter().find(|one| one.id == id);
        let turn = found.and_then(|one| one.turn.as_ref()?.name.as_ref());
        match (turn, found.map(|one| one.kind)) {
            (Some(name), Some(CheckpointKind::TurnEnd)) => format!("{name}+"),
            (Some(name), _) => name.clone(),
            (None, _) => short_id(id).to_owned(),
        }
    }

    /// Returns the row of a checkpoint that belongs to no recorded turn.
    fn checkpoint_row(&self, one: &Checkpoint) -> Row {
        let restored = one.restored_id.as_ref().map(|id| {
            let undone = if one.undone_by.is_some() {
                ", undone"
            } else {
                ""
            };
            let is_undo = self
                .checkpoints
                .iter()
                .any(|one| one.id == *id && one.kind == CheckpointKind::UndoPoint);
            let what = if is_undo {
                "an undo of"
            } else {
                "a restore to"
            };
            format!("before {what} {}{undone}", self.state_name(id))
        });
        let about = match one.kind {
            CheckpointKind::UndoPoint => restored.or(Some("before a restore".to_owned())),
            CheckpointKind::Imported => Some("imported".to_owned()),
            _ => None,
        };
        let turn = one.turn.as_ref();
        let of_turn = turn.map(|turn| {
            let (agent, side) = (one_line(&turn.agent), side_of(one.kind));
            format!("{side} a turn of {agent}")
        });
        let counts = match one.kind {
            // It is mostly equal to the checkpoint before it, and what the restore changed comes later.
            CheckpointKind::UndoPoint => Vec::new(),
            _ => vec![
                (ADDED, format!("+{}", one.added)),
                (CHANGED, format!("~{}", one.modified)),
                (REMOVED, format!("-{}", one.deleted)),
            ],
        };
        let labels = [&one.task_id, &one.label].into_iter().flatten();
        Row {
            at: one.created_at,
            order: one.created_at,
            id: one.id.clone(),
            session: turn.map(|turn| format!("{}  {}", turn.agent, turn.session)),
            name: short_id(&one.id).to_owned(),
            counts,
            notes: about.into_iter().chain(of_turn).collect(),
            labels: labels.map(|text| escaped(text)).collect(),
            ..Row::default()
        }
    }

    fn turn_row(&self, turn: &ListedTurn) -> Row {
        let count = turn.files.len() as u64 + turn.more_files;
        let sum = |of: fn(&TurnFile) -> u64| -> u64 { turn.files.iter().map(of).sum() };
        let (added, deleted) = (sum(|file| file.additions), sum(|file| file.deletions));
        let counts = match added + deleted {
            0 => Vec::new(),
            _ => vec![
                (ADDED, format!("+{added}")),
                (REMOVED, format!("−{deleted}")),
            ],
        };
        let is_unknown = turn.before.is_some() && turn.after.is_none() && !turn.running;
        let (files, mut notes) = match count {
            _ if is_unknown => (None, vec!["its end was not saved".to_owned()]),
            0 => (None, vec!["no changes".to_owned()]),
            count => (Some(plural(count, "file")), Vec::new()),
        };
        let mut shared: Vec<(&str, u64)> = Vec::new();
        for name in turn.files.iter().flat_map(|file| &file.shared_with) {
            match shared.iter_mut().find(|(known, _)| known == name) {
                Some((_, count)) => *count += 1,
                None => shared.push((name, 1)),
            }
        }
        notes.extend(
            shared
                .into_iter()
                .map(|(name, count)| format!("{} shared with {name}", plural(count, "file"))),
        );
        if turn.running {
            notes.push("running".to_owned());
        }
        let start = turn.before.as_ref();
        let is_removed = start.is_some() && self.created_at(start).is_none();
        if is_removed {
            notes.push("no longer saved".to_owned());
        }
        let ids = [&turn.before, &turn.after];
        let labelled = self
            .checkpoints
            .iter()
            .filter(|one| ids.contains(&&Some(one.id.clone())));
        let labels = labelled.filter_map(|one| one.label.as_ref());
        Row {
            order: self
                .created_at(turn.before.as_ref())
                .unwrap_or(turn.started_at),
            at: turn.started_at,
            id: turn.name.clone(),
            is_turn: true,
            session: Some(session_line(turn)),
            name: turn.name.clone(),
            prompt: turn.prompt.as_deref().map(escaped),
            counts,
            files,
            notes,
            labels: labels.map(|label| escaped(label)).collect(),
            outside: turn.outside.as_ref().map(outside_text),
            paths: turn.files.iter().map(|file| escaped(&file.path)).collect(),
            is_removed,
        }
    }
}

impl Row {
    /// Returns whether a text of the row contains a text of lowercase letters.
    pub fn contains(&self, wanted: &str) -> bool {
        let names = [&self.name, &self.id].into_iter().chain(&self.prompt);
        let all = names.chain(&self.notes).chain(&self.labels);
        let mut texts = all.chain(&self.outside).chain(&self.paths);
        texts.any(|text| text.to_lowercase().contains(wanted))
    }

    /// Formats the row for the list, with the line of what changed before it.
    pub fn text(&self, clock: &Clock) -> String {
        let name = &self.name;
        let mut line = format!("{}  {CHANGED}{name:<12}{CHANGED:#}", clock.time(self.at));
        if let Some(prompt) = &self.prompt {
            line.push_str(&format!("  \"{prompt}\""));
        }
        for (at, (style, count)) in self.counts.iter().enumerate() {
            let space = if at == 0 { "  " } else { " " };
            line.push_str(&format!("{space}{style}{count}{style:#}"));
        }
        let dimmed = self.notes.iter().map(|note| format!("{DIM}{note}{DIM:#}"));
        let parts = self.files.iter().cloned().chain(dimmed);
        for part in parts.chain(self.labels.iter().cloned()) {
            line.push_str(&format!("  {part}"));
        }
        if let Some(outside) = &self.outside {
            line.push_str(&format!("\n{}  {DIM}{outside}{DIM:#}", clock.blank()));
        }
        line + "\n"
    }
}

fn escaped(text: &str) -> String {
    one_line(text).into_owned()
}

fn session_line(turn: &ListedTurn) -> String {
    format!("{}  {}", session_name(turn), turn.session)
}

fn session_name(turn: &ListedTurn) -> &str {
    turn.name.rsplit_once('.').map_or("", |(name, _)| name)
}

/// Says what changed between two turns.
fn outside_text(outside: &OutsideChanges) -> String {
    let count = outside.files.len() as u64 + outside.more_files;
    let files = plural(count, "file");
    let branch = |head: &CheckpointHead| match &head.branch {
        Some(branch) => branch.clone(),
        None => short_id(&head.commit).to_owned(),
    };
    let switched = match (&outside.from, &outside.to) {
        (Some(from), Some(to)) if branch(from) != branch(to) => Some((branch(from), branch(to))),
        _ => None,
    };
    let what = match switched {
        Some((from, to)) => format!("switched from {} to {}", one_line(&from), one_line(&to)),
        None if outside.turns.is_empty() => "you, or another program".to_owned(),
        None => format!("{}, or you", outside.turns.join(", ")),
    };
    format!("{what}: {files}")
}

/// Returns on which side of its turn a checkpoint is.
pub(super) fn side_of(kind: CheckpointKind) -> &'static str {
    match kind {
        CheckpointKind::TurnEnd => "after",
        _ => "before",
    }
}

/// Formats times in the zone of the user.
pub struct Clock {
    zone: TimeZone,
    /// `None`: all times have the whole date.
    now: Option<Zoned>,
}

impl Clock {
    /// Returns the clock of a text that is read at once.
    pub fn now() -> Self {
        let zone = TimeZone::system();
        let now = Timestamp::now().to_zoned(zone.clone());
        Self {
            zone,
            now: Some(now),
        }
    }

    /// Returns the clock of a text that is kept.
    pub fn dated() -> Self {
        Self {
            zone: TimeZone::system(),
            now: None,
        }
    }

    /// Returns the time of a day, with the date if it is not today.
    pub fn time(&self, millis: i64) -> String {
        let at = Timestamp::from_millisecond(millis)
            .unwrap_or_default()
            .to_zoned(self.zone.clone());
        let format = match &self.now {
            Some(now) if at.date() == now.date() => "%H:%M",
            Some(now) if at.year() == now.year() => "%b %d %H:%M",
            _ => "%Y-%m-%d %H:%M",
        };
        at.strftime(format).to_string()
    }

    /// Returns spaces as long as the shortest time.
    fn blank(&self) -> &'static str {
        match self.now {
            Some(_) => "     ",
            None => "                ",
        }
    }
}
