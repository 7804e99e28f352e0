//! Checkpoints by request and by command: create, list, compare, count, prune, verify;
//! several roots; notifications. Restores are in `restores`.

mod cli_checkpoints;
pub(crate) mod restores;
mod restores_task;

use std::{
    fs,
    sync::{Condvar, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use sightline_lsp::main_loop::Options;

use crate::harness::{Server, Workspace, holds_null, uri};

pub(crate) fn create(server: &mut Server, params: Value) -> Value {
    let result = server.call("sightline/createCheckpoint", params);
    assert!(!holds_null(&result), "{result}");
    result
}

pub(crate) fn id(checkpoint: &Value) -> &str {
    checkpoint["id"].as_str().unwrap()
}

pub(crate) fn list(server: &mut Server, params: Value) -> Vec<Value> {
    let result = server.call("sightline/listCheckpoints", params);
    assert!(!holds_null(&result), "{result}");
    result["checkpoints"].as_array().unwrap().clone()
}

pub(crate) fn diff(server: &mut Server, params: Value) -> Vec<Value> {
    let result = server.call("sightline/diffCheckpoints", params);
    assert!(!holds_null(&result), "{result}");
    result["files"].as_array().unwrap().clone()
}

/// Values of one field.
pub(crate) fn each<'a>(items: &'a [Value], field: &str) -> Vec<&'a str> {
    let values = items.iter().map(|item| item[field].as_str());
    values.map(Option::unwrap_or_default).collect()
}

/// Creates a second workspace folder containing this file. Returns the params of
/// `initialize` for both.
pub(crate) fn second_root(workspace: &Workspace, file: &str) -> (std::path::PathBuf, Value) {
    let other = workspace.root().with_file_name("api");
    fs::create_dir_all(other.join(file).parent().unwrap()).unwrap();
    fs::write(other.join(file), "api\n").unwrap();
    let mut params = workspace.initialize();
    params["workspaceFolders"] = json!([
        { "uri": uri(&workspace.root()), "name": "shop" },
        { "uri": uri(&other), "name": "api" },
    ]);
    (other, params)
}

#[test]
fn a_checkpoint_is_created_listed_and_compared() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("src/b.rs", "fn b() {}\n")]);
    let mut server = Server::start(&workspace);
    assert_eq!(list(&mut server, json!({})), Vec::<Value>::new());
    let stats = server.call("sightline/checkpointStats", json!({}));
    assert_eq!(stats["count"], 0);
    assert!(stats.get("oldest").is_none() && !holds_null(&stats));

    let first = create(&mut server, json!({ "taskId": "t-1", "label": "before" }));
    assert_eq!(first["root"], uri(&workspace.root()));
    assert_eq!(first["taskId"], "t-1");
    assert_eq!(first["label"], "before");
    assert_eq!((&first["added"], &first["files"]), (&json!(2), &json!(2)));
    assert_eq!(first["messages"], 0);
    assert_eq!(first["skipped"], json!([]));
    assert!(id(&first).len() == 40 && first["createdAt"].as_i64() > Some(1_700_000_000_000));

    workspace.write("a.txt", "one\ntwo\n");
    workspace.write("new.txt", "new\n");
    fs::remove_file(workspace.path("src/b.rs")).unwrap();
    let files = diff(&mut server, json!({ "from": id(&first), "contents": true }));
    assert_eq!(each(&files, "path"), ["a.txt", "new.txt", "src/b.rs"]);
    assert_eq!(each(&files, "status"), ["modified", "added", "deleted"]);
    assert_eq!(files[0]["before"], "one\n");
    assert_eq!(files[0]["after"], "one\ntwo\n");
    assert_eq!(files[0]["uri"], workspace.uri("a.txt"));
    assert_eq!(
        (&files[0]["additions"], &files[0]["deletions"]),
        (&json!(1), &json!(0))
    );

    let second = create(&mut server, json!({}));
    assert_eq!(
        (&second["added"], &second["modified"], &second["deleted"]),
        (&json!(1), &json!(1), &json!(1))
    );
    let between =
        json!({ "from": id(&first), "to": id(&second), "paths": ["a.txt"], "patch": true });
    let result = server.call("sightline/diffCheckpoints", between);
    assert_eq!(each(result["files"].as_array().unwrap(), "path"), ["a.txt"]);
    assert!(result["files"][0].get("before").is_none());
    assert!(result["text"].as_str().unwrap().contains("\n+two\n"));

    let listed = list(&mut server, json!({}));
    assert_eq!(each(&listed, "id"), [id(&second), id(&first)]);
    assert_eq!(listed[1], first);
    assert_eq!(
        each(&list(&mut server, json!({ "taskId": "t-1" })), "id"),
        [id(&first)]
    );
    assert_eq!(
        each(&list(&mut server, json!({ "limit": 1 })), "id"),
        [id(&second)]
    );
    let stats = server.call("sightline/checkpointStats", json!({}));
    assert_eq!(stats["count"], 2);
    assert_eq!(stats["oldest"], first["createdAt"]);
    assert_eq!(stats["newest"], second["createdAt"]);
    let verified = server.call("sightline/verifyCheckpoints", json!({}));
    assert_eq!(verified, json!({ "ok": true, "problems": [] }));
}

