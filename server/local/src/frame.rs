//! `Content-Length` framing of messages.
//!
//! A malformed header costs one message, never the connection: the reader reports one
//! [`BadFrame`] and resumes at the next header.

use std::io::{self, BufRead, BufReader, Read, Write};

use sightline_base::limits::{MAX_FRAME_BYTES, MAX_HEADER_BYTES};

/// Size of the read buffer, in bytes: the capacity of a pipe.
const READ_BUFFER: usize = 64 * 1024;

/// Why a frame was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadFrame {
    /// No `Content-Length`, or one that is not a number.
    Header(String),
    /// The body is over [`MAX_FRAME_BYTES`] or could not be allocated; it is skipped.
    TooLarge(u64),
}

/// A message body, or the reason why there is none.
pub type Frame = Result<Vec<u8>, BadFrame>;

/// Reads frames from a stream.
pub struct FrameReader<R> {
    input: BufReader<R>,
    /// Bytes without a valid header were skipped and have been reported.
    is_resyncing: bool,
    /// Remaining bytes of an oversized body to skip.
    skip: u64,
}

impl<R: Read> FrameReader<R> {
    /// Reads frames from `input`.
    pub fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(READ_BUFFER, input),
            is_resyncing: false,
            skip: 0,
        }
    }

    /// Returns the underlying stream.
    pub fn stream(&self) -> &R {
        self.input.get_ref()
    }

    /// Returns whether part of the next frame is already buffered.
    pub fn has_more(&self) -> bool {
        !self.input.buffer().is_empty()
    }

    /// Reads the next frame. Returns `None` at the end of the stream, even inside a
    /// frame.
    ///
    /// # Errors
    /// I/O errors of the stream.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame>> {
        let skip = std::mem::take(&mut self.skip);
        io::copy(&mut self.input.by_ref().take(skip), &mut io::sink())?;
        let length = loop {
            match self.header()? {
                None => return Ok(None),
                Some(Ok(length)) => break length,
                Some(Err(_)) if self.is_resyncing => {}
                Some(Err(why)) => {
                    self.is_resyncing = true;
                    return Ok(Some(Err(BadFrame::Header(why))));
                }
            }
        };
        self.is_resyncing = false;
        // Reserves address space only, but may still fail.
        let mut body = Vec::new();
        let room = usize::try_from(length).unwrap_or(usize::MAX);
        if length > MAX_FRAME_BYTES as u64 || body.try_reserve_exact(room).is_err() {
            // Reported now; the body is skipped before the next frame is read.
            self.skip = length;
            return Ok(Some(Err(BadFrame::TooLarge(length))));
        }
        // Not `read_to_end`: it may pass the whole spare capacity to the stream, and some
        // standard libraries zero that on each read.
        while body.len() < room {
            let available = self.available()?;
            if available.is_empty() {
                return Ok(None);
            }
            let taken = available.len().min(room - body.len());
            body.extend_from_slice(&available[..taken]);
            self.input.consume(taken);
        }
        Ok(Some(Ok(body)))
    }

    /// Returns the buffered bytes, reading more if there are none. Empty at the end of
    /// the stream.
    fn available(&mut self) -> io::Result<&[u8]> {
        while self.input.buffer().is_empty() {
            match self.input.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.input.buffer())
    }

    /// Reads a header up to the blank line. Returns the body's length or an error. A
    /// `Content-Length` after other text counts.
    fn header(&mut self) -> io::Result<Option<Result<u64, String>>> {
        let mut outcome = Err("no Content-Length".to_owned());
        let mut seen = false;
        loop {
            let Some(line) = self.header_line()? else {
                return Ok(None);
            };
            let line = line.trim_ascii();
            if line.is_empty() {
                if seen {
                    return Ok(Some(outcome));
                }
                continue;
            }
            seen = true;
            match content_length(line) {
                ContentLength::Absent => {}
                ContentLength::Is(bytes) => outcome = Ok(bytes),
                ContentLength::Bad(text) => {
                    outcome = Err(format!("invalid Content-Length {text:?}"));
                }
            }
        }
    }

    /// Reads one header line without its newline. Only the end of an overlong line is
    /// kept.
    fn header_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        loop {
            let available = self.available()?;
            if available.is_empty() {
                return Ok(None);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            line.extend_from_slice(&available[..taken]);
            self.input.consume(taken);
            if line.len() > MAX_HEADER_BYTES {
                line.drain(..line.len() - MAX_HEADER_BYTES);
            }
            if end.is_some() {
                return Ok(Some(line));
            }
        }
    }
}

enum ContentLength {
    Absent,
    Bad(String),
    Is(u64),
}

/// Returns the value of the last `Content-Length` in a line. After an unframed body, the
/// next header starts in the middle of a line.
fn content_length(line: &[u8]) -> ContentLength {
    const NAME: &[u8] = b"content-length";
    let mut rest = line;
    let mut found = None;
    while let Some(at) = find_ignore_case(rest, NAME) {
        rest = &rest[at + NAME.len()..];
        if let Some(value) = rest.trim_ascii_start().strip_prefix(b":") {
            found = Some(value.trim_ascii());
        }
    }
    let Some(value) = found else {
        return ContentLength::Absent;
    };
    let text = String::from_utf8_lossy(value);
    text.parse().map_or_else(
        |_| ContentLength::Bad(text.chars().take(40).collect()),
        ContentLength::Is,
    )
}

