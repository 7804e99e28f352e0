//! Reading a file as an agent may: access first, the editor's text before the
//! disk, lines, limits, encodings.
//!
//! The disk is read in pieces, so memory is bounded by what is returned and
//! not by the file. Most files are UTF-8 and are read once; one that turns out
//! not to be is read again, once to recognise its encoding and once to decode.

use std::{
    fs::File,
    io::{self, Read, Seek},
    path::Path,
    time::SystemTime,
};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use ropey::Rope;
use sha2::{Digest, Sha256};
use sightline_protocol::{error::ErrorKind, files::TextSource};

use crate::{
    access::{AccessView, OpenedFile},
    cancel::Cancel,
    error::Error,
    limits,
    path::{AbsPath, Location},
    tracker::ContentHash,
};

/// Bytes read at a time.
const PIECE: usize = 64 * 1024;
/// A NUL within so many bytes makes a file binary, as git has it.
const HEAD: usize = 8 * 1024;

/// What to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// The first line wanted, from 1.
    pub start_line: Option<u64>,
    /// The last line wanted, inclusive.
    pub end_line: Option<u64>,
    /// Bytes of text at most; lowered to [`limits::MAX_READ_BYTES`].
    pub max_bytes: Option<u64>,
    /// Also read what is below no workspace root.
    pub allow_outside: bool,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The lines asked for, with their endings.
    pub text: String,
    /// Where they come from.
    pub source: TextSource,
    /// Lines of the whole file; a last line without an ending counts.
    pub total_lines: u64,
    /// The limit of bytes cut the text.
    pub truncated: bool,
    /// What the bytes were decoded as, when it is not UTF-8.
    pub encoding: Option<&'static str>,
    /// Of the whole: of the raw bytes on disk, or of the editor's text in UTF-8.
    pub content_hash: ContentHash,
}

/// Does the text an editor opened `path` with at `opened` differ from the file?
/// Byte order mark, line endings and the last one do not count: editors keep
/// those apart. False when the file was changed or deleted after that, is no
/// text in UTF-8 or is too large to tell.
pub fn differs_from_disk(
    view: &AccessView,
    text: &Rope,
    path: &AbsPath,
    opened: SystemTime,
) -> bool {
    let file = match view.open_anywhere(path) {
        Ok(opened) => opened,
        Err(error) => {
            let is_missing = error.kind == ErrorKind::NotFound;
            let path = path.as_path();
            return is_missing && text.len_bytes() > 1 && !may_be_gone_since(path, opened);
        }
    };
    let modified = file.metadata().modified();
    if modified.is_ok_and(|modified| modified > opened) {
        return false;
    }
    let Some(disk) = text_of(&file) else {
        return false;
    };
    let plain = |text: &str| unified(text).trim_end_matches('\n').to_owned();
    plain(&disk) != plain(&text.to_string())
}

/// May a file that is missing have been there at `then`? Its folder, or what is
/// left above that, was changed since.
fn may_be_gone_since(path: &Path, then: SystemTime) -> bool {
    let mut folders = path.ancestors().skip(1);
    let nearest = folders.find_map(|folder| std::fs::metadata(folder).ok());
    nearest
        .and_then(|metadata| metadata.modified().ok())
        .is_some_and(|modified| modified > then)
}

/// Is an editor's text what the file `path` holds? Byte order mark, line endings
/// and whether the last line has one do not count. False when that can't be told.
pub fn is_on_disk(view: &AccessView, text: &Rope, path: &AbsPath) -> bool {
    let opened = view.open_anywhere(path).ok();
    let disk = opened.and_then(|opened| text_of(&opened));
    disk.is_some_and(|disk| {
        let (disk, text) = (unified(&disk), unified(&text.to_string()));
        disk.strip_suffix('\n').unwrap_or(&disk) == text.strip_suffix('\n').unwrap_or(&text)
    })
}

