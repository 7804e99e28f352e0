//! Exceeding each limit on client input: the error names the limit, and the server keeps
//! running.

use serde_json::{Value, json};
use sightline_base::limits;

use crate::harness::{Server, Workspace};

/// Asserts that the error names the limit and has this kind.
fn over(server: &mut Server, method: &str, params: Value, kind: &str, limit: impl ToString) {
    let error = server.refused(method, params);
    let message = error["message"].as_str().unwrap();
    assert_eq!(error["data"]["kind"], kind, "{method}: {message:.300}");
    let limit = limit.to_string();
    assert!(
        message.contains(&limit),
        "{method}: {message:.300} does not name {limit}"
    );
}

#[test]
fn exceeding_a_limit_names_the_limit() {
    let workspace = Workspace::new(&[("a.txt", "a\n")]);
    let mut server = Server::start(&workspace);
    let made = server.call("sightline/createCheckpoint", json!({}));

    let paths = vec!["a"; limits::MAX_CHECKED_PATHS + 1];
    let (method, limit) = ("sightline/checkAccess", limits::MAX_CHECKED_PATHS);
    over(
        &mut server,
        method,
        json!({ "paths": paths }),
        "tooLarge",
        limit,
    );

    let paths = vec!["a.txt"; limits::MAX_NAMED_PATHS + 1];
    let named = json!({ "id": made["id"], "from": made["id"], "paths": paths });
    for method in ["diffCheckpoints", "previewRestore", "restoreCheckpoint"] {
        let method = format!("sightline/{method}");
        over(
            &mut server,
            &method,
            named.clone(),
            "tooLarge",
            limits::MAX_NAMED_PATHS,
        );
    }

    let long = "a".repeat(limits::MAX_PATH_BYTES + 1);
    let (method, limit) = ("sightline/readFile", limits::MAX_PATH_BYTES);
    over(
        &mut server,
        method,
        json!({ "path": long }),
        "invalidParams",
        limit,
    );

    let label = "a".repeat(limits::MAX_LABEL_BYTES + 1);
    let (method, limit) = ("sightline/createCheckpoint", limits::MAX_LABEL_BYTES);
    over(
        &mut server,
        method,
        json!({ "label": label }),
        "tooLarge",
        limit,
    );

    let message = json!({ "role": "user", "content": "a".repeat(limits::MAX_ENTRY_BYTES) });
    let append = json!({ "taskId": "t", "messages": [message] });
    let (method, limit) = ("sightline/appendMessages", limits::MAX_ENTRY_BYTES);
    over(&mut server, method, append, "tooLarge", limit);
    assert_eq!(
        server.call("sightline/listTasks", json!({}))["tasks"],
        json!([])
    );

    let deep = (0..limits::MAX_NESTING).fold(json!(1), |inner, _| json!([inner]));
    let (method, limit) = ("sightline/checkAccess", limits::MAX_NESTING);
    over(
        &mut server,
        method,
        json!({ "other": 1, "paths": deep }),
        "tooLarge",
        limit,
    );

    // A command is checked and denied.
    let command = " ".repeat(limits::MAX_COMMAND_BYTES + 1);
    let judged = server.call("sightline/checkAccess", json!({ "command": command }));
    let reason = judged["command"]["denied"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains(&limits::MAX_COMMAND_BYTES.to_string()),
        "{reason}"
    );

    // An excessively long message is truncated.
    let error = server.refused(
        "sightline/undoRestore",
        json!({ "force": "x".repeat(100_000) }),
    );
    assert!(error["message"].as_str().unwrap().len() <= limits::MAX_ERROR_MESSAGE_BYTES + 3);
    assert_eq!(server.end(), 0);
}

#[test]
fn limits_that_are_settings_are_named_with_their_setting() {
    let workspace = Workspace::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    for (setting, value) in [("maxFiles", 1), ("maxTotalSize", 1)] {
        let mut params = workspace.initialize();
        params["initializationOptions"]["checkpoints"] = json!({ setting: value });
        let mut server = Server::initialized(params);
        let name = format!("checkpoints.{setting}");
        over(
            &mut server,
            "sightline/createCheckpoint",
            json!({}),
            "tooLarge",
            name,
        );
        assert_eq!(server.end(), 0);
    }
    let mut params = workspace.initialize();
    params["initializationOptions"]["checkpoints"] = json!({ "maxFileSize": 1 });
    let mut server = Server::initialized(params);
    let made = server.call("sightline/createCheckpoint", json!({}));
    let reason = made["skipped"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("checkpoints.maxFileSize"), "{reason}");
    assert_eq!(server.end(), 0);
}

#[test]
fn an_oversized_frame_is_rejected_before_its_body() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let header = format!("Content-Length: {}\r\n\r\n", limits::MAX_FRAME_BYTES + 1);
    server.send_raw(header.as_bytes()).unwrap();
    let answer = server.wait_for(|message| message["id"].is_null()).unwrap();
    let message = answer["error"]["message"].as_str().unwrap();
    assert_eq!(answer["error"]["data"]["kind"], "tooLarge");
    assert!(
        message.contains(&limits::MAX_FRAME_BYTES.to_string()),
        "{message}"
    );
}
