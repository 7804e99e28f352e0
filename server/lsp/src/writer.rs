//! The stream out: whole frames, in the order in which they were sent.
//!
//! A separate thread writes, so that nobody who answers waits for a client that
//! does not read. The way over that thread costs more than a small answer does, so
//! whoever sends one writes it himself, where nothing waits before it and the stream
//! takes it at once.
//!
//! What a client does not read is held in memory. Past [`MAX_UNSENT_BYTES`] of it
//! there is no room: no input is read and no request begins ([`FrameWriter::wait_for_room`]).
//! [`FrameWriter::send`] still takes what work that had begun has to say, which is bounded by
//! the number of threads. What comes without being asked for is replaced by its successor
//! ([`FrameWriter::send_latest`]) or left out.

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, PipeWriter, Write},
    mem,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sightline_core::limits::MAX_UNSENT_BYTES;

use crate::{client::OutgoingMessage, frame::write_parts, sync::lock};

/// Frames of at most so many bytes are taken whole by a pipe that takes any (POSIX:
/// `PIPE_BUF`, 512 at least, 4,096 on Linux), and by a socket with room.
#[cfg(target_os = "linux")]
const AT_ONCE: usize = 4096;
#[cfg(not(target_os = "linux"))]
const AT_ONCE: usize = 512;

/// A socket says that it takes something while a part of this room is left: a third
/// or a quarter of it must be more than [`AT_ONCE`].
#[cfg(unix)]
const SOCKET_ROOM: usize = 8 * AT_ONCE;

/// Around a body there is a header.
const HEADER_BYTES: usize = 40;

/// The stream out, shared by all threads.
pub struct FrameWriter {
    state: Mutex<State>,
    /// There is something to write, or nothing more to come.
    changed: Condvar,
    /// There is room, or nobody has to wait for it any more.
    has_room: Condvar,
}

struct State {
    /// What the writing thread is to write, oldest first.
    waiting: Vec<OutgoingMessage>,
    /// Bytes of what waits and of what is being written.
    unsent: usize,
    /// Sent once there is room; each key has its latest frame.
    latest: BTreeMap<String, OutgoingMessage>,
    /// Nobody waits for room any more.
    is_ending: bool,
    /// `None` while that thread writes, and when there is no stream any more.
    stream: Option<PipeWriter>,
    /// What says that it takes something takes [`AT_ONCE`] bytes.
    is_roomy: bool,
    /// More may be sent.
    open: bool,
    /// What the stream reported to somebody who wrote himself.
    failed: Option<io::Error>,
}

impl FrameWriter {
    /// Frames go to `stream`, which need not be a pipe. Somebody must run
    /// [`Self::write`].
    pub fn new(stream: PipeWriter) -> Self {
        Self::with(Some(stream))
    }

    /// Frames go nowhere.
    pub fn closed() -> Self {
        Self::with(None)
    }

    fn with(stream: Option<PipeWriter>) -> Self {
        let state = State {
            waiting: Vec::new(),
            unsent: 0,
            latest: BTreeMap::new(),
            is_ending: stream.is_none(),
            is_roomy: stream.as_ref().is_some_and(is_roomy),
            open: stream.is_some(),
            stream,
            failed: None,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            has_room: Condvar::new(),
        }
    }

    /// Is nothing sent any more?
    pub fn is_closed(&self) -> bool {
        !lock(&self.state).open
    }

    /// No more is sent; [`Self::write`] ends once it has written what waits.
    pub fn close(&self) {
        lock(&self.state).open = false;
        self.changed.notify_one();
    }

    /// Returns whether more than [`MAX_UNSENT_BYTES`] are unsent.
    pub fn is_full(&self) -> bool {
        lock(&self.state).is_full()
    }

