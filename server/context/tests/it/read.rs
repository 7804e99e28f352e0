//! Reads real files: access, ranges, limits, encodings.

use std::{fs, path::PathBuf, sync::Arc};

use proptest::prelude::*;
use ropey::Rope;
use sightline_access::{Access, AccessView};
use sightline_base::{
    cancel::Cancel,
    error::Error,
    limits,
    path::{AbsPath, Location, Root, Roots},
};
use sightline_context::{
    read::{FileText, ReadOptions, read_file},
    tracker::ContentHash,
};
use sightline_protocol::settings::Secrets;
use sightline_protocol::{error::ErrorKind, files::TextSource};
use tempfile::TempDir;

struct Workspace {
    _home: TempDir,
    at: PathBuf,
}

impl Workspace {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let at = home.path().join("ws");
        fs::create_dir(&at).unwrap();
        Self { _home: home, at }
    }

    fn with(name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let workspace = Self::new();
        fs::write(workspace.at.join(name), bytes).unwrap();
        workspace
    }

    fn view(&self) -> AccessView {
        let root = Root::new(AbsPath::new(&self.at).unwrap(), None);
        let roots = Arc::new(Roots::new(vec![root]));
        Access::new(roots, Vec::new(), Secrets::Allow).view().0
    }

    fn read(
        &self,
        path: &str,
        buffer: Option<&Rope>,
        options: ReadOptions,
    ) -> Result<FileText, Error> {
        let view = self.view();
        let location = view.roots().locate(path)?;
        read_file(&view, &location, buffer, &options, &Cancel::default())
    }

    fn refusal(&self, path: &str) -> ErrorKind {
        let refused = self.read(path, None, ReadOptions::default());
        refused.unwrap_err().kind()
    }
}

fn lines(start: u64, end: u64) -> ReadOptions {
    ReadOptions {
        start_line: Some(start),
        end_line: Some(end),
        ..ReadOptions::default()
    }
}

fn at_most(max_bytes: u64) -> ReadOptions {
    ReadOptions {
        max_bytes: Some(max_bytes),
        ..ReadOptions::default()
    }
}

/// Reads a file with these bytes.
fn read(bytes: impl AsRef<[u8]>, options: ReadOptions) -> FileText {
    Workspace::with("f", bytes)
        .read("f", None, options)
        .unwrap()
}

fn whole(bytes: impl AsRef<[u8]>) -> FileText {
    read(bytes, ReadOptions::default())
}

fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let marked = std::iter::once(0xFEFF).chain(text.encode_utf16());
    marked.flat_map(to_bytes).collect()
}

#[test]
fn every_encoding_is_decoded_to_utf8() {
    let text = "Grüße,\r\n日本 😀\n";
    let plain = whole(text);
    assert_eq!((plain.text.as_str(), plain.encoding), (text, None));
    assert_eq!((plain.source, plain.total_lines), (TextSource::Disk, 2));

    let marked = whole(format!("\u{FEFF}{text}"));
    assert_eq!((marked.text.as_str(), marked.encoding), (text, None));
    let little = whole(utf16(text, u16::to_le_bytes));
    assert_eq!(
        (little.text.as_str(), little.encoding),
        (text, Some("UTF-16LE"))
    );
    let big = whole(utf16(text, u16::to_be_bytes));
    assert_eq!((big.text.as_str(), big.encoding), (text, Some("UTF-16BE")));

    let western = whole(b"Er wohnt in K\xF6ln, hei\xDFt M\xFCller und i\xDFt \xC4pfel.\n");
    assert_eq!(western.encoding, Some("windows-1252"));
    assert_eq!(
        western.text,
        "Er wohnt in Köln, heißt Müller und ißt Äpfel.\n"
    );
    let sentence = "これは日本語の文章です。文字コードを判定します。\n";
    let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode(sentence);
    let japanese = whole(bytes);
    assert_eq!(japanese.encoding, Some("Shift_JIS"));
    assert_eq!(japanese.text, sentence);
}

#[test]
fn an_encoding_is_detected_late_in_a_large_file() {
    let mut bytes = b"plain line\n".repeat(20_000);
    bytes.extend(b"Stra\xDFe nach K\xF6ln\n");
    let found = read(&bytes, lines(20_001, 20_001));
    assert_eq!(found.text, "Straße nach Köln\n");
    assert_eq!(found.encoding, Some("windows-1252"));
    assert_eq!(found.total_lines, 20_001);
}

