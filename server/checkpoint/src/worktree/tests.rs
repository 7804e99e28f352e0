//! Tests of scans and saved exclusions.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use proptest::prelude::*;
use sightline_access::Access;
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, RelPath, Root, Roots},
};
use sightline_protocol::settings::{CheckpointSettings, Secrets};
use tempfile::TempDir;

use super::{
    capture_filter::CaptureFilter,
    exclusions::{MAX_BYTES, SavedExclusions},
    git_index::GitIndexState,
    scan::{Scan, ScanOptions, scan},
    snapshot::{File, Folder, Node, Parts, Stamp},
};
use crate::{
    job::Job,
    named_path::NamedPath,
    store::object::{Kind, Oid, name_of},
};

/// A work tree `ws` in a temporary folder.
struct Tree {
    _scratch: TempDir,
    ws: PathBuf,
    access: Access,
    settings: CheckpointSettings,
}

impl Tree {
    /// Creates the workspace `ws` below the temporary folder.
    fn new(ws: &str) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let ws = sightline_base::path::canonicalize(scratch.path())
            .unwrap()
            .join(ws);
        fs::create_dir_all(&ws).unwrap();
        let root = Root::new(AbsPath::new(&ws).unwrap(), None);
        Self {
            _scratch: scratch,
            access: Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Allow),
            settings: CheckpointSettings::default(),
            ws,
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.ws.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn look(&self, last: Option<&Scan>) -> Scan {
        let view = self.access.view().0;
        let job = Job {
            view: &view,
            root: 0,
            settings: &self.settings,
            cancel: &Cancel::default(),
            progress: &|_| {},
        };
        let filter = CaptureFilter::new(&view, 0, &self.settings, &self.ws, None);
        let look = ScanOptions {
            last,
            ..ScanOptions::default()
        };
        scan(&job, &filter, look).unwrap()
    }
}

impl Tree {
    /// Returns whether access rules deny the path or a folder above it.
    fn denies(&self, path: &RelPath, is_dir: bool) -> bool {
        let view = self.access.view().0;
        let above = std::iter::successors(path.parent(), RelPath::parent);
        let mut above = above.filter(|folder| !folder.is_root());
        view.check_entry(0, path, is_dir).is_some()
            || above.any(|folder| view.check_entry(0, &folder, true).is_some())
    }

    /// Scans until every stamp has settled, so that nothing is read again.
    fn settled(&self) -> Scan {
        let mut scan = self.look(None);
        while !is_settled(&scan.tree) {
            scan = self.look(Some(&scan));
        }
        scan
    }
}

fn is_settled(folder: &Folder) -> bool {
    folder.settled
        && folder.entries().all(|entry| match entry.node {
            Node::File(file) => file.settled,
            Node::Folder(below) => is_settled(below),
        })
}

fn rel(path: &str) -> RelPath {
    RelPath::new(Path::new(path)).unwrap()
}

fn file<'a>(scan: &'a Scan, path: &str) -> &'a File {
    scan.tree.find(&rel(path)).unwrap().file().unwrap()
}

fn blob(text: &str) -> Oid {
    name_of(Kind::Blob, text.as_bytes())
}

/// A stamp that was recent when the file was read does not prove anything: an edit of the same size
/// within the same clock tick leaves the same stamp. Ticks differ between systems, so the test sets
/// the stamp itself.
#[test]
fn t17_racy_edit_is_seen() {
    let tree = Tree::new("ws");
    tree.write("file", "first");
    let before = tree.look(None);
    assert!(!file(&before, "file").settled);
    tree.write("file", "other");
    let stamp = file(&tree.look(None), "file").stamp;
    // As if the first content had been read with the stamp of the second.
    let as_if = |settled| {
        let read = File {
            stamp,
            settled,
            ..file(&before, "file").clone()
        };
        let parts = Parts {
            stamp: before.tree.stamp,
            settled: before.tree.settled,
            entries: vec![(b"file".as_slice().into(), Node::File(read))],
            ..Parts::default()
        };
        Scan {
            tree: Arc::new(Folder::new(parts)),
            ..before.clone()
        }
    };
    let seen = tree.look(Some(&as_if(false)));
    assert_eq!(file(&seen, "file").oid, blob("other"));
    // A settled stamp is trusted, which shows that the test above is effective.
    let seen = tree.look(Some(&as_if(true)));
    assert_eq!(file(&seen, "file").oid, blob("first"));
}

