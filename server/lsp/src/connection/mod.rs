//! The connection to the client: frames, messages, and requests in both directions.
//!
//! [`reader`] reads [`frame`]s and parses them into a [`message`]. [`writer`] sends what
//! handlers and the main loop send.

pub mod frame;
pub mod in_flight;
pub mod lsp_client;
pub mod message;
pub mod reader;
pub mod writer;
