//! Writes frames to the output stream, in the order in which they were sent.
//!
//! A writer thread does the writing, so that senders never wait for a client that does
//! not read. Handing over to that thread costs more than a small response, so a sender
//! writes a small frame itself if the queue is empty and the stream can take it without
//! blocking.
//!
//! Unsent messages are kept in memory. While they exceed [`MAX_UNSENT_BYTES`], no input
//! is read and no request starts ([`FrameWriter::wait_for_room`]). [`FrameWriter::send`]
//! still accepts responses of running jobs, which are limited by the number of threads.
//! Notifications are replaced by their successor ([`FrameWriter::send_latest`]) or
//! dropped.

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, PipeWriter, Write},
    mem,
    time::Duration,
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use sightline_base::limits::MAX_UNSENT_BYTES;
use sightline_engine::client::Output;
use sightline_local::frame::write_frame;

/// Maximum size of a frame that is written without handing over, in bytes. A writable
/// pipe takes that much atomically (POSIX `PIPE_BUF`: at least 512, 4096 on Linux), and
/// so does a writable socket.
#[cfg(target_os = "linux")]
const ATOMIC_WRITE_BYTES: usize = 4096;
#[cfg(not(target_os = "linux"))]
const ATOMIC_WRITE_BYTES: usize = 512;

/// Minimum send buffer of a socket, in bytes. A socket is reported writable while a third
/// to a quarter of its buffer is free, which must be more than [`ATOMIC_WRITE_BYTES`].
#[cfg(unix)]
const MIN_SOCKET_BUFFER: usize = 8 * ATOMIC_WRITE_BYTES;

/// Upper bound for the size of a header, in bytes.
const HEADER_BYTES: usize = 40;

/// The output stream, shared by all threads.
pub struct FrameWriter {
    state: Mutex<State>,
    /// Signals a new frame or the end.
    changed: Condvar,
    /// Signals room in the queue or the end of all waits.
    has_room: Condvar,
}

struct State {
    /// Frames for the writer thread, oldest first.
    queue: Vec<Vec<u8>>,
    /// Bytes queued or being written.
    unsent: usize,
    /// Latest frame per key, sent once there is room.
    latest: BTreeMap<String, Vec<u8>>,
    /// Waits for room return immediately.
    is_ending: bool,
    /// `None` while the writer thread writes, and after the stream is closed.
    stream: Option<PipeWriter>,
    /// A writable stream takes [`ATOMIC_WRITE_BYTES`] bytes without blocking.
    has_atomic_writes: bool,
    /// Frames are still accepted.
    is_open: bool,
    /// Error of a sender's own write.
    failed: Option<io::Error>,
}

impl FrameWriter {
    /// Writes to `stream`, which need not be a pipe. The caller must run [`Self::write`]
    /// on a thread.
    pub fn new(stream: PipeWriter) -> Self {
        let state = State {
            queue: Vec::new(),
            unsent: 0,
            latest: BTreeMap::new(),
            is_ending: false,
            has_atomic_writes: has_atomic_writes(&stream),
            is_open: true,
            stream: Some(stream),
            failed: None,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            has_room: Condvar::new(),
        }
    }

    /// Accepts no more frames. [`Self::write`] returns once the queue is empty.
    pub fn close(&self) {
        self.state.lock().is_open = false;
        self.changed.notify_one();
    }

    /// Waits until there is room, up to `timeout`. Returns false on timeout.
    pub fn wait_for_room(&self, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        let must_wait = |state: &mut State| state.is_full() && !state.is_ending;
        let waited = self.has_room.wait_while_for(&mut state, must_wait, timeout);
        !waited.timed_out()
    }

    /// Ends all current and future waits for room.
    pub fn end_waits(&self) {
        self.state.lock().is_ending = true;
        self.has_room.notify_all();
    }

