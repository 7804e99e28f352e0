//! The connection to the client: frames, messages, and requests in both directions.
//!
//! [`reader`] reads frames and parses them into a [`message`]. [`writer`] sends what
//! handlers and the main loop send.

pub mod in_flight;
pub mod message;
pub mod reader;
pub mod writer;
