//! The IDE protocols of coding agents: messages about the focused file and its selection.
//!
//! [`view`] holds the editor state that agents may see. One module per protocol turns it into messages
//! and reads the agent's requests. Sockets and discovery files belong to the server.

pub mod view;