#[test]
fn invalid_text_is_read_lossily() {
    // The byte order mark says UTF-8, so the encoding is not guessed.
    let found = whole(b"\xEF\xBB\xBFa\xFFb");
    assert_eq!((found.text.as_str(), found.encoding), ("a\u{FFFD}b", None));
    // An incomplete character at the end.
    assert!(whole(b"\xFF\xFEa\0b").text.starts_with('a'));
    assert!(whole(b"abc\xE6\x97").text.starts_with("abc"));
}

#[test]
fn binary_files_are_errors() {
    for bytes in [&b"a\0b"[..], b"\xEF\xBB\xBFa\0"] {
        let workspace = Workspace::with("f", bytes);
        assert_eq!(workspace.refusal("f"), ErrorKind::Unsupported);
    }
    let mut late = vec![b'a'; 8 * 1024];
    late.push(0);
    assert_eq!(whole(&late).text.len(), late.len());
    late.remove(0);
    assert_eq!(
        Workspace::with("f", late).refusal("f"),
        ErrorKind::Unsupported
    );
}

#[test]
fn all_three_line_endings_are_kept() {
    let text = "one\ntwo\r\nthree\rfour";
    for (start, end, expected) in [
        (1, 1, "one\n"),
        (2, 2, "two\r\n"),
        (3, 4, "three\rfour"),
        (2, u64::MAX, "two\r\nthree\rfour"),
        (5, 9, ""),
    ] {
        let found = read(text, lines(start, end));
        assert_eq!((found.text.as_str(), found.total_lines), (expected, 4));
        assert!(!found.truncated);
    }
    for (text, count) in [
        ("", 0),
        ("\n", 1),
        ("a", 1),
        ("a\n", 1),
        ("\r", 1),
        ("\r\n\n\r", 3),
    ] {
        assert_eq!(whole(text).total_lines, count, "{text:?}");
    }
}

#[test]
fn a_line_ending_split_between_chunks_is_one() {
    // Files are read in chunks of 64 KiB.
    let text = format!("{}\r\nsecond\n", "a".repeat(64 * 1024 - 1));
    let found = read(&text, lines(2, 2));
    assert_eq!((found.text.as_str(), found.total_lines), ("second\n", 2));
    assert_eq!(read(&text, lines(1, 1)).text.len(), 64 * 1024 + 1);
    let text = format!("{}\rsecond\n", "a".repeat(64 * 1024 - 1));
    assert_eq!(read(&text, lines(2, 2)).text, "second\n");
    // A character split between chunks.
    let text = format!("{}é", "a".repeat(64 * 1024 - 1));
    assert_eq!(whole(&text).text, text);
}

#[test]
fn invalid_line_ranges_are_reported() {
    let workspace = Workspace::with("f", "a\n");
    for (options, value) in [
        (lines(0, 3), "startLine 0"),
        (lines(7, 3), "startLine is after endLine"),
    ] {
        let refused = workspace.read("f", None, options).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidParams);
        assert!(refused.to_string().contains(value), "{refused}");
    }
}

#[test]
fn a_limit_cuts_at_a_character() {
    let text = "aé日😀";
    for (limit, expected) in [
        (0, ""),
        (1, "a"),
        (2, "a"),
        (3, "aé"),
        (5, "aé"),
        (6, "aé日"),
        (9, "aé日"),
        (10, text),
        (99, text),
    ] {
        let found = read(text, at_most(limit));
        assert_eq!(found.text, expected);
        assert_eq!(found.truncated, expected != text);
        assert_eq!(found.total_lines, 1);
    }
    // Nothing follows the cut, however small.
    let found = read("日\na\n", at_most(2));
    assert_eq!((found.text.as_str(), found.total_lines), ("", 2));
}

#[test]
fn the_result_size_is_bounded() {
    let line = "0123456789abcde\n";
    let text = line.repeat(limits::MAX_READ_BYTES as usize / line.len() + 1);
    let workspace = Workspace::with("f", &text);
    let default = workspace.read("f", None, ReadOptions::default()).unwrap();
    assert_eq!(default.text.len() as u64, limits::DEFAULT_READ_BYTES);
    assert!(default.truncated);
    let most = workspace.read("f", None, at_most(u64::MAX)).unwrap();
    assert_eq!(most.text.len() as u64, limits::MAX_READ_BYTES);
    assert!(most.truncated);
    assert_eq!(most.total_lines, text.len() as u64 / line.len() as u64);
    let last = workspace
        .read("f", None, lines(most.total_lines, u64::MAX))
        .unwrap();
    assert_eq!((last.text.as_str(), last.truncated), (line, false));
}

#[test]
fn a_huge_file_is_an_error_without_reading_it() {
    let workspace = Workspace::new();
    let file = fs::File::create(workspace.at.join("f")).unwrap();
    file.set_len(limits::MAX_READ_FILE_BYTES + 1).unwrap();
    assert_eq!(workspace.refusal("f"), ErrorKind::TooLarge);
}

