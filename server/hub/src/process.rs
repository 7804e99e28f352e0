//! A server that runs: its process, started through `supervise`, and its streams.

use std::{
    borrow::Cow,
    env,
    ffi::OsString,
    io::{self, BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{Arc, OnceLock, mpsc},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
#[cfg(unix)]
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal},
};

use crate::message::{
    MAX_MESSAGE, Message, error_response, id_of_ends, invalid, is_broken_response,
};

/// Time to end after the end of its input, before SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time for the process of `supervise` to end a server after SIGTERM.
const END: Duration = Duration::from_secs(5);
/// How often the end of a process is checked.
const STEP: Duration = Duration::from_millis(10);
/// Bytes that an empty place of a pipe takes: `PIPE_BUF`, which is 512 at least.
#[cfg(unix)]
const PIPE_BUF: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };
/// Bytes of the start and the end of a line that is too long in which its id is looked for.
const ENDS: usize = 256;
/// Size of the buffer for output: that of a pipe of Linux.
const BUFFER: usize = 64 << 10;

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
    /// Ends what the server started.
    #[cfg(windows)]
    _job: crate::job::Job,
    input: Option<Input>,
}

/// The input of a server. A line that fits is written at once, others by a thread, which ends with the sender.
#[derive(Debug)]
struct Input {
    pipe: Arc<ChildStdin>,
    lines: mpsc::Sender<Vec<u8>>,
    /// Number of lines that the thread has not written yet.
    waiting: Arc<Mutex<usize>>,
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
    /// Starts a server. It ends with this process at the latest.
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
        #[cfg(windows)]
        crate::job::enter()?;
        let mut child = spawn(command)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("its streams are not open"));
        };
        let errors = child.stderr.take();
        let process = Self {
            #[cfg(windows)]
            _job: crate::job::Job::of(&child)?,
            input: Some(Input::new(input)?),
            child,
        };
        let output = Output {
            messages: BufReader::with_capacity(BUFFER, output),
            errors,
        };
        Ok((process, output))
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line. Returns whether its input is open.
    pub fn send(&self, line: Vec<u8>) -> bool {
        self.input.as_ref().is_some_and(|input| input.send(line))
    }

    /// Returns whether the process of `supervise` was killed. What it started may be left.
    pub fn was_killed(&mut self) -> bool {
        let status = self.child.try_wait().ok().flatten();
        status.is_some_and(|status| status.code().is_none())
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

impl Input {
    fn new(pipe: ChildStdin) -> io::Result<Self> {
        let (sender, lines) = mpsc::channel::<Vec<u8>>();
        let pipe = Arc::new(pipe);
        let waiting = Arc::new(Mutex::new(0));
        let (own, written) = (pipe.clone(), waiting.clone());
        thread::Builder::new()
            .name("server-input".to_owned())
            .spawn(move || {
                for line in lines {
                    if (&*own).write_all(&line).is_err() {
                        return;
                    }
                    *written.lock() -= 1;
                }
            })?;
        Ok(Self {
            pipe,
            lines: sender,
            waiting,
        })
    }

    fn send(&self, mut line: Vec<u8>) -> bool {
        line.push(b'\n');
        let mut waiting = self.waiting.lock();
        if *waiting == 0 && fits(&self.pipe, line.len()) {
            return (&*self.pipe).write_all(&line).is_ok();
        }
        *waiting += 1;
        self.lines.send(line).is_ok()
    }
}

/// Returns whether a pipe takes this many bytes at once.
#[cfg(unix)]
fn fits(pipe: &ChildStdin, bytes: usize) -> bool {
    let mut polled = [PollFd::new(pipe, PollFlags::OUT)];
    bytes <= PIPE_BUF
        && poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready == 1)
        && polled[0].revents() == PollFlags::OUT
}

#[cfg(not(unix))]
fn fits(_: &ChildStdin, _: usize) -> bool {
    false
}

/// Starts a process. On Linux, it ends with the thread that started it, so one thread starts all.
fn spawn(command: Command) -> io::Result<Child> {
    type Wish = (Command, mpsc::Sender<io::Result<Child>>);
    static STARTER: OnceLock<Option<mpsc::Sender<Wish>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, wishes) = mpsc::channel::<Wish>();
        let run = move || {
            for (mut command, answer) in wishes {
                let _ = answer.send(command.spawn());
            }
        };
        let started = thread::Builder::new().name("starter".to_owned()).spawn(run);
        started.ok().map(|_| sender)
    });
    let (sender, answer) = mpsc::channel();
    let gone = || io::Error::other("the thread that starts processes has ended");
    let starter = starter.as_ref().ok_or_else(gone)?;
    starter.send((command, sender)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

/// Writes a line to standard output.
///
/// # Errors
/// If it is closed.
pub(crate) fn print(mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line)?;
    output.flush()
}

/// A line that was read.
#[derive(Debug)]
pub enum Line {
    /// A line, without its end.
    Text(Vec<u8>),
    /// A line that was longer than a message may be; it was skipped. With the id of the message, as written, if it
    /// is at its start or end.
    TooLong(Option<String>),
}

impl Line {
    /// Parses its messages.
    ///
    /// # Errors
    /// Why they are left out, as a sentence.
    pub(crate) fn messages(&self) -> Result<Vec<Message<'_>>, String> {
        match self {
            Self::Text(line) => Message::parse_line(line).map_err(|why| {
                format!("the answer is left out, because it is not a message: {why}.")
            }),
            Self::TooLong(_) => Err(format!(
                "the result is left out, because it is longer than {MAX_MESSAGE} bytes. Ask for less."
            )),
        }
    }

    /// Returns the messages of an agent. None if they were answered, because they are invalid.
    pub(crate) fn of_agent(&self) -> io::Result<Vec<Message<'_>>> {
        let answer = match self {
            Self::Text(line) if line.trim_ascii().is_empty() => None,
            Self::Text(line) => match Message::parse_line(line) {
                Ok(messages) => return Ok(messages),
                Err(why) => invalid(line, &why),
            },
            Self::TooLong(id) => {
                let why = format!("the message is longer than {MAX_MESSAGE} bytes");
                Some(error_response(
                    id.as_deref().unwrap_or("null"),
                    -32600,
                    &why,
                ))
            }
        };
        answer.map_or(Ok(()), print)?;
        Ok(Vec::new())
    }

    /// Returns the id of a line that is not a message, but was meant to be a response: as written, `null` if
    /// it cannot be read.
    pub(crate) fn broken_id(&self) -> Option<String> {
        let id = match self {
            Self::Text(line) => is_broken_response(line).then(|| id_of_ends(line, line))?,
            Self::TooLong(id) => id.clone(),
        };
        Some(id.unwrap_or_else(|| "null".to_owned()))
    }

    /// Returns its text, for a log.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Text(line) => String::from_utf8_lossy(line),
            Self::TooLong(_) => "a message that is too long".into(),
        }
    }
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
        let end = last_of_line(input)?;
        return Ok(Some(Line::TooLong(id_of_ends(&line[..ENDS], &end))));
    }
    Ok(Some(Line::Text(line)))
}

/// Skips the rest of a line. Returns its last bytes.
fn last_of_line(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut last = Vec::new();
    loop {
        let read = input.fill_buf()?;
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = &read[..end.unwrap_or(read.len())];
        last.extend_from_slice(part);
        last.drain(..last.len().saturating_sub(ENDS));
        let used = end.map_or(read.len(), |end| end + 1);
        input.consume(used);
        if used == 0 || end.is_some() {
            return Ok(last);
        }
    }
}