/// A name added in the tick in which the folder was read leaves the same stamp.
#[test]
fn a_recently_changed_folder_is_read_again() {
    let tree = Tree::new("ws");
    let is_settled_after = |scan: &Scan| scan.tree.get(b"sub").unwrap().folder().unwrap().settled;
    // A slow machine may scan after the tick.
    let young = (0..1000).find_map(|n| {
        tree.write(&format!("sub/{n}"), "1");
        Some(tree.look(None)).filter(|scan| !is_settled_after(scan))
    });
    tree.settled();
    assert!(is_settled_after(&tree.look(young.as_ref())));
    assert!(young.is_some());
}

#[test]
fn a_stamp_is_settled_once_its_times_are_older_than_a_tick() {
    const SECOND: i64 = 1_000_000_000;
    let now = 1000 * SECOND + 5;
    let settled = |mtime, ctime| {
        let stamp = Stamp {
            mtime,
            ctime,
            ..Stamp::default()
        };
        stamp.is_settled(now)
    };
    assert!(settled(now - 10_000_001, 1));
    assert!(!settled(now - 10_000_000, 1) && !settled(1, now - 10_000_000));
    assert!(!settled(now + 1, 1));
    // A file system with a resolution of one second.
    assert!(!settled(998 * SECOND + SECOND, 0) && !settled(999 * SECOND, SECOND));
    assert!(settled(998 * SECOND, 997 * SECOND));
}

#[test]
fn unchanged_folders_are_shared_between_scans() {
    let tree = Tree::new("ws");
    for path in ["a/b/c", "a/d", "e/f"] {
        tree.write(path, path);
    }
    let scan = tree.settled();
    tree.write("e/f", "new");
    let changed = tree.look(Some(&scan));
    let folder = |scan: &Scan, path| {
        scan.tree
            .find(&rel(path))
            .unwrap()
            .folder()
            .unwrap()
            .clone()
    };
    assert!(Arc::ptr_eq(&folder(&scan, "a"), &folder(&changed, "a")));
    assert_ne!(folder(&scan, "e").oid, folder(&changed, "e").oid);
    assert!(changed.tree.find(&rel("e/f/g")).is_none());
    assert!(changed.tree.find(&rel("")).is_none());
}

/// No folder's stamp changes, and if the rule file ignores itself, no captured file's stamp either.
#[test]
fn a_rule_file_rewritten_in_place_is_noticed() {
    for itself in ["", ".gitignore\n"] {
        let tree = Tree::new("ws");
        tree.write("sub/a.log", "");
        tree.write("sub/deep/b.txt", "");
        tree.write("sub/.gitignore", &format!("*.log\n{itself}"));
        let before = tree.settled();
        assert!(before.tree.find(&rel("sub/a.log")).is_none());
        tree.write("sub/.gitignore", &format!("*.txt\n{itself}"));
        let after = tree.look(Some(&before));
        assert!(after.tree.find(&rel("sub/a.log")).is_some());
        assert!(after.tree.find(&rel("sub/deep/b.txt")).is_none());
    }
}

#[test]
fn too_many_exclusions_are_not_saved() {
    let tree = Tree::new("ws");
    tree.write(".gitignore", "*.log\n");
    let name = "x".repeat(100);
    let number = MAX_BYTES / (name.len() + 20);
    for at in 0..number - 2 {
        tree.write(&format!("{at:02}{name}.log"), "");
    }
    let few = tree.look(None);
    assert_eq!(
        few.exclusions.as_ref().as_ref().unwrap().ignored.len(),
        number - 2
    );
    for at in number..number + 4 {
        tree.write(&format!("{at:02}{name}.log"), "");
    }
    assert_eq!(*tree.look(Some(&few)).exclusions, None);
    // A folder counts once, whatever is in it.
    for at in 0..number * 4 {
        tree.write(&format!("many.log/{at:02}{name}"), "");
    }
    for at in 0..number + 4 {
        let _ = fs::remove_file(tree.ws.join(format!("{at:02}{name}.log")));
    }
    let one = tree.look(Some(&few));
    let ignored: Vec<&str> = one
        .exclusions
        .iter()
        .flat_map(|saved| &saved.ignored)
        .map(|path| &*path.path)
        .collect();
    assert_eq!(ignored, ["many.log"]);
}

