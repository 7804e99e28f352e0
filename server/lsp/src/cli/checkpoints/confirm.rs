//! Confirmation of commands that change or remove something.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;

use crate::error::Error;

#[derive(Args)]
pub(in crate::cli) struct ConfirmArgs {
    /// Only show what would be done.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation. Required if standard input is not a terminal.
    #[arg(long, short)]
    yes: bool,
}

/// How to run a command that needs confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Proceed {
    /// Show what would be done.
    DryRun,
    /// Show it and ask.
    Ask,
    /// Do it without asking.
    Yes,
}

impl ConfirmArgs {
    /// # Errors
    /// `invalidParams` without `--yes` and without a terminal.
    pub(in crate::cli) fn proceed(&self) -> Result<Proceed, Error> {
        if self.dry_run {
            Ok(Proceed::DryRun)
        } else if self.yes {
            Ok(Proceed::Yes)
        } else if io::stdin().is_terminal() {
            Ok(Proceed::Ask)
        } else {
            Err(Error::invalid(
                "cannot ask for confirmation: standard input is not a terminal. Nothing was changed. Use --yes to proceed, or --dry-run to see what would be done",
            ))
        }
    }
}

/// Asks at the terminal, with `note` before the question.
pub(in crate::cli) fn ask(note: &str) -> Result<bool, Error> {
    let mut error = io::stderr();
    let asked = error
        .write_all(format!("{note}Proceed? [y/N] ").as_bytes())
        .and_then(|()| error.flush());
    let mut answer = String::new();
    asked
        .and_then(|()| io::stdin().lock().read_line(&mut answer))
        .map_err(|error| Error::storage(format!("cannot ask at the terminal: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
