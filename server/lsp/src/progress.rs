//! `$/progress` for long work, when the request carries a `workDoneToken`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sightline_protocol::files::ProgressToken;

use crate::server::Server;

/// Reports are this far apart at least.
const INTERVAL: Duration = Duration::from_millis(100);

/// What a listener in this process hears: the command line draws a bar of it.
pub enum ProgressEvent<'a> {
    /// It begins, with a title for people.
    Begin(&'a str),
    /// How far it is.
    Report {
        /// What is being done.
        message: &'a str,
        /// How many are done, of how many.
        of: Option<(u64, u64)>,
    },
    /// It has ended.
    End,
}

/// A listener in this process.
pub type ProgressListener = Box<dyn Fn(ProgressEvent<'_>) + Send + Sync>;

/// Progress of one request: begun when made, ended when dropped. Told from any
/// thread; what comes too soon after the last report is left out.
pub struct Progress {
    server: Arc<Server>,
    token: Option<ProgressToken>,
    begun: Instant,
    /// Milliseconds from `begun` to the last report.
    reported: AtomicU64,
}

impl Progress {
    /// Begins, with a title for people. Without a token nothing is ever sent.
    pub fn begin(server: &Arc<Server>, token: Option<ProgressToken>, title: &str) -> Self {
        let progress = Self {
            server: server.clone(),
            token,
            begun: Instant::now(),
            reported: AtomicU64::new(0),
        };
        progress.send(&json!({ "kind": "begin", "title": title, "cancellable": true }));
        progress.tell(ProgressEvent::Begin(title));
        progress
    }

    /// Reports, if the last report is long enough ago: a message, and how many
    /// are done of how many.
    pub fn report(&self, of: Option<(u64, u64)>, message: impl FnOnce() -> String) {
        let is_heard = self.token.is_some() || self.server.progress_listener().is_some();
        if !is_heard || !self.is_due() {
            return;
        }
        let message = message();
        let mut value = json!({ "kind": "report", "message": message });
        if let Some((done, total)) = of.filter(|(_, total)| *total > 0) {
            value["percentage"] = (done.min(total) * 100 / total).into();
        }
        if let Some(token) = &self.token {
            let params = json!({ "token": token, "value": value });
            self.server.client().notify_if_room("$/progress", &params);
        }
        let message = &message;
        self.tell(ProgressEvent::Report { message, of });
    }

    /// Is it time? Of several threads that ask at once, for one.
    fn is_due(&self) -> bool {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.reported.load(Ordering::Relaxed);
        Duration::from_millis(now.saturating_sub(last)) >= INTERVAL
            && self
                .reported
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    fn send(&self, value: &Value) {
        if let Some(token) = &self.token {
            let params = json!({ "token": token, "value": value });
            self.server.client().notify("$/progress", &params);
        }
    }

    fn tell(&self, heard: ProgressEvent<'_>) {
        if let Some(listener) = self.server.progress_listener() {
            listener(heard);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.send(&json!({ "kind": "end" }));
        self.tell(ProgressEvent::End);
    }
}
