//! `sightline checkpoint list`: turns and checkpoints as one timeline, newest first.

use std::cmp::Reverse;

use jiff::{Timestamp, Zoned, tz::TimeZone};
use serde::Serialize;
use sightline_base::escape::one_line;
use sightline_engine::{error::Error, plural::plural};
use sightline_protocol::{
    checkpoint::{
        Checkpoint, CheckpointHead, CheckpointKind, ListCheckpointsParams, ListTurnsParams,
        ListedTurn, OutsideChanges,
    },
    method::{ListCheckpoints, ListTurns},
};

use super::{
    format::{ADDED, BOLD, CHANGED, DIM, REMOVED, counts, short_id},
    print_as,
};
use crate::{DONE, requests::Requests};

/// Number of turns to ask for at once.
const PAGE: u32 = 1000;

/// Turns and checkpoints. The output with `--json` is the result of `sightline/listCheckpoints`.
#[derive(Serialize)]
pub(super) struct Timeline {
    pub(super) checkpoints: Vec<Checkpoint>,
    #[serde(skip)]
    turns: Vec<ListedTurn>,
}

/// One line of the list, or several that belong together.
struct Row {
    at: i64,
    session: Option<String>,
    text: String,
}

impl Timeline {
    /// Asks for the checkpoints, and unless only those of a task are wanted, for the turns.
    pub(super) fn load(
        requests: &Requests,
        task: Option<String>,
        limit: Option<u32>,
    ) -> Result<Self, Error> {
        let root = requests.root()?;
        let turns = if task.is_none() && !requests.workspace.json {
            let params = ListTurnsParams {
                root: root.clone(),
                limit: Some(limit.unwrap_or(PAGE)),
                ..ListTurnsParams::default()
            };
            requests.call::<ListTurns>(params)?.turns
        } else {
            Vec::new()
        };
        let params = ListCheckpointsParams {
            task_id: task,
            limit,
            root,
            ..ListCheckpointsParams::default()
        };
        let checkpoints = requests.call::<ListCheckpoints>(params)?.checkpoints;
        Ok(Self { checkpoints, turns })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.checkpoints.is_empty() && self.turns.is_empty()
    }

    /// Prints the list.
    pub(super) fn print(
        &self,
        requests: &Requests,
        limit: Option<u32>,
        by_session: bool,
    ) -> Result<i32, Error> {
        print_as(requests.workspace, self, |timeline| {
            timeline.text(limit.map_or(usize::MAX, |limit| limit as usize), by_session)
        })?;
        Ok(DONE)
    }

    fn text(&self, limit: usize, by_session: bool) -> String {
        let clock = Clock::new();
        let turns = self.turns.iter().map(|turn| Row {
            at: turn.started_at,
            session: Some(session_line(turn)),
            text: self.turn_row(&clock, turn),
        });
        let without_turn = self.checkpoints.iter().filter(|one| !self.is_of_turn(one));
        let others = without_turn.map(|one| Row {
            at: one.created_at,
            session: one
                .turn
                .as_ref()
                .map(|turn| format!("{}  {}", turn.agent, turn.session)),
            text: checkpoint_row(&clock, one),
        });
        let mut rows: Vec<Row> = turns.chain(others).collect();
        rows.sort_by_key(|row| Reverse(row.at));
        rows.truncate(limit);
        if by_session {
            return grouped(&rows);
        }
        rows.into_iter().map(|row| row.text).collect()
    }

    /// Returns whether a checkpoint is shown with its turn.
    fn is_of_turn(&self, one: &Checkpoint) -> bool {
        let name = one.turn.as_ref().and_then(|turn| turn.name.as_ref());
        name.is_some_and(|name| self.turns.iter().any(|turn| turn.name == *name))
    }

