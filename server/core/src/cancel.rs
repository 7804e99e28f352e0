//! Cancellation: a flag the caller raises and every loop looks at.
//!
//! Work that is about to store something passes the point of no return with
//! [`Cancel::commit`]: whoever cancels later is told that it is too late, and
//! what is answered is what happened.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use crate::error::Error;

const RUNNING: u8 = 0;
const CANCELLED: u8 = 1;
const COMMITTED: u8 = 2;

/// A flag shared between the one who may cancel and the one who works.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicU8>);

impl Cancel {
    /// Raises the flag. False when the work has passed the point of no return.
    pub fn cancel(&self) -> bool {
        self.turn(CANCELLED)
    }

    /// Passes the point of no return.
    ///
    /// # Errors
    /// Kind `cancelled`, when the flag is up.
    pub fn commit(&self) -> Result<(), Error> {
        match self.turn(COMMITTED) {
            true => Ok(()),
            false => Err(Error::cancelled()),
        }
    }

    /// Is the flag up?
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CANCELLED
    }

    /// The error that ends the work, when the flag is up.
    ///
    /// # Errors
    /// Kind `cancelled`.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() {
            return Err(Error::cancelled());
        }
        Ok(())
    }

    /// From running to `state`; also true when it is that already.
    fn turn(&self, state: u8) -> bool {
        let turned = self
            .0
            .compare_exchange(RUNNING, state, Ordering::AcqRel, Ordering::Acquire);
        turned.is_ok_and(|_| true) || turned == Err(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_first_wins() {
        let cancel = Cancel::default();
        assert!(cancel.cancel() && cancel.cancel());
        assert!(cancel.check().is_err() && cancel.commit().is_err());
        let cancel = Cancel::default();
        assert!(cancel.commit().is_ok() && cancel.commit().is_ok());
        assert!(!cancel.cancel() && cancel.check().is_ok());
    }
}
