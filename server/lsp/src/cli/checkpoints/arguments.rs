//! What can be said to `sightline checkpoint`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::confirm::ConfirmArgs;
use crate::cli::Workspace;

#[derive(Subcommand)]
pub(in crate::cli) enum Checkpoint {
    /// Take a checkpoint of the workspace.
    Create {
        #[command(flatten)]
        workspace: Workspace,
        /// What to call it.
        #[arg(long, short, value_name = "TEXT")]
        label: Option<String>,
        /// The task it belongs to.
        #[arg(long, value_name = "ID")]
        task: Option<String>,
        /// Go ahead however large the workspace is.
        #[arg(long)]
        confirm_large: bool,
    },
    /// List the checkpoints, the newest first.
    List {
        #[command(flatten)]
        workspace: Workspace,
        /// Only those of this task.
        #[arg(long, value_name = "ID")]
        task: Option<String>,
        /// At most so many.
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
    },
    /// Tell what differs between two checkpoints, or one and the workspace now.
    Diff {
        #[command(flatten)]
        workspace: Workspace,
        /// The older side: an id or its beginning, or `last`.
        #[arg(value_name = "FROM")]
        from: String,
        /// The newer side; the workspace as it is now when absent.
        #[arg(value_name = "TO")]
        to: Option<String>,
        /// Show the changed lines, as git does.
        #[arg(long, short)]
        patch: bool,
        /// Only these paths and what is below them.
        #[arg(value_name = "PATH", last = true)]
        paths: Vec<String>,
    },
    /// Tell what a restore would do.
    Preview {
        #[command(flatten)]
        workspace: Workspace,
        /// The checkpoint: an id or its beginning, or `last`.
        #[arg(value_name = "ID")]
        id: String,
        /// Only these paths and what is below them.
        #[arg(value_name = "PATH")]
        paths: Vec<String>,
    },
    /// Put the workspace back to a checkpoint. Shows what it would do and asks first.
    Restore(Restore),
    /// Take a restore back. Shows what it would do and asks first.
    Undo(Undo),
    /// Remove old checkpoints. Shows which it would remove and asks first.
    Prune(Prune),
    /// Tell how many checkpoints there are and what they take.
    Stats {
        #[command(flatten)]
        workspace: Workspace,
    },
    /// Read every checkpoint and tell whether all are whole.
    Verify {
        #[command(flatten)]
        workspace: Workspace,
    },
    /// Take over the checkpoints that Cline 3 took of this workspace. Its own
    /// stay as they are.
    Import {
        #[command(flatten)]
        workspace: Workspace,
        /// Cline's folder of data, or one of its shadow repositories; the usual
        /// places are looked at when absent.
        #[arg(value_name = "PATH")]
        path: Option<PathBuf>,
    },
    /// Send the checkpoints to a git remote.
    Push {
        #[command(flatten)]
        workspace: Workspace,
        /// A URL or path, as git takes it.
        #[arg(value_name = "REMOTE")]
        remote: String,
    },
    /// Get the checkpoints of a git remote.
    Fetch {
        #[command(flatten)]
        workspace: Workspace,
        /// A URL or path, as git takes it.
        #[arg(value_name = "REMOTE")]
        remote: String,
    },
}

#[derive(Args)]
pub(in crate::cli) struct Restore {
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) consent: ConfirmArgs,
    /// The checkpoint: an id or its beginning, or `last`.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Only these paths and what is below them.
    #[arg(value_name = "PATH")]
    pub(super) paths: Vec<String>,
    /// Files, the conversation of the task, or both.
    #[arg(long, value_enum, default_value_t = ModeArgument::Files)]
    pub(super) mode: ModeArgument,
    /// The task; that of the checkpoint when absent.
    #[arg(long, value_name = "ID")]
    pub(super) task: Option<String>,
    /// Only if this preview is still true (from preview --json).
    #[arg(long, value_name = "TOKEN")]
    pub(super) token: Option<String>,
    /// Also where unsaved text is replaced by that.
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Args)]
pub(in crate::cli) struct Undo {
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) consent: ConfirmArgs,
    /// What the restore printed; the last one when absent.
    #[arg(value_name = "ID")]
    pub(super) id: Option<String>,
}

#[derive(Args)]
pub(in crate::cli) struct Prune {
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) consent: ConfirmArgs,
    /// Keep the newest so many.
    #[arg(long, value_name = "N")]
    pub(super) keep: Option<u32>,
    /// Remove those older than that: `30d`, `12h`, `90m`.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(super) older_than: Option<i64>,
    /// Remove the oldest until the rest takes so many bytes.
    #[arg(long, value_name = "N")]
    pub(super) max_bytes: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(in crate::cli) enum ModeArgument {
    Files,
    Task,
    FilesAndTask,
}

impl ModeArgument {
    pub(super) fn wire(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Task => "task",
            Self::FilesAndTask => "filesAndTask",
        }
    }
}

/// An age as milliseconds.
fn age(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is no age; write a number and d, h, m or s, as 30d");
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
    fn an_age_is_a_number_and_a_unit() {
        assert_eq!(age("2h"), Ok(7_200_000));
        for wrong in ["", "d", "5", "-1d", "1w", "1é"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
