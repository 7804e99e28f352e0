//! Development tasks. Run with `cargo xtask TASK`.
//!
//! `generate` rewrites the generated files of the repository: JSON Schemas, client types, reference
//! documents, and the code included in documents. A test fails while one differs.
//!
//! `dist` builds the release packages in `target/dist`. `release` does everything of a release up to its
//! uploads. `release-notes` prints the section of a release in `CHANGELOG.md`. `tidy` checks the structure
//! and the words of the source text.
//!
//! Modules:
//!
//! - `dist`: release packages: one file per format, archives with fixed times, the table of
//!   platforms
//! - `generate`: generators of JSON Schema, TypeScript, Lua and Markdown; the code included in
//!   documents
//! - `release`: checks and packages of a release; its section in `CHANGELOG.md`
//! - `tidy`: `cargo xtask tidy`: structure, sizes, words and dependencies; `tidy.toml` has the
//!   recorded figures and the floors of the crates
//! - `tests`: tests of the repository: generated files, documents, licenses

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool"
)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod dist;
mod generate;
mod release;
#[cfg(test)]
mod tests;
mod tidy;

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;

/// Development tasks of Sightline.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Rewrite the generated files of the repository.
    Generate,
    /// Build the release packages in `target/dist`.
    Dist(dist::Options),
    /// Check, build and try a release, and print the commands that upload it.
    Release(release::Options),
    /// Print the notes of a release.
    ReleaseNotes {
        /// Tag of the release.
        tag: String,
    },
    /// Check the structure and the words of the source text.
    Tidy(tidy::Options),
}

fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Generate => generate_files(),
        Task::Dist(options) => dist::run(&options),
        Task::Release(options) => release::run(&options),
        Task::ReleaseNotes { tag } => print_release_notes(&tag),
        Task::Tidy(options) => tidy::run(&repository(), &options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_release_notes(tag: &str) -> Result<(), Box<dyn Error>> {
    let changelog = fs::read_to_string(repository().join("CHANGELOG.md"))?;
    print!("{}", release::notes::of_tag(&changelog, tag)?);
    Ok(())
}

/// Writes the generated files that changed, and prints their names.
fn generate_files() -> Result<(), Box<dyn Error>> {
    for (path, content) in generate::repository_files(&repository())? {
        if fs::read_to_string(&path).is_ok_and(|found| found == content) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, content)?;
        println!("{}", path.display());
    }
    Ok(())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap_or(Path::new("."))
        .to_path_buf()
}
