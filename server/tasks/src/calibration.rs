//! The token calibration of a task, stored in its directory.

use sightline_base::{
    error::Error,
    storage::{TaskDir, TaskLock},
};
use sightline_conversation::tokens::Calibration;

use crate::failed;

const CALIBRATION_FILE: &str = "calibration.json";

/// Loads the calibration of a task. An invalid file is ignored; only accuracy is lost.
///
/// # Errors
/// Kind `storage`.
pub fn load_calibration(task: &TaskDir) -> Result<Calibration, Error> {
    let stored = task.read(CALIBRATION_FILE)?.unwrap_or_default();
    Ok(serde_json::from_slice(&stored).unwrap_or_default())
}

/// Stores a calibration with its task.
///
/// # Errors
/// Kind `storage`.
pub fn store_calibration(calibration: &Calibration, task: &TaskLock) -> Result<(), Error> {
    let text = serde_json::to_vec(calibration).map_err(failed("write", CALIBRATION_FILE))?;
    task.write(CALIBRATION_FILE, &text)
}
