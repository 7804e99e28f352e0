//! A server that runs: its process, started through `supervise`, and its streams.

use std::{
    env,
    ffi::OsString,
    io::{self, BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

#[cfg(unix)]
use rustix::process::{Pid, Signal};

use crate::message::MAX_MESSAGE;

/// Time to end after the end of its input, before SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time for the process of `supervise` to end a server after SIGTERM.
const END: Duration = Duration::from_secs(5);
/// How often the end of a process is checked.
const STEP: Duration = Duration::from_millis(10);

/// How to start a server.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Folder, other than the current one.
    pub folder: Option<PathBuf>,
    /// All variables, other than those of this process.
    pub variables: Option<Vec<(OsString, OsString)>>,
    /// Whether its standard error is read. Otherwise it is that of this process.
    pub reads_errors: bool,
}

/// A running server.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Lines for its input. The thread that writes them ends with the sender.
    input: Option<mpsc::Sender<Vec<u8>>>,
}

/// Output streams of a server.
#[derive(Debug)]
pub struct Output {
    /// Standard output.
    pub messages: BufReader<ChildStdout>,
    /// Standard error, if it is read.
    pub errors: Option<ChildStderr>,
}

impl Process {
    /// Starts a server. It ends with the calling thread at the latest.
    ///
    /// # Errors
    /// If it cannot be started. That its program does not exist is reported by its end.
    pub fn start(start: &Start) -> io::Result<(Self, Output)> {
        let mut command = if cfg!(unix) {
            let mut command = Command::new(env::current_exe()?);
            command
                .args(["mcp", "supervise", "--parent"])
                .arg(std::process::id().to_string())
                .arg("--")
                .args(&start.command);
            command
        } else {
            let (program, arguments) = start
                .command
                .split_first()
                .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
            let mut command = Command::new(program);
            command.args(arguments);
            command
        };
        if let Some(folder) = &start.folder {
            command.current_dir(folder);
        }
        if let Some(variables) = &start.variables {
            command.env_clear().envs(variables.iter().cloned());
        }
        // Signals of a terminal do not reach it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if start.reads_errors {
                Stdio::piped()
            } else {
                Stdio::inherit()
            });
        let mut child = command.spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("its streams are not open"));
        };
        let errors = child.stderr.take();
        let (sender, lines) = mpsc::channel();
        thread::Builder::new()
            .name("server-input".to_owned())
            .spawn(move || write_lines(input, &lines))?;
        let output = Output {
            messages: BufReader::new(output),
            errors,
        };
        let process = Self {
            child,
            input: Some(sender),
        };
        Ok((process, output))
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line. Returns whether its input is open.
    pub fn send(&self, line: Vec<u8>) -> bool {
        self.input
            .as_ref()
            .is_some_and(|input| input.send(line).is_ok())
    }

    /// Closes its input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Ends it with everything that it started: closes its input, and asks it to end if it does not
    /// end in time. Returns its exit code.
    pub fn end(mut self, patience: bool) -> Option<i32> {
        self.close_input();
        let patience = if patience { PATIENCE } else { Duration::ZERO };
        let mut status = self.ended_within(patience);
        if status.is_none() {
            self.ask_to_end();
            status = self.ended_within(END);
        }
        let code = status.and_then(|status| status.code());
        if code.is_none() {
            // The process of `supervise` was killed, and its group is left.
            self.kill();
        }
        code
    }

    /// Waits until it ends, at most for a while.
    fn ended_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + limit;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < end => thread::sleep(STEP),
                status => return status.ok()?,
            }
        }
    }

    #[cfg(unix)]
    fn ask_to_end(&mut self) {
        let pid = Pid::from_child(&self.child);
        // It may be gone already.
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }

    #[cfg(not(unix))]
    fn ask_to_end(&mut self) {
        let _ = self.child.kill();
    }

    fn kill(&mut self) {
        #[cfg(unix)]
        let _ = rustix::process::kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_lines(mut input: ChildStdin, lines: &mpsc::Receiver<Vec<u8>>) {
    for mut line in lines {
        line.push(b'\n');
        if input.write_all(&line).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

/// A line that was read.
#[derive(Debug)]
pub enum Line {
    /// A line, without its end.
    Text(Vec<u8>),
    /// A line that was longer than a message may be; it was skipped.
    TooLong,
}

/// Reads the next line. Returns `None` at the end of the input.
///
/// # Errors
/// If the input cannot be read.
pub fn read_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let limit = MAX_MESSAGE as u64 + 1;
    if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") {
        line.pop();
        line.pop_if(|last| *last == b'\r');
    } else if line.len() > MAX_MESSAGE {
        input.skip_until(b'\n')?;
        return Ok(Some(Line::TooLong));
    }
    Ok(Some(Line::Text(line)))
}
