//! Results as text, with colors: a checkpoint, a preview, an outcome and a difference. [`plain`] removes the colors.

pub mod timeline;

use anstyle::{AnsiColor, Style};
use sightline_protocol::checkpoint::{
    Checkpoint, CheckpointPurpose, DifferenceStatus, FileDifference, PreviewRestoreResult,
    RestoreAction, RestoreChange, RestoreCheckpointResult, RestoreConflict, RestoreTarget,
    short_id,
};

use self::timeline::Clock;
use sightline_base::{
    clock::now_millis,
    escape::one_line,
    plural::{ago, plural},
};

/// Color of what was added.
pub const ADDED: Style = AnsiColor::Green.on_default();
/// Color of what was removed.
pub const REMOVED: Style = AnsiColor::Red.on_default();
/// Color of what was changed, and of names.
pub const CHANGED: Style = AnsiColor::Yellow.on_default();
/// Style of what is less important.
pub const DIM: Style = Style::new().dimmed();
/// Style of headings.
pub const BOLD: Style = Style::new().bold();

/// Returns a text without its colors.
pub fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Returns the line that counts the entries of a preview after the first `limit`. Empty if there
/// are none.
pub fn more_line(count: usize, limit: usize) -> String {
    match count.saturating_sub(limit) {
        0 => String::new(),
        more => format!("{DIM}... and {more} more; --all shows them{DIM:#}\n"),
    }
}

/// Returns the letter of a change, and its color.
pub fn sign(status: DifferenceStatus) -> (&'static str, Style) {
    match status {
        DifferenceStatus::Added => ("A", ADDED),
        DifferenceStatus::Modified => ("M", CHANGED),
        DifferenceStatus::Deleted => ("D", REMOVED),
        DifferenceStatus::Renamed => ("R", CHANGED),
        DifferenceStatus::TypeChanged => ("T", CHANGED),
    }
}

/// Formats the numbers of changed lines of a file.
pub fn line_counts(file: &FileDifference) -> String {
    if file.binary {
        return "binary".to_owned();
    }
    format!("+{} -{}", file.additions, file.deletions)
}

/// Formats a changed file as a line with colors.
pub fn difference(file: &FileDifference) -> String {
    let (sign, style) = sign(file.status);
    let lines = line_counts(file);
    let from = match &file.old_path {
        Some(old) => format!("{} -> ", one_line(old)),
        None => String::new(),
    };
    let path = one_line(&file.path);
    let why = file.omitted.as_ref().map_or_else(String::new, |why| {
        format!("  {DIM}{}{DIM:#}", one_line(why))
    });
    format!("{style}{sign}{style:#} {lines:>12}  {from}{path}{why}\n")
}

/// Formats a path with what happens to it, and why.
fn path_line(style: Style, what: &str, path: &str, why: &str) -> String {
    let (path, why) = (one_line(path), one_line(why));
    let why = match &*why {
        "" => String::new(),
        why => format!("  {DIM}{why}{DIM:#}"),
    };
    format!("{style}{what:<6}{style:#}  {path}{why}\n")
}

/// Formats a path that a restore changes, and why.
pub fn change(action: RestoreAction, path: &str, why: &str) -> String {
    match action {
        RestoreAction::Write => path_line(CHANGED, "write", path, why),
        RestoreAction::Delete => path_line(REMOVED, "delete", path, why),
    }
}

/// Formats a path that a restore could not change.
pub fn failed(path: &str, error: &str) -> String {
    path_line(REMOVED, "failed", path, error)
}

/// Formats a path that a restore leaves unchanged.
pub fn skipped(conflict: &RestoreConflict) -> String {
    path_line(BOLD, "skip", &conflict.path, &conflict.reason)
}

/// Formats an abbreviated id.
pub fn id(id: &str) -> String {
    format!("{CHANGED}{}{CHANGED:#}", short_id(id))
}

/// Formats the numbers of files that changed before a checkpoint.
pub fn counts(checkpoint: &Checkpoint) -> String {
    format!(
        "{ADDED}+{}{ADDED:#} {CHANGED}~{}{CHANGED:#} {REMOVED}-{}{REMOVED:#}",
        checkpoint.added, checkpoint.modified, checkpoint.deleted
    )
}

/// Formats a checkpoint and its time as a line.
pub fn checkpoint(one: &Checkpoint, time: &str) -> String {
    let mut line = format!("{}  {time:>14}  {}", id(&one.id), counts(one));
    let purpose = match one.purpose {
        Some(CheckpointPurpose::Undo) => Some("before a restore".to_owned()),
        Some(CheckpointPurpose::Imported) => Some("imported".to_owned()),
        None => None,
    };
    let turn = one.turn.as_ref().map(|turn| {
        let side = timeline::side_of(one.kind);
        match &turn.name {
            Some(name) => format!("{side} turn {name}"),
            None => format!(
                "{side} turn {} of {}, session {}",
                turn.turn, turn.agent, turn.session
            ),
        }
    });
    for note in purpose.iter().chain(&turn) {
        line.push_str(&format!("  {DIM}{}{DIM:#}", one_line(note)));
    }
    for text in [&one.task_id, &one.label].into_iter().flatten() {
        line.push_str(&format!("  {}", one_line(text)));
    }
    line + "\n"
}

/// Says in one line what a new checkpoint saved.
pub fn created(one: &Checkpoint) -> String {
    let Checkpoint {
        added,
        modified,
        deleted,
        ..
    } = one;
    let skipped = match one.skipped.len() {
        0 => String::new(),
        count => format!(", {count} skipped"),
    };
    format!(
        "checkpoint {}: {added} added, {modified} modified, {deleted} deleted{skipped}",
        short_id(&one.id)
    )
}

