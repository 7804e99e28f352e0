//! The connection to the client: frames, messages, and requests in both directions.
//!
//! [`reader`] reads [`frame`]s and parses them into a [`message`]. [`writer`] sends what
//! [`client`] and the main loop write.

pub mod client;
pub mod frame;
pub mod in_flight;
pub mod lsp_client;
pub mod message;
pub mod params_compat;
pub mod progress;
pub mod reader;
pub mod writer;
