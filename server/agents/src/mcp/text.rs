//! Results of requests as text for a model.

use sightline_protocol::{
    access::{AccessKind, AccessRule, CheckAccessResult},
    checkpoint::{
        Checkpoint, DiffCheckpointsResult, ListCheckpointsResult, PreviewRestoreResult,
        RestoreAction, RestoreCheckpointResult,
    },
    files::{ListFilesResult, ReadFileResult, TextSource},
    tokens::CountTokensResult,
};

use super::page::{cut_with_note, first_page};

/// A file from `start_line`, at most `max_characters`.
pub fn file(path: &str, result: &ReadFileResult, start_line: u64, max_characters: usize) -> String {
    let source = match (result.source, result.is_dirty) {
        (TextSource::Buffer, true) => "from the editor, with unsaved changes",
        (TextSource::Buffer, false) => "from the editor",
        (TextSource::Disk, _) => "from the disk",
    };
    let page = first_page(&result.text, max_characters);
    let lines = page.lines.max(usize::from(page.is_cut)) as u64;
    let end = (start_line + lines).saturating_sub(1);
    let total = result.total_lines;
    let mut text = format!(
        "{path}: lines {start_line} to {end} of {total}, {source}\n\n{}",
        page.text
    );
    if page.is_cut && page.lines == 0 {
        text.push_str(&format!(
            "\n[Line {start_line} was cut after {max_characters} characters. Call again with a larger maxCharacters.]"
        ));
    } else if page.is_cut || result.truncated {
        text.push_str(&format!("\n[Call again with startLine={}.]", end + 1));
    }
    text
}

/// A list of files.
pub fn files(result: &ListFilesResult, max_characters: usize) -> String {
    if result.entries.is_empty() {
        return "No files.".to_owned();
    }
    let how = "Call again with a path below.";
    let mut text = cut_with_note(&result.text, max_characters, how);
    if result.truncated {
        text.push_str(
            "\n[The list is not complete. Call again with a larger limit, or with a path below.]",
        );
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

fn checkpoint_line(checkpoint: &Checkpoint) -> String {
    let Checkpoint {
        id,
        added,
        modified,
        deleted,
        created_at,
        ..
    } = checkpoint;
    let id = id.get(..12).unwrap_or(id);
    let time = jiff::Timestamp::from_millisecond(*created_at).unwrap_or_default();
    let time = time.strftime("%Y-%m-%d %H:%M:%S UTC");
    let label = checkpoint.label.as_deref().unwrap_or_default();
    let purpose = match checkpoint.purpose {
        Some(_) => " (before a restore or imported)",
        None => "",
    };
    format!(
        "{id} at {time}: {added} added, {modified} modified, {deleted} deleted {label}{purpose}"
    )
    .trim_end()
    .to_owned()
}

/// The difference of two checkpoints.
pub fn difference(result: &DiffCheckpointsResult, max_characters: usize) -> String {
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
    cut_with_note(
        &text,
        max_characters,
        "Call again with paths, or with a larger maxCharacters.",
    )
}

/// What a restore would change, and the token for the second step.
pub fn preview(result: &PreviewRestoreResult, tool: &str, max_characters: usize) -> String {
    if result.changes.is_empty() && result.conflicts.is_empty() {
        return "Nothing would change.".to_owned();
    }
    let mut lines = vec!["Nothing has been changed yet. This would be done:".to_owned()];
    for change in &result.changes {
        let warning = if change.changed_since {
            " (changed after the restore)"
        } else {
            ""
        };
        lines.push(format!(
            "{} {}{warning}",
            action(change.action),
            change.path
        ));
    }
    for conflict in &result.conflicts {
        lines.push(format!(
            "left alone: {} ({})",
            conflict.path, conflict.reason
        ));
    }
    let listed = cut_with_note(
        &lines.join("\n"),
        max_characters,
        "Ask the user before you go on.",
    );
    let token = &result.token;
    format!("{listed}\n\nAsk the user. To do it, call {tool} again with token=\"{token}\".")
}

/// What a restore changed.
pub fn restored(result: &RestoreCheckpointResult, max_characters: usize) -> String {
    let mut lines = Vec::new();
    for outcome in &result.outcomes {
        let outcome_text = match &outcome.error {
            Some(error) => format!("failed: {} ({error})", outcome.path),
            None => format!("{} {}", action(outcome.action), outcome.path),
        };
        lines.push(outcome_text);
    }
    for conflict in &result.conflicts {
        lines.push(format!(
            "left alone: {} ({})",
            conflict.path, conflict.reason
        ));
    }
    if lines.is_empty() {
        lines.push("Nothing had to be changed.".to_owned());
    }
    let mut text = cut_with_note(&lines.join("\n"), max_characters, "All were handled.");
    if let Some(undo) = &result.undo_id {
        let undo = undo.get(..12).unwrap_or(undo);
        text.push_str(&format!(
            "\n\nUndo with checkpoint_undo, undoId=\"{undo}\"."
        ));
    }
    text
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
