//! Runs git, and commits checkpoints to the user's repository.

mod commit;
pub(crate) mod process;
