//! Results of requests as text for a model.

use serde_json::{Value, json};
use sightline_protocol::{
    access::{AccessKind, AccessRule, CheckAccessResult},
    checkpoint::{
        Checkpoint, CheckpointKind, CheckpointPurpose, DiffCheckpointsResult,
        ListCheckpointsResult, PreviewRestoreResult, RestoreAction, RestoreCheckpointResult,
        RestoreConflict, short_id,
    },
    editor::{DiagnosticsResult, Position, SelectionResult},
    files::{ListFilesResult, ReadFileResult, TextSource},
    tokens::CountTokensResult,
};

use super::page::{MAX_CHARACTERS, PageArguments, first_page, note, room};

/// Room for the first line of a file without its path, in characters.
const HEADER_CHARACTERS: usize = 200;

/// A page of a file. `result` begins at the first line of the page.
pub fn file(
    path: &str,
    result: &ReadFileResult,
    is_editor_running: bool,
    end_line: Option<u64>,
    page: PageArguments,
) -> String {
    let source = match (result.source, result.is_dirty) {
        (TextSource::Buffer, true) if result.changed_on_disk => {
            "from the editor, with unsaved changes; the file on disk has changed too, and differs from this text"
        }
        (TextSource::Buffer, true) => "from the editor, with unsaved changes",
        (TextSource::Buffer, false) => "from the editor",
        (TextSource::Disk, _) if is_editor_running => "from the disk",
        (TextSource::Disk, _) => "from the disk; no editor is running for this folder",
    };
    let (start, total) = (page.start_line(), result.total_lines);
    if total == 0 {
        return format!("{path}: empty, {source}");
    }
    let text = result.text.as_str();
    // The last line of a truncated text is not complete.
    let last_end = text.rfind(['\n', '\r']).filter(|_| result.truncated);
    let lines = last_end.map_or(text, |end| &text[..=end]);
    let mut shown = first_page(
        lines,
        room(
            page.max_characters(),
            HEADER_CHARACTERS + path.chars().count(),
        ),
    );
    shown.is_line_cut |= result.truncated && last_end.is_none();
    let end = start.saturating_add(shown.lines).saturating_sub(1);
    let has_more = end < end_line.map_or(total, |last| last.min(total));
    let mut text = format!(
        "{path}: lines {start} to {end} of {total}, {source}\n\n{}",
        shown.text
    );
    if let Some(note) = note(&shown, end, has_more) {
        text.push_str(&format!("\n{note}"));
    }
    text
}

/// A list of files.
pub fn files(result: &ListFilesResult) -> String {
    if result.entries.is_empty() {
        return "No files.".to_owned();
    }
    result.text.clone()
}

/// The active file and the selected text. Lines and columns start at 1.
pub fn selection(result: &SelectionResult) -> String {
    let Some(path) = &result.path else {
        return "No file that agents may see has the focus.".to_owned();
    };
    let mut text = format!("{path} has the focus.");
    if result.selections.is_empty() {
        text.push_str(" The editor does not report the cursor.");
    }
    for selection in &result.selections {
        let (start, end) = (selection.range.start, selection.range.end);
        if start == end {
            text.push_str(&format!("\nCursor at {}.", place(start)));
        } else {
            let (from, to) = (place(start), place(end));
            text.push_str(&format!(
                "\nSelected from {from} to {to}:\n{}",
                selection.text
            ));
        }
    }
    if result.truncated {
        text.push_str("\nThe selected text is not complete. Read the file.");
    }
    text
}

fn place(position: Position) -> String {
    let (line, column) = (u64::from(position.line), u64::from(position.character));
    format!("line {}, column {}", line + 1, column + 1)
}

/// What language servers report.
pub fn diagnostics(result: &DiagnosticsResult) -> String {
    let mut text = result.text.clone();
    if text.is_empty() {
        text.push_str("No diagnostics.");
    }
    if result.omitted > 0 {
        text.push_str(&format!(
            "\n({} files that agents may not see are left out)",
            result.omitted
        ));
    }
    text
}

