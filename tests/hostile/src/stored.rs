//! A data directory with one changed file: cache, index, pack, ref, metadata or journal.
//! Its contents are rebuilt, skipped, or rejected with a reason; wrong contents are never
//! returned.

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use sightline_access::Access;
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, Root, Roots},
    storage::Storage,
};
use sightline_checkpoint::{
    Checkpoints, Filter, Job, Oid, Request,
    error::Error,
    restore::{Options, RestoreTarget, Scope},
};
use sightline_protocol::settings::{CheckpointSettings, Secrets};
use sightline_testing::files::{Files, read, write};
use tempfile::TempDir;

use crate::draw::Draw;

/// A workspace with two checkpoints and later changes, and a copy of its data directory
/// to start from.
struct Ground {
    folder: TempDir,
    data: Files,
    work: Files,
    /// The workspace's files at each checkpoint.
    then: BTreeMap<Oid, Files>,
}

thread_local! {
    static GROUND: OnceCell<Ground> = const { OnceCell::new() };
}

impl Ground {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("ws");
        let mut then = BTreeMap::new();
        for round in 0..3 {
            for (name, text) in [
                ("a.txt", format!("a {round}\n")),
                ("folder/b.txt", format!("b {}\n", round / 2)),
                (".gitignore", "*.log\n".to_owned()),
                ("same.txt", "x".repeat(5000)),
            ] {
                write(&root.join(name), text.as_bytes());
            }
            if round < 2 {
                // Caches do not trust files this recent.
                std::thread::sleep(std::time::Duration::from_millis(50));
                let store = Store::open(folder.path());
                let id = store.create().unwrap();
                then.insert(id, read(&root));
            }
        }
        // A rolled-back restore leaves undo points and a used journal.
        let (data, work) = (read(&folder.path().join("data")), read(&root));
        Self {
            folder,
            data,
            work,
            then,
        }
    }
}

/// The store as opened by a process.
struct Store {
    root: PathBuf,
    checkpoints: Checkpoints,
}

impl Store {
    fn open(base: &Path) -> Self {
        let root = sightline_base::path::canonicalize(base).unwrap().join("ws");
        let storage = Storage::open(&base.join("data")).unwrap();
        let checkpoints =
            Checkpoints::new(&storage, &Root::new(AbsPath::new(&root).unwrap(), None));
        Self { root, checkpoints }
    }

    fn job<R>(&self, act: impl FnOnce(&Job<'_>) -> R) -> R {
        let roots = Roots::new(vec![self.checkpoints.root().clone()]);
        let view = Access::new(roots.into(), Vec::new(), Secrets::Allow)
            .view()
            .0;
        act(&Job {
            view: &view,
            root: 0,
            settings: &CheckpointSettings::default(),
            cancel: &Cancel::default(),
            progress: &|_| {},
        })
    }

    fn create(&self) -> Result<Oid, Error> {
        let created = self.job(|job| self.checkpoints.create(job, &Request::default(), None));
        created.map(|created| created.id)
    }

    /// Restores everything. Returns whether all reported files were restored.
    fn restore(&self, id: Oid) -> bool {
        let wanted = RestoreTarget {
            id,
            paths: Vec::new(),
            scope: Scope::All,
        };
        let options = Options::default();
        let restored = self.job(|job| {
            self.checkpoints
                .restore(job, &wanted, &Default::default(), &options)
        });
        match restored {
            Ok(restored) => restored
                .outcomes
                .iter()
                .all(|outcome| outcome.error.is_none()),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                false
            }
        }
    }
}

/// Runs one case.
pub fn run(bytes: &[u8]) {
    GROUND.with(|cell| {
        let ground = cell.get_or_init(Ground::new);
        let mut draw = Draw::new(bytes);
        let base = ground.folder.path();
        replace(&base.join("data"), &ground.data);
        replace(&base.join("ws"), &ground.work);
        let names: Vec<&PathBuf> = ground.data.keys().collect();
        let mut changed = Vec::new();
        for _ in 0..=draw.below(2) {
            let name = draw.pick(&names);
            let content = damaged(&ground.data[name], &mut draw);
            put(&base.join("data").join(name), content.as_deref());
            changed.push(name);
        }
        if draw.once_in(3) {
            let state = names
                .iter()
                .find(|name| name.to_string_lossy().contains("/state/"));
            let journal = state.unwrap().with_file_name("journal.json");
            let path = base.join("data").join(journal);
            write(&path, &odd_journal(ground, &mut draw));
        }
        hold(ground, &changed);
    });
}

