//! Incremental checkpoints equal full scans, and two servers on one root do not disturb
//! each other.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Child,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sightline_testing::lsp_client::LspClient;

use crate::{
    checkpoints::id,
    harness::{Workspace, program, spawn, spawn_with, uri, wait},
};

/// The built program as a server, with a log that shows how it scanned.
struct Logged {
    child: Child,
    client: LspClient,
    log: PathBuf,
}

impl Logged {
    fn start(workspace: &Workspace) -> Self {
        Self::start_with(workspace, workspace.initialize())
    }

    fn start_with(workspace: &Workspace, params: Value) -> Self {
        Self::start_in(workspace, params, spawn())
    }

    fn start_in(
        workspace: &Workspace,
        mut params: Value,
        (child, mut client): (Child, LspClient),
    ) -> Self {
        let log = workspace.data().with_extension("log");
        params["initializationOptions"]["log"] = json!({ "level": "debug", "file": log });
        client.request("initialize", params).unwrap().unwrap();
        client.notify("initialized", json!({})).unwrap();
        Self { child, client, log }
    }

    fn create(&mut self) -> Value {
        let asked = self.client.request("sightline/createCheckpoint", json!({}));
        asked.unwrap().unwrap()
    }

    /// Counts occurrences in the log.
    fn count(&self, text: &str) -> usize {
        fs::read_to_string(&self.log).unwrap().matches(text).count()
    }

    /// Creates checkpoints until changes are tracked.
    fn settle(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        self.create();
        while cfg!(target_os = "linux") && self.count("watching") == 0 {
            assert!(Instant::now() < deadline, "changes are never known");
            std::thread::sleep(Duration::from_millis(5));
            self.create();
        }
    }

    fn end(mut self) {
        self.client
            .request("shutdown", Value::Null)
            .unwrap()
            .unwrap();
        self.client.notify("exit", Value::Null).unwrap();
        assert_eq!(wait(&mut self.child, "exit"), 0);
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const KNOWN: &str = "changed paths are known";

/// Returns the tree of a checkpoint, as read by git.
fn tree(data: &Path, checkpoint: &Value) -> String {
    let mut projects = fs::read_dir(data.join("projects")).unwrap();
    let store = projects.next().unwrap().unwrap().path();
    let output = std::process::Command::new("git")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", data)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .arg("--git-dir")
        .arg(store.join("checkpoints.git"))
        .args(["rev-parse", &format!("{}^{{tree}}", id(checkpoint))])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the tree of a checkpoint taken without caches.
fn tree_from_nothing(workspace: &Workspace) -> String {
    let data = tempfile::tempdir().unwrap();
    let output = program()
        .args(["checkpoint", "create", "--json", "--storage"])
        .arg(data.path())
        .arg("--root")
        .arg(workspace.root())
        .output()
        .unwrap();
    let taken: Value = serde_json::from_slice(&output.stdout).unwrap();
    tree(data.path(), &taken)
}

#[cfg(target_os = "linux")]
#[test]
fn a_change_is_found_without_a_full_scan() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("src/deep/b.rs", "b\n")]);
    let mut server = Logged::start(&workspace);
    server.settle();
    for round in 0..5 {
        let before = server.count(KNOWN);
        workspace.write("src/deep/b.rs", &format!("round {round}\n"));
        let taken = server.create();
        assert_eq!(taken["modified"], 1, "{taken}");
        assert_eq!(server.count(KNOWN), before + 1);
        assert!(server.count("changed paths are known paths=1") > round);
    }
    // Nothing changed, so nothing is scanned.
    let taken = server.create();
    assert_eq!(taken["modified"], 0);
    assert!(server.count("changed paths are known paths=0") > 0);
    server.end();
}

