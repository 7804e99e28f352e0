//! Whether a command that changes or removes something may do so.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use sightline_core::error::Error;

/// How a command may go on.
#[derive(Args)]
pub(in crate::cli) struct ConfirmArgs {
    /// Only tell what it would do.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask. Needed where standard input is no terminal.
    #[arg(long, short)]
    yes: bool,
}

/// What a command is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proceed {
    /// Show what it would do.
    DryRun,
    /// Show that, and ask.
    Ask,
    /// Do it.
    Yes,
}

impl ConfirmArgs {
    /// # Errors
    /// `invalidParams` where there is neither a terminal to ask at nor `--yes`.
    pub(super) fn go(&self) -> Result<Proceed, Error> {
        if self.dry_run {
            Ok(Proceed::DryRun)
        } else if self.yes {
            Ok(Proceed::Yes)
        } else if io::stdin().is_terminal() {
            Ok(Proceed::Ask)
        } else {
            Err(Error::invalid(
                "cannot ask for confirmation: standard input is not a terminal; nothing was changed. Add --yes to go ahead, or --dry-run to see what would be done",
            ))
        }
    }
}

/// Asks at the terminal; `note` stands in front of the question.
pub(super) fn confirmed(note: &str) -> Result<bool, Error> {
    let mut error = io::stderr();
    let asked = error
        .write_all(format!("{note}Go ahead? [y/N] ").as_bytes())
        .and_then(|()| error.flush());
    let mut answer = String::new();
    asked
        .and_then(|()| io::stdin().lock().read_line(&mut answer))
        .map_err(|error| Error::storage(format!("cannot ask at the terminal: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
