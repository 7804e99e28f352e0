//! Other users of the machine, who can connect to loopback, and folders that are not only the user's.

use std::{
    collections::VecDeque,
    fs,
    net::TcpStream,
    os::unix::fs::{PermissionsExt, symlink},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde_json::json;

use super::{Editor, claude, http};

/// Interval of connections of the flood.
const EVERY: Duration = Duration::from_millis(4);
/// Number of connections that the flood holds.
const HELD: usize = 200;
/// Number of connections of an agent during the flood.
const TIMES: usize = 40;

#[test]
fn an_agent_connects_during_a_flood_of_silent_connections() {
    let editor = Editor::start(json!({ "claudeIde": true, "geminiIde": true }));
    let gemini = http::Address::gemini(&editor);
    let (port, lock) = editor.lock();
    let token = lock["authToken"].as_str().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let ports = [port, gemini.port.unwrap()];
        let floods = ports.map(|port| {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut held = VecDeque::new();
                while !is_over.load(Ordering::Relaxed) {
                    held.extend(TcpStream::connect(("127.0.0.1", port)));
                    if held.len() > HELD {
                        held.pop_front();
                    }
                    thread::sleep(EVERY);
                }
                held.len()
            })
        });
        // The flood has begun.
        thread::sleep(Duration::from_secs(1));
        let agent = scope.spawn(|| {
            for _ in 0..TIMES {
                claude::connect(port, &[(claude::TOKEN, token)]).unwrap();
                let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
                gemini.post(ping).unwrap();
            }
        });
        let connected = agent.join();
        is_over.store(true, Ordering::Relaxed);
        for flood in floods {
            assert!(flood.join().unwrap() > 0);
        }
        connected.unwrap();
    });
}

/// Returns what the server tells the user until a text is in it.
fn told(editor: &mut Editor, text: &str) -> String {
    loop {
        let message = editor.client.notified("window/showMessage").unwrap();
        let message = message["message"].as_str().unwrap().to_owned();
        if message.contains(text) {
            return message;
        }
    }
}

#[test]
fn a_link_of_the_user_is_followed_to_a_private_folder() {
    let editor = Editor::start(json!({}));
    let home = editor.home.path().to_owned();
    fs::create_dir_all(home.join("dotfiles/claude")).unwrap();
    symlink(home.join("dotfiles/claude"), home.join(".claude")).unwrap();
    let mut editor = editor;
    editor.set(&claude::claude());
    editor.wait_for_files("dotfiles/claude/ide", 1);
    let (port, lock) = editor.lock();
    let token = lock["authToken"].as_str().unwrap();
    claude::connect(port, &[(claude::TOKEN, token)]).unwrap();
    editor.set(&json!({ "claudeIde": false }));
    editor.wait_for_files("dotfiles/claude/ide", 0);
}

#[test]
fn the_user_learns_why_a_folder_is_not_used() {
    let editor = Editor::start(json!({}));
    let home = editor.home.path().to_owned();
    let open = home.join("open/claude");
    fs::create_dir_all(&open).unwrap();
    fs::create_dir(home.join("gemini")).unwrap();
    let mode = |folder: &str, mode| {
        fs::set_permissions(home.join(folder), fs::Permissions::from_mode(mode)).unwrap();
    };
    let mut editor = editor;
    let link = home.join(".claude");
    for (target, folder, reason) in [
        ("nowhere", "open", "it is a link to"),
        (
            "open/claude",
            "open/claude",
            "can be written by other users; run `chmod go-w",
        ),
        ("open/claude", "open", "other users can replace through"),
    ] {
        symlink(home.join(target), &link).unwrap();
        mode(folder, 0o777);
        editor.set(&claude::claude());
        let message = told(&mut editor, "cannot use");
        assert!(
            message.contains(reason) && message.contains(".claude"),
            "{message}"
        );
        editor.set(&json!({ "claudeIde": false }));
        mode(folder, 0o700);
        fs::remove_file(&link).unwrap();
    }

    // Qwen Code finds the editor, gemini-cli does not.
    mode("gemini", 0o777);
    editor.set(&json!({ "geminiIde": true }));
    let message = told(&mut editor, "an agent cannot find this editor");
    assert!(
        message.contains("/gemini: it can be written by other users"),
        "{message}"
    );
    editor.wait_for_files(".qwen/ide", 1);
}
