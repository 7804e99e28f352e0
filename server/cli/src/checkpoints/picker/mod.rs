//! `sightline checkpoint restore` without an id: a list of turns and checkpoints to choose from.
//!
//! Modules:
//!
//! - `state`: what is shown
//! - `preview`: a preview, and what is chosen in it
//! - `choice`: what is chosen, and the requests for it
//! - `draw`: draws the state
//! - `worker`: sends the requests
//! - `hangup`: ends the process when the terminal is gone
//! - `numbered`: the list of a terminal that can only print

pub(super) mod choice;
mod draw;
mod hangup;
mod numbered;
pub(super) mod preview;
mod state;
mod worker;

#[cfg(test)]
mod tests;

use std::{
    io::{self, IsTerminal},
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender, TryRecvError},
    },
    time::Duration,
};

use anstream::{AutoStream, ColorChoice};
use parking_lot::Mutex;
use ratatui::{
    DefaultTerminal,
    crossterm::{
        event::{self, Event, KeyEventKind},
        terminal::window_size,
    },
};
use sightline_base::cancel::Cancel;
use sightline_engine::error::Error;
use sightline_local::process::signals;

use self::{
    draw::Colors,
    state::{Answer, Ask, Exit, Picker, Screen},
};
use super::{
    adopt,
    arguments::Restore,
    confirm::Proceed,
    load,
    restore::{self, print_outcomes},
};
use crate::{NEGATIVE, print_message, requests::Requests};

/// Time to wait for a key while a request is sent.
const BUSY_WAIT: Duration = Duration::from_millis(20);
/// Time to wait for a key before the signals are looked at again.
const IDLE_WAIT: Duration = Duration::from_millis(250);

/// Lets the user choose what to restore.
///
/// # Errors
/// `invalidParams` without a terminal, or with an option that needs an id.
pub(super) fn restore(arguments: &Restore) -> Result<i32, Error> {
    let is_plain = arguments.confirm.proceed_or_ask() == Proceed::Ask && !arguments.needs_id();
    if !is_plain || !io::stdin().is_terminal() {
        return Err(Error::invalid(
            "the ID of a checkpoint or the name of a turn is missing: `sightline checkpoint list` shows them. Without options and at a terminal, they can be chosen from a list",
        ));
    }
    let mut requests = arguments.place.requests();
    // A progress bar would be drawn over the list.
    requests.progress = || None;
    let mut rows = load(&requests, None, None)?.rows();
    rows.retain(|row| !row.is_removed);
    if rows.is_empty() {
        print_message(&adopt::none_here(&requests));
        return Ok(NEGATIVE);
    }
    if !can_draw() {
        return match numbered::choose(&rows)? {
            Some(id) => restore::restore(arguments, &id),
            None => Ok(NEGATIVE),
        };
    }
    match run(requests, Picker::new(rows))? {
        Exit::Cancelled => Ok(NEGATIVE),
        Exit::Done(restored) => print_outcomes(
            &arguments.place.workspace,
            &restored,
            "sightline checkpoint restore",
        ),
    }
}

/// Returns whether the terminal can move the cursor and has a size.
fn can_draw() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
    let has_size = || window_size().is_ok_and(|size| size.columns > 0 && size.rows > 0);
    (cfg!(windows) || !is_dumb) && io::stdout().is_terminal() && has_size()
}

fn run(requests: Requests, picker: Picker) -> Result<Exit, Error> {
    let failed = |error| Error::storage(format!("cannot use the terminal: {error}"));
    let ended = signals::cancel_on_termination().map_err(failed)?;
    let (asks, asked) = mpsc::channel();
    let (answers, answered) = mpsc::channel();
    let restoring = Arc::new(Mutex::new(()));
    worker::start(requests, asked, answers, restoring.clone())?;
    hangup::exit_on_hangup(restoring).map_err(failed)?;
    let has_colors = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
    let running = Running {
        picker,
        asks,
        answered,
        ended,
        colors: Colors(has_colors),
        unanswered: 0,
    };
    // Restored on a panic too.
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let exit = running.until_left(&mut terminal);
    ratatui::restore();
    exit.map_err(failed)
}

struct Running {
    picker: Picker,
    asks: Sender<Ask>,
    answered: Receiver<Answer>,
    /// Raised by a signal to end the process.
    ended: Cancel,
    colors: Colors,
    /// Number of requests without an answer.
    unanswered: usize,
}

impl Running {
    fn until_left(mut self, terminal: &mut DefaultTerminal) -> io::Result<Exit> {
        let mut is_new = true;
        loop {
            if is_new {
                terminal.draw(|frame| draw::draw(&mut self.picker, self.colors, frame))?;
            }
            if let Some(exit) = self.picker.exit.take() {
                return Ok(exit);
            }
            let is_restoring = matches!(self.picker.screen, Screen::Restoring);
            if self.ended.is_cancelled() && !is_restoring {
                self.picker.leave();
                continue;
            }
            let has_keys = self.read_keys()?;
            is_new = self.read_answers()? || has_keys;
            // Not while keys arrive: an entry that is passed over is not compared.
            if self.unanswered == 0
                && !has_keys
                && let Some(ask) = self.picker.missing()
            {
                self.send(ask)?;
            }
        }
    }

    /// Handles keys and new sizes. Returns whether there are any.
    fn read_keys(&mut self) -> io::Result<bool> {
        let has_work = self.unanswered > 0 || self.picker.missing().is_some();
        let mut wait = if has_work { BUSY_WAIT } else { IDLE_WAIT };
        let mut has_keys = false;
        while self.picker.exit.is_none() && event::poll(wait)? {
            wait = Duration::ZERO;
            has_keys = true;
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
                && let Some(ask) = self.picker.key(key)
            {
                self.send(ask)?;
            }
        }
        Ok(has_keys)
    }

    /// Handles answers. Returns whether there are any.
    fn read_answers(&mut self) -> io::Result<bool> {
        let mut has_answers = false;
        loop {
            match self.answered.try_recv() {
                Ok(answer) => {
                    has_answers = true;
                    self.unanswered = self.unanswered.saturating_sub(1);
                    if let Some(ask) = self.picker.answer(answer) {
                        self.send(ask)?;
                    }
                }
                Err(TryRecvError::Empty) => return Ok(has_answers),
                Err(TryRecvError::Disconnected) => return Err(stopped()),
            }
        }
    }

    fn send(&mut self, ask: Ask) -> io::Result<()> {
        self.unanswered += 1;
        self.asks.send(ask).map_err(|_| stopped())
    }
}

fn stopped() -> io::Error {
    io::Error::other("the thread of the requests has stopped")
}
