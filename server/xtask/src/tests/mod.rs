//! Tests of the repository as a whole.

mod deny;
mod documents;
mod generated_files;
mod workflows;
