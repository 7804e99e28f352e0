//! Listens on loopback, and serves connections.
//!
//! All users of the machine can connect to loopback. A connection is a stranger until it has sent the
//! token. Strangers have separate places, and the oldest makes room, so they keep no agent out.

use std::{
    collections::VecDeque,
    io,
    net::Ipv4Addr,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use sightline_engine::error::Error;
use tokio::{
    net::TcpListener,
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{AbortHandle, JoinSet, yield_now},
    time::{Instant, sleep},
};

/// Maximum numbers of connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections that have sent the token.
    pub admitted: usize,
    /// Strangers.
    pub strangers: usize,
}

impl Limits {
    /// The limits of a bridge. There may be many strangers, because an agent is one of them for a moment.
    pub const BRIDGE: Self = Self {
        admitted: 16,
        strangers: 128,
    };
}

/// Time after which a stranger makes room for any other connection.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time after a failed `accept`. The process is probably out of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens on a port of 127.0.0.1, or with 0 on a free one. Returns the port too.
///
/// # Errors
/// The system refuses it, for example because the port is in use.
pub fn on_loopback(runtime: &Handle, port: u16) -> Result<(TcpListener, u16), Error> {
    let listen = || {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let _entered = runtime.enter();
        Ok((TcpListener::from_std(listener)?, port))
    };
    listen().map_err(|error: io::Error| {
        let address = match port {
            0 => "127.0.0.1".to_owned(),
            port => format!("127.0.0.1:{port}"),
        };
        Error::storage(format!("cannot listen on {address}: {error}"))
    })
}

/// Makes a connection that of an agent.
#[derive(Clone)]
pub struct Admission(Arc<AdmissionState>);

struct AdmissionState {
    places: Arc<Semaphore>,
    place: OnceLock<OwnedSemaphorePermit>,
}

impl Admission {
    /// Admits the connection, which has sent the token. Returns whether there was a place.
    pub fn admit(&self) -> bool {
        if self.0.place.get().is_some() {
            return true;
        }
        let Ok(place) = self.0.places.clone().try_acquire_owned() else {
            return false;
        };
        // Fails if it has been admitted since.
        let _ = self.0.place.set(place);
        true
    }
}

struct Stranger {
    since: Instant,
    /// Empty once the connection has ended.
    admission: Weak<AdmissionState>,
    talking: AbortHandle,
}

impl Stranger {
    fn is_admitted_or_gone(&self) -> bool {
        let admission = self.admission.upgrade();
        admission.is_none_or(|admission| admission.place.get().is_some())
    }
}

/// Serves the connections that `accept` returns, until it is dropped, which ends them. `talk` admits
/// those that send the token.
pub async fn serve<S, F>(
    limits: Limits,
    accept: impl AsyncFn() -> io::Result<S>,
    talk: impl Fn(S, Admission) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limits.admitted));
    let mut connections = JoinSet::new();
    // The oldest first.
    let mut strangers = VecDeque::new();
    loop {
        tokio::select! {
            accepted = accept() => match accepted {
                Ok(stream) => {
                    make_room(&mut strangers, limits.strangers);
                    let admission = Arc::new(AdmissionState {
                        places: places.clone(),
                        place: OnceLock::new(),
                    });
                    strangers.push_back(Stranger {
                        since: Instant::now(),
                        admission: Arc::downgrade(&admission),
                        talking: connections.spawn(talk(stream, Admission(admission))),
                    });
                    // Strangers that have sent the token are admitted before others take their place.
                    yield_now().await;
                }
                Err(_) => sleep(PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves a socket that accepts only the user, so each connection is that of an agent.
pub async fn serve_user<S, F>(
    accept: impl AsyncFn() -> io::Result<S>,
    talk: impl Fn(S, Admission) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let admit_and_talk = |stream, admission: Admission| {
        let is_admitted = admission.admit();
        let talking = talk(stream, admission);
        async move {
            if is_admitted {
                talking.await;
            }
        }
    };
    serve(Limits::BRIDGE, accept, admit_and_talk).await;
}

/// Ends the strangers that have had their time, and the oldest one if there are too many.
fn make_room(strangers: &mut VecDeque<Stranger>, most: usize) {
    strangers.retain(|stranger| !stranger.is_admitted_or_gone());
    while let Some(oldest) = strangers.front()
        && (strangers.len() >= most || oldest.since.elapsed() >= PATIENCE)
    {
        oldest.talking.abort();
        strangers.pop_front();
    }
}
