//! The requests of the protocol.
//!
//! A handler is a function from a [`RequestContext`](crate::request_context::RequestContext) and params to a result. It converts
//! wire types and calls the engine crates. A door runs it as a [`job`](crate::jobs),
//! on a snapshot of the session. A panic becomes an error response.

#![allow(
    clippy::missing_errors_doc,
    reason = "errors are documented in the method table"
)]

pub mod check_access;
pub mod checkpoint;
pub mod compaction;
pub mod conversation;
pub mod decisions;
pub mod editor;
pub mod environment_details;
pub mod hidden_paths;
pub mod list_files;
pub mod list_rules;
pub mod mcp_servers;
pub mod notifications;
pub mod read_file;
pub mod result_documents;
pub mod tasks;
pub mod tracking;

/// Formats a method's name for people: `sightline/listFiles` becomes `sightline list
/// files`.
pub fn method_title(method: &str) -> String {
    let verb = method.rsplit('/').next().unwrap_or(method);
    let mut title = String::from("sightline ");
    for c in verb.chars() {
        if c.is_ascii_uppercase() {
            title.push(' ');
        }
        title.push(c.to_ascii_lowercase());
    }
    title
}

#[cfg(test)]
mod tests {
    use sightline_protocol::method::{Direction, METHODS};

    use super::*;
    use crate::dispatch;

    #[test]
    fn every_method_of_the_protocol_has_a_handler() {
        for row in METHODS {
            match row.direction {
                Direction::Request => {
                    assert!(dispatch::request(row.name).is_some(), "{}", row.name)
                }
                Direction::ClientNotification => {
                    assert!(notifications::handles(row.name), "{}", row.name);
                }
                Direction::ServerRequest | Direction::ServerNotification => {}
            }
        }
    }

    #[test]
    fn titles_read_well() {
        assert_eq!(method_title("sightline/listFiles"), "sightline list files");
    }
}
