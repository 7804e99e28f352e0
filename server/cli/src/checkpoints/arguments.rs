//! Arguments of `sightline checkpoint`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sightline_protocol::checkpoint::{FileHunks, PreviewRestoreResult, RestoreMode, RestoreOnly};

use super::{confirm::ConfirmArgs, picker::choice::Choice};
use crate::{Workspace, requests::Place};

#[derive(Subcommand)]
pub(crate) enum Checkpoint {
    /// Create a checkpoint of the workspace.
    Create {
        #[command(flatten)]
        place: Place,
        /// Label of the checkpoint.
        #[arg(long, short, value_name = "TEXT")]
        label: Option<String>,
        /// Task the checkpoint belongs to.
        #[arg(long, value_name = "ID")]
        task: Option<String>,
        /// Create the checkpoint even if the workspace is very large.
        #[arg(long)]
        confirm_large: bool,
        /// Create the first checkpoint of the folder without a request of the user, unless there is one.
        #[arg(long, hide = true)]
        automatic: bool,
    },
    /// List the turns of agents and the checkpoints, newest first.
    List {
        #[command(flatten)]
        place: Place,
        /// Only checkpoints of this task.
        #[arg(long, value_name = "ID")]
        task: Option<String>,
        /// Maximum number of turns and checkpoints.
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Group the turns by session.
        #[arg(long)]
        by_session: bool,
        /// Print the name of a turn or an abbreviated id, and the prompt or label, per line, separated by a tab.
        #[arg(long, conflicts_with = "json")]
        ids: bool,
    },
    /// Show what changed between two checkpoints, or between one and the workspace.
    Diff {
        #[command(flatten)]
        place: Place,
        /// Older checkpoint: an id, the beginning of one, `last`, or the name of a turn such
        /// as `claude-2.3`: the state before it, or with a `+` after it.
        #[arg(value_name = "FROM")]
        from: String,
        /// Newer checkpoint; the current workspace by default.
        #[arg(value_name = "TO")]
        to: Option<String>,
        /// Show the changed lines as a patch.
        #[arg(long, short)]
        patch: bool,
        /// Exit with 1 if there are differences.
        #[arg(long)]
        exit_code: bool,
        /// Only these paths and everything below them.
        #[arg(value_name = "PATH", last = true)]
        paths: Vec<String>,
    },
    /// Set or remove the label of a checkpoint. `checkpoints.keepAutomatic` does not count
    /// checkpoints with a label.
    Label {
        #[command(flatten)]
        place: Place,
        /// Checkpoint: an id, the beginning of one, `last`, or the name of a turn such
        /// as `claude-2.3`: the state before it, or with a `+` after it.
        #[arg(value_name = "ID")]
        id: String,
        /// New label.
        #[arg(value_name = "TEXT", required_unless_present = "remove")]
        text: Option<String>,
        /// Remove the label.
        #[arg(long, conflicts_with = "text")]
        remove: bool,
    },
    /// Show a checkpoint and what changed since the one before it.
    Show {
        #[command(flatten)]
        place: Place,
        /// Checkpoint: an id, the beginning of one, `last`, or the name of a turn such
        /// as `claude-2.3`: the state before it, or with a `+` after it.
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Show what a restore would change.
    Preview {
        #[command(flatten)]
        place: Place,
        /// Checkpoint: an id, the beginning of one, `last`, or the name of a turn such
        /// as `claude-2.3`: the state before it, or with a `+` after it.
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        length: Length,
        #[command(flatten)]
        part: PartArgs,
        /// Only these paths and everything below them.
        #[arg(value_name = "PATH")]
        paths: Vec<String>,
    },
    /// Restore the workspace to a checkpoint, or to before a turn. Shows the changes and asks first;
    /// without an ID, shows a list to choose from.
    Restore(Restore),
    /// Undo a restore. Shows the changes and asks first.
    Undo(Undo),
    /// Remove old checkpoints, except those with a label. Shows them and asks first.
    Prune(Prune),
    /// Remove checkpoints. Shows them and asks first.
    Delete(Delete),
    /// Show the author of each line of a file: a turn, an agent or you.
    Blame {
        #[command(flatten)]
        place: Place,
        /// File.
        #[arg(value_name = "PATH")]
        path: String,
    },
    /// Create a commit of a checkpoint on a new branch of the repository. Nothing else of it changes.
    Commit {
        #[command(flatten)]
        workspace: Workspace,
        /// Checkpoint: an id, the beginning of one, `last`, or the name of a turn such
        /// as `claude-2.3`: the state before it, or with a `+` after it.
        #[arg(value_name = "ID")]
        id: String,
        /// Name of the new branch.
        #[arg(long, short, value_name = "NAME")]
        branch: String,
        /// Commit message; by default, the label of the checkpoint or the prompt of the turn.
        #[arg(long, short, value_name = "TEXT")]
        message: Option<String>,
    },
    /// Show the number and disk usage of checkpoints.
    Stats {
        #[command(flatten)]
        workspace: Workspace,
        /// Those of all folders.
        #[arg(long)]
        all: bool,
    },
    /// Read every checkpoint and check its integrity.
    Verify {
        #[command(flatten)]
        workspace: Workspace,
    },
    /// Take over the checkpoints of a folder that was moved here. Shows them and asks first.
    Adopt(Adopt),
    /// Push the checkpoints to a git remote.
    Push {
        #[command(flatten)]
        workspace: Workspace,
        /// URL or path of the remote.
        #[arg(value_name = "REMOTE")]
        remote: String,
    },
    /// Fetch checkpoints from a git remote.
    Fetch {
        #[command(flatten)]
        workspace: Workspace,
        /// URL or path of the remote.
        #[arg(value_name = "REMOTE")]
        remote: String,
    },
}

/// The part of the differences to restore.
#[derive(Args, Clone, Default)]
pub(crate) struct PartArgs {
    /// Revert the turn, and keep later changes. ID is the name of a turn.
    #[arg(long, value_enum, value_name = "PART")]
    only: Option<OnlyArgument>,
    /// Only these hunks of a file, such as `src/main.rs:1,3`, as `diff --patch` shows them for the same ID,
    /// and the paths. Can be repeated.
    #[arg(long = "hunk", value_name = "PATH:N,...", value_parser = hunks)]
    pub(super) hunks: Vec<FileHunks>,
}

impl PartArgs {
    pub(super) fn only(&self) -> Option<RestoreOnly> {
        self.only.map(|OnlyArgument::Turn| RestoreOnly::Turn)
    }