    /// Waits until there is room, but no longer than `timeout`. Returns whether the
    /// caller may go on.
    pub fn wait_for_room(&self, timeout: Duration) -> bool {
        let state = lock(&self.state);
        let must_wait = |state: &mut State| state.is_full() && !state.is_ending;
        let waited = self.has_room.wait_timeout_while(state, timeout, must_wait);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Ends every wait for room, for good.
    pub fn stop_waiting(&self) {
        lock(&self.state).is_ending = true;
        self.has_room.notify_all();
    }

    /// Sends a frame; never waits for the client.
    pub fn send(&self, body: OutgoingMessage) {
        self.send_in(lock(&self.state), body);
    }

    /// Sends a frame that makes earlier ones of the same key worthless: without room
    /// only the latest is kept.
    pub fn send_latest(&self, key: String, body: OutgoingMessage) {
        let mut state = lock(&self.state);
        if state.open && state.is_full() {
            state.latest.insert(key, body);
        } else {
            self.send_in(state, body);
        }
    }

    fn send_in(&self, mut state: MutexGuard<'_, State>, body: OutgoingMessage) {
        if !state.open {
            return;
        }
        if state.is_roomy
            && state.waiting.is_empty()
            && let Some(stream) = &mut state.stream
            && let Some(frame) = small(&body)
            && takes_at_once(stream)
        {
            let Err(error) = stream.write_all(&frame) else {
                return;
            };
            state.open = false;
            state.failed = Some(error);
        } else {
            state.unsent += body.bytes();
            state.waiting.push(body);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Writes what others send, until the stream is closed.
    ///
    /// # Errors
    /// What the stream reports; no more is sent then.
    pub fn write(&self) -> io::Result<()> {
        let written = self.write_waiting();
        // Whoever reads it hears of the end.
        lock(&self.state).stream = None;
        self.stop_waiting();
        written
    }

    fn write_waiting(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        loop {
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            if state.waiting.is_empty() {
                if !state.open {
                    return Ok(());
                }
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let frames = mem::take(&mut state.waiting);
            let Some(stream) = state.stream.take() else {
                return Ok(());
            };
            drop(state);
            let written = self.write_all(&stream, frames);
            state = lock(&self.state);
            if let Err(error) = written {
                state.open = false;
                return Err(error);
            }
            state.stream = Some(stream);
        }
    }

    fn write_all(&self, stream: &PipeWriter, frames: Vec<OutgoingMessage>) -> io::Result<()> {
        let mut output = BufWriter::new(stream);
        for frame in frames {
            write_parts(&mut output, frame.parts())?;
            let bytes = frame.bytes();
            drop(frame);
            self.sent(bytes);
        }
        output.flush()
    }

    /// Notes that so many bytes are no longer held.
    fn sent(&self, bytes: usize) {
        let mut state = lock(&self.state);
        let was_full = state.is_full();
        state.unsent = state.unsent.saturating_sub(bytes);
        if !was_full || state.is_full() {
            return;
        }
        for body in mem::take(&mut state.latest).into_values() {
            state.unsent += body.bytes();
            state.waiting.push(body);
        }
        drop(state);
        self.has_room.notify_all();
    }
}

impl State {
    fn is_full(&self) -> bool {
        self.unsent > MAX_UNSENT_BYTES
    }
}

/// A frame that may be written at once.
fn small(body: &OutgoingMessage) -> Option<Vec<u8>> {
    let bytes = body.bytes() + HEADER_BYTES;
    if bytes > AT_ONCE {
        return None;
    }
    let mut frame = Vec::with_capacity(bytes);
    write_parts(&mut frame, body.parts()).ok()?;
    Some(frame)
}

/// Is it a pipe, or a socket with room? A terminal takes a byte and lets the others
/// wait.
#[cfg(unix)]
fn is_roomy(stream: &PipeWriter) -> bool {
    use rustix::{
        fs::{FileType, fstat},
        net::sockopt::socket_send_buffer_size,
    };
    match fstat(stream).map(|found| FileType::from_raw_mode(found.st_mode)) {
        Ok(FileType::Fifo) => true,
        Ok(FileType::Socket) => {
            socket_send_buffer_size(stream).is_ok_and(|room| room >= SOCKET_ROOM)
        }
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_roomy(_: &PipeWriter) -> bool {
    false
}

/// Does such a stream take [`AT_ONCE`] bytes without a wait?
#[cfg(unix)]
fn takes_at_once(stream: &PipeWriter) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut asked = [PollFd::new(stream, PollFlags::OUT)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut asked, Some(&at_once)).is_ok_and(|_| asked[0].revents() == PollFlags::OUT)
}

#[cfg(not(unix))]
fn takes_at_once(_: &PipeWriter) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::{
        io::{PipeReader, Read},
        sync::{Arc, mpsc},
        thread::{self, JoinHandle},
        time::Duration,
    };

    use super::*;
    use crate::frame::FrameReader;

    fn output() -> (PipeReader, Arc<FrameWriter>, JoinHandle<io::Result<()>>) {
        let (client, stream) = io::pipe().unwrap();
        let output = Arc::new(FrameWriter::new(stream));
        let writer = output.clone();
        let writer = thread::spawn(move || writer.write());
        (client, output, writer)
    }

    fn body(number: usize, bytes: usize) -> OutgoingMessage {
        let number = number.to_string();
        let zeros = "0".repeat(bytes - number.len());
        (zeros + &number).into_bytes().into()
    }

    #[test]
    fn nobody_waits_for_a_client_that_does_not_read_and_the_order_stays() {
        let (client, output, writer) = output();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            // Far more than a pipe holds: small ones, then large ones between them.
            for number in 0..4000 {
                let is_large = number > 2000 && number % 7 == 0;
                output.send(body(number, if is_large { 9000 } else { 100 }));
            }
            output.close();
            let _ = tell.send(());
        });
        told.recv_timeout(Duration::from_secs(30)).unwrap();
        let mut frames = FrameReader::new(client);
        for number in 0..4000 {
            let frame = frames.next_frame().unwrap().unwrap().unwrap();
            let read: usize = str::from_utf8(&frame).unwrap().parse().unwrap();
            assert_eq!(read, number);
        }
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn without_room_the_latest_of_each_key_is_kept_and_comes_when_there_is_some() {
        let (client, output, writer) = output();
        let wait = || output.wait_for_room(Duration::ZERO);
        for number in 0..5 {
            assert!(wait(), "{number}");
            output.send(body(number, MAX_UNSENT_BYTES / 4));
        }
        assert!(!wait());
        for number in 5..9 {
            output.send_latest((number % 2).to_string(), body(number, 9));
        }
        assert_eq!(lock(&output.state).latest.len(), 2);
        output.close();
        let mut frames = FrameReader::new(client);
        for expected in [0, 1, 2, 3, 4, 8, 7] {
            let frame = frames.next_frame().unwrap().unwrap().unwrap();
            let digits = str::from_utf8(&frame).unwrap().trim_start_matches('0');
            assert_eq!(digits.parse().unwrap_or(0), expected);
        }
        assert!(frames.next_frame().unwrap().is_none());
        writer.join().unwrap().unwrap();
        assert!(wait());
    }

    #[test]
    fn the_end_of_the_session_or_of_the_stream_ends_the_wait_for_room() {
        for is_read in [true, false] {
            let (client, output, writer) = output();
            output.send(body(1, MAX_UNSENT_BYTES + 1));
            let waiting = output.clone();
            let waiting = thread::spawn(move || waiting.wait_for_room(Duration::from_secs(30)));
            if is_read {
                output.stop_waiting();
                assert!(waiting.join().unwrap());
                drop(client);
            } else {
                drop(client);
                assert!(waiting.join().unwrap());
            }
            assert!(writer.join().unwrap().is_err());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_small_frame_is_there_when_it_was_sent() {
        let (client, stream) = io::pipe().unwrap();
        // Nobody writes but who sends.
        let output = FrameWriter::new(stream);
        output.send(body(1, 3));
        output.send(body(2, AT_ONCE));
        output.send(body(3, 3));
        drop(output);
        let mut all = String::new();
        { client }.read_to_string(&mut all).unwrap();
        assert_eq!(all, "Content-Length: 3\r\n\r\n001");
    }

    /// Editors on libuv speak through sockets.
    #[cfg(unix)]
    #[test]
    fn a_socket_is_written_to_as_a_pipe_is_and_a_terminal_only_by_the_writer() {
        use std::os::{fd::OwnedFd, unix::net::UnixStream};
        let (mut client, stream) = UnixStream::pair().unwrap();
        let output = FrameWriter::new(OwnedFd::from(stream).into());
        for number in 0..5000 {
            output.send(body(number, 100));
        }
        let waiting = lock(&output.state).waiting.len();
        assert!((1..5000).contains(&waiting), "{waiting}");
        drop(output);
        let mut all = String::new();
        client.read_to_string(&mut all).unwrap();
        assert_eq!(all.matches("Content-Length: 100").count(), 5000 - waiting);

        let terminal = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
        let output = FrameWriter::new(terminal.into());
        output.send(body(1, 3));
        assert_eq!(lock(&output.state).waiting.len(), 1);
    }

    #[test]
    fn the_end_of_the_stream_ends_the_writing() {
        for bytes in [3, 9000] {
            let (client, output, writer) = output();
            drop(client);
            output.send(body(1, bytes));
            assert!(writer.join().unwrap().is_err());
            assert!(output.is_closed());
            output.send(body(2, bytes));
        }
    }
}
