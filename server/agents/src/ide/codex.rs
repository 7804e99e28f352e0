//! Codex: requests of `/ide` over a local socket.
//!
//! A frame is the length of its body, four bytes with the lowest first, and JSON.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::view::{EditorView, Focus};

/// Maximum size of a frame's body, in bytes.
pub const MAX_FRAME: usize = 1024 * 1024;

/// The body of the first frame in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The buffer has no whole frame yet.
    Incomplete,
    /// A body, and the number of bytes of its frame.
    Body(Vec<u8>, usize),
    /// The frame is larger than [`MAX_FRAME`].
    TooLarge,
}

/// Reads the first frame of a buffer.
pub fn first_frame(buffer: &[u8]) -> Frame {
    let Some((length, rest)) = buffer.split_first_chunk::<4>() else {
        return Frame::Incomplete;
    };
    let Some(length) = usize::try_from(u32::from_le_bytes(*length))
        .ok()
        .filter(|length| *length <= MAX_FRAME)
    else {
        return Frame::TooLarge;
    };
    match rest.get(..length) {
        Some(body) => Frame::Body(body.to_vec(), 4 + length),
        None => Frame::Incomplete,
    }
}

/// Returns a message with its length.
pub fn frame(message: &Value) -> Vec<u8> {
    let body = message.to_string().into_bytes();
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes()[..], &body].concat()
}

/// Returns the response to a message. A Codex that runs outside the roots learns nothing.
pub fn answer(message: &Value, roots: &[PathBuf], view: &EditorView) -> Option<Value> {
    if message["type"] != "request" {
        return None;
    }
    let method = message["method"].as_str().unwrap_or_default();
    let result = match method {
        "initialize" => Ok(json!({ "clientId": "sightline" })),
        "ide-context" => {
            let asked = message["params"]["workspaceRoot"].as_str();
            let is_ours = asked
                .map(Path::new)
                .is_some_and(|asked| asked.is_absolute() && is_in(asked, roots));
            if is_ours {
                Ok(json!({ "ideContext": context(roots, view) }))
            } else {
                Err("no editor with Sightline has this folder open")
            }
        }
        _ => Err("unknown method"),
    };
    let mut response = json!({
        "type": "response", "requestId": message["requestId"], "method": method,
        "handledByClientId": "sightline",
    });
    match result {
        Ok(result) => {
            response["resultType"] = "success".into();
            response["result"] = result;
        }
        Err(why) => {
            response["resultType"] = "error".into();
            response["error"] = why.into();
        }
    }
    Some(response)
}

/// Returns whether a folder is in a root, or is one. Resolves links and `..`.
fn is_in(folder: &Path, roots: &[PathBuf]) -> bool {
    let Ok(folder) = sightline_base::path::canonicalize(folder) else {
        return false;
    };
    let mut roots = roots
        .iter()
        .filter_map(|root| sightline_base::path::canonicalize(root).ok());
    roots.any(|root| folder.starts_with(root))
}

fn context(roots: &[PathBuf], view: &EditorView) -> Value {
    let tabs = view
        .open_files
        .iter()
        .map(|file| file_fields(&file.path, roots));
    let mut context = json!({ "openTabs": tabs.collect::<Vec<_>>() });
    if let Some(focus) = &view.focus {
        context["activeFile"] = active_file(focus, roots);
    }
    context
}

fn active_file(focus: &Focus, roots: &[PathBuf]) -> Value {
    let selection = &focus.selection;
    let mut fields = file_fields(&focus.path, roots);
    fields["selection"] = json!(selection.range);
    fields["activeSelectionContent"] = selection.text.clone().into();
    fields["selections"] = json!([selection.range]);
    fields
}

fn file_fields(path: &Path, roots: &[PathBuf]) -> Value {
    let mut roots = roots.iter();
    let relative = roots
        .find_map(|root| path.strip_prefix(root).ok())
        .unwrap_or(path);
    json!({
        "label": path.file_name().unwrap_or_default().to_string_lossy(),
        "path": relative.to_string_lossy(),
        "fsPath": path.to_string_lossy(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_in_pieces_are_read(texts in prop::collection::vec(".{0,40}", 1..5), cut in 0..400_usize) {
            let messages: Vec<Value> = texts.into_iter().map(Value::from).collect();
            let bytes: Vec<u8> = messages.iter().flat_map(frame).collect();
            let cut = cut.min(bytes.len());
            let (mut buffer, mut found) = (Vec::new(), Vec::new());
            for piece in [&bytes[..cut], &bytes[cut..]] {
                buffer.extend_from_slice(piece);
                while let Frame::Body(body, size) = first_frame(&buffer) {
                    buffer.drain(..size);
                    found.push(serde_json::from_slice::<Value>(&body).unwrap());
                }
            }
            prop_assert_eq!(found, messages);
            prop_assert!(buffer.is_empty());
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            match first_frame(&bytes) {
                Frame::Body(body, size) => prop_assert_eq!(body.len() + 4, size),
                Frame::Incomplete => prop_assert!(bytes.len() < 4 + MAX_FRAME),
                Frame::TooLarge => prop_assert!(bytes.len() >= 4),
            }
        }
    }

    #[test]
    fn the_size_of_a_frame_is_limited() {
        let with_length = |length: usize| u32::try_from(length).unwrap().to_le_bytes();
        assert_eq!(first_frame(&with_length(MAX_FRAME)), Frame::Incomplete);
        assert_eq!(first_frame(&with_length(MAX_FRAME + 1)), Frame::TooLarge);
    }
}