    /// Returns whether a part is selected.
    pub(super) fn is_some(&self) -> bool {
        self.only.is_some() || !self.hunks.is_empty()
    }
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum OnlyArgument {
    Turn,
}

/// Parses a path and numbers of hunks.
fn hunks(text: &str) -> Result<FileHunks, String> {
    let parsed = text.rsplit_once(':').and_then(|(path, numbers)| {
        let numbers = numbers.split(',').map(|number| number.trim().parse().ok());
        Some(FileHunks {
            path: path.to_owned(),
            hunks: numbers.collect::<Option<_>>()?,
        })
    });
    parsed.filter(|file| !file.path.is_empty()).ok_or_else(|| {
        format!("invalid hunks {text:?}; use a path and numbers, such as src/main.rs:1,3")
    })
}

/// How much of a preview to show.
#[derive(Args, Clone, Copy)]
pub(crate) struct Length {
    /// Show all entries, not only the first 20.
    #[arg(long)]
    all: bool,
}

impl Length {
    /// Returns the maximum number of entries.
    pub(super) fn limit(self) -> usize {
        if self.all { usize::MAX } else { 20 }
    }
}

#[derive(Args)]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) confirm: ConfirmArgs,
    /// Checkpoint: an id, the beginning of one, `last`, or the name of a turn such
    /// as `claude-2.3`: the state before it, or with a `+` after it. Without it, and at a terminal,
    /// it is chosen from a list.
    #[arg(value_name = "ID")]
    pub(super) id: Option<String>,
    /// Only these paths and everything below them.
    #[arg(value_name = "PATH")]
    pub(super) paths: Vec<String>,
    #[command(flatten)]
    pub(super) part: PartArgs,
    /// Restore files, the task's conversation, or both.
    #[arg(long, value_enum, default_value_t = ModeArgument::Files)]
    pub(super) mode: ModeArgument,
    /// Task whose conversation is restored; by default, the task of the checkpoint.
    #[arg(long, value_name = "ID")]
    pub(super) task: Option<String>,
    /// Token of a preview (from `preview --json`); fails if the preview is out of date.
    #[arg(long, value_name = "TOKEN")]
    pub(super) token: Option<String>,
    /// Also restore files that have unsaved changes in an editor.
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) length: Length,
}

