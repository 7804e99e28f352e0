//! JSON that is sent, in pieces.
//!
//! Results may be megabytes, most of which stood in the request. What did is not
//! copied: the message it came in is kept until the answer is written.

use std::{
    borrow::Cow,
    io::{self, Write},
    mem,
    ops::Range,
    sync::Arc,
};

use serde::Serialize;

use crate::message::Received;

/// Shorter runs are copied, in bytes: what keeping a place costs.
const KEPT_BYTES: usize = 512;
/// Nothing is kept of a message of which a smaller part is sent: all of it stays in
/// memory until then.
const KEPT_PART: usize = 2;

/// One JSON value as text.
#[derive(Default)]
pub struct Json(Vec<Piece>);

enum Piece {
    Own(Vec<u8>),
    Of(Arc<Received>, Range<usize>),
}

impl Json {
    /// A value, written.
    ///
    /// # Errors
    /// What writing it fails with: a map whose keys are no text.
    pub fn of(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::to_vec(value).map(|text| Self(vec![Piece::Own(text)]))
    }

    /// The same of a value that borrows from a message.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn within(message: &Arc<Received>, value: &impl Serialize) -> serde_json::Result<Self> {
        let mut writer = Writer {
            message,
            pieces: Vec::new(),
            own: Vec::new(),
        };
        serde_json::to_writer(&mut writer, value)?;
        writer.end_own();
        let json = Self(writer.pieces);
        let kept: usize = json.0.iter().map(Piece::kept).sum();
        if kept < message.text().len() / KEPT_PART {
            return Ok(Self(vec![Piece::Own(json.concat())]));
        }
        Ok(json)
    }

    /// A value from its text in pieces, which only together are JSON.
    pub fn joined(pieces: Vec<Vec<u8>>) -> Self {
        Self(pieces.into_iter().map(Piece::Own).collect())
    }

    /// Its pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.0.iter().map(|piece| match piece {
            Piece::Own(text) => text,
            Piece::Of(message, range) => &message.text().as_bytes()[range.clone()],
        })
    }

    /// Its whole text.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.0[..] {
            [Piece::Own(text)] => String::from_utf8_lossy(text),
            _ => into_text(self.concat()).into(),
        }
    }

    /// Its whole text, and nothing else of it.
    pub fn into_text(mut self) -> String {
        into_text(match &mut self.0[..] {
            [Piece::Own(text)] => mem::take(text),
            _ => self.concat(),
        })
    }

    fn concat(&self) -> Vec<u8> {
        self.pieces().collect::<Vec<_>>().concat()
    }
}

impl Piece {
    /// So many bytes of it are a message's.
    fn kept(&self) -> usize {
        match self {
            Self::Own(_) => 0,
            Self::Of(_, range) => range.len(),
        }
    }
}

/// It was written by `serde_json`, or from JSON.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Takes in what is written: long runs of the message by their place.
struct Writer<'a> {
    message: &'a Arc<Received>,
    pieces: Vec<Piece>,
    own: Vec<u8>,
}

impl Writer<'_> {
    fn end_own(&mut self) {
        if !self.own.is_empty() {
            self.pieces.push(Piece::Own(mem::take(&mut self.own)));
        }
    }
}

impl Write for Writer<'_> {
    fn write(&mut self, run: &[u8]) -> io::Result<usize> {
        let place = self.message.place_of(run);
        match place.filter(|_| run.len() >= KEPT_BYTES) {
            Some(place) => {
                self.end_own();
                self.pieces.push(Piece::Of(self.message.clone(), place));
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

    fn message(long: &str) -> Arc<Received> {
        let text = format!(
            r#"{{"id":1,"method":"sightline/truncateHistory","params":{{"messages":["{long}", "short"]}}}}"#
        );
        Arc::new(Received::read(text).map_err(|(_, error)| error).unwrap())
    }

    #[test]
    fn long_runs_of_the_message_are_not_copied() {
        let long = "x".repeat(KEPT_BYTES);
        let message = message(&long);
        let params = message.envelope().params.as_ref().unwrap();
        let messages: &[&RawValue] = params.messages().unwrap();
        let little = Json::within(&message, &&messages[1..]).unwrap();
        assert_eq!(little.text(), r#"["short"]"#);
        let json = Json::within(&message, &(messages, "more", &long)).unwrap();

        let expected = format!(r#"[["{long}","short"],"more","{long}"]"#);
        assert_eq!(json.text(), expected);
        let pieces: Vec<&[u8]> = json.pieces().collect();
        assert_eq!(pieces.concat(), expected.as_bytes());
        let kept = pieces
            .iter()
            .filter(|piece| message.place_of(piece).is_some());
        let kept: Vec<usize> = kept.map(|piece| piece.len()).collect();
        assert_eq!(kept, [KEPT_BYTES + 2]);
        assert_eq!(json.into_text(), expected);
    }

    #[test]
    fn a_message_of_which_little_is_sent_is_not_kept() {
        let long = "x".repeat(KEPT_BYTES);
        let text = format!(
            r#"{{"method":"sightline/truncateHistory","params":{{"messages":["{long}","{long}","{long}","{long}"]}}}}"#
        );
        let message = Arc::new(Received::read(text).map_err(|(_, error)| error).unwrap());
        let params = message.envelope().params.as_ref().unwrap();
        let messages = params.messages().unwrap();
        let holders = |count: usize| {
            let json = Json::within(&message, &&messages[..count]).unwrap();
            assert_eq!(json.text().len(), count * (KEPT_BYTES + 3) + 1);
            Arc::strong_count(&message)
        };
        assert_eq!([holders(1), holders(3)], [1, 4]);
    }

    #[test]
    fn one_piece_is_one_text() {
        assert_eq!(Json::of(&["ü"]).unwrap().text(), r#"["ü"]"#);
        let parts = [&b"["[..], b"1", b"]"].map(<[u8]>::to_vec);
        assert_eq!(Json::joined(parts.into()).text(), "[1]");
        assert_eq!(Json::default().text(), "");
        assert_eq!(Json::of(&[1]).unwrap().into_text(), "[1]");
    }
}
