//! Why a step of a restore failed, as user-visible text.

use std::io;

use sightline_base::fs::dir::is_absent;

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::restore) struct StepError {
    pub(in crate::restore) message: String,
    /// Whether the file may have neither its old nor its new content, so that the journal must be
    /// kept.
    pub(in crate::restore) is_partly_written: bool,
}

impl StepError {
    pub(in crate::restore) fn partly_written(message: String) -> Self {
        Self {
            message,
            is_partly_written: true,
        }
    }
}

impl From<String> for StepError {
    fn from(message: String) -> Self {
        Self {
            message,
            is_partly_written: false,
        }
    }
}

pub(in crate::restore) fn changed_error() -> String {
    "changed during the restore; left as it is".to_owned()
}

pub(in crate::restore) fn appeared_error() -> String {
    "created during the restore; left as it is".to_owned()
}

pub(in crate::restore) fn failure(what: &str, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "; check its permissions and restore again",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "; free disk space and restore again"
        }
        _ if is_absent(error) => "; a file or folder was moved during the restore",
        _ => "",
    };
    format!("cannot {what}: {error}{advice}")
}
