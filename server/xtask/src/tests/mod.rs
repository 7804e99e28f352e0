//! Tests of the repository as a whole.

mod deny;
mod dependencies;
mod documents;
mod generated_files;
mod import_cycles;
mod workflows;