#[test]
fn a_command_shows_one_line() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut params = workspace.initialize();
    params["clientInfo"]["name"] = json!("helix");
    let mut server = Server::initialized(params);
    let command = |name: &str, params: Value| json!({ "command": format!("sightline.{name}"), "arguments": [params] });
    let execute = "workspace/executeCommand";
    let taken = server.call(execute, command("createCheckpoint", json!({})));
    let shown = server.notified("window/showMessage").unwrap();
    assert_eq!(shown["type"], 3);
    let text = shown["message"].as_str().unwrap();
    assert!(
        text.contains(&id(&taken)[..8]) && text.contains("1 added"),
        "{text}"
    );
    workspace.write("a.txt", "two\n");
    server.call(
        execute,
        command("restoreCheckpoint", json!({ "id": id(&taken) })),
    );
    let shown = server.notified("window/showMessage").unwrap();
    let text = shown["message"].as_str().unwrap();
    assert!(text.contains("1 path restored"), "{text}");
}

#[test]
fn invalid_params_are_rejected() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    let taken = create(&mut server, json!({}));
    let unknown = "0123456789012345678901234567890123456789";
    for (method, params, kind) in [
        (
            "createCheckpoint",
            json!({ "root": "elsewhere" }),
            "invalidParams",
        ),
        (
            "listCheckpoints",
            json!({ "root": "elsewhere" }),
            "invalidParams",
        ),
        (
            "pruneCheckpoints",
            json!({ "root": "elsewhere" }),
            "invalidParams",
        ),
        (
            "createCheckpoint",
            json!({ "taskId": "../x" }),
            "invalidParams",
        ),
        ("diffCheckpoints", json!({}), "invalidParams"),
        ("diffCheckpoints", json!({ "from": "newest" }), "notFound"),
        ("diffCheckpoints", json!({ "from": unknown }), "notFound"),
        (
            "diffCheckpoints",
            json!({ "from": id(&taken), "paths": [] }),
            "invalidParams",
        ),
        (
            "diffCheckpoints",
            json!({ "from": id(&taken), "paths": ["/etc"] }),
            "invalidParams",
        ),
        ("previewRestore", json!({ "id": unknown }), "notFound"),
        (
            "previewRestore",
            json!({ "id": id(&taken), "paths": ["../x"] }),
            "invalidParams",
        ),
        ("restoreCheckpoint", json!({ "id": unknown }), "notFound"),
        (
            "restoreCheckpoint",
            json!({ "id": id(&taken), "paths": [""] }),
            "invalidParams",
        ),
        (
            "restoreCheckpoint",
            json!({ "id": id(&taken), "mode": "all" }),
            "invalidParams",
        ),
        (
            "restoreCheckpoint",
            json!({ "id": id(&taken), "mode": "task" }),
            "invalidParams",
        ),
        ("undoRestore", json!({}), "notFound"),
        (
            "undoRestore",
            json!({ "undoId": id(&taken) }),
            "invalidParams",
        ),
        ("pruneCheckpoints", json!({ "keep": -1 }), "invalidParams"),
        (
            "checkpointStats",
            json!({ "root": "/nowhere" }),
            "invalidParams",
        ),
    ] {
        let error = server.refused(&format!("sightline/{method}"), params.clone());
        assert_eq!(error["data"]["kind"], kind, "{method} {params}: {error}");
    }
    // Accepts ids as stored by Cline's tasks.
    let head = format!("HEAD {}", id(&taken));
    assert!(diff(&mut server, json!({ "from": head })).is_empty());
    // Without a folder, the error says so.
    let mut params = workspace.initialize();
    params["workspaceFolders"] = Value::Null;
    params["rootUri"] = Value::Null;
    let mut server = Server::initialized(params);
    let error = server.refused("sightline/createCheckpoint", json!({}));
    assert_eq!(error["data"]["kind"], "notFound");
}