/// The text of a file in UTF-8 that is not too large.
fn text_of(opened: &OpenedFile) -> Option<String> {
    if opened.metadata().len() > limits::MAX_READ_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    opened
        .file()
        .take(limits::MAX_READ_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    String::from_utf8(bytes).ok()
}

/// Without a byte order mark, lines ended the same way.
fn unified(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.replace("\r\n", "\n")
}

/// Reads `location`. `buffer` is the editor's text where that counts instead of
/// the disk: unsaved changes, or an open document without a file.
///
/// # Errors
/// `accessDenied`, `notFound`, `invalidParams` for lines that make no sense,
/// `unsupported` for what is not text, `tooLarge`, `cancelled`.
pub fn read_file(
    view: &AccessView,
    location: &Location,
    buffer: Option<&Rope>,
    options: &ReadOptions,
    cancel: &Cancel,
) -> Result<Content, Error> {
    view.require(location, options.allow_outside)?;
    let window = Window::new(options)?;
    if let Some(buffer) = buffer {
        return read_buffer(buffer, window, cancel);
    }
    let opened = view.open_for_read(location, options.allow_outside)?;
    let size = opened.metadata().len();
    let name = view.roots().result_path(location).0;
    let source = Source {
        file: opened.into_file(),
        name,
        cancel,
    };
    if size > limits::MAX_READ_FILE_BYTES {
        return Err(source.too_large());
    }
    read_disk(source, window)
}

fn read_buffer(buffer: &Rope, mut window: Window, cancel: &Cancel) -> Result<Content, Error> {
    let mut hash = Sha256::new();
    for piece in buffer.chunks() {
        cancel.check()?;
        hash.update(piece);
        window.feed(piece);
    }
    Ok(window.into_content(TextSource::Buffer, UTF_8, hash))
}

fn read_disk(mut source: Source<'_>, window: Window) -> Result<Content, Error> {
    let head = source.head()?;
    let marked = Encoding::for_bom(&head).map(|(encoding, _)| encoding);
    let is_utf16 = marked == Some(UTF_16LE) || marked == Some(UTF_16BE);
    if !is_utf16 && head.contains(&0) {
        let why = "is binary; only text can be read";
        return Err(source.refuse(ErrorKind::Unsupported, why));
    }
    let encoding = match marked {
        Some(encoding) => encoding,
        None => {
            // Anything but UTF-8 is a guess without a mark, so be strict first.
            let (content, is_valid) = source.decode(UTF_8, true, window.clone())?;
            if is_valid {
                return Ok(content);
            }
            source.recognise()?
        }
    };
    let (content, _) = source.decode(encoding, false, window)?;
    Ok(content)
}

/// The file on disk.
struct Source<'a> {
    file: File,
    /// How messages name it.
    name: String,
    cancel: &'a Cancel,
}

impl Source<'_> {
    /// The first bytes.
    fn head(&mut self) -> Result<Vec<u8>, Error> {
        let mut head = Vec::with_capacity(HEAD);
        let read = (&self.file).take(HEAD as u64).read_to_end(&mut head);
        read.map_err(|error| self.unreadable(&error))?;
        Ok(head)
    }

    /// Gives the whole file to `each`, piece by piece and at the end an empty
    /// one, until it says `false`.
    fn for_each_piece(&mut self, mut each: impl FnMut(&[u8]) -> bool) -> Result<(), Error> {
        self.file
            .rewind()
            .map_err(|error| self.unreadable(&error))?;
        let mut piece = vec![0; PIECE];
        let mut total = 0;
        loop {
            self.cancel.check()?;
            let read = match self.file.read(&mut piece) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.unreadable(&error)),
            };
            // The file may grow while we read it.
            total += read as u64;
            if total > limits::MAX_READ_FILE_BYTES {
                return Err(self.too_large());
            }
            if !each(&piece[..read]) || read == 0 {
                return Ok(());
            }
        }
    }

    /// Decodes the file, and says whether all its bytes are of `encoding`; with
    /// `strict` it stops at the first that are not.
    fn decode(
        &mut self,
        encoding: &'static Encoding,
        strict: bool,
        mut window: Window,
    ) -> Result<(Content, bool), Error> {
        let mut decoder = encoding.new_decoder_with_bom_removal();
        let mut hash = Sha256::new();
        let mut is_valid = true;
        self.for_each_piece(|bytes| {
            hash.update(bytes);
            is_valid &= feed_decoded(&mut decoder, bytes, &mut window);
            is_valid || !strict
        })?;
        let content = window.into_content(TextSource::Disk, encoding, hash);
        Ok((content, is_valid))
    }

    /// Guesses the encoding of text that is not UTF-8.
    fn recognise(&mut self) -> Result<&'static Encoding, Error> {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        self.for_each_piece(|bytes| {
            detector.feed(bytes, bytes.is_empty());
            true
        })?;
        Ok(detector.guess(None, Utf8Detection::Deny))
    }

    fn refuse(&self, kind: ErrorKind, why: &str) -> Error {
        Error::new(kind, format!("{} {why}", self.name)).with_path(self.name.clone())
    }

    fn unreadable(&self, error: &io::Error) -> Error {
        self.refuse(ErrorKind::Unsupported, &format!("cannot be read: {error}"))
    }

    fn too_large(&self) -> Error {
        self.refuse(
            ErrorKind::TooLarge,
            &format!(
                "has more than {} bytes, the most that is read",
                limits::MAX_READ_FILE_BYTES
            ),
        )
    }
}

