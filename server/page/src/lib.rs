//! The page of `sightline ui`: serves a browser on loopback.
//!
//! The page is a client of the requests of the protocol and starts, sends and keeps nothing. Its address
//! is `http://127.0.0.1:PORT/#TOKEN`. A browser does not send the part after `#`.
//!
//! - `GET /`, `/ui.js`, `/ui.css` and `/icon.svg` are the built files of `clients/ui`. They need no token
//!   and contain no data. `/open` is `/` for a file of this machine that opens the page.
//! - `POST /rpc` runs a request: `{"method", "params"?}` is answered by `{"result"}` or
//!   `{"error": {"code", "message", "data"}}`. It needs `Authorization: Bearer TOKEN` and
//!   `Content-Type: application/json`.
//! - `GET /events` streams lines, `{"event", "params"}` or empty, and needs the token. An event says that
//!   something changed, not what. The first is `hello` with the result of `page/state`.
//!
//! What is not sent by the page is refused: 401 for a wrong token, 403 for another host, origin or site,
//! another HTTP method and a body that another page could send without a preflight.
//!
//! Modules:
//!
//! - `server`: listens, checks and answers requests
//! - `methods`: the requests that the page may send, and those that change something
//! - `events`: notices changes, and streams them
//! - `assets`: the built files

mod assets;
mod events;
mod methods;
mod server;

use serde_json::{Value, value::RawValue};
use sightline_engine::error::Error;

pub use events::Watched;
pub use server::{Options, Page};

/// What the page shows.
pub trait Source: Send + Sync + 'static {
    /// Returns whether there is a request with this name.
    fn has(&self, method: &str) -> bool;

    /// Runs a request.
    ///
    /// # Errors
    /// The errors of the method.
    fn call(&self, method: &str, params: &Value) -> Result<Box<RawValue>, Error>;

    /// Returns the current states of what is watched.
    fn watched(&self) -> Vec<Watched>;
}
