//! Results of requests as text for a model.

use serde_json::{Value, json};
use sightline_agents::judge::without_folder;
use sightline_engine::render;
use sightline_protocol::{
    access::{AccessKind, AccessRule, CheckAccessResult},
    checkpoint::{
        Checkpoint, DiffCheckpointsResult, ListCheckpointsResult, PreviewRestoreResult,
        RestoreCheckpointResult, short_id,
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
        if let Some(instead) = &command.instead {
            lines.push(format!("Run instead: {}", without_folder(instead)));
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
    let mut text = render::created(checkpoint);
    if let Some(skipped) = checkpoint.skipped.first() {
        text.push_str(&format!(", such as {}: {}", skipped.path, skipped.reason));
    }
    text
}

/// Checkpoints, newest first.
pub fn checkpoints(result: &ListCheckpointsResult) -> String {
    if result.checkpoints.is_empty() {
        return "No checkpoints yet. Create one with checkpoint_create.".to_owned();
    }
    let lines = result.checkpoints.iter().map(|one| {
        let time = jiff::Timestamp::from_millisecond(one.created_at).unwrap_or_default();
        let shown = time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        render::plain(&render::checkpoint(one, &shown))
    });
    lines.collect::<String>().trim_end().to_owned()
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

/// The difference of two checkpoints.
pub fn difference(result: &DiffCheckpointsResult) -> String {
    if result.files.is_empty() {
        return "No differences.".to_owned();
    }
    let lines: String = result.files.iter().map(render::difference).collect();
    match &result.text {
        Some(patch) => format!("{}\n{patch}", render::plain(&lines)),
        None => render::plain(&lines).trim_end().to_owned(),
    }
}

/// What a restore would change, and the token for the second step at its end, so that the last
/// page has it.
pub fn preview(result: &PreviewRestoreResult, tool: &str) -> String {
    if result.changes.is_empty() && result.conflicts.is_empty() {
        return "Nothing would change.".to_owned();
    }
    let target = result.target.as_ref().map(render::target);
    let lines = [
        target.unwrap_or_default(),
        render::warnings(result),
        render::preview(result, usize::MAX, false),
    ];
    let mut text = format!(
        "Nothing has been changed yet. This would be done; the token follows the list:\n{}\n\
         Ask the user. To do it, call {tool} again with token=\"{}\".",
        render::plain(&lines.concat()),
        result.token
    );
    if let Some(undo) = &result.undo_id {
        text.push_str(&format!("\nThe undo point is undoId=\"{undo}\"."));
    }
    text
}

/// What a restore changed: what the user has to know comes first.
pub fn restored(result: &RestoreCheckpointResult) -> String {
    if result.outcomes.is_empty() && result.conflicts.is_empty() {
        return "Nothing had to be changed.".to_owned();
    }
    let mut text = String::new();
    if let Some(undo) = &result.undo_id {
        let undo = short_id(undo);
        text.push_str(&format!("Undo with checkpoint_undo, undoId=\"{undo}\".\n"));
    }
    let (done, failed): (Vec<_>, Vec<_>) = result.outcomes.iter().partition(|outcome| outcome.ok);
    text.extend(failed.into_iter().map(|outcome| {
        let error = outcome.error.as_deref().unwrap_or_default();
        render::failed(&outcome.path, error)
    }));
    text.extend(result.conflicts.iter().map(render::skipped));
    text.extend(
        done.into_iter()
            .map(|outcome| render::change(outcome.action, &outcome.path, "")),
    );
    render::plain(text.trim_end())
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
