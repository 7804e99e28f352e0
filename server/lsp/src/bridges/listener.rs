//! Listens on loopback, and serves connections.

use std::{io, net::Ipv4Addr, time::Duration};

use tokio::{net::TcpListener, runtime::Handle, task::JoinSet, time::sleep};

use crate::error::Error;

/// Maximum number of connections to a bridge.
const MAX_CONNECTIONS: usize = 16;
/// Time after a failed `accept`. The process is probably out of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens on a free port of 127.0.0.1. Returns the port too.
pub(super) fn on_loopback(runtime: &Handle) -> Result<(TcpListener, u16), Error> {
    let listen = || {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let _entered = runtime.enter();
        Ok((TcpListener::from_std(listener)?, port))
    };
    listen()
        .map_err(|error: io::Error| Error::storage(format!("cannot listen on 127.0.0.1: {error}")))
}

/// Serves the connections that `accept` returns, until it is dropped, which ends them.
pub(super) async fn serve<S, F>(accept: impl AsyncFn() -> io::Result<S>, talk: impl Fn(S) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = accept() => match accepted {
                Ok(stream) if connections.len() < MAX_CONNECTIONS => {
                    connections.spawn(talk(stream));
                }
                Ok(_) => {}
                Err(_) => sleep(PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
