//! `$/progress` for long work, when the request carries a `workDoneToken`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sightline_protocol::files::ProgressToken;

use crate::server::Server;

/// Reports are this far apart at least.
const INTERVAL: Duration = Duration::from_millis(100);

/// Progress of one request: begun when made, ended when dropped.
pub struct Progress {
    server: Arc<Server>,
    token: Option<ProgressToken>,
    reported: Instant,
}

impl Progress {
    /// Begins, with a title for people. Without a token nothing is ever sent.
    pub fn begin(server: &Arc<Server>, token: Option<ProgressToken>, title: &str) -> Self {
        let progress = Self {
            server: server.clone(),
            token,
            reported: Instant::now(),
        };
        progress.send(&json!({ "kind": "begin", "title": title, "cancellable": true }));
        progress
    }

    /// Reports, if the last report is long enough ago.
    pub fn report(&mut self, message: impl FnOnce() -> String) {
        if self.token.is_some() && self.reported.elapsed() >= INTERVAL {
            self.reported = Instant::now();
            self.send(&json!({ "kind": "report", "message": message() }));
        }
    }

    fn send(&self, value: &Value) {
        if let Some(token) = &self.token {
            let params = json!({ "token": token, "value": value });
            self.server.outbound().notify("$/progress", &params);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.send(&json!({ "kind": "end" }));
    }
}
