//! Formats differences as a unified diff that `git apply` accepts.

use std::{borrow::Cow, io::Write};

use sightline_access::gitignore::bytes_of;
use sightline_base::{
    escape::{is_unprintable, one_line},
    path::RelPath,
};
use similar::{DiffTag, udiff::UnifiedHunkHeader};

use super::{
    super::store::object::{Kind, Oid, name_of},
    file_diff::{FileDiff, Status},
    lines::{self, lines},
};

/// Id that git uses for a missing file.
const NONE: Oid = Oid([0; 20]);

/// Formats files as a unified diff. `files` include their contents. Binary files and omitted
/// contents are only reported as different.
pub fn patch(files: &[FileDiff]) -> Vec<u8> {
    let mut text = Vec::new();
    for file in files {
        match (file.status, file.modes) {
            // One side is unknown.
            (_, (old, new)) if file.uncaptured => {
                let mode = old.or(new);
                let file = FileDiff {
                    modes: (mode, mode),
                    ..file.clone()
                };
                one(&file, &mut text);
            }
            // git expresses this as a deletion and an addition.
            (Status::TypeChanged, (old, new)) => {
                let gone = FileDiff {
                    status: Status::Deleted,
                    modes: (old, None),
                    after: None,
                    ..file.clone()
                };
                let came = FileDiff {
                    status: Status::Added,
                    modes: (None, new),
                    before: None,
                    ..file.clone()
                };
                one(&gone, &mut text);
                one(&came, &mut text);
            }
            _ => one(file, &mut text),
        }
    }
    text
}

fn one(file: &FileDiff, text: &mut Vec<u8>) {
    let old_path = file.old_path.as_ref().unwrap_or(&file.path);
    let (old_name, new_name) = (quoted("a/", old_path), quoted("b/", &file.path));
    let mut line = |parts: &[&[u8]]| {
        parts.iter().for_each(|part| text.extend_from_slice(part));
        text.push(b'\n');
    };
    line(&[b"diff --git ", &old_name, b" ", &new_name]);
    match file.modes {
        (None, Some(mode)) => line(&[b"new file mode ", mode.as_bytes()]),
        (Some(mode), None) => line(&[b"deleted file mode ", mode.as_bytes()]),
        (Some(old), Some(new)) if old != new => {
            line(&[b"old mode ", old.as_bytes()]);
            line(&[b"new mode ", new.as_bytes()]);
        }
        _ => {}
    }
    if file.status == Status::Renamed {
        line(&[b"similarity index 100%"]);
        line(&[b"rename from ", &quoted("", old_path)]);
        line(&[b"rename to ", &quoted("", &file.path)]);
        return;
    }
    let empty: &[u8] = b"";
    let content = |mode: Option<&str>, content: &'_ Option<Vec<u8>>| match mode {
        None => Some(Vec::new()),
        Some(_) => content.clone(),
    };
    let before = content(file.modes.0, &file.before);
    let after = content(file.modes.1, &file.after);
    let (Some(before), Some(after)) = (before, after) else {
        let why = file.omitted.as_deref().unwrap_or("contents omitted");
        line(&[
            b"Files ",
            &old_name,
            b" and ",
            &new_name,
            b" differ: ",
            why.as_bytes(),
        ]);
        return;
    };
    if before == after && file.modes.0.is_some() && file.modes.1.is_some() {
        return;
    }
    let name = |mode: Option<&str>, content: &[u8]| match mode {
        Some(_) => name_of(Kind::Blob, content),
        None => NONE,
    };
    let (old_oid, new_oid) = (name(file.modes.0, &before), name(file.modes.1, &after));
    let mode = match file.modes {
        (Some(old), Some(new)) if old == new => format!(" {new}"),
        _ => String::new(),
    };
    line(&[format!("index {old_oid}..{new_oid}{mode}").as_bytes()]);
    let missing = b"/dev/null".to_vec();
    let old_name = file.modes.0.map_or(missing.clone(), |_| old_name);
    let new_name = file.modes.1.map_or(missing, |_| new_name);
    if file.binary {
        line(&[b"Binary files ", &old_name, b" and ", &new_name, b" differ"]);
        return;
    }
    if before == after {
        return;
    }
    // A tab marks the end of a name that contains spaces.
    let end = |name: &[u8]| if name.contains(&b' ') { b"\t" } else { empty };
    line(&[b"--- ", &old_name, end(&old_name)]);
    line(&[b"+++ ", &new_name, end(&new_name)]);
    hunks(&lines(&before), &lines(&after), text);
}

fn hunks(old: &[&[u8]], new: &[&[u8]], text: &mut Vec<u8>) {
    for hunk in lines::hunks(old, new) {
        let _ = writeln!(text, "{}", UnifiedHunkHeader::new(&hunk));
        let mut put = |sign: u8, lines: &[&[u8]]| {
            for line in lines {
                text.push(sign);
                text.extend_from_slice(line);
                if !line.ends_with(b"\n") {
                    text.extend_from_slice(b"\n\\ No newline at end of file\n");
                }
            }
        };
        for op in hunk {
            if op.tag() == DiffTag::Equal {
                put(b' ', &old[op.old_range()]);
            } else {
                put(b'-', &old[op.old_range()]);
                put(b'+', &new[op.new_range()]);
            }
        }
    }
}

/// Quotes a path as git does with `core.quotePath = false`, and invisible characters too.
fn quoted(prefix: &str, path: &RelPath) -> Vec<u8> {
    let path = bytes_of(path.as_path());
    // git does not quote `<`, but a name must not look like a tag to a model.
    let has_tag = matches!(one_line(&String::from_utf8_lossy(&path)), Cow::Owned(_));
    let is_odd = |c: char| is_unprintable(c) || matches!(c, '"' | '\\') || (c == '<' && has_tag);
    let mut name = prefix.as_bytes().to_vec();
    let mut is_quoted = false;
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut bytes = [0; 4];
            let bytes = c.encode_utf8(&mut bytes).as_bytes();
            if is_odd(c) {
                is_quoted = true;
                escape(bytes, &mut name);
            } else {
                name.extend_from_slice(bytes);
            }
        }
        is_quoted |= !chunk.invalid().is_empty();
        escape(chunk.invalid(), &mut name);
    }
    if is_quoted {
        name.insert(0, b'"');
        name.push(b'"');
    }
    name
}

fn escape(bytes: &[u8], name: &mut Vec<u8>) {
    for byte in bytes {
        let short = match byte {
            0x07 => b'a',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0b => b'v',
            0x0c => b'f',
            b'\r' => b'r',
            b'"' | b'\\' => *byte,
            _ => {
                let _ = write!(name, "\\{byte:03o}");
                continue;
            }
        };
        name.extend_from_slice(&[b'\\', short]);
    }
}