fn find_ignore_case(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window.eq_ignore_ascii_case(needle))
}

/// Writes one frame without flushing.
///
/// # Errors
/// I/O errors of the stream.
pub fn write_frame(output: &mut impl Write, body: &[u8]) -> io::Result<()> {
    write!(output, "Content-Length: {}\r\n\r\n", body.len())?;
    output.write_all(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bytes: &[u8]) -> Vec<Frame> {
        let mut reader = FrameReader::new(bytes);
        let mut frames = Vec::new();
        while let Some(frame) = reader.next_frame().unwrap() {
            frames.push(frame);
        }
        frames
    }

    fn good(frames: &[Frame]) -> Vec<&str> {
        frames
            .iter()
            .filter_map(|frame| frame.as_ref().ok())
            .map(|body| std::str::from_utf8(body).unwrap())
            .collect()
    }

    #[test]
    fn headers_in_any_case_and_with_other_fields() {
        let bytes = b"content-length: 2\r\nContent-Type: whatever\r\nX-More: 1\r\n\r\n{}\
            Content-Length:3\n\nabc";
        assert_eq!(frames(bytes), [Ok(b"{}".to_vec()), Ok(b"abc".to_vec())]);
    }

    #[test]
    fn a_bad_header_costs_one_message() {
        for bad in [
            "Content-Length: x\r\n\r\n{\"a\":1}",
            "Content-Length: -5\r\n\r\n{}",
            "Content-Length: 99999999999999999999999\r\n\r\n",
            "Nonsense\r\n\r\n",
            "{\"jsonrpc\":\"2.0\"}\r\n\r\n{\"x\":1}\n\nmore rubbish\n\n",
        ] {
            let bytes = format!("{bad}Content-Length: 2\r\n\r\n[]");
            let frames = frames(bytes.as_bytes());
            assert_eq!(good(&frames), ["[]"], "{bad:?}");
            assert_eq!(frames.len(), 2, "{bad:?}: {frames:?}");
        }
    }

    #[test]
    fn a_huge_header_is_not_kept() {
        let mut bytes = vec![b'a'; 3 * 1024 * 1024];
        bytes.extend_from_slice(b"\r\n\r\nContent-Length: 2\r\n\r\n[]");
        assert_eq!(good(&frames(&bytes)), ["[]"]);
    }

    #[test]
    fn an_oversized_body_is_reported_before_it_is_skipped() {
        let mut reader = FrameReader::new(&b"Content-Length: 99999999999\r\n\r\nxx"[..]);
        let first = reader.next_frame().unwrap();
        assert_eq!(first, Some(Err(BadFrame::TooLarge(99_999_999_999))));
        assert_eq!(reader.next_frame().unwrap(), None);
    }

    #[test]
    fn a_header_in_small_pieces_after_garbage_is_found() {
        struct Slowly<'a>(&'a [u8]);
        impl Read for Slowly<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let Some((first, rest)) = self.0.split_first() else {
                    return Ok(0);
                };
                buffer[0] = *first;
                self.0 = rest;
                Ok(1)
            }
        }
        let bytes = b"rubbish\r\n\r\nmore {}Content-Length: 2\r\n\r\n[]";
        let mut reader = FrameReader::new(Slowly(bytes));
        assert!(matches!(
            reader.next_frame().unwrap(),
            Some(Err(BadFrame::Header(_)))
        ));
        assert_eq!(reader.next_frame().unwrap(), Some(Ok(b"[]".to_vec())));
    }

    /// Some streams fill the whole buffer they are given.
    #[test]
    fn a_long_body_is_read_in_pieces() {
        struct Asked<'a>(&'a [u8], usize);
        impl Read for Asked<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.1 = self.1.max(buffer.len());
                self.0.read(buffer)
            }
        }
        let body = vec![b' '; 16 * READ_BUFFER];
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &body).unwrap();
        let mut stream = Asked(&bytes, 0);
        let frame = FrameReader::new(&mut stream).next_frame().unwrap();
        assert!(frame == Some(Ok(body)));
        assert_eq!(stream.1, READ_BUFFER);
    }

    #[test]
    fn an_end_inside_a_frame_is_the_end() {
        assert!(frames(b"Content-Length: 10\r\n\r\n{}").is_empty());
        assert!(frames(b"Content-Le").is_empty());
    }

    #[test]
    fn short_writes_are_continued() {
        struct Slowly(Vec<u8>, bool);
        impl Write for Slowly {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.1 = !self.1;
                if self.1 {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                let taken = bytes.len().min(3);
                self.0.extend_from_slice(&bytes[..taken]);
                Ok(taken)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let body = b"abcdefg".repeat(3000);
        let mut stream = Slowly(Vec::new(), false);
        write_frame(&mut stream, &body).unwrap();
        assert_eq!(frames(&stream.0), [Ok(body)]);
    }

    #[test]
    fn zero_length_is_an_empty_body() {
        assert_eq!(
            frames(b"Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n1"),
            [Ok(Vec::new()), Ok(b"1".to_vec())]
        );
    }
}
