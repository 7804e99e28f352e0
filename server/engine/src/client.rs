//! The client: notifications and requests sent by the server.
//!
//! Handlers never wait for a response: [`Client::request`] passes it to a callback, which
//! runs on the main loop with the session. The callback is dropped after the timeout; late or
//! unexpected responses are ignored.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};

use crate::session::Session;

/// Timeout for responses of the client. Helix itself gives up after 20 s.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A response of the client: a result or an error object.
pub type ClientAnswer = Result<Value, Value>;

type OnAnswer = Box<dyn FnOnce(&mut Session, ClientAnswer) + Send>;

struct PendingRequest {
    /// Identifies a question that may be withdrawn.
    subject: Option<String>,
    until: Instant,
    on_answer: OnAnswer,
}

/// The stream to the client.
pub trait Output: Send + Sync {
    /// Returns whether messages are no longer accepted.
    fn is_closed(&self) -> bool;

    /// Returns whether so much is unsent that more should not be added.
    fn is_full(&self) -> bool;

    /// Sends a message without blocking.
    fn send(&self, body: Vec<u8>);

    /// Sends a message that replaces earlier ones with the same key while the output is full.
    fn send_latest(&self, key: String, body: Vec<u8>);
}

/// The client, shared by all threads. By default it is not connected, for use without an editor.
#[derive(Default)]
pub struct Client {
    output: Option<Arc<dyn Output>>,
    next_id: AtomicU64,
    pending: Mutex<HashMap<u64, PendingRequest>>,
}

impl Client {
    /// Sends messages to `output`.
    pub fn new(output: Arc<dyn Output>) -> Self {
        Self {
            output: Some(output),
            ..Self::default()
        }
    }

    /// Returns whether no more messages can be sent.
    pub fn is_closed(&self) -> bool {
        let output = self.output.as_ref();
        output.is_none_or(|output| output.is_closed())
    }

    /// Returns whether so much output is waiting that more should not be added.
    pub fn is_full(&self) -> bool {
        let output = self.output.as_ref();
        output.is_some_and(|output| output.is_full())
    }

    /// Sends a message.
    pub fn send(&self, body: Vec<u8>) {
        if let Some(output) = &self.output {
            output.send(body);
        }
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: &impl Serialize) {
        if let Some(body) = body_of(&notification(method, params)) {
            self.send(body);
        }
    }

    /// Sends a notification about the state of `subject`. While the output is full, only
    /// the latest one per subject is kept.
    pub fn notify_latest(&self, method: &str, subject: &str, params: &impl Serialize) {
        if let Some(output) = &self.output
            && let Some(body) = body_of(&notification(method, params))
        {
            output.send_latest(format!("{method} {subject}"), body);
        }
    }

    /// Sends a notification, or drops it if the output is full.
    pub fn notify_if_room(&self, method: &str, params: &impl Serialize) {
        if !self.is_full() {
            self.notify(method, params);
        }
    }

    /// Sends a request. `on_answer` receives the response, unless it times out.
    pub fn request(
        &self,
        method: &str,
        params: &impl Serialize,
        on_answer: impl FnOnce(&mut Session, ClientAnswer) + Send + 'static,
    ) {
        self.ask(method, params, (None, ANSWER_TIMEOUT), on_answer);
    }

    /// Like [`Self::request`], with a timeout for questions to the user. [`Self::withdraw`] ends those about a subject.
    pub fn ask(
        &self,
        method: &str,
        params: &impl Serialize,
        (subject, within): (Option<String>, Duration),
        on_answer: impl FnOnce(&mut Session, ClientAnswer) + Send + 'static,
    ) {
        let now = Instant::now();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let pending = PendingRequest {
            subject,
            until: now + within,
            on_answer: Box::new(on_answer),
        };
        {
            let mut all = self.pending.lock();
            all.retain(|_, pending| pending.until > now);
            all.insert(id, pending);
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        if let Some(body) = body_of(&message) {
            self.send(body);
        }
    }

    /// Drops the callbacks of the requests about `subject`.
    pub fn withdraw(&self, subject: &str) {
        let is_other = |_: &u64, one: &mut PendingRequest| one.subject.as_deref() != Some(subject);
        self.pending.lock().retain(is_other);
    }

    /// Delivers a response of the client. Returns false if no request is waiting for it.
    pub fn deliver_response(
        &self,
        session: &mut Session,
        id: &Value,
        answer: ClientAnswer,
    ) -> bool {
        let Some(id) = id.as_u64() else {
            return false;
        };
        let Some(pending) = self.pending.lock().remove(&id) else {
            return false;
        };
        (pending.on_answer)(session, answer);
        true
    }
}

fn notification(method: &str, params: &impl Serialize) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

fn body_of(message: &Value) -> Option<Vec<u8>> {
    serde_json::to_vec(message)
        .inspect_err(|error| tracing::error!(%error, "cannot serialize a message"))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what is sent.
    #[derive(Default)]
    struct Sent(Mutex<Vec<Vec<u8>>>);

    impl Output for Sent {
        fn is_closed(&self) -> bool {
            false
        }

        fn is_full(&self) -> bool {
            false
        }

        fn send(&self, body: Vec<u8>) {
            self.0.lock().push(body);
        }

        fn send_latest(&self, _: String, body: Vec<u8>) {
            self.send(body);
        }
    }

    #[test]
    fn a_response_is_delivered_once_and_strays_are_dropped() {
        let output = Arc::new(Sent::default());
        let client = Client::new(output.clone());
        let got = Arc::new(Mutex::new(Vec::new()));
        let sink = got.clone();
        client.request("x/y", &json!({}), move |_, answer| sink.lock().push(answer));
        let sent: Value = serde_json::from_slice(&output.0.lock()[0]).unwrap();
        let session = &mut Session::default();
        assert!(client.deliver_response(session, &sent["id"], Ok(json!(1))));
        assert!(!client.deliver_response(session, &sent["id"], Ok(json!(2))));
        assert!(!client.deliver_response(session, &json!("no"), Ok(json!(3))));
        assert_eq!(*got.lock(), [Ok(json!(1))]);
    }

    #[test]
    fn a_withdrawn_request_keeps_nothing() {
        let client = Client::default();
        let kept = Arc::new(());
        for subject in ["a", "b"] {
            let kept = kept.clone();
            let about = (Some(subject.to_owned()), ANSWER_TIMEOUT);
            client.ask("x/y", &json!({}), about, move |_, _| drop(kept));
        }
        client.withdraw("a");
        assert_eq!(Arc::strong_count(&kept), 2);
    }
}