/// Formats a time relative to now.
pub fn relative_time(millis: i64) -> String {
    ago(now_millis(), millis)
}

/// Formats a time, also relative to now.
pub fn time_and_age(millis: i64) -> String {
    format!("{}, {}", Clock::now().time(millis), relative_time(millis))
}

/// Returns a line that says which state is restored.
pub fn target(target: &RestoreTarget) -> String {
    let mut line = match &target.name {
        Some(name) => {
            let (turn, side) = match name.strip_suffix('+') {
                Some(turn) => (turn, "after"),
                None => (name.as_str(), "before"),
            };
            let (session, number) = turn.rsplit_once('.').unwrap_or((turn, ""));
            format!("Restore to {side} turn {number} of {session}")
        }
        None => format!("Restore to checkpoint {}", short_id(&target.id)),
    };
    if let Some(label) = &target.label {
        line.push_str(&format!(" \"{}\"", one_line(label)));
    }
    line.push_str(&format!(", {}", time_and_age(target.created_at)));
    if let Some(branch) = &target.branch {
        line.push_str(&format!(", on branch {}", one_line(branch)));
    }
    line + "\n"
}

/// Returns whether `--force` changes a path that is left unchanged without it.
pub fn needs_force(conflict: &RestoreConflict) -> bool {
    conflict.changed_since || conflict.unsaved
}

/// Returns a line with the number of changes. Empty if there are few.
fn summary(preview: &PreviewRestoreResult, force: bool) -> String {
    let count = |action| {
        let is_it = |change: &&RestoreChange| change.action == action;
        preview.changes.iter().filter(is_it).count() as u64
    };
    let (written, deleted) = (count(RestoreAction::Write), count(RestoreAction::Delete));
    let (forced, skipped): (Vec<_>, Vec<_>) = preview
        .conflicts
        .iter()
        .partition(|conflict| force && needs_force(conflict));
    let forced = forced.len() as u64;
    if written + deleted + forced < 2 {
        return String::new();
    }
    let counts = [
        (written, "to write"),
        (deleted, "to delete"),
        (forced, "to replace"),
        (skipped.len() as u64, "skipped"),
    ];
    let shown: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    format!("{}\n", shown.join(", "))
}

/// Formats the warnings of a preview.
pub fn warnings(preview: &PreviewRestoreResult) -> String {
    let line = |why: &String| format!("{CHANGED}warning{CHANGED:#} {}\n", one_line(why));
    preview.warnings.iter().map(line).collect()
}

/// Formats what a restore changes and skips: the first `limit` paths of each. With `force`, paths that are
/// skipped without it are among the changes.
pub fn preview(preview: &PreviewRestoreResult, limit: usize, force: bool) -> String {
    let mut lines = summary(preview, force);
    let changes = preview.changes.iter();
    lines.extend(
        changes
            .take(limit)
            .map(|one| change(one.action, &one.path, &one.reason)),
    );
    lines.push_str(&more_line(preview.changes.len(), limit));
    let conflicts = preview.conflicts.iter();
    lines.extend(conflicts.take(limit).map(|conflict| {
        if force && needs_force(conflict) {
            path_line(BOLD, "force", &conflict.path, &conflict.reason)
        } else {
            skipped(conflict)
        }
    }));
    lines.push_str(&more_line(preview.conflicts.len(), limit));
    lines
}

/// Says in one line what a restore or undo did.
pub fn outcome(result: &RestoreCheckpointResult) -> String {
    if result.undo_id.is_none() && result.conflicts.is_empty() {
        return "already up to date".to_owned();
    }
    let failed = result.outcomes.iter().filter(|outcome| !outcome.ok).count();
    let done = result.outcomes.len() - failed;
    let mut line = format!("{} restored", plural(done, "path"));
    for (count, what) in [(failed, "failed"), (result.conflicts.len(), "skipped")] {
        if count > 0 {
            line.push_str(&format!(", {count} {what}"));
        }
    }
    if let Some(task) = &result.task {
        let messages = plural(task.messages, "message");
        line.push_str(&format!(", task {} has {messages}", task.task_id));
    }
    if let Some(undo) = result.undo_command() {
        line.push_str(&format!("; undo with `{undo}`"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_readable() {
        let at = |seconds: i64| relative_time(now_millis() - seconds * 1000 - 500);
        assert_eq!(at(-100), "just now");
        assert_eq!(at(300), "5 minutes ago");
        assert_eq!(at(7300), "2 hours ago");
        assert_eq!(at(90_000), "1 day ago");
        assert_eq!(at(260_000), "3 days ago");
    }

    #[test]
    fn a_plain_text_lost_only_its_colors() {
        let file = FileDifference {
            path: "a\x1b[0m.txt".to_owned(),
            additions: 3,
            ..FileDifference::default()
        };
        let shown = plain(&difference(&file));
        assert!(shown.contains("+3 -0  a"), "{shown:?}");
        assert!(
            shown.contains(".txt\n") && !shown.contains('\x1b'),
            "{shown:?}"
        );
        let conflict = RestoreConflict {
            path: "b.txt".to_owned(),
            reason: "unsaved".to_owned(),
            ..RestoreConflict::default()
        };
        assert_eq!(plain(&skipped(&conflict)), "skip    b.txt  unsaved\n");
    }
}
