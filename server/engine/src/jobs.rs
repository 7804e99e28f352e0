//! Work without a request, and the keys that keep conflicting work apart.
//!
//! Threads send a [`Job`] through a [`JobSender`] to the main loop, which starts it once every
//! earlier job that conflicts with it has ended.

use std::{path::PathBuf, sync::Arc, time::Duration};

use crossbeam_channel::{Sender, unbounded};
use sightline_base::{cancel::Cancel, path::Root};

use crate::{session::Snapshot, settings::config_file::ConfigFiles};

/// Something that jobs use one at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// The records of a task.
    Task(String),
    /// The records of all tasks: [`Access::Shared`] by jobs of one task.
    AllTasks,
    /// A workspace root and its checkpoints, by canonical path.
    Root(PathBuf),
    /// The IDE protocols of agents.
    Bridges,
}

/// How a job uses a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No other job uses the key at the same time.
    Exclusive,
    /// Other jobs may share the key.
    Shared,
    /// The job starts after earlier jobs, and later jobs do not wait for it.
    After,
}

impl Access {
    /// Returns whether a job with this access keeps a later one from starting.
    pub fn blocks(self, later: Self) -> bool {
        match self {
            Self::Exclusive => true,
            Self::Shared => later != Self::Shared,
            Self::After => false,
        }
    }
}

/// The keys of a job.
pub type Keys = Vec<(Key, Access)>;

/// Returns the keys of a job that uses one task.
pub fn task_keys(task: &str) -> Keys {
    vec![
        (Key::AllTasks, Access::Shared),
        (Key::Task(task.to_owned()), Access::Exclusive),
    ]
}

/// Returns the keys of a job that uses all tasks.
pub fn all_task_keys() -> Keys {
    vec![(Key::AllTasks, Access::Exclusive)]
}

/// Returns the keys of a job that changes these roots.
pub fn root_keys(roots: impl IntoIterator<Item = PathBuf>) -> Keys {
    roots
        .into_iter()
        .map(|root| (Key::Root(root), Access::Exclusive))
        .collect()
}

/// Returns the keys of a job that changes these roots.
pub fn keys_of_roots<'a>(roots: impl IntoIterator<Item = &'a Root>) -> Keys {
    let roots = roots.into_iter();
    root_keys(roots.map(|root| root.canonical.as_path().to_owned()))
}

/// Returns the keys of a job that opens and closes bridges.
pub fn bridge_keys() -> Keys {
    vec![(Key::Bridges, Access::Exclusive)]
}

/// Work without a request.
pub struct Job {
    /// Name for the log.
    pub name: &'static str,
    /// The keys it uses; without keys it starts at once.
    pub keys: Keys,
    /// Runs only if its keys are free, and is cancelled when another job needs them.
    pub is_idle_work: bool,
    /// The work, with the session when the job arrived. The token is raised to stop idle
    /// work.
    pub work: JobWork,
}

/// The work of a job.
pub type JobWork = Box<dyn FnOnce(Snapshot, &Cancel) + Send>;

/// A message to the main loop.
pub enum JobMessage {
    /// Run a job.
    Run(Job),
    /// Run short work after a delay.
    Later(Duration, Box<dyn FnOnce() + Send>),
    /// Diagnostics may have changed.
    RefreshDiagnostics,
    /// Apply changed configuration files.
    ConfigFiles(Arc<ConfigFiles>),
}

/// Sends jobs to the main loop.
#[derive(Clone)]
pub struct JobSender(Sender<JobMessage>);

impl JobSender {
    /// Sends jobs through `sender`.
    pub fn new(sender: Sender<JobMessage>) -> Self {
        Self(sender)
    }

    /// Drops all jobs, for processes without a main loop.
    pub fn closed() -> Self {
        Self(unbounded().0)
    }

    /// Sends a job that starts after earlier jobs with the same keys.
    pub fn run(
        &self,
        keys: Keys,
        name: &'static str,
        work: impl FnOnce(Snapshot) + Send + 'static,
    ) {
        self.send(JobMessage::Run(Job {
            name,
            keys,
            is_idle_work: false,
            work: Box::new(move |snapshot, _| work(snapshot)),
        }));
    }

    /// Sends a job that runs only if no other job uses the root.
    pub fn run_idle(
        &self,
        root: PathBuf,
        name: &'static str,
        work: impl FnOnce(&Cancel) + Send + 'static,
    ) {
        self.send(JobMessage::Run(Job {
            name,
            keys: root_keys([root]),
            is_idle_work: true,
            work: Box::new(move |_, cancel| work(cancel)),
        }));
    }

    /// Runs short work after a delay.
    pub fn run_later(&self, after: Duration, work: impl FnOnce() + Send + 'static) {
        self.send(JobMessage::Later(after, Box::new(work)));
    }

    /// Schedules a check of the open documents.
    pub fn refresh_diagnostics(&self) {
        self.send(JobMessage::RefreshDiagnostics);
    }

    /// Applies changed configuration files.
    pub fn set_config_files(&self, files: ConfigFiles) {
        self.send(JobMessage::ConfigFiles(Arc::new(files)));
    }

    fn send(&self, message: JobMessage) {
        // Fails if there is no main loop.
        let _ = self.0.send(message);
    }
}