    fn send_in(&self, mut state: MutexGuard<'_, State>, body: Vec<u8>) {
        if !state.is_open {
            return;
        }
        if state.has_atomic_writes
            && state.queue.is_empty()
            && let Some(stream) = &mut state.stream
            && let Some(frame) = encode_small(&body)
            && is_writable(stream)
        {
            let Err(error) = stream.write_all(&frame) else {
                return;
            };
            state.is_open = false;
            state.failed = Some(error);
        } else {
            state.unsent += body.len();
            state.queue.push(body);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Runs the writer thread's loop until the writer is closed.
    ///
    /// # Errors
    /// I/O errors of the stream. No frames are accepted afterwards.
    pub fn write(&self) -> io::Result<()> {
        let written = self.write_waiting();
        // Closes the stream, so that the client sees the end.
        self.state.lock().stream = None;
        self.end_waits();
        written
    }

    fn write_waiting(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        loop {
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            if state.queue.is_empty() {
                if !state.is_open {
                    return Ok(());
                }
                self.changed.wait(&mut state);
                continue;
            }
            let frames = mem::take(&mut state.queue);
            let Some(stream) = state.stream.take() else {
                return Ok(());
            };
            drop(state);
            let written = self.write_all(&stream, frames);
            state = self.state.lock();
            if let Err(error) = written {
                state.is_open = false;
                return Err(error);
            }
            state.stream = Some(stream);
        }
    }

    fn write_all(&self, stream: &PipeWriter, frames: Vec<Vec<u8>>) -> io::Result<()> {
        let mut output = BufWriter::new(stream);
        for frame in frames {
            write_frame(&mut output, &frame)?;
            let bytes = frame.len();
            drop(frame);
            self.record_written(bytes);
        }
        output.flush()
    }

    /// Records that these bytes were written.
    fn record_written(&self, bytes: usize) {
        let mut state = self.state.lock();
        let was_full = state.is_full();
        state.unsent = state.unsent.saturating_sub(bytes);
        if !was_full || state.is_full() {
            return;
        }
        for body in mem::take(&mut state.latest).into_values() {
            state.unsent += body.len();
            state.queue.push(body);
        }
        drop(state);
        self.has_room.notify_all();
    }
}

impl Output for FrameWriter {
    fn is_closed(&self) -> bool {
        !self.state.lock().is_open
    }

    fn is_full(&self) -> bool {
        self.state.lock().is_full()
    }

    fn send(&self, body: Vec<u8>) {
        self.send_in(self.state.lock(), body);
    }

    fn send_latest(&self, key: String, body: Vec<u8>) {
        let mut state = self.state.lock();
        if state.is_open && state.is_full() {
            state.latest.insert(key, body);
        } else {
            self.send_in(state, body);
        }
    }
}

impl State {
    fn is_full(&self) -> bool {
        self.unsent > MAX_UNSENT_BYTES
    }
}

/// Encodes a frame that is small enough to be written by the sender.
fn encode_small(body: &[u8]) -> Option<Vec<u8>> {
    let bytes = body.len() + HEADER_BYTES;
    if bytes > ATOMIC_WRITE_BYTES {
        return None;
    }
    let mut frame = Vec::with_capacity(bytes);
    write_frame(&mut frame, body).ok()?;
    Some(frame)
}

/// Returns whether the stream is a pipe, or a socket with a large enough buffer. A
/// terminal may accept one byte and block for the rest.
#[cfg(unix)]
fn has_atomic_writes(stream: &PipeWriter) -> bool {
    use rustix::{
        fs::{FileType, fstat},
        net::sockopt::socket_send_buffer_size,
    };
    match fstat(stream).map(|found| FileType::from_raw_mode(found.st_mode)) {
        Ok(FileType::Fifo) => true,
        Ok(FileType::Socket) => {
            socket_send_buffer_size(stream).is_ok_and(|room| room >= MIN_SOCKET_BUFFER)
        }
        _ => false,
    }
}

#[cfg(not(unix))]
fn has_atomic_writes(_: &PipeWriter) -> bool {
    false
}

/// Returns whether [`ATOMIC_WRITE_BYTES`] bytes can be written without blocking.
#[cfg(unix)]
fn is_writable(stream: &PipeWriter) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut polled = [PollFd::new(stream, PollFlags::OUT)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut polled, Some(&at_once)).is_ok_and(|_| polled[0].revents() == PollFlags::OUT)
}

#[cfg(not(unix))]
fn is_writable(_: &PipeWriter) -> bool {
    false
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use std::io::Read;
    use std::{
        io::PipeReader,
        sync::{Arc, mpsc},
        thread::{self, JoinHandle},
        time::Duration,
    };

    use sightline_local::frame::FrameReader;

    use super::*;

    fn output() -> (PipeReader, Arc<FrameWriter>, JoinHandle<io::Result<()>>) {
        let (client, stream) = io::pipe().unwrap();
        let output = Arc::new(FrameWriter::new(stream));
        let writer = output.clone();
        let writer = thread::spawn(move || writer.write());
        (client, output, writer)
    }

    fn body(number: usize, bytes: usize) -> Vec<u8> {
        let number = number.to_string();
        let zeros = "0".repeat(bytes - number.len());
        (zeros + &number).into_bytes()
    }

    #[test]
    fn senders_do_not_wait_for_the_client_and_order_is_kept() {
        let (client, output, writer) = output();
        let (report, received) = mpsc::channel();
        thread::spawn(move || {
            // Far more than a pipe holds: small frames, then some large ones between
            // them.
            for number in 0..4000 {
                let is_large = number > 2000 && number % 7 == 0;
                output.send(body(number, if is_large { 9000 } else { 100 }));
            }
            output.close();
            let _ = report.send(());
        });
        received.recv_timeout(Duration::from_secs(30)).unwrap();
        let mut frames = FrameReader::new(client);
        for number in 0..4000 {
            let frame = frames.next_frame().unwrap().unwrap().unwrap();
            let read: usize = str::from_utf8(&frame).unwrap().parse().unwrap();
            assert_eq!(read, number);
        }
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn a_full_queue_keeps_the_latest_frame_of_each_key() {
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
        assert_eq!(output.state.lock().latest.len(), 2);
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
            let queue = output.clone();
            let queue = thread::spawn(move || queue.wait_for_room(Duration::from_secs(30)));
            if is_read {
                output.end_waits();
                assert!(queue.join().unwrap());
                drop(client);
            } else {
                drop(client);
                assert!(queue.join().unwrap());
            }
            assert!(writer.join().unwrap().is_err());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_small_frame_is_written_by_its_sender() {
        let (client, stream) = io::pipe().unwrap();
        // No writer thread is running.
        let output = FrameWriter::new(stream);
        output.send(body(1, 3));
        output.send(body(2, ATOMIC_WRITE_BYTES));
        output.send(body(3, 3));
        drop(output);
        let mut all = String::new();
        { client }.read_to_string(&mut all).unwrap();
        assert_eq!(all, "Content-Length: 3\r\n\r\n001");
    }

    /// Editors based on libuv connect through sockets.
    #[cfg(unix)]
    #[test]
    fn senders_write_to_sockets_but_not_to_terminals() {
        use std::os::{fd::OwnedFd, unix::net::UnixStream};
        let (mut client, stream) = UnixStream::pair().unwrap();
        let output = FrameWriter::new(OwnedFd::from(stream).into());
        for number in 0..5000 {
            output.send(body(number, 100));
        }
        let queue = output.state.lock().queue.len();
        assert!((1..5000).contains(&queue), "{queue}");
        drop(output);
        let mut all = String::new();
        client.read_to_string(&mut all).unwrap();
        assert_eq!(all.matches("Content-Length: 100").count(), 5000 - queue);

        let terminal = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
        let output = FrameWriter::new(terminal.into());
        output.send(body(1, 3));
        assert_eq!(output.state.lock().queue.len(), 1);
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