#[test]
fn editor_text_takes_precedence() {
    let workspace = Workspace::with("f", "disk\n");
    let buffer = Rope::from_str("first\nsecond");
    let found = workspace.read("f", Some(&buffer), lines(2, 2)).unwrap();
    assert_eq!((found.text.as_str(), found.total_lines), ("second", 2));
    assert_eq!((found.source, found.encoding), (TextSource::Buffer, None));
    // A document that was never saved.
    let unsaved = workspace.read("new", Some(&buffer), ReadOptions::default());
    assert_eq!(unsaved.unwrap().text, "first\nsecond");
    assert_eq!(workspace.refusal("new"), ErrorKind::NotFound);
}

#[test]
fn the_hash_covers_all_stored_bytes() {
    // SHA-256 of "abc", from its specification.
    let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let of_abc = ContentHash::parse(of_abc).unwrap();
    assert_eq!(read("abc", at_most(1)).content_hash, of_abc);
    let workspace = Workspace::new();
    let found = workspace.read("f", Some(&Rope::from_str("abc")), lines(9, 9));
    assert_eq!(found.unwrap().content_hash, of_abc);
    // The hash covers the stored bytes, not the decoded text.
    let plain = whole("é").content_hash;
    let others = [utf16("é", u16::to_le_bytes), "\u{FEFF}é".into(), vec![0xE9]];
    for bytes in others {
        assert_ne!(whole(bytes).content_hash, plain);
    }
}

#[test]
fn access_is_checked_first() {
    let workspace = Workspace::with("secret", "s");
    fs::write(workspace.at.join(".clineignore"), "secret\n").unwrap();
    let buffer = Rope::from_str("typed");
    for buffer in [None, Some(&buffer)] {
        // Before invalid lines, which would reveal that the file exists.
        for options in [ReadOptions::default(), lines(0, 0)] {
            let refused = workspace.read("secret", buffer, options).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AccessDenied);
            assert_eq!(refused.rule().unwrap().pattern, "secret");
        }
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("secret", workspace.at.join("link")).unwrap();
        assert_eq!(workspace.refusal("link"), ErrorKind::AccessDenied);
    }
}

#[test]
fn outside_paths_are_read_only_if_allowed() {
    let workspace = Workspace::new();
    let outside = Workspace::with("f", "out");
    let path = outside.at.join("f");
    let path = path.to_str().unwrap();
    assert_eq!(workspace.refusal(path), ErrorKind::AccessDenied);
    let allowed = ReadOptions {
        allow_outside: true,
        ..ReadOptions::default()
    };
    assert_eq!(workspace.read(path, None, allowed).unwrap().text, "out");
}

#[test]
fn special_files_are_errors() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.at.join("folder")).unwrap();
    assert_eq!(workspace.refusal("folder"), ErrorKind::Unsupported);
    #[cfg(unix)]
    {
        let pipe = workspace.at.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(pipe).status();
        assert!(made.unwrap().success());
        assert_eq!(workspace.refusal("pipe"), ErrorKind::Unsupported);
    }
}

#[test]
fn reading_stops_when_cancelled() {
    let workspace = Workspace::with("f", "a");
    let view = workspace.view();
    let location: Location = view.roots().locate("f").unwrap();
    let cancel = Cancel::default();
    cancel.cancel();
    let options = ReadOptions::default();
    for buffer in [None, Some(&Rope::from_str("a"))] {
        let stopped = read_file(&view, &location, buffer, &options, &cancel);
        assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn joined_ranges_equal_the_file(
        parts in prop::collection::vec(
            prop::sample::select(vec!["a", "é", "日", "😀", "\n", "\r\n", "\r", "\u{2028}"]), 0..30),
        step in 1u64..4,
    ) {
        let text = parts.concat();
        let workspace = Workspace::with("f", &text);
        let rope = Rope::from_str(&text);
        for buffer in [None, Some(&rope)] {
            let all = workspace.read("f", buffer, ReadOptions::default()).unwrap();
            prop_assert_eq!(&all.text, &text);
            let mut joined = String::new();
            let mut start = 1;
            while start <= all.total_lines {
                let part = workspace.read("f", buffer, lines(start, start + step - 1)).unwrap();
                prop_assert!(!part.text.is_empty());
                joined += &part.text;
                start += step;
            }
            prop_assert_eq!(&joined, &text);
        }
    }

    /// All input bytes give a result or an error.
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), limit in 0u64..50) {
        let found = Workspace::with("f", bytes).read("f", None, at_most(limit));
        match found {
            Ok(found) => prop_assert!(found.text.len() as u64 <= limit),
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Unsupported),
        }
    }
}
