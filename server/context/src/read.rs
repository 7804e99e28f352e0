//! Reads a file for an agent: access check, editor text before disk, line ranges, limits,
//! encodings.
//!
//! The disk is read in chunks, so memory is bounded by the returned text, not by the file. A UTF-8
//! file is read once. Any other text file is read two more times: to detect its encoding and to
//! decode it.

use std::{
    io::{self, Read, Seek},
    path::Path,
    time::SystemTime,
};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use ropey::Rope;
use sha2::{Digest, Sha256};
use sightline_protocol::{error::ErrorKind, files::TextSource};

use crate::tracker::ContentHash;
use sightline_access::{AccessView, Content, OpenedFile};
use sightline_base::{
    cancel::Cancel,
    error::Error,
    limits,
    path::{AbsPath, Location},
};

/// Read buffer size, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// Bytes searched for a NUL, which makes a file binary. Same as git.
const BINARY_CHECK_BYTES: usize = 8 * 1024;

/// Selects the part of a file to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// First line, from 1.
    pub start_line: Option<u64>,
    /// Last line, inclusive.
    pub end_line: Option<u64>,
    /// Maximum text size in bytes, capped at [`limits::MAX_READ_BYTES`].
    pub max_bytes: Option<u64>,
    /// Also read files outside every workspace root.
    pub allow_outside: bool,
}

/// Text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    /// The selected lines, with their endings.
    pub text: String,
    /// Whether the text comes from the editor or the disk.
    pub source: TextSource,
    /// Lines of the whole file, including a last line without an ending.
    pub total_lines: u64,
    /// Whether the size limit cut the text.
    pub truncated: bool,
    /// The detected encoding, if not UTF-8.
    pub encoding: Option<&'static str>,
    /// Hash of the whole file: of the raw bytes on disk, or of the editor's text in UTF-8.
    pub content_hash: ContentHash,
}

/// Returns whether the text with which the editor opened `path` at `opened` differs from the file.
/// Ignores a byte order mark, line endings and trailing line breaks, which editors keep separately.
/// Returns false when the file was changed or deleted after that, is not UTF-8, or is too large.
pub fn differs_from_disk(
    view: &AccessView,
    text: &Rope,
    path: &AbsPath,
    opened: SystemTime,
) -> bool {
    let file = match view.open_anywhere(path) {
        Ok(opened) => opened,
        Err(error) => {
            let is_missing = error.kind() == ErrorKind::NotFound;
            let path = path.as_path();
            return is_missing && text.len_bytes() > 1 && !may_have_existed_at(path, opened);
        }
    };
    if file.info().stamp.modified() > opened {
        return false;
    }
    let Some(disk) = text_of(file) else {
        return false;
    };
    let plain = |text: &str| normalize_newlines(text).trim_end_matches('\n').to_owned();
    plain(&disk) != plain(&text.to_string())
}

/// Returns whether the file at `path` changed after `opened` and holds another text than `saved`, which the editor
/// opened then or saved later. Returns false when the file cannot be read.
pub fn changed_since(view: &AccessView, saved: &Rope, path: &AbsPath, opened: SystemTime) -> bool {
    let Ok(file) = view.open_anywhere(path) else {
        return false;
    };
    let is_newer = file.info().stamp.changed() > opened;
    is_newer && text_of(file).is_some_and(|disk| !is_same_text(&disk, saved))
}

/// Returns whether a missing file may have existed at `then`: its nearest existing ancestor was
/// modified since.
fn may_have_existed_at(path: &Path, then: SystemTime) -> bool {
    let mut folders = path.ancestors().skip(1);
    let nearest = folders.find_map(|folder| std::fs::metadata(folder).ok());
    nearest
        .and_then(|metadata| metadata.modified().ok())
        .is_some_and(|modified| modified > then)
}

/// Returns whether the file at `path` holds the editor's text. Ignores a byte order mark, line
/// endings and whether the last line has one. Returns false when the file cannot be read.
pub fn is_on_disk(view: &AccessView, text: &Rope, path: &AbsPath) -> bool {
    let opened = view.open_anywhere(path).ok();
    let disk = opened.and_then(text_of);
    disk.is_some_and(|disk| is_same_text(&disk, text))
}

fn is_same_text(disk: &str, text: &Rope) -> bool {
    let (disk, text) = (
        normalize_newlines(disk),
        normalize_newlines(&text.to_string()),
    );
    disk.strip_suffix('\n').unwrap_or(&disk) == text.strip_suffix('\n').unwrap_or(&text)
}