/// Checks the invariants, whatever was changed.
fn hold(ground: &Ground, changed: &[&PathBuf]) {
    let base = ground.folder.path();
    let Ok(storage) = Storage::open(&base.join("data")) else {
        // An invalid version is rejected before anything is changed.
        assert!(
            changed
                .iter()
                .any(|name| name.as_path() == Path::new("version"))
        );
        return;
    };
    drop(storage);
    let store = Store::open(base);
    let _ = store.job(|job| store.checkpoints.recover(job));
    let recovered = read(&store.root);
    assert_known(ground, &recovered, changed);
    // Creating a checkpoint and restoring it changes nothing.
    if let Ok(now) = store.create() {
        fs::write(store.root.join("a.txt"), "changed after").unwrap();
        fs::write(store.root.join("new.txt"), "new").unwrap();
        if store.restore(now) {
            let now = read(&store.root);
            assert!(now == recovered, "{changed:?}: not what was captured");
        } else {
            // Only damage to the store itself may prevent a restore.
            let in_store = |name: &&PathBuf| name.to_string_lossy().contains("checkpoints.git");
            assert!(
                changed.iter().any(in_store),
                "{changed:?}: captured, and not given back"
            );
        }
    }
    // Restorable files have their recorded content.
    for record in store
        .checkpoints
        .list(&Filter::default())
        .unwrap_or_default()
    {
        let Some(then) = ground.then.get(&record.id) else {
            continue;
        };
        let before = read(&store.root);
        if store.restore(record.id) {
            let now = read(&store.root);
            assert!(
                now == *then,
                "{changed:?}: {} came back as something else",
                record.id
            );
        } else {
            // Each file has its current or an earlier content.
            for (name, content) in read(&store.root) {
                let known = [&before, then]
                    .iter()
                    .any(|files| files.get(&name) == Some(&content));
                assert!(known, "{changed:?}: {} is neither", name.display());
            }
        }
    }
    let _ = store.checkpoints.stats();
    let _ = store.job(|job| store.checkpoints.verify(job));
}

/// Asserts that files have contents they had at some time.
fn assert_known(ground: &Ground, files: &Files, changed: &[&PathBuf]) {
    for (name, content) in files {
        let then = ground.then.values().chain([&ground.work]);
        let known = then.clone().any(|files| files.get(name) == Some(content));
        assert!(known, "{changed:?}: {} was made up", name.display());
    }
}

/// A forged journal.
fn odd_journal(ground: &Ground, draw: &mut Draw<'_>) -> Vec<u8> {
    let ids: Vec<Oid> = ground.then.keys().copied().collect();
    let (one, other) = (draw.pick(&ids), draw.pick(&ids));
    let path = draw.pick(&[
        "a.txt",
        "../out.txt",
        "/etc/hostname",
        "folder",
        "",
        "a.txt/b",
        ".git/config",
    ]);
    let text = format!(
        r#"{{"version":{},"restoring":"{one}","undo":"{other}","target":"{one}","paths":["{path}"],"steps":[{{"path":"{path}","action":"delete"}}]}}"#,
        draw.below(4)
    );
    match draw.below(3) {
        0 => draw.bytes(40).to_vec(),
        1 => text.into_bytes(),
        _ => text.into_bytes()[..draw.below(60)].to_vec(),
    }
}

/// Returns changed content for a file, or `None` to delete it.
fn damaged(content: &[u8], draw: &mut Draw<'_>) -> Option<Vec<u8>> {
    let mut content = content.to_vec();
    let length = content.len().max(1);
    match draw.below(8) {
        0 => return None,
        1 => content.truncate(draw.below(length)),
        2 => content.extend_from_slice(draw.bytes(20)),
        3 => content = draw.bytes(60).to_vec(),
        4 => content.iter_mut().for_each(|byte| *byte = 0),
        5 => content.extend_from_within(..),
        _ => {
            for _ in 0..=draw.below(4) {
                let at = draw.below(length);
                if let Some(byte) = content.get_mut(at) {
                    *byte ^= 1 << draw.below(8);
                }
            }
        }
    }
    Some(content)
}

/// Restores changed files. Others keep their timestamps, which caches trust.
fn replace(folder: &Path, files: &Files) {
    let now = read(folder);
    for name in now.keys().filter(|name| !files.contains_key(*name)) {
        fs::remove_file(folder.join(name)).unwrap();
    }
    for (name, content) in files {
        if now.get(name) != Some(content) {
            write(&folder.join(name), content);
        }
    }
}

fn put(path: &Path, content: Option<&[u8]>) {
    match content {
        Some(content) => write(path, content),
        // It may not exist.
        None => drop(fs::remove_file(path)),
    }
}