#[test]
fn denied_files_are_in_no_diff() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("notes.txt", "plans\n")]);
    let mut server = Server::start(&workspace);
    let first = create(&mut server, json!({}));
    workspace.write("notes.txt", "plans and passwords\n");
    workspace.write("keys.pem", "secret\n");
    let second = create(&mut server, json!({}));
    workspace.write(".clineignore", "notes.txt\n*.pem\n");
    workspace.write("a.txt", "two\n");
    for to in [json!(null), json!(id(&second))] {
        let mut params = json!({ "from": id(&first), "contents": true, "patch": true });
        if to.is_string() {
            params["to"] = to;
        }
        let result = server.call("sightline/diffCheckpoints", params);
        let text = result.to_string();
        for secret in ["notes", "keys.pem", "plans", "secret"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
    let preview = server.call("sightline/previewRestore", json!({ "id": id(&first) }));
    let text = preview.to_string();
    assert!(
        !text.contains("notes") && !text.contains("keys.pem"),
        "{text}"
    );
    let third = create(&mut server, json!({}));
    assert_eq!(third["files"], 1, "a.txt alone: {third}");
}

#[test]
fn settings_control_what_is_captured() {
    let workspace = Workspace::new(&[
        ("big.bin", &"x".repeat(2000)),
        ("out/made.txt", "made\n"),
        ("node_modules/m/index.js", "m\n"),
        ("a.txt", "a\n"),
    ]);
    let mut params = workspace.initialize();
    params["initializationOptions"]["checkpoints"] =
        json!({ "maxFileSize": 1000, "exclude": ["out"], "maxFiles": 1 });
    let mut server = Server::initialized(params);
    let error = server.refused("sightline/createCheckpoint", json!({}));
    assert_eq!(error["data"]["kind"], "tooLarge", "{error}");
    assert!(list(&mut server, json!({})).is_empty());
    let taken = create(&mut server, json!({ "confirmLarge": true }));
    assert_eq!(
        taken["files"], 2,
        "a.txt and what is in node_modules: {taken}"
    );
    let skipped = taken["skipped"].as_array().unwrap();
    assert_eq!(each(skipped, "path"), ["big.bin", "out"]);
    assert!(
        each(skipped, "reason")
            .iter()
            .all(|reason| !reason.is_empty())
    );
    // Later rules hide names that were listed before.
    workspace.write(".clineignore", "*.bin\nout/\n");
    let listed = list(&mut server, json!({}));
    let skipped = listed[0]["skipped"].as_array().unwrap();
    assert_eq!(each(skipped, "path"), [""]);
    let shown = listed[0].to_string();
    assert!(
        !shown.contains("big") && !shown.contains("out\""),
        "{shown}"
    );
}

#[test]
fn old_checkpoints_are_pruned() {
    let workspace = Workspace::new(&[("a.txt", "0")]);
    let mut server = Server::start(&workspace);
    let mut ids = Vec::new();
    for round in 1..=5 {
        workspace.write("a.txt", &round.to_string());
        ids.push(id(&create(&mut server, json!({}))).to_owned());
    }
    let nothing = json!({ "removed": 0, "freedBytes": 0 });
    assert_eq!(
        server.call("sightline/pruneCheckpoints", json!({})),
        nothing
    );
    let pruned = server.call("sightline/pruneCheckpoints", json!({ "keep": 2 }));
    assert_eq!(pruned["removed"], 3);
    let kept = list(&mut server, json!({}));
    assert_eq!(each(&kept, "id"), [&*ids[4], &*ids[3]]);
    let created = kept[0]["createdAt"].as_i64().unwrap();
    let pruned = server.call(
        "sightline/pruneCheckpoints",
        json!({ "olderThan": created + 1 }),
    );
    assert!(pruned["removed"].as_u64() >= Some(1), "{pruned}");
    let verified = server.call("sightline/verifyCheckpoints", json!({}));
    assert_eq!(verified["ok"], true, "{verified}");
}

#[test]
fn deleting_a_task_deletes_its_checkpoints() {
    let workspace = Workspace::new(&[("a.txt", "0")]);
    let mut server = Server::start(&workspace);
    let messages = json!([{ "role": "user", "content": "hello" }]);
    for task in ["t-1", "t-2"] {
        let params = json!({ "taskId": task, "messages": messages });
        server.call("sightline/appendMessages", params);
        let taken = create(&mut server, json!({ "taskId": task }));
        assert_eq!(taken["messages"], 1);
    }
    // A task with nothing but checkpoints is deleted as well.
    create(&mut server, json!({ "taskId": "t-3" }));
    let freed = server.call("sightline/deleteTask", json!({ "taskId": "t-1" }));
    assert!(freed["freedBytes"].as_u64() > Some(0));
    let left = list(&mut server, json!({}));
    assert_eq!(each(&left, "taskId"), ["t-3", "t-2"]);
    server.call("sightline/deleteTask", json!({ "taskId": "t-3" }));
    assert_eq!(each(&list(&mut server, json!({})), "taskId"), ["t-2"]);
    let error = server.refused("sightline/deleteTask", json!({ "taskId": "t-3" }));
    assert_eq!(error["data"]["kind"], "notFound");
}

#[test]
fn checkpoints_of_several_roots_are_a_group() {
    let workspace = Workspace::new(&[("a.txt", "shop\n")]);
    let (other, params) = second_root(&workspace, "src/main.go");
    let mut server = Server::initialized(params);
    let taken = create(&mut server, json!({ "label": "both" }));
    assert_eq!(taken["root"], uri(&workspace.root()));
    let group = taken["group"].as_array().unwrap();
    assert_eq!(each(group, "root"), [uri(&workspace.root()), uri(&other)]);
    assert_eq!(group[0]["id"], taken["id"]);
    let listed = list(&mut server, json!({}));
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|one| one["group"] == taken["group"]));
    // A root by its name, path and URI.
    for root in [json!("api"), json!(other), json!(uri(&other))] {
        let listed = list(&mut server, json!({ "root": root }));
        assert_eq!(each(&listed, "root"), [uri(&other)]);
        assert_eq!(listed[0]["group"], taken["group"]);
    }
    let alone = create(&mut server, json!({ "root": "api" }));
    assert_eq!(alone["root"], uri(&other));
    assert!(alone.get("group").is_none());
    // Differences in another root have unambiguous names.
    fs::write(other.join("src/main.go"), "changed\n").unwrap();
    let files = diff(&mut server, json!({ "from": id(&alone) }));
    assert_eq!(each(&files, "path"), ["src/main.go"]);
    assert_eq!(files[0]["uri"], uri(&other.join("src/main.go")));
    let named = json!({ "from": id(&alone), "paths": ["src"] });
    assert_eq!(diff(&mut server, named).len(), 1);
    let error = server.refused(
        "sightline/diffCheckpoints",
        json!({ "from": id(&taken), "to": id(&alone) }),
    );
    assert_eq!(error["data"]["kind"], "invalidParams");
    // A closed root is unknown.
    let removed = json!([{ "uri": uri(&other), "name": "api" }]);
    server.send_notification(
        "workspace/didChangeWorkspaceFolders",
        json!({ "event": { "added": [], "removed": removed } }),
    );
    assert_eq!(list(&mut server, json!({})).len(), 1);
}

