//! Processes that do not end with a terminal, such as that of a hook or an editor.

use std::{
    io::{self, BufRead, BufReader},
    process::{Child, Command, Stdio},
};

/// Gives a process its own group, which Ctrl-C and agents do not end, and no streams.
pub fn detach(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
}

/// Starts a process, and returns the first line that it prints.
///
/// # Errors
/// If it cannot be started or read.
pub fn start_and_read_line(command: &mut Command) -> io::Result<(Child, String)> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    Ok((child, line))
}