/// Returns the text of a UTF-8 file within the size limit.
fn text_of(opened: OpenedFile) -> Option<String> {
    if opened.info().stamp.size > limits::MAX_READ_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    opened
        .take(limits::MAX_READ_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    String::from_utf8(bytes).ok()
}

fn normalize_newlines(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.replace("\r\n", "\n")
}

/// Reads `location`. `buffer` is the editor's text, if it takes precedence over the disk: unsaved
/// changes, or a document without a file.
///
/// # Errors
/// `accessDenied`, `notFound`, `invalidParams` for an invalid line range, `unsupported` for a file
/// that is not text, `tooLarge`, `cancelled`.
pub fn read_file(
    view: &AccessView,
    location: &Location,
    buffer: Option<&Rope>,
    options: &ReadOptions,
    cancel: &Cancel,
) -> Result<FileText, Error> {
    let content = buffer.map_or(Content::OnDisk, Content::Text);
    view.require_content(location, content, options.allow_outside)?;
    let window = LineWindow::new(options)?;
    if let Some(buffer) = buffer {
        return read_buffer(buffer, window, cancel);
    }
    let opened = view.open_for_read(location, options.allow_outside)?;
    let size = opened.info().stamp.size;
    let name = view.roots().result_path(location).0;
    let source = DiskReader {
        file: opened,
        name,
        cancel,
    };
    if size > limits::MAX_READ_FILE_BYTES {
        return Err(source.too_large());
    }
    read_disk(source, window)
}

fn read_buffer(buffer: &Rope, mut window: LineWindow, cancel: &Cancel) -> Result<FileText, Error> {
    let mut hash = Sha256::new();
    for chunk in buffer.chunks() {
        cancel.check()?;
        hash.update(chunk);
        window.feed(chunk);
    }
    Ok(window.into_content(TextSource::Buffer, UTF_8, hash))
}

fn read_disk(mut source: DiskReader<'_>, window: LineWindow) -> Result<FileText, Error> {
    let head = source.head()?;
    let bom = Encoding::for_bom(&head).map(|(encoding, _)| encoding);
    let is_utf16 = bom == Some(UTF_16LE) || bom == Some(UTF_16BE);
    if !is_utf16 && head.contains(&0) {
        return Err(Error::Unsupported {
            action: "read",
            path: source.name,
            what: "a binary file; only text can be read".to_owned(),
        });
    }
    let encoding = match bom {
        Some(encoding) => encoding,
        None => {
            // Without a byte order mark, any encoding but UTF-8 is a guess, so UTF-8 is tried
            // strictly first.
            let (content, is_valid) = source.decode(UTF_8, true, window.clone())?;
            if is_valid {
                return Ok(content);
            }
            source.detect_encoding()?
        }
    };
    let (content, _) = source.decode(encoding, false, window)?;
    Ok(content)
}

struct DiskReader<'a> {
    file: OpenedFile,
    /// Name of the file in messages.
    name: String,
    cancel: &'a Cancel,
}

impl DiskReader<'_> {
    fn head(&mut self) -> Result<Vec<u8>, Error> {
        let mut head = Vec::with_capacity(BINARY_CHECK_BYTES);
        let read = (&mut self.file)
            .take(BINARY_CHECK_BYTES as u64)
            .read_to_end(&mut head);
        read.map_err(|error| self.unreadable(error))?;
        Ok(head)
    }

    /// Passes the whole file to `each` in chunks, with an empty one at the end. Stops when `each`
    /// returns false.
    fn for_each_chunk(&mut self, mut each: impl FnMut(&[u8]) -> bool) -> Result<(), Error> {
        self.file.rewind().map_err(|error| self.unreadable(error))?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut total = 0;
        loop {
            self.cancel.check()?;
            let read = match self.file.read(&mut chunk) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.unreadable(error)),
            };
            // The file may grow during the read.
            total += read as u64;
            if total > limits::MAX_READ_FILE_BYTES {
                return Err(self.too_large());
            }
            if !each(&chunk[..read]) || read == 0 {
                return Ok(());
            }
        }
    }

    /// Decodes the file. Also returns whether all bytes are valid in `encoding`; with `strict`,
    /// stops at the first invalid one.
    fn decode(
        &mut self,
        encoding: &'static Encoding,
        strict: bool,
        mut window: LineWindow,
    ) -> Result<(FileText, bool), Error> {
        let mut decoder = encoding.new_decoder_with_bom_removal();
        let mut hash = Sha256::new();
        let mut is_valid = true;
        self.for_each_chunk(|bytes| {
            hash.update(bytes);
            is_valid &= feed_decoded(&mut decoder, bytes, &mut window);
            is_valid || !strict
        })?;
        let content = window.into_content(TextSource::Disk, encoding, hash);
        Ok((content, is_valid))
    }

    fn detect_encoding(&mut self) -> Result<&'static Encoding, Error> {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        self.for_each_chunk(|bytes| {
            detector.feed(bytes, bytes.is_empty());
            true
        })?;
        Ok(detector.guess(None, Utf8Detection::Deny))
    }

    fn unreadable(&self, source: io::Error) -> Error {
        let path = self.name.clone();
        Error::Read { path, source }
    }

    fn too_large(&self) -> Error {
        Error::TooLarge {
            path: self.name.clone(),
            limit: limits::MAX_READ_FILE_BYTES,
        }
    }
}

/// Decodes one chunk into the window; an empty chunk is the end. Returns false when invalid bytes
/// were replaced.
fn feed_decoded(decoder: &mut Decoder, mut bytes: &[u8], window: &mut LineWindow) -> bool {
    let last = bytes.is_empty();
    let mut text = String::with_capacity(CHUNK_BYTES);
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

/// Collects the selected lines of a text that arrives in chunks, and counts all lines.
#[derive(Clone)]
struct LineWindow {
    first: u64,
    last: u64,
    /// Bytes of text left before the limit.
    room: usize,
    text: String,
    truncated: bool,
    /// Current line number.
    line: u64,
    /// Whether the current line has text.
    is_open: bool,
    /// Whether the previous chunk ended in `\r`, which a `\n` may complete.
    after_return: bool,
}

impl LineWindow {
    fn new(options: &ReadOptions) -> Result<Self, Error> {
        let first = options.start_line.unwrap_or(1);
        let last = options.end_line.unwrap_or(u64::MAX);
        if first == 0 {
            return Err(Error::invalid("invalid startLine 0: lines start at 1"));
        }
        if first > last {
            return Err(Error::invalid("startLine is after endLine"));
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

    fn feed(&mut self, chunk: &str) {
        let mut rest = chunk;
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
    ) -> FileText {
        FileText {
            text: self.text,
            source,
            total_lines: self.line - u64::from(!self.is_open),
            truncated: self.truncated,
            encoding: (encoding != UTF_8).then(|| encoding.name()),
            content_hash: ContentHash::from(<[u8; 32]>::from(hash.finalize())),
        }
    }
}
