//! Confirmation of commands that change or remove something.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use sightline_agents::wiring::commands;
use sightline_engine::error::Error;

#[derive(Args)]
pub(crate) struct ConfirmArgs {
    /// Only show what would be done.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask. Required if there is something to ask and standard input is not a terminal.
    #[arg(long, short)]
    yes: bool,
}

/// How to run a command that needs confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proceed {
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
    pub(crate) fn proceed(&self) -> Result<Proceed, Error> {
        let proceed = self.proceed_or_ask();
        if proceed == Proceed::Ask {
            require_terminal()?;
        }
        Ok(proceed)
    }

    /// Like [`Self::proceed`], for a caller that calls [`require_terminal`] once it knows
    /// that there is something to confirm.
    pub(super) fn proceed_or_ask(&self) -> Proceed {
        if self.dry_run {
            Proceed::DryRun
        } else if self.yes {
            Proceed::Yes
        } else {
            Proceed::Ask
        }
    }
}

/// # Errors
/// `invalidParams` without a terminal.
pub(super) fn require_terminal() -> Result<(), Error> {
    if io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Error::invalid(
        "cannot ask for confirmation: standard input is not a terminal. Nothing was changed. Use --yes to proceed, or --dry-run to see what would be done",
    ))
}

/// Variables that agents set for the commands that they run.
const AGENT_VARIABLES: &str = "CLAUDECODE CODEX_THREAD_ID CODEX_SESSION_ID CODEX_SANDBOX CODEX_CI GEMINI_CLI QWEN_CODE COPILOT_CLI \
     COPILOT_AGENT_SESSION_ID OPENCODE CLINE_ACTIVE CLINE_CONNECTOR_CLI_LAUNCH AI_AGENT";

/// Returns the variable by which an agent shows that it runs this command.
pub(crate) fn below_agent() -> Option<&'static str> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    AGENT_VARIABLES.split(' ').find(is_set)
}

/// Asks at the terminal, also with `--yes`, if an agent runs a command that is for the user.
///
/// # Errors
/// `invalidParams` if an agent runs it without a terminal.
pub(crate) fn confirm_below_agent(note: &str) -> Result<bool, Error> {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(variable) = below_agent().filter(|_| commands::needs_person(&words)) else {
        return Ok(true);
    };
    if io::stdin().is_terminal() {
        return ask(&format!(
            "{note}An agent runs this command ({variable} is set). "
        ));
    }
    Err(Error::invalid(format!(
        "an agent runs this command ({variable} is set), and it needs a person at a terminal. Nothing was changed. To do it, run there: sightline {}",
        arguments.join(" ")
    )))
}

/// Asks at the terminal, with `note` before the question.
pub(crate) fn ask(note: &str) -> Result<bool, Error> {
    is_wanted(&format!("{note}Proceed?"))
}

/// Asks a question at the terminal.
pub(crate) fn is_wanted(question: &str) -> Result<bool, Error> {
    let answer = answer(&format!("{question} [y/N] "))?;
    Ok(matches!(answer.as_deref(), Some("y" | "Y" | "yes")))
}

/// Asks at the terminal. Returns the answer without spaces around it, or `None` at the end of input.
pub(super) fn answer(question: &str) -> Result<Option<String>, Error> {
    let mut error = io::stderr();
    let mut answer = String::new();
    let read = error
        .write_all(question.as_bytes())
        .and_then(|()| error.flush())
        .and_then(|()| io::stdin().lock().read_line(&mut answer))
        .map_err(|error| Error::storage(format!("cannot ask at the terminal: {error}")))?;
    Ok((read > 0).then(|| answer.trim().to_owned()))
}
