//! The requests of the client that have not been answered.
//!
//! A request leaves the map when it is answered: when its job is done, or when it is
//! cancelled. The main loop owns the map, so each request is answered once.

use std::collections::{HashMap, hash_map::Entry};

use serde_json::Value;
use sightline_base::{cancel::Cancel, limits};
use sightline_engine::{
    error::Error,
    error_response::{INVALID_REQUEST, error_body, protocol_error},
};
use sightline_protocol::{error::ErrorKind, files::ProgressToken};

/// The requests in flight, by id as JSON.
#[derive(Default)]
pub struct InFlightRequests(HashMap<String, InFlight>);

struct InFlight {
    cancel: Cancel,
    /// Token of its progress reports.
    token: Option<ProgressToken>,
}

impl InFlightRequests {
    /// Adds a request. Returns its cancel token.
    ///
    /// # Errors
    /// Returns the error response if the id is in flight, or if there are too many
    /// requests.
    pub fn insert(&mut self, id: &Value, token: Option<ProgressToken>) -> Result<Cancel, Vec<u8>> {
        let count = self.0.len();
        match self.0.entry(id.to_string()) {
            Entry::Occupied(_) => {
                let why = format!("a request with id {id} is already in flight");
                let kind = ErrorKind::InvalidParams;
                Err(protocol_error(id, INVALID_REQUEST, kind, &why))
            }
            Entry::Vacant(_) if count >= limits::MAX_IN_FLIGHT => {
                let why =
                    format!("{count} requests are in flight, which is the limit; retry later");
                Err(error_body(id, &Error::new(ErrorKind::Busy, why)))
            }
            Entry::Vacant(free) => {
                let cancel = Cancel::default();
                free.insert(InFlight {
                    cancel: cancel.clone(),
                    token,
                });
                Ok(cancel)
            }
        }
    }

    /// Removes a request to answer it. Returns false if it has been answered.
    pub fn remove(&mut self, id: &Value) -> bool {
        self.0.remove(&id.to_string()).is_some()
    }

    /// Cancels a request. Returns the response, unless the request has been answered or
    /// has started to store data, and is answered when it is done.
    pub fn cancel(&mut self, id: &Value) -> Option<Vec<u8>> {
        let request = self.0.get(&id.to_string())?;
        (request.cancel.cancel() && self.remove(id)).then(|| error_body(id, &Error::cancelled()))
    }

    /// Cancels the requests that report progress under a token. Returns the responses.
    pub fn cancel_progress(&mut self, token: &ProgressToken) -> Vec<Vec<u8>> {
        let named: Vec<Value> = self
            .0
            .iter()
            .filter(|(_, request)| request.token.as_ref() == Some(token))
            .filter_map(|(id, _)| serde_json::from_str(id).ok())
            .collect();
        named.iter().filter_map(|id| self.cancel(id)).collect()
    }

    /// Tells all requests to stop. Their jobs answer them.
    pub fn stop(&self) {
        for request in self.0.values() {
            request.cancel.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_once() {
        let mut requests = InFlightRequests::default();
        let id = Value::from(1);
        requests.insert(&id, None).unwrap();
        assert!(requests.insert(&id, None).is_err());
        assert!(requests.insert(&Value::from("1"), None).is_ok());
        assert!(requests.remove(&id) && !requests.remove(&id));
        assert_eq!(requests.cancel(&id), None);
    }

    #[test]
    fn a_cancelled_request_is_removed_unless_it_stores_data() {
        let mut requests = InFlightRequests::default();
        let token: ProgressToken = serde_json::from_value(Value::from("t")).unwrap();
        let storing = requests
            .insert(&Value::from(1), Some(token.clone()))
            .unwrap();
        storing.commit().unwrap();
        requests
            .insert(&Value::from(2), Some(token.clone()))
            .unwrap();
        requests.insert(&Value::from(3), None).unwrap();
        assert_eq!(requests.cancel_progress(&token).len(), 1);
        assert!(!requests.remove(&Value::from(2)) && requests.remove(&Value::from(1)));
    }
}
