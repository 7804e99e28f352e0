//! `$/progress` for long requests that carry a `workDoneToken`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sightline_protocol::files::ProgressToken;

use crate::client::Client;

/// Minimum interval between reports.
const INTERVAL: Duration = Duration::from_millis(100);

/// Progress as seen by a listener in this process, such as the command line's progress
/// bar.
pub enum ProgressEvent<'a> {
    /// Begins, with a title for the user.
    Begin(&'a str),
    /// Work was done.
    Report {
        /// The current step.
        message: &'a str,
        /// Items done and total.
        amount: Option<(u64, u64)>,
    },
    /// Ends.
    End,
}

/// A listener in this process.
pub type ProgressListener = Box<dyn Fn(ProgressEvent<'_>) + Send + Sync>;

/// Progress of one request: begins when created, ends when dropped. Any thread may
/// report; reports within 100 ms of the last one are dropped.
pub struct Progress {
    client: Arc<Client>,
    listener: Option<Arc<ProgressListener>>,
    token: Option<ProgressToken>,
    begun: Instant,
    /// Milliseconds from `begun` to the last report.
    reported: AtomicU64,
}

impl Progress {
    /// Begins, with a title for the user. Without a token, nothing is sent to the client.
    pub fn begin(
        client: Arc<Client>,
        listener: Option<Arc<ProgressListener>>,
        token: Option<ProgressToken>,
        title: &str,
    ) -> Self {
        let progress = Self {
            client,
            listener,
            token,
            begun: Instant::now(),
            reported: AtomicU64::new(0),
        };
        progress.send(&json!({ "kind": "begin", "title": title, "cancellable": true }));
        progress.notify_listener(ProgressEvent::Begin(title));
        progress
    }

    /// Sends a report with the items done and total, unless the last report was less than
    /// 100 ms ago.
    pub fn report(&self, amount: Option<(u64, u64)>, message: impl FnOnce() -> String) {
        let is_heard = self.token.is_some() || self.listener.is_some();
        if !is_heard || !self.is_due() {
            return;
        }
        let message = message();
        let mut value = json!({ "kind": "report", "message": message });
        if let Some((done, total)) = amount.filter(|(_, total)| *total > 0) {
            value["percentage"] = (done.min(total) * 100 / total).into();
        }
        if let Some(token) = &self.token {
            let params = json!({ "token": token, "value": value });
            self.client.notify_if_room("$/progress", &params);
        }
        let message = &message;
        self.notify_listener(ProgressEvent::Report { message, amount });
    }

    /// Returns whether a report is due. Of several concurrent callers, one gets true.
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
            self.client.notify("$/progress", &params);
        }
    }

    fn notify_listener(&self, heard: ProgressEvent<'_>) {
        if let Some(listener) = &self.listener {
            listener(heard);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.send(&json!({ "kind": "end" }));
        self.notify_listener(ProgressEvent::End);
    }
}
