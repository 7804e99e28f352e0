//! Kills a restore at each crash point, then recovers.
//!
//! The restore runs in a child process, which aborts; the test then opens the same workspace.
#![cfg(unix)]

mod journals;
mod merges;
mod rollbacks;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
};

use sightline_access::Access;
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, RelPath, Root, Roots},
    storage::Storage,
};
use sightline_protocol::settings::{CheckpointSettings, Secrets};
use tempfile::TempDir;

use crate::restore::types::{Options, Part, Recovered, RestoreTarget, Scope, UnsavedTexts};
use crate::{
    checkpoints::Checkpoints, diff::DiffOptions, job::Job, list::Filter, metadata::Request,
    store::object::Oid, tree_diff::Side,
};

/// Number of crash points that this process has passed.
static PASSED: AtomicU64 = AtomicU64::new(0);
/// Number of the crash point where this process aborts; 0 for none.
static ABORT_AT: AtomicU64 = AtomicU64::new(0);

/// An act, and the number of crash points to pass before it.
type DelayedAct = (usize, Box<dyn FnOnce()>);

thread_local! {
    /// Actions for the next crash points of this thread, one each.
    static AT_CRASH_POINTS: RefCell<VecDeque<Box<dyn FnOnce()>>> = RefCell::default();
    /// Action for a crash point under a lease, and the number of points to skip before it.
    static AT_CRASH_POINT_UNDER_LEASE: Cell<Option<DelayedAct>> = Cell::default();
}

/// Sets actions for the next crash points of this thread; `None` skips one.
pub(in crate::restore) fn at_crash_points(acts: Vec<Option<Box<dyn FnOnce()>>>) {
    let acts = acts.into_iter().map(|act| act.unwrap_or(Box::new(|| ())));
    AT_CRASH_POINTS.with_borrow_mut(|all| *all = acts.collect());
}

/// Sets an action for a crash point under a lease, after skipping `later` of them.
pub(in crate::restore) fn at_crash_point_under_lease(later: usize, act: Box<dyn FnOnce()>) {
    AT_CRASH_POINT_UNDER_LEASE.set(Some((later, act)));
}

#[cfg(target_os = "linux")]
pub(in crate::restore) fn cancel_crash_point_under_lease() {
    AT_CRASH_POINT_UNDER_LEASE.take();
}

/// Passes a crash point.
pub(in crate::restore) fn crash_point() {
    let act = AT_CRASH_POINTS.with_borrow_mut(VecDeque::pop_front);
    if let Some(act) = act {
        act();
    }
    count_crash_point();
}

/// Passes a crash point where a save by another program waits for this thread.
pub(in crate::restore) fn crash_point_under_lease() {
    match AT_CRASH_POINT_UNDER_LEASE.take() {
        Some((0, act)) => act(),
        Some((later, act)) => at_crash_point_under_lease(later - 1, act),
        None => {}
    }
    count_crash_point();
}

fn count_crash_point() {
    let passed = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
    if passed == ABORT_AT.load(Ordering::SeqCst) {
        std::process::abort();
    }
}

const BASE: &str = "RESTORE_KILL_BASE";
const AT: &str = "RESTORE_KILL_AT";
const WHAT: &str = "RESTORE_KILL_WHAT";

struct Fixture {
    base: PathBuf,
    root: PathBuf,
    checkpoints: Checkpoints,
}

impl Fixture {
    fn at(base: &Path) -> Self {
        let root = base.join("ws");
        let storage = Storage::open(&base.join("data")).unwrap();
        Self {
            base: base.to_path_buf(),
            checkpoints: Checkpoints::new(&storage, &workspace(&root)),
            root,
        }
    }

