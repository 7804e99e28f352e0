//! Changes of what the page shows: noticed by looking at their states, and sent as lines.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures_util::{Stream, stream};
use hyper::body::{Bytes, Frame};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    task::spawn_blocking,
    time::{sleep, timeout},
};

use crate::Source;

/// Interval at which states are looked at while a page is open.
const INTERVAL: Duration = Duration::from_millis(200);
/// Interval of empty lines in a quiet stream. They find pages that were closed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Maximum number of events that a slow page has not read.
const MAX_UNREAD: usize = 64;

/// Something whose changes are events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Name of the event.
    pub event: &'static str,
    /// A number that changes with the state.
    pub state: u64,
}

/// The events of a page.
pub(crate) struct Events {
    source: Arc<dyn Source>,
    sender: Mutex<Option<broadcast::Sender<&'static str>>>,
    /// The states of the last look.
    last: Mutex<Vec<Watched>>,
}

impl Events {
    pub(crate) fn new(source: Arc<dyn Source>) -> Self {
        Self {
            source,
            sender: Mutex::default(),
            last: Mutex::default(),
        }
    }

    /// Returns the lines for a page. The first is `hello`, also after it missed events.
    pub(crate) fn stream(
        self: &Arc<Self>,
    ) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + use<> {
        let start = (self.clone(), self.subscribe(), true);
        stream::unfold(start, |(events, mut receiver, mut is_new)| async move {
            let line = if is_new {
                is_new = false;
                events.hello().await
            } else {
                match timeout(KEEP_ALIVE, receiver.recv()).await {
                    Ok(Ok(event)) => line(event, &json!({})),
                    Ok(Err(RecvError::Lagged(_))) => {
                        receiver = receiver.resubscribe();
                        events.hello().await
                    }
                    Ok(Err(RecvError::Closed)) => return None,
                    Err(_) => "\n".to_owned(),
                }
            };
            let frame = Frame::data(Bytes::from(line));
            Some((Ok(frame), (events, receiver, is_new)))
        })
    }

    async fn hello(&self) -> String {
        let source = self.source.clone();
        let state = spawn_blocking(move || source.call("page/state", &json!({}))).await;
        match state {
            Ok(Ok(state)) => line("hello", &json!(state)),
            _ => line("hello", &json!({})),
        }
    }

    /// Returns a receiver of the events, which are watched from now on.
    fn subscribe(self: &Arc<Self>) -> broadcast::Receiver<&'static str> {
        let mut sender = self.sender.lock();
        if let Some(sender) = &*sender {
            return sender.subscribe();
        }
        let (new, receiver) = broadcast::channel(MAX_UNREAD);
        *sender = Some(new.clone());
        self.last.lock().clear();
        tokio::spawn(watch(self.clone(), new));
        receiver
    }

    /// Returns whether the last page was closed. Then a new one starts to watch again.
    fn is_unread(&self, sender: &broadcast::Sender<&'static str>) -> bool {
        let mut current = self.sender.lock();
        let is_unread = sender.receiver_count() == 0;
        if is_unread {
            *current = None;
        }
        is_unread
    }

    /// Sends an event for each state that changed since the last look, while a page is open. A request that changes
    /// something is answered after a look: otherwise what it did and another program undid would be no change.
    pub(crate) fn look(&self) {
        let Some(sender) = self.sender.lock().clone() else {
            return;
        };
        let mut last = self.last.lock();
        let now = self.source.watched();
        if !last.is_empty() {
            for watched in now.iter().filter(|watched| !last.contains(watched)) {
                let _ = sender.send(watched.event);
            }
        }
        *last = now;
    }
}

/// Looks at the states while a page is open.
async fn watch(events: Arc<Events>, sender: broadcast::Sender<&'static str>) {
    while !events.is_unread(&sender) {
        let events = events.clone();
        let _ = spawn_blocking(move || events.look()).await;
        sleep(INTERVAL).await;
    }
}

fn line(event: &str, params: &Value) -> String {
    format!("{}\n", json!({ "event": event, "params": params }))
}
