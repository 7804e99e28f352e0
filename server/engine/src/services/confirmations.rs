//! The open question to the user, until it is answered.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::session::Snapshot;

/// Starts a confirmed action, on the main loop. Must only start a job.
type OnAllowed = Box<dyn FnOnce(Snapshot) + Send>;

/// A question to the user.
pub struct Confirmation {
    /// Identifies the question, because answers may be late.
    pub id: Uuid,
    /// The action, such as "restore a.rs".
    pub what: String,
    /// Called when the user agrees.
    pub allowed: OnAllowed,
}

/// The open question, at most one.
#[derive(Default)]
pub struct Confirmations {
    open: Mutex<Option<Confirmation>>,
    /// The client does not support `window/showMessageRequest`.
    has_no_prompts: AtomicBool,
}

impl Confirmations {
    /// Opens a question. Returns the one that was open.
    pub fn open(&self, question: Confirmation) -> Option<Confirmation> {
        self.open.lock().replace(question)
    }

    /// Closes the open question and returns it.
    pub fn take(&self) -> Option<Confirmation> {
        self.open.lock().take()
    }

    /// Closes a question and returns it, if it is open.
    pub fn take_if(&self, id: Uuid) -> Option<Confirmation> {
        self.open.lock().take_if(|open| open.id == id)
    }

    /// Returns whether the client cannot ask the user.
    pub fn has_no_prompts(&self) -> bool {
        self.has_no_prompts.load(Ordering::Acquire)
    }

    /// Records that the client cannot ask the user.
    pub fn set_no_prompts(&self) {
        self.has_no_prompts.store(true, Ordering::Release);
    }

    /// Returns the action that waits for `sightline.allow`, in clients without prompts.
    pub fn waiting(&self) -> Option<String> {
        let open = self.open.lock();
        let open = open.as_ref().filter(|_| self.has_no_prompts());
        open.map(|question| question.what.clone())
    }
}