#[cfg(target_os = "linux")]
#[test]
fn changed_rules_apply_at_once() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("out/x.o", "x\n"), ("b.gen", "b\n")]);
    let mut server = Logged::start(&workspace);
    server.settle();
    workspace.write(".gitignore", "out/\n");
    let taken = server.create();
    assert_eq!(
        (&taken["added"], &taken["deleted"]),
        (&json!(1), &json!(1)),
        "{taken}"
    );
    workspace.write("out/y.o", "y\n");
    assert_eq!(server.create()["added"], 0);
    workspace.write(".clineignore", "*.gen\n");
    assert_eq!(server.create()["deleted"], 1);
    assert_eq!(
        tree(&workspace.data(), &server.create()),
        tree_from_nothing(&workspace)
    );
    // Files that git keeps in the work tree.
    fs::remove_file(workspace.path(".gitignore")).unwrap();
    fs::create_dir_all(workspace.path(".git/info")).unwrap();
    server.create();
    server.create();
    workspace.write(".git/info/exclude", "a.txt\n");
    let taken = server.create();
    assert_eq!(
        tree(&workspace.data(), &taken),
        tree_from_nothing(&workspace)
    );
    server.end();
}

#[cfg(unix)]
type Replace = fn(&Path, &Path);

/// Ways in which the path of a workspace folder comes to mean another folder. Each gets the folder
/// and a fresh copy of it.
#[cfg(unix)]
const REPLACEMENTS: [(&str, Replace); 6] = [
    ("control", |_, _| {}),
    ("removed and cloned again", |root, copy| {
        fs::remove_dir_all(root).unwrap();
        fs::rename(copy, root).unwrap();
    }),
    ("exchanged", |root, copy| {
        fs::rename(root, root.with_extension("old")).unwrap();
        fs::rename(copy, root).unwrap();
    }),
    ("the folder above was exchanged", |root, copy| {
        let above = root.parent().unwrap();
        fs::rename(above, above.with_extension("old")).unwrap();
        fs::create_dir(above).unwrap();
        fs::rename(copy, root).unwrap();
    }),
    ("replaced by a link", |root, copy| {
        fs::rename(root, root.with_extension("old")).unwrap();
        std::os::unix::fs::symlink(copy, root).unwrap();
    }),
    ("the folder above was replaced by a link", |root, copy| {
        let above = root.parent().unwrap();
        fs::rename(above, above.with_extension("old")).unwrap();
        let other = copy.with_extension("above");
        fs::create_dir(&other).unwrap();
        fs::rename(copy, other.join("shop")).unwrap();
        std::os::unix::fs::symlink(other, above).unwrap();
    }),
];

/// A checkpoint saves the folder that the path means now, and not the one that was watched.
#[cfg(unix)]
#[test]
fn a_replaced_workspace_folder_is_saved() {
    for (how, replace) in REPLACEMENTS {
        let workspace = Workspace::new(&[]);
        let root = workspace.root().join("above/shop");
        for folder in [&root, &workspace.path("copy")] {
            fs::create_dir_all(folder.join("src")).unwrap();
            fs::write(folder.join("f.txt"), "one").unwrap();
            fs::write(folder.join("src/g.txt"), "one").unwrap();
        }
        let mut params = workspace.initialize();
        params["workspaceFolders"] = json!([{ "uri": uri(&root), "name": "shop" }]);
        let mut server = Logged::start_with(&workspace, params);
        server.settle();
        // A process in the folder prevents that its removal is reported.
        let inside = std::process::Command::new("sleep")
            .arg("60")
            .current_dir(&root)
            .spawn();
        replace(&root, &workspace.path("copy"));
        server.create();
        fs::write(root.join("f.txt"), "two hours of work").unwrap();
        fs::write(root.join("src/g.txt"), "more work").unwrap();
        fs::write(root.join("new.txt"), "a new file").unwrap();
        let precious = server.create();
        assert_eq!(
            (&precious["added"], &precious["modified"]),
            (&json!(1), &json!(2)),
            "{how}"
        );
        fs::write(root.join("f.txt"), "ruined").unwrap();
        let restore = json!({ "id": id(&precious) });
        let restored = server
            .client
            .request("sightline/restoreCheckpoint", restore)
            .unwrap()
            .unwrap();
        assert_eq!(restored["outcomes"].as_array().unwrap().len(), 1, "{how}");
        let text = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        assert_eq!(text("f.txt"), "two hours of work", "{how}");
        assert_eq!(text("new.txt"), "a new file", "{how}");
        let mut inside = inside.unwrap();
        inside.kill().unwrap();
        inside.wait().unwrap();
        server.end();
    }
}