#[cfg(unix)]
#[test]
fn if_one_root_fails_none_has_a_new_checkpoint() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let (_, params) = second_root(&workspace, "src/x");
    let mut server = Server::initialized(params);
    let taken = create(&mut server, json!({}));
    workspace.write("a.txt", "two\n");
    let in_the_way = workspace.break_store("api");
    let error = server.refused("sightline/createCheckpoint", json!({}));
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("api: "), "{error}");
    let of_shop = || json!({ "root": "shop" });
    let listed = list(&mut server, of_shop());
    assert_eq!(each(&listed, "id"), [id(&taken)]);
    fs::remove_file(in_the_way).unwrap();
    let again = create(&mut server, json!({}));
    assert_eq!(again["group"].as_array().unwrap().len(), 2);
    assert_eq!(again["modified"], 1);
    assert_eq!(list(&mut server, of_shop()).len(), 2);
    let verified = server.call("sightline/verifyCheckpoints", json!({}));
    assert_eq!(verified["ok"], true, "{verified}");
}

#[test]
fn progress_and_new_checkpoints_are_notified() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut params = workspace.initialize();
    params["initializationOptions"]["notifications"] = json!(true);
    let mut server = Server::initialized(params);
    let taken = create(&mut server, json!({ "workDoneToken": "ck" }));
    let shown = server.notified("sightline/didCreateCheckpoint").unwrap();
    assert_eq!(shown, json!({ "checkpoint": taken }));
    let mut kinds = Vec::new();
    while kinds.last() != Some(&json!("end")) {
        let progress = server.notified("$/progress").unwrap();
        assert_eq!(progress["token"], "ck");
        kinds.push(progress["value"]["kind"].clone());
    }
    assert_eq!(kinds[0], "begin");
}

