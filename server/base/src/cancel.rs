//! Cancellation: a token that the caller sets and every loop checks.
//!
//! A request that is about to store something calls [`Cancel::commit`] first. From then on
//! [`Cancel::cancel`] returns false, and the request is answered with its result.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use crate::error::Error;

const RUNNING: u8 = 0;
const CANCELLED: u8 = 1;
const COMMITTED: u8 = 2;

/// A cancel token, shared between the canceller and the worker.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicU8>);

impl Cancel {
    /// Requests cancellation. Returns false when the work is already committed.
    pub fn cancel(&self) -> bool {
        self.set(CANCELLED)
    }

    /// Marks the work as committed: it can no longer be cancelled.
    ///
    /// # Errors
    /// `cancelled`, when cancellation was requested before.
    pub fn commit(&self) -> Result<(), Error> {
        if self.set(COMMITTED) {
            Ok(())
        } else {
            Err(Error::Cancelled)
        }
    }

    /// Returns whether cancellation was requested.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CANCELLED
    }

    /// Fails when cancellation was requested.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    /// Changes `RUNNING` to `state`. Returns whether the state is `state` afterwards.
    fn set(&self, state: u8) -> bool {
        let changed = self
            .0
            .compare_exchange(RUNNING, state, Ordering::AcqRel, Ordering::Acquire);
        changed.is_ok() || changed == Err(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_cancel_and_commit_wins() {
        let cancel = Cancel::default();
        assert!(cancel.cancel() && cancel.cancel());
        assert!(cancel.check().is_err() && cancel.commit().is_err());
        let cancel = Cancel::default();
        assert!(cancel.commit().is_ok() && cancel.commit().is_ok());
        assert!(!cancel.cancel() && cancel.check().is_ok());
    }
}