    fn turn_row(&self, clock: &Clock, turn: &ListedTurn) -> String {
        let mut line = format!(
            "{}  {CHANGED}{:<12}{CHANGED:#}",
            clock.time(turn.started_at),
            turn.name
        );
        if let Some(prompt) = &turn.prompt {
            line.push_str(&format!("  \"{}\"", one_line(prompt)));
        }
        let count = turn.files.len() as u64 + turn.more_files;
        let sum = |of: fn(&sightline_protocol::checkpoint::TurnFile) -> u64| -> u64 {
            turn.files.iter().map(of).sum()
        };
        let (added, deleted) = (sum(|file| file.additions), sum(|file| file.deletions));
        if added + deleted > 0 {
            line.push_str(&format!(
                "  {ADDED}+{added}{ADDED:#} {REMOVED}−{deleted}{REMOVED:#}"
            ));
        }
        let is_unknown = turn.before.is_some() && turn.after.is_none() && !turn.running;
        match count {
            _ if is_unknown => line.push_str(&format!("  {DIM}its end was not saved{DIM:#}")),
            0 => line.push_str(&format!("  {DIM}no changes{DIM:#}")),
            count => line.push_str(&format!("  {}", plural(count, "file"))),
        }
        let mut shared: Vec<(&str, u64)> = Vec::new();
        for name in turn.files.iter().flat_map(|file| &file.shared_with) {
            match shared.iter_mut().find(|(known, _)| known == name) {
                Some((_, count)) => *count += 1,
                None => shared.push((name, 1)),
            }
        }
        for (name, count) in shared {
            let files = plural(count, "file");
            line.push_str(&format!("  {DIM}{files} shared with {name}{DIM:#}"));
        }
        if turn.running {
            line.push_str(&format!("  {DIM}running{DIM:#}"));
        }
        let ids = [&turn.before, &turn.after];
        let labelled = self
            .checkpoints
            .iter()
            .filter(|one| ids.contains(&&Some(one.id.clone())));
        for label in labelled.filter_map(|one| one.label.as_ref()) {
            line.push_str(&format!("  {}", one_line(label)));
        }
        line.push('\n');
        if let Some(outside) = &turn.outside {
            line.push_str(&outside_row(clock, outside));
        }
        line
    }
}

/// Groups rows by session, at the place of the newest row of each.
fn grouped(rows: &[Row]) -> String {
    let mut lines = String::new();
    let mut done: Vec<&String> = Vec::new();
    for row in rows {
        let Some(session) = &row.session else {
            lines.push_str(&row.text);
            continue;
        };
        if done.contains(&session) {
            continue;
        }
        done.push(session);
        lines.push_str(&format!("{BOLD}{}{BOLD:#}\n", one_line(session)));
        let of_session = rows
            .iter()
            .filter(|row| row.session.as_ref() == Some(session));
        for line in of_session.flat_map(|row| row.text.lines()) {
            lines.push_str(&format!("  {line}\n"));
        }
    }
    lines
}

fn session_line(turn: &ListedTurn) -> String {
    let name = turn.name.rsplit_once('.').map_or("", |(name, _)| name);
    format!("{name}  {}", turn.session)
}

/// Formats what changed between two turns.
fn outside_row(clock: &Clock, outside: &OutsideChanges) -> String {
    let count = outside.files.len() as u64 + outside.more_files;
    let files = plural(count, "file");
    let branch = |head: &CheckpointHead| match &head.branch {
        Some(branch) => branch.clone(),
        None => sightline_protocol::checkpoint::short_id(&head.commit).to_owned(),
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
    format!("{}  {DIM}{what}: {files}{DIM:#}\n", clock.blank())
}

/// Formats a checkpoint that belongs to no recorded turn.
fn checkpoint_row(clock: &Clock, one: &Checkpoint) -> String {
    let mut line = format!(
        "{}  {:<12}  {}",
        clock.time(one.created_at),
        short_id(one),
        counts(one)
    );
    let about = match one.kind {
        CheckpointKind::UndoPoint if one.undone_by.is_some() => Some("before a restore, undone"),
        CheckpointKind::UndoPoint => Some("before a restore"),
        CheckpointKind::Imported => Some("imported"),
        _ => None,
    };
    if let Some(about) = about {
        line.push_str(&format!("  {DIM}{about}{DIM:#}"));
    }
    if let Some(turn) = &one.turn {
        let (agent, side) = (one_line(&turn.agent), side_of(one.kind));
        line.push_str(&format!("  {DIM}{side} a turn of {agent}{DIM:#}"));
    }
    for text in [&one.task_id, &one.label].into_iter().flatten() {
        line.push_str(&format!("  {}", one_line(text)));
    }
    line + "\n"
}

fn side_of(kind: CheckpointKind) -> &'static str {
    match kind {
        CheckpointKind::TurnEnd => "after",
        _ => "before",
    }
}

/// Formats times in the zone of the user.
pub(super) struct Clock {
    zone: TimeZone,
    now: Zoned,
}

impl Clock {
    pub(super) fn new() -> Self {
        let zone = TimeZone::system();
        let now = Timestamp::now().to_zoned(zone.clone());
        Self { zone, now }
    }

    /// Returns the time of a day, with the date if it is not today.
    pub(super) fn time(&self, millis: i64) -> String {
        let at = Timestamp::from_millisecond(millis)
            .unwrap_or_default()
            .to_zoned(self.zone.clone());
        if at.date() == self.now.date() {
            at.strftime("%H:%M").to_string()
        } else if at.year() == self.now.year() {
            at.strftime("%b %d %H:%M").to_string()
        } else {
            at.strftime("%Y-%m-%d %H:%M").to_string()
        }
    }

    fn blank(&self) -> String {
        " ".repeat(self.now.strftime("%H:%M").to_string().len())
    }
}
