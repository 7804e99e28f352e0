//! T10: recorded sessions of real editors, replayed message by message.
//!
//! The recordings are of another server: its own methods must be rejected, all standard
//! messages accepted.

mod editor_features;
mod helix;
pub(crate) mod neovim;
pub(crate) mod nvim_plugin;
mod two_editors;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use sightline_lsp::main_loop::Options;
use sightline_testing::fixtures;

use crate::harness::{Server, Workspace};

/// Moves a recorded message into the test's workspace.
fn moved(text: &str, workspace: &Workspace) -> Value {
    let root = workspace.root().display().to_string();
    serde_json::from_str(&text.replace("/workspace", &root)).unwrap()
}

fn initialize_for(session: &str, folder: &Path) -> PathBuf {
    // `helix-25.07.1-commands` was recorded with the capabilities of `helix-25.07.1`.
    let mut name = session.to_owned();
    loop {
        let file = folder.join(format!("{name}.initialize.json"));
        if file.exists() {
            return file;
        }
        let cut = name
            .rfind('-')
            .unwrap_or_else(|| panic!("no initialize for {session}"));
        name.truncate(cut);
    }
}

/// Applies one element of `contentChanges` to a text.
fn changed(text: &str, change: &Value, encoding: &str) -> String {
    let new = change["text"].as_str().unwrap();
    let Some(range) = change.get("range") else {
        return new.to_owned();
    };
    let offset = |position: &Value| {
        let line = position["line"].as_u64().unwrap() as usize;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let mut units = 0;
        for (at, c) in text[start..].char_indices() {
            if c == '\n' || units >= position["character"].as_u64().unwrap() as usize {
                return start + at;
            }
            units += match encoding {
                "utf-8" => c.len_utf8(),
                _ => c.len_utf16(),
            };
        }
        text.len()
    };
    let (start, end) = (offset(&range["start"]), offset(&range["end"]));
    format!("{}{new}{}", &text[..start], &text[end..])
}

fn replay(session: &Path, initialize: &Path) {
    let name = session.file_name().unwrap().to_string_lossy();
    let name = name.trim_end_matches(".session.jsonl").to_owned();
    let workspace = Workspace::new(&[
        ("a.txt", "hello world\nsecond line\nthird line\n"),
        ("b.txt", "b\n"),
    ]);
    let mut params = moved(&fs::read_to_string(initialize).unwrap(), &workspace);
    params["initializationOptions"] = json!({ "storage": { "path": workspace.data() } });
    // Positions use the encoding negotiated during the recording.
    let recorded = if name.ends_with("-utf8") {
        "utf-8"
    } else {
        "utf-16"
    };
    params["capabilities"]["general"]["positionEncodings"] = json!([recorded]);
    let mut server = Server::bare(Options::default());
    server.answer_with(|method, _| match method {
        "workspace/configuration" => Some(json!([null])),
        _ => Some(Value::Null),
    });
    let result = server.call("initialize", params);
    let encoding = result["capabilities"]["positionEncoding"].as_str().unwrap();
    let mut open = std::collections::BTreeSet::new();
    // Expected texts, computed in a slow and simple way.
    let mut texts = std::collections::BTreeMap::new();
    for line in fs::read_to_string(session).unwrap().lines() {
        let entry = moved(line, &workspace);
        let message = &entry["msg"];
        if entry["dir"] != "c2s" || message["method"] == "initialize" {
            continue;
        }
        let uri = message["params"]["textDocument"]["uri"]
            .as_str()
            .unwrap_or_default();
        match message["method"].as_str() {
            // Checked below, after everything was sent.
            Some("shutdown" | "exit") | None => continue,
            Some("textDocument/didOpen") => {
                open.insert(uri.to_owned());
                let text = message["params"]["textDocument"]["text"].as_str().unwrap();
                texts.insert(uri.to_owned(), text.to_owned());
            }
            Some("textDocument/didClose") => drop(open.remove(uri)),
            Some("textDocument/didChange") => {
                let text = texts.get_mut(uri).unwrap();
                for change in message["params"]["contentChanges"].as_array().unwrap() {
                    *text = changed(text, change, encoding);
                }
            }
            _ => {}
        }
        let mut message = message.clone();
        if let Some(id) = message.get("id").cloned() {
            let own = format!("recorded-{id}");
            message["id"] = json!(own);
            server.send(&message).unwrap();
            let answer = server
                .wait_for(|answer| answer["id"] == json!(own))
                .unwrap();
            let known = [-32601, -32602, -32800];
            let code = answer["error"]["code"].as_i64();
            assert!(
                code.is_none_or(|code| known.contains(&code)),
                "{name}: {message} {answer}"
            );
        } else {
            server.send(&message).unwrap();
        }
    }
    for (uri, expected) in &texts {
        let inside = uri.starts_with(&workspace.uri(""));
        if !inside || !open.contains(uri) {
            continue;
        }
        // One more edit, at the end and never saved: the result is then the editor's
        // text, and its beginning shows what arrived.
        let end = json!({ "line": 99_999, "character": 0 });
        let change = json!({ "range": { "start": end, "end": end }, "text": "<END>" });
        let document = json!({ "uri": uri, "version": 9_999 });
        let params = json!({ "textDocument": document, "contentChanges": [change] });
        server.send_notification("textDocument/didChange", params);
        let read = server.call("sightline/readFile", json!({ "path": uri }));
        assert_eq!(
            read["text"],
            json!(format!("{expected}<END>")),
            "{name}: {uri}"
        );
    }
    let details = server.call("sightline/environmentDetails", json!({}));
    let text = details["text"].as_str().unwrap();
    for uri in &open {
        let Some(file) = uri
            .rsplit('/')
            .next()
            .filter(|file| workspace.path(file).exists())
        else {
            continue;
        };
        assert!(
            text.contains(file),
            "{name}: {file} is open and missing from\n{text}"
        );
    }
    assert_eq!(server.end(), 0, "{name}");
}

#[test]
fn t10_recorded_sessions_replay_clean() {
    let folder = Path::new(fixtures::RECORDED).join("editors");
    let mut sessions: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".session.jsonl"))
        .collect();
    sessions.sort();
    assert!(sessions.len() >= 10, "only {} recordings", sessions.len());
    for session in sessions {
        let name = session.file_name().unwrap().to_string_lossy().into_owned();
        let initialize = initialize_for(name.trim_end_matches(".session.jsonl"), &folder);
        replay(&session, &initialize);
    }
}

/// Display name of each editor in the block.
#[test]
fn editors_have_display_names() {
    for (client, host) in [
        ("Neovim", "Neovim"),
        ("nvim", "Neovim"),
        ("helix", "Helix"),
        ("Visual Studio Code", "Visual Studio Code"),
        ("Zed", "Zed"),
    ] {
        let workspace = Workspace::new(&[]);
        let mut params = workspace.initialize();
        params["clientInfo"]["name"] = json!(client);
        let mut server = Server::initialized(params);
        let text = server.block(json!({}));
        assert!(
            text.contains(&format!("# {host} Open Tabs\n")),
            "{client}: {text}"
        );
        assert_eq!(server.end(), 0);
    }
}
