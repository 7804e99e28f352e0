//! The reader thread: reads frames, parses them, and sends messages to the main loop.
//!
//! While too much output is unsent, no input is read ([`FrameWriter::wait_for_room`]):
//! `exit` and cancellations are seen once the client reads again or closes its end.

use std::{
    io::PipeReader,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::Duration,
};

use crossbeam_channel::{Receiver, bounded};
use sightline_local::frame::{BadFrame, FrameReader};

use crate::{
    connection::message::{InvalidMessage, Message},
    connection::writer::FrameWriter,
};

/// Maximum number of messages that wait for the main loop.
const MAX_WAITING: usize = 16;

/// Interval between checks for a closed input while reading is paused.
const END_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// What was read.
pub enum Input {
    /// A message.
    Message(Message),
    /// A body that is not a message.
    Invalid(InvalidMessage),
    /// A frame without a body.
    BadFrame(BadFrame),
    /// The end of the input.
    End,
}

/// Starts the reader thread.
pub fn start(input: PipeReader, output: Arc<FrameWriter>) -> Receiver<Input> {
    let (sender, receiver) = bounded(MAX_WAITING);
    let mut reader = Reader {
        frames: FrameReader::new(input),
        output,
    };
    thread::spawn(move || {
        loop {
            // The session cannot continue without its reader, so a panic ends it.
            let read = catch_unwind(AssertUnwindSafe(|| reader.read())).unwrap_or(Input::End);
            let is_end = matches!(read, Input::End);
            if sender.send(read).is_err() || is_end {
                return;
            }
        }
    });
    receiver
}

struct Reader {
    frames: FrameReader<PipeReader>,
    output: Arc<FrameWriter>,
}

impl Reader {
    fn read(&mut self) -> Input {
        while !self.output.wait_for_room(END_POLL_INTERVAL) {
            if self.is_input_closed() {
                // Little input is left, and the end of input follows it.
                self.output.end_waits();
            }
        }
        match self.frames.next_frame() {
            Ok(Some(Ok(body))) => match Message::parse(body) {
                Ok(message) => Input::Message(message),
                Err(invalid) => Input::Invalid(invalid),
            },
            Ok(Some(Err(bad))) => Input::BadFrame(bad),
            Ok(None) => Input::End,
            Err(error) => {
                tracing::info!(%error, "cannot read input");
                Input::End
            }
        }
    }

    /// Returns whether the client has closed its end, even if there is unread input.
    #[cfg(unix)]
    fn is_input_closed(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let closed = PollFlags::HUP | PollFlags::ERR;
        // Sockets can be closed in one direction only.
        #[cfg(target_os = "linux")]
        let closed = closed | PollFlags::RDHUP;
        let mut polled_fds = [PollFd::new(self.frames.stream(), closed)];
        poll(&mut polled_fds, Some(&at_once)).is_ok() && polled_fds[0].revents().intersects(closed)
    }

    /// On other systems, a closed client is noticed on write.
    #[cfg(not(unix))]
    fn is_input_closed(&self) -> bool {
        false
    }
}
