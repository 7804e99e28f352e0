//! Serves the editor that started this process.

use std::io::{self, PipeReader, PipeWriter};

use sightline_local::process::logging;

use crate::main_loop;

/// Exit code if the standard streams cannot be used.
const FAILURE: i32 = 3;

/// Serves an editor on standard input and output. Returns the exit code.
#[allow(clippy::print_stderr, reason = "there is no client yet")]
pub fn serve() -> i32 {
    logging::start();
    let options = main_loop::Options {
        watch_parent: true,
        user_config: true,
        ..main_loop::Options::default()
    };
    match streams() {
        Ok((input, output)) => main_loop::serve(input, output, options),
        Err(error) => {
            eprintln!("sightline: cannot open the standard streams: {error}");
            FAILURE
        }
    }
}

/// Returns unbuffered standard streams.
#[cfg(unix)]
fn streams() -> io::Result<(PipeReader, PipeWriter)> {
    use std::os::fd::AsFd;
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

/// Returns unbuffered standard streams.
#[cfg(windows)]
fn streams() -> io::Result<(PipeReader, PipeWriter)> {
    use std::os::windows::io::AsHandle;
    let input = io::stdin().as_handle().try_clone_to_owned()?;
    let output = io::stdout().as_handle().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}
