//! Splits a log into lines of limited length without loading the file.

use std::io::{self, BufRead};

use memchr::memchr;

use sightline_base::{cancel::Cancel, error::Error, limits::MAX_ENTRY_BYTES};

/// Calls `each` for each line of `reader` and for a partial last line, with whether the line has its
/// line break, and its length. A partial line is being written, or was when the writer was killed.
/// Lines are truncated to [`MAX_ENTRY_BYTES`].
///
/// # Errors
/// `cancelled`.
pub(crate) fn for_each_line(
    mut reader: impl BufRead,
    cancel: &Cancel,
    mut each: impl FnMut(&[u8], bool, u64),
) -> Result<io::Result<()>, Error> {
    let mut buffered: Vec<u8> = Vec::new();
    let mut length = 0_u64;
    loop {
        cancel.check()?;
        let buffer = match reader.fill_buf() {
            Ok([]) => break,
            Ok(buffer) => buffer,
            Err(error) => return Ok(Err(error)),
        };
        let (part, has_end) = match memchr(b'\n', buffer) {
            Some(end) => (buffer.get(..end).unwrap_or_default(), true),
            None => (buffer, false),
        };
        let taken = part.len() + usize::from(has_end);
        length += taken as u64;
        if has_end && buffered.is_empty() {
            each(part, true, length);
        } else {
            let room = MAX_ENTRY_BYTES.saturating_sub(buffered.len());
            buffered.extend_from_slice(part.get(..room).unwrap_or(part));
            if has_end {
                each(&buffered, true, length);
            }
        }
        if has_end {
            buffered.clear();
            length = 0;
        }
        reader.consume(taken);
    }
    if length > 0 {
        each(&buffered, false, length);
    }
    Ok(Ok(()))
}

/// Removes the whitespace and NUL bytes that a power failure can leave around a line.
pub(crate) fn trimmed(line: &[u8]) -> &[u8] {
    let is_padding = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
    let start = line.iter().position(|byte| !is_padding(byte));
    let end = line.iter().rposition(|byte| !is_padding(byte));
    match (start, end) {
        (Some(start), Some(end)) => line.get(start..=end).unwrap_or_default(),
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &[u8], buffer: usize) -> Vec<(bool, Vec<u8>, u64)> {
        let mut pieces = Vec::new();
        let reader = io::BufReader::with_capacity(buffer, text);
        for_each_line(reader, &Cancel::default(), |line, is_whole, length| {
            pieces.push((is_whole, line.to_vec(), length));
        })
        .unwrap()
        .unwrap();
        pieces
    }

    #[test]
    fn complete_and_partial_lines() {
        for buffer in [1, 2, 3, 100] {
            assert_eq!(
                pieces(b"ab\n\ncde\nf", buffer),
                [
                    (true, b"ab".to_vec(), 3),
                    (true, b"".to_vec(), 1),
                    (true, b"cde".to_vec(), 4),
                    (false, b"f".to_vec(), 1),
                ]
            );
            assert_eq!(pieces(b"a\n", buffer).len(), 1);
            assert_eq!(pieces(b"", buffer).len(), 0);
        }
    }

    #[test]
    fn an_overlong_line_is_truncated() {
        let long = io::Read::take(io::repeat(b'x'), MAX_ENTRY_BYTES as u64 * 2);
        let reader = io::BufReader::new(io::Read::chain(long, &b"\nab\n"[..]));
        let mut lengths = Vec::new();
        for_each_line(reader, &Cancel::default(), |line, is_whole, length| {
            assert!(is_whole);
            lengths.push((line.len(), length));
        })
        .unwrap()
        .unwrap();
        let bound = MAX_ENTRY_BYTES;
        assert_eq!(lengths, [(bound, bound as u64 * 2 + 1), (2, 3)]);
    }

    #[test]
    fn padding_is_trimmed() {
        assert_eq!(trimmed(b"\0\0 {} \r"), b"{}");
        assert_eq!(trimmed(b"\0\0"), b"");
    }
}