#[test]
fn a_cancelled_checkpoint_is_not_created() {
    let files: Vec<(String, String)> = (0..3000)
        .map(|n| (format!("d{}/f{n}.txt", n % 50), format!("{n}\n").repeat(50)))
        .collect();
    let workspace = Workspace::new(&[]);
    for (name, text) in &files {
        workspace.write(name, text);
    }
    let mut server = Server::start(&workspace);
    let mut cancelled = 0;
    for _ in 0..5 {
        let before = list(&mut server, json!({})).len();
        let id = server
            .start("sightline/createCheckpoint", json!({}))
            .unwrap();
        server.send_notification("$/cancelRequest", json!({ "id": id }));
        let expected = match server.wait(id).unwrap() {
            Ok(_) => before + 1,
            Err(error) => {
                assert_eq!(error["data"]["kind"], "cancelled", "{error}");
                cancelled += 1;
                before
            }
        };
        // The next request waits for this one.
        let next = create(&mut server, json!({}));
        assert_eq!(next["files"], 3000);
        assert_eq!(list(&mut server, json!({})).len(), expected + 1);
    }
    assert!(cancelled > 0, "nothing was ever cancelled");
    let verified = server.call("sightline/verifyCheckpoints", json!({}));
    assert_eq!(verified["ok"], true, "{verified}");
}