#[test]
fn hashes_of_denied_paths_depend_on_the_salt() {
    let tree = Tree::new("ws");
    tree.write(".clineignore", "secret\n");
    tree.write("sub/secret", "");
    let saved = || tree.look(None).exclusions.as_ref().clone().unwrap();
    let (one, other) = (saved(), saved());
    assert_ne!(one.salt, other.salt);
    assert!(one.denied.iter().all(|hash| !other.denied.contains(hash)));
    assert!(one.denied.contains(&one.salt.hash(b"sub/secret")));
}

const NAMES: [&str; 8] = [
    "a",
    "b",
    "out",
    "x.log",
    "k.key",
    "node_modules",
    "nested",
    "A",
];

fn rules() -> impl Strategy<Value = String> {
    let lines = prop::sample::select(vec![
        "*.log",
        "/a",
        "!a",
        "out/",
        "a/b",
        "**/b",
        "*",
        "!*/",
        ".gitignore",
        "x*",
        "/nested/a",
        "ws/b",
        "!x.log",
    ]);
    prop::collection::vec(lines, 0..4).prop_map(|lines| lines.join("\n"))
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(NAMES.to_vec()), 1..4)
        .prop_map(|names| names.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Every path is captured, excluded (or below an excluded folder), or neither because it does
    /// not exist. A later scan that reuses the first one agrees.
    #[test]
    fn every_path_is_captured_or_excluded(
        files in prop::collection::vec(path(), 0..12),
        later in prop::collection::vec(path(), 0..4),
        ignores in prop::collection::vec((path(), rules()), 0..4),
        denied in prop::option::of(rules()),
        excludes in rules(),
        above in rules(),
        is_nested in any::<bool>(),
        tracked in prop::collection::vec(path(), 0..4),
    ) {
        let tree = Tree::new("repo/ws");
        let repo = tree.ws.parent().unwrap();
        for git in [repo.join(".git"), tree.ws.join("nested/.git")] {
            if git.starts_with(&tree.ws) && !is_nested {
                continue;
            }
            fs::create_dir_all(git.join("info")).unwrap();
            fs::write(git.join("HEAD"), "").unwrap();
            fs::write(git.join("info/exclude"), &excludes).unwrap();
            let below = if git.starts_with(&tree.ws) { "" } else { "ws/" };
            track(&git, tracked.iter().map(|path| format!("{below}{path}")));
        }
        fs::write(repo.join(".gitignore"), &above).unwrap();
        if let Some(denied) = &denied {
            fs::write(tree.ws.join(".clineignore"), denied).unwrap();
        }
        let create = |files: &[String]| {
            for file in files {
                let file = tree.ws.join(file);
                let _ = fs::create_dir_all(file.parent().unwrap());
                let _ = fs::write(file, "");
            }
        };
        create(&files);
        for (folder, text) in &ignores {
            let folder = tree.ws.join(folder);
            let folder = if folder.is_dir() { folder } else { tree.ws.clone() };
            fs::write(folder.join(".gitignore"), text).unwrap();
        }
        let mut last = None;
        for more in [&[][..], &later] {
            create(more);
            let scan = tree.look(last.as_ref());
            // Through JSON, as in a checkpoint.
            let saved = serde_json::to_string(&*scan.exclusions).unwrap();
            let saved: SavedExclusions = serde_json::from_str(&saved).unwrap();
            let ignored: HashSet<RelPath> =
                saved.ignored.iter().filter_map(NamedPath::to_path).collect();
            let skipped: HashSet<&str> =
                scan.skipped.iter().map(|skipped| &*skipped.path).collect();
            for (path, is_dir) in walk(&tree.ws) {
                if path.components().any(|name| name == ".git") {
                    continue;
                }
                let places = || std::iter::successors(Some(path.clone()), RelPath::parent);
                let is_captured = scan.tree.find(&path).is_some();
                let is_ignored = places().any(|path| ignored.contains(&path));
                let is_denied =
                    places().any(|path| saved.denied.contains(&saved.salt.hash_path(&path)));
                let is_skipped = places().any(|path| skipped.contains(&*path.to_wire().0));
                let found = [is_captured, is_ignored, is_denied, is_skipped];
                let number = found.iter().filter(|found| **found).count();
                prop_assert_eq!(number, 1, "{} {:?} {:?}", path, found, saved);
                // Only a path below an ignored or skipped folder may be denied without a hash, and
                // no denied path is named.
                let is_named = ignored.contains(&path) || skipped.contains(&*path.to_wire().0);
                if is_denied || is_captured || is_named {
                    prop_assert_eq!(is_denied, tree.denies(&path, is_dir), "{}", path);
                }
            }
            last = Some(scan);
        }
    }
}

