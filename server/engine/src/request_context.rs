//! What a handler gets besides its params, and what it returns. The row of a request in `dispatch` names which of
//! the contexts it gets.

use std::{ops::Deref, sync::Arc};

use serde::Serialize;
use serde_json::Value;
use sightline_access::{AccessView, redact::HiddenContents};
use sightline_base::{
    cancel::Cancel,
    decision_log,
    path::Root,
    storage::{Storage, TaskId},
};
use sightline_context::tracker::Tracker;
use sightline_conversation::tokens::Counter;
use sightline_exec::HiddenPath;
use sightline_protocol::{decision::Decision, files::ProgressToken};
use sightline_tasks::TaskStore;

use crate::{
    error::Error,
    progress::Progress,
    services::{
        Services, active_tasks::ActiveTasks, checkpoint_registry::RootCheckpoints,
        tracked_files::TrackedFiles,
    },
    session::{Session, Snapshot},
};

/// The context of a request that reads the session and the workspace.
pub struct ReadContext<'a> {
    services: &'a Arc<Services>,
    /// The session when the request arrived.
    pub snapshot: Snapshot,
    /// Raised when the client cancels.
    pub cancel: Cancel,
    /// Token for progress reports.
    token: Option<ProgressToken>,
}

impl ReadContext<'_> {
    /// Begins progress, under the token of the params or of the request. `title` is shown
    /// to the user.
    pub fn progress(&self, token: Option<ProgressToken>, title: &str) -> Progress {
        let token = token.or_else(|| self.token.clone());
        let listener = self.services.progress_listener.clone();
        Progress::begin(self.services.client.clone(), listener, token, title)
    }

    /// Returns the current access rules.
    pub fn view(&self) -> AccessView {
        self.services.view(&self.snapshot)
    }

    /// Returns the contents of denied files.
    pub fn hidden_contents(&self, view: &AccessView) -> Arc<HiddenContents> {
        self.services.hidden_contents.get(view)
    }

    /// Lists the denied files and folders that git does not track.
    ///
    /// # Errors
    /// Why no list is kept.
    pub fn hidden_paths(&self, view: &AccessView) -> Result<Vec<HiddenPath>, String> {
        self.services.hidden_paths(&self.snapshot, view)
    }

    /// Opens the data directory.
    ///
    /// # Errors
    /// Kind `storage` if it cannot be used.
    pub fn storage(&self) -> Result<Storage, Error> {
        self.services.stores.storage(&self.snapshot.settings)
    }

    /// Adds decisions to the log.
    pub fn record(&self, decisions: &[Decision]) {
        if !decisions.is_empty()
            && let Ok(storage) = self.storage()
        {
            decision_log::record(&storage, &self.snapshot.settings.log, decisions);
        }
    }
}

/// The context of a request that uses tasks.
pub struct TaskContext<'a>(ReadContext<'a>);

impl<'a> Deref for TaskContext<'a> {
    type Target = ReadContext<'a>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl TaskContext<'_> {
    /// Returns the store of conversations.
    ///
    /// # Errors
    /// Kind `storage` if the data directory cannot be used.
    pub fn task_store(&self) -> Result<TaskStore, Error> {
        self.services.stores.tasks(&self.snapshot.settings)
    }

    /// Opens the file tracker of a task, and marks the task as used.
    ///
    /// # Errors
    /// `invalidParams` for an invalid id, `storage` if it cannot be read.
    pub fn tracker(&self, task_id: &str) -> Result<Tracker, Error> {
        let task = TaskId::new(task_id)?;
        let tracker = Tracker::open(&self.storage()?, &task, self.view());
        self.active_tasks().touch(&task);
        Ok(tracker)
    }

    /// Returns the tasks used in this session.
    pub fn active_tasks(&self) -> &ActiveTasks {
        &self.services.active_tasks
    }

    /// Returns the files that tasks track.
    pub fn tracked_files(&self) -> &TrackedFiles {
        &self.services.tracked_files
    }

    /// Returns what counts tokens.
    pub fn counter(&self) -> &Counter {
        &self.services.counter
    }

    /// Returns what identifies this session in stored data.
    pub fn session_id(&self) -> &str {
        &self.services.session_id
    }
}

/// The context of any request.
pub struct RequestContext<'a> {
    tasks: TaskContext<'a>,
    /// The shared services, for effects that outlive the request.
    pub services: &'a Arc<Services>,
}

impl<'a> Deref for RequestContext<'a> {
    type Target = TaskContext<'a>;

    fn deref(&self) -> &Self::Target {
        &self.tasks
    }
}

impl<'a> RequestContext<'a> {
    /// Creates the context of a request that cannot be cancelled and reports no progress.
    pub fn new(services: &'a Arc<Services>, snapshot: Snapshot) -> Self {
        Self::with(services, snapshot, Cancel::default(), None)
    }

    /// Creates the context of a request that `cancel` cancels.
    pub fn with(
        services: &'a Arc<Services>,
        snapshot: Snapshot,
        cancel: Cancel,
        token: Option<ProgressToken>,
    ) -> Self {
        Self {
            tasks: TaskContext(ReadContext {
                services,
                snapshot,
                cancel,
                token,
            }),
            services,
        }
    }

    /// Returns the checkpoint store of a root, opening it if necessary.
    ///
    /// # Errors
    /// Kind `storage` when the data directory cannot be used.
    pub fn checkpoints(&self, root: &Root) -> Result<Arc<RootCheckpoints>, Error> {
        Ok(self.services.checkpoints.open(&self.storage()?, root))
    }
}

/// Changes the session when a response is sent.
pub type OnDelivered = Box<dyn FnOnce(&mut Session) + Send>;

/// The result of a handler.
pub struct Response<R> {
    /// The result.
    pub result: R,
    /// Runs only if the response is sent.
    pub on_delivered: Option<OnDelivered>,
    /// The result in one line, for the user.
    pub summary: Option<String>,
}

impl<R> Response<R> {
    /// Sets the summary.
    #[must_use]
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }
}

impl<R> From<R> for Response<R> {
    fn from(result: R) -> Self {
        Self {
            result,
            on_delivered: None,
            summary: None,
        }
    }
}

/// A result of any type.
pub trait AnyResult: Send {
    /// Serializes the response to request `id`.
    ///
    /// # Errors
    /// A map whose keys are not strings.
    fn to_response(&self, id: &Value) -> serde_json::Result<Vec<u8>>;

    /// Serializes the result.
    ///
    /// # Errors
    /// As [`Self::to_response`].
    fn to_json(&self) -> serde_json::Result<String>;
}

impl<R: Serialize + Send> AnyResult for R {
    fn to_response(&self, id: &Value) -> serde_json::Result<Vec<u8>> {
        #[derive(Serialize)]
        struct Message<'a, R> {
            jsonrpc: &'static str,
            id: &'a Value,
            result: &'a R,
        }
        serde_json::to_vec(&Message {
            jsonrpc: "2.0",
            id,
            result: self,
        })
    }

    fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

/// The response of any request, or its error.
pub type Outcome = Result<Response<Box<dyn AnyResult>>, Error>;