#[test]
fn a_damaged_store_is_reported_and_rebuilt() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    let first = create(&mut server, json!({ "label": "kept" }));
    drop(server);
    let project = fs::read_dir(workspace.data().join("projects"));
    let project = project.unwrap().next().unwrap().unwrap().path();
    fs::remove_file(project.join("checkpoints.git/HEAD")).unwrap();
    let mut server = Server::start(&workspace);
    let second = create(&mut server, json!({}));
    let shown = server.notified("window/showMessage").unwrap();
    let text = shown["message"].as_str().unwrap();
    assert!(
        text.contains("damaged") && text.contains("was moved to"),
        "{text}"
    );
    let listed = list(&mut server, json!({}));
    assert_eq!(each(&listed, "id"), [id(&second), id(&first)]);
}

/// Lets requests through one by one, in arrival order.
struct Gate {
    waiting: Mutex<(usize, usize)>,
    moved: Condvar,
}

impl Gate {
    const fn new() -> Self {
        Self {
            waiting: Mutex::new((0, 0)),
            moved: Condvar::new(),
        }
    }

    /// Waits until it is let through.
    fn pass(&self) {
        let mut state = self.waiting.lock().unwrap();
        let place = state.0;
        state.0 += 1;
        self.moved.notify_all();
        while state.1 <= place {
            state = self.moved.wait(state).unwrap();
        }
    }

    fn until_waiting(&self, count: usize) {
        let mut state = self.waiting.lock().unwrap();
        while state.0 < count {
            let waited = self.moved.wait_timeout(state, Duration::from_secs(20));
            let (again, timeout) = waited.unwrap();
            assert!(!timeout.timed_out(), "{} of {count} came", again.0);
            state = again;
        }
    }

    fn open(&self, count: usize) {
        self.waiting.lock().unwrap().1 += count;
        self.moved.notify_all();
    }

    fn came(&self) -> usize {
        self.waiting.lock().unwrap().0
    }
}

#[test]
fn a_root_has_one_writer_and_other_requests_do_not_wait() {
    static GATE: Gate = Gate::new();
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let (_, params) = second_root(&workspace, "b.txt");
    let mut server = Server::bare(Options {
        fault: Some(|method| {
            if method == "sightline/createCheckpoint" {
                GATE.pass();
            }
        }),
        ..Options::default()
    });
    server.initialize(params);
    let mut create = |root: &str, label: &str| {
        let params = json!({ "root": root, "label": label });
        server.start("sightline/createCheckpoint", params).unwrap()
    };
    let shop = [create("shop", "1"), create("shop", "2")];
    GATE.until_waiting(1);
    let api = create("api", "3");
    // The other root is in progress; the second request of this root is not.
    GATE.until_waiting(2);
    let messages = json!([{ "role": "user", "content": "hello" }]);
    for (method, params) in [
        ("listCheckpoints", json!({})),
        ("checkpointStats", json!({})),
        ("readFile", json!({ "path": "a.txt" })),
        (
            "appendMessages",
            json!({ "taskId": "t", "messages": messages }),
        ),
    ] {
        server.call(&format!("sightline/{method}"), params);
    }
    let prune = json!({ "root": "shop", "keep": 1, "labelled": true });
    let prune = server.start("sightline/pruneCheckpoints", prune).unwrap();
    server.call("sightline/listTasks", json!({}));
    assert_eq!(GATE.came(), 2);
    GATE.open(3);
    let [first, second] = shop.map(|id| server.wait(id).unwrap().unwrap());
    server.wait(api).unwrap().unwrap();
    assert_eq!(
        (&first["label"], &second["label"]),
        (&json!("1"), &json!("2"))
    );
    assert_eq!(server.wait(prune).unwrap().unwrap()["removed"], 1);
    let left = list(&mut server, json!({ "root": "shop" }));
    assert_eq!(each(&left, "label"), ["2"]);
    assert_eq!(server.end(), 0);
}