/// Whether paths and a command are allowed.
pub fn access(result: &CheckAccessResult) -> String {
    let mut lines = Vec::new();
    for path in &result.paths {
        let access = match path.access {
            AccessKind::Allowed => "allowed",
            AccessKind::Denied => "denied",
            AccessKind::Outside => "outside the workspace",
        };
        let reason = reason(path.reason.as_deref(), path.rule.as_ref());
        lines.push(format!("{}: {access}{reason}", path.path));
    }
    if let Some(command) = &result.command {
        if command.allowed {
            lines.push("The command is allowed.".to_owned());
        }
        for denied in &command.denied {
            let reason = reason(Some(&denied.reason), denied.rule.as_ref());
            lines.push(format!(
                "The command is denied because of {}{reason}",
                denied.path
            ));
        }
    }
    if lines.is_empty() {
        return "Nothing to check: give paths or a command.".to_owned();
    }
    lines.join("\n")
}

fn reason(reason: Option<&str>, rule: Option<&AccessRule>) -> String {
    let mut text = String::new();
    if let Some(reason) = reason {
        text.push_str(&format!(" ({reason})"));
    }
    if let Some(rule) = rule {
        text.push_str(&format!(
            ", {} line {}: {}",
            rule.source, rule.line, rule.pattern
        ));
    }
    text
}

/// A new checkpoint.
pub fn created(checkpoint: &Checkpoint) -> String {
    let mut text = format!("Checkpoint {}", checkpoint_line(checkpoint));
    if !checkpoint.skipped.is_empty() {
        let skipped = checkpoint.skipped.len();
        text.push_str(&format!(
            "\n{skipped} files were not saved, such as {}: {}",
            checkpoint.skipped[0].path, checkpoint.skipped[0].reason
        ));
    }
    text
}

/// Checkpoints, newest first.
pub fn checkpoints(result: &ListCheckpointsResult) -> String {
    if result.checkpoints.is_empty() {
        return "No checkpoints yet. Create one with checkpoint_create.".to_owned();
    }
    let lines = result.checkpoints.iter().map(checkpoint_line);
    lines.collect::<Vec<_>>().join("\n")
}

/// Checkpoints as data. `None` if they do not fit into a page.
pub fn checkpoints_as_json(result: &ListCheckpointsResult) -> Option<Value> {
    let checkpoints = result.checkpoints.iter().map(|checkpoint| {
        let Checkpoint {
            id,
            created_at,
            label,
            added,
            modified,
            deleted,
            purpose,
            kind,
            turn,
            ..
        } = checkpoint;
        let fields = json!({
            "id": id, "createdAt": created_at, "label": label, "purpose": purpose,
            "added": added, "modified": modified, "deleted": deleted,
            "agent": turn.as_ref().map(|turn| &turn.agent),
            "session": turn.as_ref().map(|turn| &turn.session),
            "turn": turn.as_ref().map(|turn| &turn.turn), "kind": kind,
        });
        let Value::Object(fields) = fields else {
            return Value::Null;
        };
        let known = fields.into_iter().filter(|(_, value)| !value.is_null());
        Value::Object(known.collect())
    });
    let data = json!({ "checkpoints": checkpoints.collect::<Vec<_>>() });
    (data.to_string().len() <= MAX_CHARACTERS).then_some(data)
}