/// Decodes one piece into the window; an empty piece is the end. `false` when
/// bytes had to be replaced.
fn feed_decoded(decoder: &mut Decoder, mut bytes: &[u8], window: &mut Window) -> bool {
    let last = bytes.is_empty();
    let mut text = String::with_capacity(PIECE);
    let mut valid = true;
    loop {
        let (result, read, replaced) = decoder.decode_to_string(bytes, &mut text, last);
        window.feed(&text);
        text.clear();
        valid &= !replaced;
        bytes = &bytes[read..];
        if result == encoding_rs::CoderResult::InputEmpty {
            return valid;
        }
    }
}

/// Keeps the wanted lines of a text that comes in pieces, and counts all.
#[derive(Clone)]
struct Window {
    first: u64,
    last: u64,
    /// Bytes that may still be kept.
    room: usize,
    text: String,
    truncated: bool,
    /// Number of the current line.
    line: u64,
    /// The current line has text.
    is_open: bool,
    /// The piece before ended in `\r`, which a `\n` may complete.
    after_return: bool,
}

impl Window {
    fn new(options: &ReadOptions) -> Result<Self, Error> {
        let first = options.start_line.unwrap_or(1);
        let last = options.end_line.unwrap_or(u64::MAX);
        if first == 0 {
            return Err(Error::invalid("startLine 0: lines are counted from 1"));
        }
        if first > last {
            return Err(Error::invalid(format!(
                "startLine {first} is after endLine {last}"
            )));
        }
        let room = options
            .max_bytes
            .unwrap_or(limits::DEFAULT_READ_BYTES)
            .min(limits::MAX_READ_BYTES);
        Ok(Self {
            first,
            last,
            room: usize::try_from(room).unwrap_or(usize::MAX),
            text: String::new(),
            truncated: false,
            line: 1,
            is_open: false,
            after_return: false,
        })
    }

    fn feed(&mut self, piece: &str) {
        let mut rest = piece;
        if self.after_return && !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('\n') {
                self.keep("\n");
                rest = after;
            }
            self.end_line();
        }
        while !rest.is_empty() {
            let bytes = rest.as_bytes();
            let Some(at) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.keep(rest);
                return;
            };
            let end = match (bytes[at], bytes.get(at + 1)) {
                (b'\r', None) => {
                    self.keep(rest);
                    self.after_return = true;
                    return;
                }
                (b'\r', Some(b'\n')) => at + 2,
                _ => at + 1,
            };
            let (line, after) = rest.split_at(end);
            self.keep(line);
            self.end_line();
            rest = after;
        }
    }

    fn end_line(&mut self) {
        self.line += 1;
        self.is_open = false;
        self.after_return = false;
    }

    /// A part of the current line.
    fn keep(&mut self, part: &str) {
        self.is_open = true;
        if self.truncated || self.line < self.first || self.line > self.last {
            return;
        }
        let end = part.floor_char_boundary(self.room);
        self.text.push_str(&part[..end]);
        self.room -= end;
        self.truncated = end < part.len();
    }

    fn into_content(
        self,
        source: TextSource,
        encoding: &'static Encoding,
        hash: Sha256,
    ) -> Content {
        Content {
            text: self.text,
            source,
            total_lines: self.line - u64::from(!self.is_open),
            truncated: self.truncated,
            encoding: (encoding != UTF_8).then(|| encoding.name()),
            content_hash: ContentHash::from(<[u8; 32]>::from(hash.finalize())),
        }
    }
}
