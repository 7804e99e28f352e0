//! Sends the requests of the picker, in a thread, so that the terminal is never blocked.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, Sender},
    },
    thread,
};

use parking_lot::Mutex;
use sightline_engine::error::Error;
use sightline_protocol::{checkpoint::UndoRestoreParams, method::UndoRestore};

use super::{
    choice::Choice,
    state::{Answer, Ask},
};
use crate::{output::in_words_of_the_command_line, requests::Requests};

/// Starts the thread, which ends with the process: a request in progress is not waited for, except for
/// one that changes files. It locks `restoring`.
///
/// # Errors
/// `storage` if the thread cannot be started.
pub(super) fn start(
    requests: Requests,
    asked: Receiver<Ask>,
    answers: Sender<Answer>,
    restoring: Arc<Mutex<()>>,
) -> Result<(), Error> {
    let work = move || {
        for ask in asked {
            let changes_files = matches!(ask, Ask::Restore(..) | Ask::Undo { .. });
            let _restoring = changes_files.then(|| restoring.lock());
            if answers.send(answer(&requests, ask)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("picker requests".to_owned())
        .spawn(work)
        .map_err(|error| Error::storage(format!("cannot start a thread: {error}")))?;
    Ok(())
}

fn answer(requests: &Requests, ask: Ask) -> Answer {
    match ask {
        Ask::Difference(compared) => {
            let result = compared.difference(requests);
            Answer::Difference(compared, result.map_err(in_words))
        }
        Ask::Preview(choice) => {
            let result = choice.preview(requests, false);
            Answer::Preview(choice, result.map_err(in_words))
        }
        Ask::Restore(choice, token) => {
            let result = requests.with_maintenance(|requests| choice.restore(requests, token));
            Answer::Restored(choice, result.map_err(in_words))
        }
        Ask::Undo { id, force } => {
            let result = requests.with_maintenance(|requests| {
                let previewed = Choice::whole(id).preview(requests, true)?;
                requests.call::<UndoRestore>(UndoRestoreParams {
                    undo_id: previewed.undo_id,
                    token: Some(previewed.token),
                    force,
                    ..UndoRestoreParams::default()
                })
            });
            Answer::Undone(result.map_err(in_words))
        }
    }
}

fn in_words(mut error: Error) -> Error {
    error.message = in_words_of_the_command_line(&error.message);
    error
}