    fn job<R>(&self, act: impl FnOnce(&Job<'_>) -> R) -> R {
        let roots = Roots::new(vec![workspace(&self.root)]);
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

    fn create(&self) -> Oid {
        let created = self.job(|job| self.checkpoints.create(job, &Request::default(), None));
        created.unwrap().id
    }

    fn restore(&self, id: Oid) {
        self.restore_in(id, Scope::All);
    }

    fn restore_in(&self, id: Oid, scope: Scope) {
        let wanted = RestoreTarget {
            id,
            paths: Vec::new(),
            scope,
        };
        let options = Options::default();
        let restored = self.job(|job| {
            self.checkpoints
                .restore(job, &wanted, &Default::default(), &options)
        });
        for outcome in restored.unwrap().outcomes {
            assert_eq!(outcome.error, None, "{}", outcome.path);
        }
    }

    /// Reverts what changed between the two newest checkpoints.
    fn revert(&self) {
        let [until, id, ..] = &self.checkpoints.list(&Filter::default()).unwrap()[..] else {
            panic!("fewer than two checkpoints");
        };
        self.restore_in(
            id.id,
            Scope::Part(Part {
                until: Side::Checkpoint(until.id),
                hunks: Vec::new(),
            }),
        );
    }

    fn recover(&self) -> Option<Recovered> {
        self.job(|job| self.checkpoints.recover(job)).unwrap()
    }

    fn newest(&self) -> Oid {
        self.checkpoints.list(&Filter::default()).unwrap()[0].id
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.root.join(path);
        match fs::symlink_metadata(&path).unwrap().is_dir() {
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }

    fn link(&self, target: &str, path: &str) {
        std::os::unix::fs::symlink(target, self.root.join(path)).unwrap();
    }

    fn chmod(&self, path: &str, mode: u32) {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(self.root.join(path), permissions).unwrap();
    }

    /// Returns the type, permissions and content of every path.
    fn tree(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        let mut todo = vec![PathBuf::new()];
        while let Some(folder) = todo.pop() {
            for entry in fs::read_dir(self.root.join(&folder)).unwrap() {
                let path = folder.join(entry.unwrap().file_name());
                let at = self.root.join(&path);
                let metadata = fs::symlink_metadata(&at).unwrap();
                let thing = if metadata.is_dir() {
                    todo.push(path.clone());
                    "folder".to_owned()
                } else if metadata.is_symlink() {
                    format!("link {}", fs::read_link(at).unwrap().display())
                } else {
                    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
                    let readers = if mode & 0o044 == 0 { "!" } else { "" };
                    let text = fs::read_to_string(at).unwrap();
                    format!("{:o}{readers} {text}", mode & 0o100)
                };
                all.insert(path, thing);
            }
        }
        all
    }

    /// Runs `what` in a child process that aborts at a crash point. Returns false if it passed fewer.
    fn crashes(&self, what: &str, at: u64) -> bool {
        let status = Command::new(env::current_exe().unwrap())
            .args(["--exact", "restore::tests::crashes::crash_in_child_process"])
            .env(BASE, &self.base)
            .env(WHAT, what)
            .env(AT, at.to_string())
            .output()
            .unwrap()
            .status;
        // 101 means that the test in the child failed.
        assert_ne!(status.code(), Some(101));
        !status.success()
    }
}

fn workspace(root: &Path) -> Root {
    Root::new(AbsPath::new(root).unwrap(), None)
}

/// Runs in the child process of the other tests.
#[test]
fn crash_in_child_process() {
    let Some(base) = env::var_os(BASE) else {
        return;
    };
    let fixture = Fixture::at(Path::new(&base));
    ABORT_AT.store(env::var(AT).unwrap().parse().unwrap(), Ordering::SeqCst);
    match env::var(WHAT).unwrap().as_str() {
        "restore" => fixture.restore(fixture.newest()),
        "restore without shrinks" => {
            let wanted = RestoreTarget {
                id: fixture.newest(),
                paths: Vec::new(),
                scope: Scope::All,
            };
            let unsaved = UnsavedTexts::from([(RelPath::new(Path::new("shrinks")).unwrap(), None)]);
            let options = Options::default();
            let restore = |job: &Job<'_>| {
                fixture
                    .checkpoints
                    .restore(job, &wanted, &unsaved, &options)
            };
            fixture.job(restore).unwrap();
        }
        "revert" => fixture.revert(),
        _ => {
            fixture.recover();
        }
    }
}

/// Creates a checkpoint with all types of files, then changes all of them.
fn changed_fixture() -> (TempDir, Fixture, Oid) {
    let folder = tempfile::tempdir().unwrap();
    let base = sightline_base::path::canonicalize(folder.path()).unwrap();
    fs::create_dir(base.join("ws")).unwrap();
    let fixture = Fixture::at(&base);
    for (path, text) in [
        ("grows", "a much longer content"),
        ("shrinks", "short"),
        ("gone/deep/er", "it was deleted"),
        ("folder-now", "a file"),
        ("tool", "#!"),
        ("tool2", "#! also changed"),
        ("named-twice", "one"),
        ("link-now", "a file"),
        ("was-folder/x", "in a folder"),
        ("same", "same"),
    ] {
        fixture.write(path, text);
    }
    fixture.link("same", "link");
    fixture.link("same", "file-now");
    fixture.chmod("gone/deep/er", 0o600);
    fixture.chmod("tool", 0o755);
    fixture.chmod("tool2", 0o755);
    fs::create_dir(fixture.root.join("empty")).unwrap();
    let id = fixture.create();
    for path in [
        "gone",
        "folder-now",
        "link-now",
        "was-folder",
        "link",
        "file-now",
        "empty",
    ] {
        fixture.remove(path);
    }
    for (path, text) in [
        ("grows", "short"),
        ("shrinks", "this was not so long before"),
        ("folder-now/a/b", "in a folder"),
        ("named-twice", "two"),
        ("was-folder", "a file"),
        ("file-now", "a file"),
        ("new/file", "new"),
        ("tool2", "#! changed"),
    ] {
        fixture.write(path, text);
    }
    fixture.link("grows", "link");
    fixture.link("grows", "link-now");
    fs::hard_link(fixture.root.join("named-twice"), base.join("other-name")).unwrap();
    fixture.chmod("tool", 0o644);
    fixture.chmod("tool2", 0o644);
    (folder, fixture, id)
}

#[test]
fn a_restore_killed_at_any_point_is_recovered() {
    let (mut interrupted, mut partly_written) = (0, 0);
    for at in 1.. {
        let (_folder, fixture, id) = changed_fixture();
        let before = fixture.tree();
        if !fixture.crashes("restore", at) {
            break;
        }
        let found = Fixture::at(&fixture.base);
        // Recovery is killed too, each time one point later.
        for again in 1.. {
            if !found.crashes("recover", again) {
                break;
            }
        }
        assert_eq!(found.recover(), None, "step {at}: recovered already");
        let undo = found.checkpoints.last_undo().unwrap().unwrap();
        let mut recovered = found.tree();
        partly_written += take_kept(&mut recovered).len();
        interrupted += 1;
        let made = &recovered[Path::new("gone/deep/er")];
        assert_eq!(
            made, "0! it was deleted",
            "step {at}: readable only by its owner"
        );
        found.write("later", "later");
        found.restore_in(undo, Scope::Undo);
        let mut undone = found.tree();
        take_kept(&mut undone);
        assert!(undone.remove(Path::new("later")).is_some(), "step {at}");
        assert_eq!(undone, before, "step {at}: the undo");
        found.restore(undo);
        assert_eq!(found.tree(), before, "step {at}: the undo point");
        found.restore(id);
        assert_eq!(found.tree(), recovered, "step {at}: the checkpoint");
    }
    // Every file has several crash points.
    assert!(interrupted > 40, "{interrupted} steps");
    if cfg!(target_os = "linux") {
        assert!(partly_written > 3, "{partly_written} versions kept");
    }
}

/// Removes the partly written files that recovery kept, and returns them.
fn take_kept(tree: &mut BTreeMap<PathBuf, String>) -> Vec<(PathBuf, String)> {
    let is_kept = |path: &Path| path.extension().is_some_and(|it| it == "kept-1");
    tree.extract_if(.., |path, _| is_kept(path)).collect()
}

#[test]
fn the_next_restore_completes_an_interrupted_one_first() {
    let (_folder, fixture, id) = changed_fixture();
    assert!(fixture.crashes("restore", 9));
    fixture.write("new/later", "later");
    let undo = fixture.checkpoints.last_undo().unwrap().unwrap();
    fixture.restore(undo);
    assert!(!fixture.tree().contains_key(Path::new("new/later")));
    let second = fixture.checkpoints.last_undo().unwrap().unwrap();
    assert_ne!(second, undo);
    // The interrupted restore was completed first: the undo point contains its result.
    let options = DiffOptions {
        paths: Vec::new(),
        contents: false,
        max_file_bytes: 0,
        max_total_bytes: 0,
    };
    let (from, to) = (Side::Checkpoint(id), Side::Checkpoint(second));
    let differences = fixture.job(|job| fixture.checkpoints.diff(job, &from, &to, &options));
    let differences = differences.unwrap();
    let paths = differences.iter().map(|file| file.path.to_string());
    assert_eq!(paths.collect::<Vec<_>>(), ["new/later"]);
    fixture.restore(id);
}

#[test]
fn recovery_leaves_conflicts_of_the_restore_as_they_are() {
    let (_folder, fixture, _) = changed_fixture();
    assert!(fixture.crashes("restore without shrinks", 1));
    assert!(fixture.recover().unwrap().completed);
    let tree = fixture.tree();
    assert_eq!(tree[Path::new("grows")], "0 a much longer content");
    assert_eq!(tree[Path::new("shrinks")], "0 this was not so long before");
}

#[test]
fn a_file_changed_after_the_interruption_is_left_as_it_is() {
    let (_folder, fixture, id) = changed_fixture();
    // Right after the journal was written.
    assert!(fixture.crashes("restore", 1));
    fixture.write("shrinks", "mine");
    fixture.write("gone", "mine too");
    fixture.remove("link");
    fixture.link("mine", "link");
    let recovered = fixture.recover().unwrap();
    assert!(recovered.completed && recovered.restoring == id);
    let problems = recovered.problems.iter();
    let problems: Vec<String> = problems.map(|problem| problem.path.to_string()).collect();
    assert_eq!(problems, ["gone/deep/er", "link", "shrinks"]);
    let tree = fixture.tree();
    let at = |path: &str| tree.get(Path::new(path)).cloned();
    assert_eq!(at("shrinks").as_deref(), Some("0 mine"));
    assert_eq!(at("gone").as_deref(), Some("0 mine too"));
    assert_eq!(at("link").as_deref(), Some("link mine"));
    assert_eq!(at("grows").as_deref(), Some("0 a much longer content"));
    assert_eq!(at("was-folder/x").as_deref(), Some("0 in a folder"));
}

/// Returns the temporary files and their content.
fn temp_files(fixture: &Fixture) -> Vec<(PathBuf, String)> {
    let tree = fixture.tree().into_iter();
    tree.filter(|(path, _)| path.extension().is_some_and(|it| it == "sightline-restore"))
        .collect()
}

#[test]
fn a_shorter_save_after_the_interruption_is_not_lost() {
    // Each could be a partly written file of a killed process.
    let saves = [("a much longer con", ""), ("", "sho"), ("a much", "short")];
    for (at, (grows, shrinks)) in (1..50).step_by(4).zip(saves.into_iter().cycle()) {
        let (_folder, fixture, _) = changed_fixture();
        assert!(fixture.crashes("restore", at));
        fixture.write("grows", grows);
        fixture.write("shrinks", shrinks);
        let recovered = fixture.recover();
        let tree = fixture.tree();
        for (path, text) in [("grows", grows), ("shrinks", shrinks)] {
            let saved = format!("0 {text}");
            let kept = tree.get(Path::new(&format!("{path}.kept-1")));
            let names_it = |recovered: &Recovered| {
                let mut problems = recovered.problems.iter();
                problems.any(|problem| problem.path.to_string() == path)
            };
            assert!(
                tree[Path::new(path)] == saved
                    || kept == Some(&saved) && recovered.as_ref().is_some_and(names_it),
                "step {at}: {path}: {tree:?}, {recovered:?}"
            );
        }
    }
}

#[test]
fn a_displaced_file_saved_after_the_interruption_is_not_lost() {
    let mut displaced = 0;
    for at in 1..70 {
        let (_folder, fixture, _) = changed_fixture();
        let before = fixture.tree();
        if !fixture.crashes("restore", at) {
            break;
        }
        let mut saved = Vec::new();
        for (path, holds) in temp_files(&fixture) {
            // Ignore new files: only displaced ones can be open in another program.
            let was = before
                .iter()
                .find(|(path, was)| **was == holds && path.extension().is_none());
            if let Some((was, _)) = was.filter(|_| holds.len() > 4 && !holds.starts_with("link")) {
                let text = format!("saved {}", was.display());
                fixture.write(path.to_str().unwrap(), &text);
                saved.push((was.clone(), text));
            }
        }
        displaced += saved.len();
        // There is nothing to recover at the last crash points.
        let recovered = fixture.recover();
        let problems = recovered.map_or_else(Vec::new, |recovered| recovered.problems);
        let mut tree = fixture.tree();
        for (path, text) in &saved {
            assert!(
                tree.values().any(|holds| holds.ends_with(text)),
                "step {at}: {path:?}"
            );
        }
        // Recovery also reports a file that the restore was writing in place.
        let is_reported = !saved.is_empty() || !take_kept(&mut tree).is_empty();
        assert_eq!(problems.is_empty(), !is_reported, "step {at}: {problems:?}");
        assert_eq!(temp_files(&fixture), Vec::new(), "step {at}");
    }
    assert!(displaced > 0);
}

#[test]
fn a_file_created_after_the_interruption_is_left_as_it_is() {
    let (_folder, fixture, _) = changed_fixture();
    assert!(fixture.crashes("restore", 1));
    // A prefix of the file to delete.
    fixture.write("new/file", "ne");
    fixture.write("was-folder", "a fi");
    fixture.remove("tool2");
    let made = std::process::Command::new("mkfifo")
        .arg(fixture.root.join("tool2"))
        .status();
    assert!(made.unwrap().success());
    fixture.write("gone/deep/er/mine", "mine");
    let problems = fixture.recover().unwrap().problems.into_iter();
    let problems: Vec<String> = problems.map(|problem| problem.path.to_string()).collect();
    assert_eq!(
        problems,
        [
            "gone/deep/er",
            "new/file",
            "tool2",
            "was-folder",
            "was-folder/x"
        ]
    );
    fixture.remove("tool2");
    let tree = fixture.tree();
    assert_eq!(tree[Path::new("new/file")], "0 ne");
    assert_eq!(tree[Path::new("was-folder")], "0 a fi");
    assert_eq!(tree[Path::new("gone/deep/er/mine")], "0 mine");
}

#[test]
fn an_obstacle_created_after_the_interruption_is_left_as_it_is() {
    let (_folder, fixture, _) = changed_fixture();
    assert!(fixture.crashes("restore", 1));
    // A pipe in place of a deleted file, and a folder in place of a changed one.
    let made = Command::new("mkfifo")
        .arg(fixture.root.join("gone"))
        .status();
    assert!(made.unwrap().success());
    fixture.remove("shrinks");
    fixture.write("shrinks/mine", "mine");
    let recovered = fixture.recover().unwrap();
    let problems = recovered.problems.iter();
    let problems: Vec<String> = problems.map(|problem| problem.path.to_string()).collect();
    assert_eq!(problems, ["gone/deep/er", "shrinks"]);
    let gone = fs::symlink_metadata(fixture.root.join("gone")).unwrap();
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&gone.file_type()));
    let mine = fs::read_to_string(fixture.root.join("shrinks/mine"));
    assert_eq!(mine.unwrap(), "mine");
}

#[test]
fn recovery_keeps_an_empty_folder_that_is_denied_now() {
    let (_folder, fixture, _) = changed_fixture();
    assert!(fixture.crashes("restore", 1));
    // Otherwise deleted: the checkpoint has neither the folder nor the file.
    fixture.remove("new/file");
    fixture.write(".clineignore", "new\n");
    fixture.recover().unwrap();
    assert!(fixture.root.join("new").is_dir());
}
