//! A JSON result in pieces.
//!
//! A result may be megabytes, most of them copied from the request. Such pieces are kept
//! as ranges of the request's message, which stays alive until the response is written.

use std::{
    borrow::Cow,
    io::{self, Write},
    mem,
    ops::Range,
    sync::Arc,
};

use serde::Serialize;

use crate::raw_message::RawMessage;

/// Shorter pieces are copied, in bytes: about the cost of keeping a range.
const MIN_BORROWED_BYTES: usize = 512;
/// Inverse of the smallest part of a message worth keeping it in memory for. If less than
/// half of it is used, the pieces are copied.
const MIN_BORROWED_FRACTION: usize = 2;

/// A JSON value as text.
#[derive(Default)]
pub struct ResponseBody(Vec<Piece>);

enum Piece {
    Owned(Vec<u8>),
    Borrowed(Arc<RawMessage>, Range<usize>),
}

impl ResponseBody {
    /// Serializes a value.
    ///
    /// # Errors
    /// Serialization errors: a map whose keys are not strings.
    pub fn serialize(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::to_vec(value).map(|text| Self(vec![Piece::Owned(text)]))
    }

    /// Serializes a value that borrows from a message.
    ///
    /// # Errors
    /// As [`Self::serialize`].
    pub fn serialize_borrowing(
        message: &Arc<RawMessage>,
        value: &impl Serialize,
    ) -> serde_json::Result<Self> {
        let mut writer = Writer {
            message,
            pieces: Vec::new(),
            own: Vec::new(),
        };
        serde_json::to_writer(&mut writer, value)?;
        writer.end_own();
        let json = Self(writer.pieces);
        let borrowed_bytes: usize = json.0.iter().map(Piece::borrowed_bytes).sum();
        if borrowed_bytes < message.text().len() / MIN_BORROWED_FRACTION {
            return Ok(Self(vec![Piece::Owned(json.concat())]));
        }
        Ok(json)
    }

    /// Builds a value from pieces that form valid JSON together.
    pub fn from_pieces(pieces: Vec<Vec<u8>>) -> Self {
        Self(pieces.into_iter().map(Piece::Owned).collect())
    }

    /// Returns the pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.0.iter().map(|piece| match piece {
            Piece::Owned(text) => text,
            Piece::Borrowed(message, range) => &message.text().as_bytes()[range.clone()],
        })
    }

    /// Returns the whole text.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.0[..] {
            [Piece::Owned(text)] => String::from_utf8_lossy(text),
            _ => into_text(self.concat()).into(),
        }
    }

    /// Converts into the whole text.
    pub fn into_text(mut self) -> String {
        into_text(match &mut self.0[..] {
            [Piece::Owned(text)] => mem::take(text),
            _ => self.concat(),
        })
    }

    fn concat(&self) -> Vec<u8> {
        self.pieces().collect::<Vec<_>>().concat()
    }
}

impl Piece {
    /// Number of bytes that belong to the message.
    fn borrowed_bytes(&self) -> usize {
        match self {
            Self::Owned(_) => 0,
            Self::Borrowed(_, range) => range.len(),
        }
    }
}

/// The bytes are UTF-8: they come from `serde_json` or from JSON text.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Collects serialized bytes, keeping long slices of the message as ranges.
struct Writer<'a> {
    message: &'a Arc<RawMessage>,
    pieces: Vec<Piece>,
    own: Vec<u8>,
}

impl Writer<'_> {
    fn end_own(&mut self) {
        if !self.own.is_empty() {
            self.pieces.push(Piece::Owned(mem::take(&mut self.own)));
        }
    }
}

impl Write for Writer<'_> {
    fn write(&mut self, run: &[u8]) -> io::Result<usize> {
        let place = self.message.range_of(run);
        match place.filter(|_| run.len() >= MIN_BORROWED_BYTES) {
            Some(place) => {
                self.end_own();
                self.pieces
                    .push(Piece::Borrowed(self.message.clone(), place));
            }
            None => self.own.extend_from_slice(run),
        }
        Ok(run.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn message(long: &str) -> Arc<RawMessage> {
        let text = format!(
            r#"{{"id":1,"method":"sightline/truncateHistory","params":{{"messages":["{long}", "short"]}}}}"#
        );
        Arc::new(RawMessage::read(text).map_err(|(_, error)| error).unwrap())
    }

    #[test]
    fn long_parts_of_the_message_are_not_copied() {
        let long = "x".repeat(MIN_BORROWED_BYTES);
        let message = message(&long);
        let params = message.envelope().params.as_ref().unwrap();
        let messages: &[&RawValue] = params.messages().unwrap();
        let little = ResponseBody::serialize_borrowing(&message, &&messages[1..]).unwrap();
        assert_eq!(little.text(), r#"["short"]"#);
        let json = ResponseBody::serialize_borrowing(&message, &(messages, "more", &long)).unwrap();

        let expected = format!(r#"[["{long}","short"],"more","{long}"]"#);
        assert_eq!(json.text(), expected);
        let pieces: Vec<&[u8]> = json.pieces().collect();
        assert_eq!(pieces.concat(), expected.as_bytes());
        let borrowed_bytes = pieces
            .iter()
            .filter(|piece| message.range_of(piece).is_some());
        let borrowed_bytes: Vec<usize> = borrowed_bytes.map(|piece| piece.len()).collect();
        assert_eq!(borrowed_bytes, [MIN_BORROWED_BYTES + 2]);
        assert_eq!(json.into_text(), expected);
    }

    #[test]
    fn a_message_is_not_kept_for_a_small_part() {
        let long = "x".repeat(MIN_BORROWED_BYTES);
        let text = format!(
            r#"{{"method":"sightline/truncateHistory","params":{{"messages":["{long}","{long}","{long}","{long}"]}}}}"#
        );
        let message = Arc::new(RawMessage::read(text).map_err(|(_, error)| error).unwrap());
        let params = message.envelope().params.as_ref().unwrap();
        let messages = params.messages().unwrap();
        let holders = |count: usize| {
            let json = ResponseBody::serialize_borrowing(&message, &&messages[..count]).unwrap();
            assert_eq!(json.text().len(), count * (MIN_BORROWED_BYTES + 3) + 1);
            Arc::strong_count(&message)
        };
        assert_eq!([holders(1), holders(3)], [1, 4]);
    }

    #[test]
    fn one_piece_is_one_text() {
        assert_eq!(ResponseBody::serialize(&["ü"]).unwrap().text(), r#"["ü"]"#);
        let parts = [&b"["[..], b"1", b"]"].map(<[u8]>::to_vec);
        assert_eq!(ResponseBody::from_pieces(parts.into()).text(), "[1]");
        assert_eq!(ResponseBody::default().text(), "");
        assert_eq!(ResponseBody::serialize(&[1]).unwrap().into_text(), "[1]");
    }
}
