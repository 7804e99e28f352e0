//! Development tasks. Run with `cargo xtask TASK`.
//!
//! `generate` rewrites the generated files of the repository: JSON Schemas, client types, reference
//! documents, and the code included in documents. A test fails while one differs.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool"
)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod generate;
#[cfg(test)]
mod tests;

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["generate"] => generate_files(),
        _ => Err("usage: cargo xtask generate".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
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