impl Restore {
    /// Returns whether an option is given that the list to choose from does not have.
    pub(super) fn needs_id(&self) -> bool {
        let is_plain =
            self.mode == ModeArgument::Files && !self.force && !self.place.workspace.json;
        !is_plain || self.task.is_some() || self.token.is_some() || self.part.is_some()
    }

    /// Returns what a preview of this restore covers. `None` if hunks are named.
    pub(super) fn choice(&self, id: &str, preview: &PreviewRestoreResult) -> Option<Choice> {
        let files = preview.changes.iter().map(|change| change.uri.clone());
        self.part.hunks.is_empty().then(|| Choice {
            id: id.to_owned(),
            files: (!self.paths.is_empty()).then(|| files.collect()),
            hunks: Vec::new(),
            only_turn: self.part.only.is_some(),
        })
    }
}

#[derive(Args)]
pub(crate) struct Undo {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) confirm: ConfirmArgs,
    /// Undo point printed by the restore; by default, the latest.
    #[arg(value_name = "ID")]
    pub(super) id: Option<String>,
    /// Also revert files that were changed after the restore or have unsaved changes in an
    /// editor.
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) length: Length,
}

#[derive(Args)]
pub(crate) struct Adopt {
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) confirm: ConfirmArgs,
    /// Name or path of the store, as listed; by default, the only one whose folder no longer
    /// exists and matches this folder.
    #[arg(value_name = "STORE")]
    pub(super) store: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) confirm: ConfirmArgs,
    /// Checkpoints: ids, beginnings of ids, `last`, or names of turns.
    #[arg(value_name = "ID", required = true)]
    pub(super) ids: Vec<String>,
    #[command(flatten)]
    pub(super) length: Length,
}

#[derive(Args)]
pub(crate) struct Prune {
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) confirm: ConfirmArgs,
    /// Number of newest checkpoints to keep.
    #[arg(long, value_name = "N")]
    pub(super) keep: Option<u32>,
    /// Remove checkpoints older than this: `30d`, `12h`, `90m`.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(super) older_than: Option<i64>,
    /// Remove the oldest checkpoints until the rest uses at most this many bytes.
    #[arg(long, value_name = "N")]
    pub(super) max_bytes: Option<u64>,
    /// Also remove checkpoints with a label.
    #[arg(long)]
    pub(super) labelled: bool,
    #[command(flatten)]
    pub(super) length: Length,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum ModeArgument {
    Files,
    Task,
    FilesAndTask,
}

impl From<ModeArgument> for RestoreMode {
    fn from(mode: ModeArgument) -> Self {
        match mode {
            ModeArgument::Files => Self::Files,
            ModeArgument::Task => Self::Task,
            ModeArgument::FilesAndTask => Self::FilesAndTask,
        }
    }
}

/// Parses an age into milliseconds.
pub(crate) fn age(text: &str) -> Result<i64, String> {
    let wrong =
        || format!("invalid age {text:?}; use a number followed by d, h, m or s, such as 30d");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number = text.strip_suffix(unit).unwrap_or_default();
    let number: u32 = number.parse().map_err(|_| wrong())?;
    let millis = match unit {
        'd' => 86_400_000,
        'h' => 3_600_000,
        'm' => 60_000,
        's' => 1000,
        _ => return Err(wrong()),
    };
    Ok(i64::from(number) * millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_are_a_path_and_numbers() {
        let parsed = hunks("a:b.rs:1, 12").unwrap();
        assert_eq!((&*parsed.path, &parsed.hunks[..]), ("a:b.rs", &[1, 12][..]));
        for wrong in ["", "a", "a:", ":1", "a:x", "a:1,", "a:-1"] {
            assert!(hunks(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        assert_eq!(age("2h"), Ok(7_200_000));
        for wrong in ["", "d", "5", "-1d", "1w", "1é"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