fn checkpoint_line(checkpoint: &Checkpoint) -> String {
    let Checkpoint {
        id,
        added,
        modified,
        deleted,
        created_at,
        ..
    } = checkpoint;
    let id = short_id(id);
    let time = jiff::Timestamp::from_millisecond(*created_at).unwrap_or_default();
    let time = time.strftime("%Y-%m-%d %H:%M:%S UTC");
    let label = checkpoint.label.as_deref().unwrap_or_default();
    let purpose = match checkpoint.purpose {
        Some(CheckpointPurpose::Undo) => " (undo point, from before a restore)",
        Some(CheckpointPurpose::Imported) => " (imported)",
        None => "",
    };
    let side = match checkpoint.kind {
        CheckpointKind::TurnEnd => "after",
        _ => "before",
    };
    let turn = checkpoint.turn.as_ref().map(|turn| match &turn.name {
        Some(name) => format!(" ({side} turn {name})"),
        None => format!(
            " ({side} turn {} of {}, session {})",
            turn.turn, turn.agent, turn.session
        ),
    });
    let turn = turn.unwrap_or_default();
    let changes = format!("{added} added, {modified} modified, {deleted} deleted {label}");
    format!("{id} at {time}: {}{purpose}{turn}", changes.trim_end())
}

/// The difference of two checkpoints.
pub fn difference(result: &DiffCheckpointsResult) -> String {
    if result.files.is_empty() {
        return "No differences.".to_owned();
    }
    let files = result.files.iter().map(|file| {
        let binary = if file.binary { ", binary" } else { "" };
        format!(
            "{:?} {} (+{} -{}{binary})",
            file.status, file.path, file.additions, file.deletions
        )
    });
    let mut text = files.collect::<Vec<_>>().join("\n");
    if let Some(patch) = &result.text {
        text.push_str(&format!("\n\n{patch}"));
    }
    text
}

/// What a restore would change, and the token for the second step at its end, so that the last
/// page has it.
pub fn preview(result: &PreviewRestoreResult, tool: &str) -> String {
    if result.changes.is_empty() && result.conflicts.is_empty() {
        return "Nothing would change.".to_owned();
    }
    let mut lines = vec![
        "Nothing has been changed yet. This would be done; the token follows the list:".to_owned(),
    ];
    let changes = result.changes.iter();
    lines.extend(changes.map(|change| format!("{} {}", action(change.action), change.path)));
    lines.extend(result.conflicts.iter().map(conflict_line));
    let token = &result.token;
    lines.push(format!(
        "\nAsk the user. To do it, call {tool} again with token=\"{token}\"."
    ));
    if let Some(undo) = &result.undo_id {
        lines.push(format!("The undo point is undoId=\"{undo}\"."));
    }
    lines.join("\n")
}

/// What a restore changed: what the user has to know comes first.
pub fn restored(result: &RestoreCheckpointResult) -> String {
    let mut lines = Vec::new();
    if let Some(undo) = &result.undo_id {
        let undo = short_id(undo);
        lines.push(format!("Undo with checkpoint_undo, undoId=\"{undo}\"."));
    }
    let failed = result.outcomes.iter().filter_map(|outcome| {
        let error = outcome.error.as_ref()?;
        Some(format!("failed: {} ({error})", outcome.path))
    });
    lines.extend(failed);
    lines.extend(result.conflicts.iter().map(conflict_line));
    let done = result
        .outcomes
        .iter()
        .filter(|outcome| outcome.error.is_none());
    lines.extend(done.map(|outcome| format!("{} {}", action(outcome.action), outcome.path)));
    if result.outcomes.is_empty() && result.conflicts.is_empty() {
        lines.push("Nothing had to be changed.".to_owned());
    }
    lines.join("\n")
}

fn conflict_line(conflict: &RestoreConflict) -> String {
    format!("left alone: {} ({})", conflict.path, conflict.reason)
}

fn action(action: RestoreAction) -> &'static str {
    match action {
        RestoreAction::Write => "write",
        RestoreAction::Delete => "delete",
    }
}

/// A token count.
pub fn tokens(result: &CountTokensResult) -> String {
    let CountTokensResult {
        tokens,
        encoding,
        exact,
        ..
    } = result;
    let about = if *exact { "" } else { "about " };
    format!("{about}{tokens} tokens ({encoding})")
}