/// Writes the index of a repository.
fn track(git: &Path, paths: impl Iterator<Item = String>) {
    let mut index = git2::Index::open(&git.join("index")).unwrap();
    for path in paths {
        let time = git2::IndexTime::new(0, 0);
        let entry = git2::IndexEntry {
            ctime: time,
            mtime: time,
            dev: 0,
            ino: 0,
            mode: 0o100_644,
            uid: 0,
            gid: 0,
            file_size: 0,
            id: git2::Oid::from_bytes(&blob("").0).unwrap(),
            flags: 0,
            flags_extended: 0,
            path: path.into_bytes(),
        };
        // A folder and a file with the same path replace each other.
        let _ = index.add(&entry);
    }
    index.write().unwrap();
}

/// A changed index is read again, but the tree is only filtered again if the tracked paths changed.
#[test]
fn an_irrelevant_index_change_keeps_the_tree() {
    let tree = Tree::new("ws");
    let git = tree.ws.join(".git");
    fs::create_dir_all(&git).unwrap();
    fs::write(git.join("HEAD"), "").unwrap();
    for path in ["a/b", "a/c.log", "d.log"] {
        tree.write(path, "");
    }
    tree.write(".gitignore", "*.log\n");
    track(&git, ["a/c.log".to_owned()].into_iter());
    let mut before = tree.settled();
    while before.git_index.fingerprint.is_none() {
        before = tree.look(Some(&before));
    }
    assert!(before.tree.find(&rel("a/c.log")).is_some());
    assert!(Arc::ptr_eq(
        &tree.look(Some(&before)).git_index,
        &before.git_index
    ));
    // If the index were read, the result would not be empty.
    let empty = Scan {
        git_index: Arc::new(GitIndexState {
            fingerprint: before.git_index.fingerprint,
            ..GitIndexState::default()
        }),
        ..before.clone()
    };
    assert!(tree.look(Some(&empty)).git_index.tracked.paths().is_empty());
    track(&git, ["a/b".to_owned()].into_iter());
    let after = tree.look(Some(&before));
    assert!(!Arc::ptr_eq(&after.git_index, &before.git_index));
    assert!(Arc::ptr_eq(&after.tree, &before.tree));
    track(&git, ["d.log".to_owned()].into_iter());
    assert!(tree.look(Some(&after)).tree.find(&rel("d.log")).is_some());
}

/// Returns every path below a folder, and whether it is a folder.
fn walk(top: &Path) -> Vec<(RelPath, bool)> {
    let mut found = Vec::new();
    let mut rest = vec![top.to_path_buf()];
    while let Some(folder) = rest.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            found.push((
                RelPath::new(path.strip_prefix(top).unwrap()).unwrap(),
                path.is_dir(),
            ));
            if path.is_dir() {
                rest.push(path);
            }
        }
    }
    found
}