/// A file system that is mounted while the folder is watched, and unmounted again.
#[cfg(target_os = "linux")]
#[test]
fn files_behind_a_mount_are_saved() {
    use std::process::Command;

    let script = |script: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["-rm", "sh", "-c", script, "sh"]);
        shell
    };
    let try_out = script("mount -t tmpfs none /mnt").output();
    if !try_out.is_ok_and(|output| output.status.success()) {
        return crate::lifecycle::faults::skipped(
            "no file system can be mounted in a namespace of its own (unshare -rm)",
        );
    }
    let workspace = Workspace::new(&[("sub/f.txt", "below")]);
    let mut shell = script("exec \"$@\"");
    shell.arg(program().get_program());
    let mut server = Logged::start_in(&workspace, workspace.initialize(), spawn_with(&mut shell));
    server.settle();
    let pid = server.child.id().to_string();
    let run = |commands: &str| {
        let mut inside = Command::new("nsenter");
        inside.args([
            "--preserve-credentials",
            "-U",
            "-m",
            "-t",
            &pid,
            "sh",
            "-ec",
        ]);
        let done = inside.arg(commands).arg(workspace.path("sub")).status();
        assert!(done.unwrap().success(), "{commands}");
    };
    run("mount -t tmpfs none $0; echo work > $0/f.txt; echo new > $0/new.txt");
    let taken = server.create();
    assert_eq!(
        (&taken["added"], &taken["modified"]),
        (&json!(1), &json!(1))
    );
    run("echo more > $0/f.txt");
    assert_eq!(server.create()["modified"], 1);
    run("umount $0; echo again > $0/f.txt");
    let taken = server.create();
    assert_eq!(
        (&taken["deleted"], &taken["modified"]),
        (&json!(1), &json!(1))
    );
    server.end();
}

/// A workspace folder that the editor names by a link.
#[cfg(unix)]
#[test]
fn a_changed_link_to_a_workspace_folder_is_followed() {
    use std::os::unix::fs::symlink;

    let workspace = Workspace::new(&[("v1/f.txt", "v1"), ("v2/f.txt", "v2")]);
    let link = workspace.path("current");
    symlink("v1", &link).unwrap();
    let mut params = workspace.initialize();
    params["workspaceFolders"] = json!([{ "uri": uri(&link), "name": "shop" }]);
    let mut server = Logged::start_with(&workspace, params);
    server.settle();
    fs::remove_file(&link).unwrap();
    symlink("v2", &link).unwrap();
    fs::write(link.join("f.txt"), "work in v2").unwrap();
    let precious = server.create();
    fs::write(link.join("f.txt"), "ruined").unwrap();
    let restore = json!({ "id": id(&precious) });
    let asked = server
        .client
        .request("sightline/restoreCheckpoint", restore);
    asked.unwrap().unwrap();
    let text = |name: &str| fs::read_to_string(workspace.path(name)).unwrap();
    assert_eq!(text("v2/f.txt"), "work in v2");
    assert_eq!(text("v1/f.txt"), "v1");
    server.end();
}

/// Pseudorandom numbers with a fixed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// Returns everything below a folder, parents first.
fn entries(root: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut folders, mut files) = (vec![root.to_owned()], Vec::new());
    let mut at = 0;
    while at < folders.len() {
        for entry in fs::read_dir(&folders[at]).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path())
            } else {
                files.push(entry.path())
            }
        }
        at += 1;
    }
    folders.sort();
    files.sort();
    (folders, files)
}

/// Applies one random change to a workspace.
fn disturb(root: &Path, dice: &mut Dice) {
    let (folders, files) = entries(root);
    let name = format!("n{}", dice.below(40));
    let folder = folders[dice.below(folders.len())].clone();
    let fresh = folder.join(&name);
    let file = if files.is_empty() {
        root.join("first")
    } else {
        files[dice.below(files.len())].clone()
    };
    // Operations may fail if something is in the way.
    let _ = match dice.below(10) {
        0 | 1 => fs::write(&file, format!("{}", dice.below(1000))),
        2 => fs::write(&fresh, format!("{}", dice.below(1000))),
        3 => fs::create_dir_all(fresh.join("in/deep"))
            .and_then(|()| fs::write(fresh.join("in/deep/file"), name)),
        4 if folder != root => fs::rename(&folder, root.join(format!("moved{name}"))),
        5 if folder != root => fs::remove_dir_all(&folder),
        6 => fs::rename(&file, fresh),
        7 => fs::remove_file(&file),
        8 => {
            // As editors save.
            let aside = file.with_extension("tmp~");
            fs::write(&aside, format!("saved {}", dice.below(1000)))
                .and_then(|()| fs::rename(&aside, &file))
        }
        #[cfg(unix)]
        9 => {
            use std::os::unix::fs::{PermissionsExt, symlink};
            match dice.below(2) {
                0 => symlink("somewhere", &fresh),
                _ => fs::set_permissions(&file, fs::Permissions::from_mode(0o755)),
            }
        }
        _ => Ok(()),
    };
}

/// T16. The tracked changes equal the actual ones, whatever is done to the folders.
#[test]
fn t16_tracked_changes_equal_a_full_scan() {
    let workspace = Workspace::new(&[("a/b/c/d.txt", "d\n"), ("a/e.txt", "e\n"), ("f.txt", "f\n")]);
    let mut server = Logged::start(&workspace);
    server.settle();
    let mut dice = Dice(16);
    for round in 0..40 {
        for _ in 0..=dice.below(8) {
            disturb(&workspace.root(), &mut dice);
        }
        let taken = server.create();
        let known = tree(&workspace.data(), &taken);
        assert_eq!(known, tree_from_nothing(&workspace), "round {round}");
    }
    if cfg!(target_os = "linux") {
        let known = server.count(KNOWN);
        assert!(known > 30, "only {known} of 40 were known");
    }
    server.end();
}

/// T19. Two servers on one root: both are answered, nothing is damaged.
#[test]
fn t19_two_servers_on_one_root() {
    let workspace = Workspace::new(&[("a.txt", "0"), ("b.txt", "0")]);
    let mut servers: Vec<(Child, LspClient)> = (0..2)
        .map(|_| {
            let (child, mut client) = spawn();
            client
                .request("initialize", workspace.initialize())
                .unwrap()
                .unwrap();
            (child, client)
        })
        .collect();
    let mut taken = 0;
    for round in 0..15 {
        workspace.write("a.txt", &round.to_string());
        let ids: Vec<Vec<i64>> = servers
            .iter_mut()
            .map(|(_, client)| {
                (0..3)
                    .map(|_| {
                        client
                            .start("sightline/createCheckpoint", json!({}))
                            .unwrap()
                    })
                    .collect()
            })
            .collect();
        for ((_, client), ids) in servers.iter_mut().zip(ids) {
            for id in ids {
                match client.wait(id).unwrap() {
                    Ok(_) => taken += 1,
                    Err(error) => {
                        assert_eq!(error["data"]["kind"], "busy", "{error}");
                        let message = error["message"].as_str().unwrap();
                        assert!(message.contains("process"), "{message}");
                    }
                }
            }
        }
    }
    assert!(taken >= 30, "only {taken} of 90 were taken");
    let mut seen = Vec::new();
    for (_, client) in &mut servers {
        let verified = client.request("sightline/verifyCheckpoints", json!({}));
        let whole = json!({ "ok": true, "problems": [] });
        assert_eq!(verified.unwrap().unwrap(), whole);
        let listed = client.request("sightline/listCheckpoints", json!({}));
        seen.push(listed.unwrap().unwrap());
    }
    assert_eq!(seen[0], seen[1]);
    let listed = seen[0]["checkpoints"].as_array().unwrap();
    assert_eq!(listed.len(), taken);
    // One server sees what the other one restored.
    let oldest = json!({ "id": id(&listed[listed.len() - 1]) });
    let restored = servers[0].1.request("sightline/restoreCheckpoint", oldest);
    restored.unwrap().unwrap();
    assert_eq!(fs::read_to_string(workspace.path("a.txt")).unwrap(), "0");
    let undone = servers[1].1.request("sightline/undoRestore", json!({}));
    assert_eq!(undone.unwrap().unwrap()["outcomes"][0]["path"], "a.txt");
    assert_eq!(fs::read_to_string(workspace.path("a.txt")).unwrap(), "14");
    for (child, client) in &mut servers {
        client.request("shutdown", Value::Null).unwrap().unwrap();
        client.notify("exit", Value::Null).unwrap();
        assert_eq!(wait(child, "exit"), 0);
    }
}
