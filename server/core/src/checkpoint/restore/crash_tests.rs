//! Killing a restore at any of its steps, and recovering: a process of its own
//! dies, another one finds what it left.
#![cfg(unix)]

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
};

use tempfile::TempDir;

use super::{Options, Recovered, RestoreTarget};
use crate::{
    access::Access,
    cancel::Cancel,
    checkpoint::{Checkpoints, Filter, Job, Oid, Request, Settings, Side, diff::DiffOptions},
    path::{AbsPath, RelPath, Root, Roots},
    storage::Storage,
};

/// Steps taken by this process.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// The step this process dies at; none while it is 0.
static LAST: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// What happens at the next steps of this thread, one a step.
    static AT_STEPS: RefCell<VecDeque<Box<dyn FnOnce()>>> = RefCell::default();
    /// What happens at a step under a lease, after how many others.
    static AT_STEP_UNDER_LEASE: Cell<Option<(usize, Box<dyn FnOnce()>)>> = Cell::default();
}

/// Acts when this thread takes its next steps; `None` lets one pass.
pub(super) fn at_steps(acts: Vec<Option<Box<dyn FnOnce()>>>) {
    let acts = acts.into_iter().map(|act| act.unwrap_or(Box::new(|| ())));
    AT_STEPS.with_borrow_mut(|all| *all = acts.collect());
}

/// Acts once, when this thread takes its next step but `later` under a lease.
pub(super) fn at_step_under_lease(later: usize, act: Box<dyn FnOnce()>) {
    AT_STEP_UNDER_LEASE.set(Some((later, act)));
}

pub(super) fn cancel_step_under_lease() {
    AT_STEP_UNDER_LEASE.take();
}

/// One more step; maybe the last one.
pub(super) fn step() {
    let act = AT_STEPS.with_borrow_mut(VecDeque::pop_front);
    if let Some(act) = act {
        act();
    }
    count_step();
}

/// One more step, at which a save would wait for this thread.
pub(super) fn step_under_lease() {
    match AT_STEP_UNDER_LEASE.take() {
        Some((0, act)) => act(),
        Some((later, act)) => at_step_under_lease(later - 1, act),
        None => {}
    }
    count_step();
}

fn count_step() {
    let steps = STEPS.fetch_add(1, Ordering::SeqCst) + 1;
    if steps == LAST.load(Ordering::SeqCst) {
        std::process::abort();
    }
}

const BASE: &str = "RESTORE_KILL_BASE";
const AT: &str = "RESTORE_KILL_AT";
const WHAT: &str = "RESTORE_KILL_WHAT";

struct Ground {
    base: PathBuf,
    root: PathBuf,
    checkpoints: Checkpoints,
}

impl Ground {
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
        let view = Access::new(roots.into(), Vec::new()).view().0;
        act(&Job {
            view: &view,
            root: 0,
            settings: &Settings::default(),
            cancel: &Cancel::default(),
            progress: &|_| {},
        })
    }

    fn create(&self) -> Oid {
        let created = self.job(|job| self.checkpoints.create(job, &Request::default(), None));
        created.unwrap().id
    }

    fn restore(&self, id: Oid) {
        let wanted = RestoreTarget {
            id,
            paths: Vec::new(),
        };
        let options = Options::default();
        let restored = self.job(|job| self.checkpoints.restore(job, &wanted, &[], &options));
        for outcome in restored.unwrap().outcomes {
            assert_eq!(outcome.error, None, "{}", outcome.path);
        }
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
        let rights = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(self.root.join(path), rights).unwrap();
    }

    /// Every path with what it is and holds.
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

    /// Lets another process do it and die at a step; false when it has fewer.
    fn dies(&self, what: &str, at: u64) -> bool {
        let status = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "checkpoint::restore::crash_tests::a_process_of_its_own",
            ])
            .env(BASE, &self.base)
            .env(WHAT, what)
            .env(AT, at.to_string())
            .output()
            .unwrap()
            .status;
        // By a signal, or it is the child's test that failed.
        assert_ne!(status.code(), Some(101));
        !status.success()
    }
}

fn workspace(root: &Path) -> Root {
    Root::new(AbsPath::new(root).unwrap(), None)
}

/// The one that dies: of the other tests only.
#[test]
fn a_process_of_its_own() {
    let Some(base) = env::var_os(BASE) else {
        return;
    };
    let ground = Ground::at(Path::new(&base));
    LAST.store(env::var(AT).unwrap().parse().unwrap(), Ordering::SeqCst);
    match env::var(WHAT).unwrap().as_str() {
        "restore" => ground.restore(ground.newest()),
        "restore without shrinks" => {
            let wanted = RestoreTarget {
                id: ground.newest(),
                paths: Vec::new(),
            };
            let unsaved = [RelPath::new(Path::new("shrinks")).unwrap()];
            let options = Options::default();
            let restore =
                |job: &Job<'_>| ground.checkpoints.restore(job, &wanted, &unsaved, &options);
            ground.job(restore).unwrap();
        }
        _ => {
            ground.recover();
        }
    }
}

/// A checkpoint of every kind of thing, and everything changed since.
fn changed_ground() -> (TempDir, Ground, Oid) {
    let folder = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir(base.join("ws")).unwrap();
    let ground = Ground::at(&base);
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
        ground.write(path, text);
    }
    ground.link("same", "link");
    ground.link("same", "file-now");
    ground.chmod("gone/deep/er", 0o600);
    ground.chmod("tool", 0o755);
    ground.chmod("tool2", 0o755);
    fs::create_dir(ground.root.join("empty")).unwrap();
    let id = ground.create();
    for path in [
        "gone",
        "folder-now",
        "link-now",
        "was-folder",
        "link",
        "file-now",
        "empty",
    ] {
        ground.remove(path);
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
        ground.write(path, text);
    }
    ground.link("grows", "link");
    ground.link("grows", "link-now");
    fs::hard_link(ground.root.join("named-twice"), base.join("other-name")).unwrap();
    ground.chmod("tool", 0o644);
    ground.chmod("tool2", 0o644);
    (folder, ground, id)
}

#[test]
fn t15_kill_at_every_journal_step_then_recover() {
    let (mut interrupted, mut partly_written) = (0, 0);
    for at in 1.. {
        let (_folder, ground, id) = changed_ground();
        let before = ground.tree();
        if !ground.dies("restore", at) {
            break;
        }
        let found = Ground::at(&ground.base);
        // Recovering may be killed too, each time a step later.
        for again in 1.. {
            if !found.dies("recover", again) {
                break;
            }
        }
        assert_eq!(found.recover(), None, "step {at}: recovered already");
        let undo = found.checkpoints.last_undo().unwrap().unwrap();
        let mut recovered = found.tree();
        partly_written += take_kept(&mut recovered).len();
        interrupted += 1;
        let made = &recovered[Path::new("gone/deep/er")];
        assert_eq!(made, "0! it was deleted", "step {at}: for its owner");
        found.restore(undo);
        assert_eq!(found.tree(), before, "step {at}: the undo point");
        found.restore(id);
        assert_eq!(found.tree(), recovered, "step {at}: as the checkpoint");
    }
    // Every file has several steps.
    assert!(interrupted > 40, "{interrupted} steps");
    if cfg!(target_os = "linux") {
        assert!(partly_written > 3, "{partly_written} versions kept");
    }
}

/// Takes out what recovery kept of files that were partly written.
fn take_kept(tree: &mut BTreeMap<PathBuf, String>) -> Vec<(PathBuf, String)> {
    let is_kept = |path: &Path| path.extension().is_some_and(|it| it == "kept-1");
    let kept = tree.extract_if(.., |path, _| is_kept(path)).collect();
    kept
}

#[test]
fn an_interrupted_restore_is_completed_by_the_next_one_too() {
    let (_folder, ground, id) = changed_ground();
    assert!(ground.dies("restore", 9));
    ground.write("new/later", "later");
    let undo = ground.checkpoints.last_undo().unwrap().unwrap();
    ground.restore(undo);
    assert!(!ground.tree().contains_key(Path::new("new/later")));
    let second = ground.checkpoints.last_undo().unwrap().unwrap();
    assert_ne!(second, undo);
    // The interrupted one was completed first: its undo point has all of that.
    let options = DiffOptions {
        paths: Vec::new(),
        contents: false,
        max_file_bytes: 0,
        max_total_bytes: 0,
    };
    let (from, to) = (Side::Checkpoint(id), Side::Checkpoint(second));
    let differences = ground.job(|job| ground.checkpoints.diff(job, &from, &to, &options));
    let differences = differences.unwrap();
    let paths = differences.iter().map(|file| file.path.to_string());
    assert_eq!(paths.collect::<Vec<_>>(), ["new/later"]);
    ground.restore(id);
}

#[test]
fn recovery_leaves_alone_what_the_restore_left_alone() {
    let (_folder, ground, _) = changed_ground();
    assert!(ground.dies("restore without shrinks", 1));
    assert!(ground.recover().unwrap().completed);
    let tree = ground.tree();
    assert_eq!(tree[Path::new("grows")], "0 a much longer content");
    assert_eq!(tree[Path::new("shrinks")], "0 this was not so long before");
}

#[test]
fn a_journal_whose_checkpoints_are_gone_is_set_aside_once() {
    let (_folder, ground, _) = changed_ground();
    assert!(ground.dies("restore", 3));
    let before = ground.tree();
    let refs = ground.checkpoints.git_dir().join("refs");
    fs::remove_dir_all(&refs).unwrap();
    fs::create_dir_all(refs.join("heads")).unwrap();
    let _ = fs::remove_file(ground.checkpoints.git_dir().join("packed-refs"));
    let found = Ground::at(&ground.base);
    let error = found.job(|job| found.checkpoints.recover(job)).unwrap_err();
    assert!(error.message.contains(".corrupt-"), "{error}");
    assert_eq!(found.recover(), None);
    assert_eq!(found.tree(), before);
}

#[test]
fn what_someone_changed_after_the_interruption_stays() {
    let (_folder, ground, id) = changed_ground();
    // Right after the journal was written.
    assert!(ground.dies("restore", 1));
    ground.write("shrinks", "mine");
    ground.write("gone", "mine too");
    ground.remove("link");
    ground.link("mine", "link");
    let recovered = ground.recover().unwrap();
    assert!(recovered.completed && recovered.restoring == id);
    let problems = recovered.problems.iter();
    let problems: Vec<String> = problems.map(|problem| problem.path.to_string()).collect();
    assert_eq!(problems, ["gone/deep/er", "link", "shrinks"]);
    let tree = ground.tree();
    let at = |path: &str| tree.get(Path::new(path)).cloned();
    assert_eq!(at("shrinks").as_deref(), Some("0 mine"));
    assert_eq!(at("gone").as_deref(), Some("0 mine too"));
    assert_eq!(at("link").as_deref(), Some("link mine"));
    assert_eq!(at("grows").as_deref(), Some("0 a much longer content"));
    assert_eq!(at("was-folder/x").as_deref(), Some("0 in a folder"));
}

/// The names of unfinished files, and what they hold.
fn beside(ground: &Ground) -> Vec<(PathBuf, String)> {
    let tree = ground.tree().into_iter();
    tree.filter(|(path, _)| path.extension().is_some_and(|it| it == "sightline-restore"))
        .collect()
}

#[test]
fn what_was_saved_shorter_after_the_interruption_stays() {
    // As far as each would have been written by one who was killed meanwhile.
    let saves = [("a much longer con", ""), ("", "sho"), ("a much", "short")];
    for (at, (grows, shrinks)) in (1..50).step_by(4).zip(saves.into_iter().cycle()) {
        let (_folder, ground, _) = changed_ground();
        assert!(ground.dies("restore", at));
        ground.write("grows", grows);
        ground.write("shrinks", shrinks);
        let recovered = ground.recover();
        let tree = ground.tree();
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
fn what_was_taken_out_and_saved_after_the_interruption_gets_its_place_back() {
    let mut taken_out = 0;
    for at in (1..70).step_by(2) {
        let (_folder, ground, _) = changed_ground();
        let before = ground.tree();
        if !ground.dies("restore", at) {
            break;
        }
        let mut saved = Vec::new();
        for (path, holds) in beside(&ground) {
            // A new file is nobody's yet.
            let was = before
                .iter()
                .find(|(path, was)| **was == holds && path.extension().is_none());
            if let Some((was, _)) = was.filter(|_| holds.len() > 4 && !holds.starts_with("link")) {
                let text = format!("saved {}", was.display());
                ground.write(path.to_str().unwrap(), &text);
                saved.push((was.clone(), text));
            }
        }
        taken_out += saved.len();
        let is_any = !saved.is_empty();
        let problems = ground.recover().unwrap().problems;
        let tree = ground.tree();
        for (path, text) in saved {
            assert!(
                tree.values().any(|holds| holds.ends_with(&text)),
                "step {at}: {path:?}"
            );
        }
        assert_eq!(problems.is_empty(), !is_any, "step {at}: {problems:?}");
        assert_eq!(beside(&ground), Vec::new(), "step {at}");
    }
    assert!(taken_out > 0);
}

#[test]
fn what_takes_a_place_after_the_interruption_stays() {
    let (_folder, ground, _) = changed_ground();
    assert!(ground.dies("restore", 1));
    // The beginning of what is to be deleted.
    ground.write("new/file", "ne");
    ground.write("was-folder", "a fi");
    ground.remove("tool2");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        ground.root.join("tool2"),
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    ground.write("gone/deep/er/mine", "mine");
    let problems = ground.recover().unwrap().problems.into_iter();
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
    ground.remove("tool2");
    let tree = ground.tree();
    assert_eq!(tree[Path::new("new/file")], "0 ne");
    assert_eq!(tree[Path::new("was-folder")], "0 a fi");
    assert_eq!(tree[Path::new("gone/deep/er/mine")], "0 mine");
}

#[test]
fn a_restore_whose_contents_are_lost_is_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir(base.join("ws")).unwrap();
    let ground = Ground::at(&base);
    let packs = || {
        let packs = fs::read_dir(ground.checkpoints.git_dir().join("objects/pack")).unwrap();
        packs.map(|pack| pack.unwrap().path()).collect::<Vec<_>>()
    };
    ground.write("lost", "this content is lost");
    ground.create();
    let first = packs();
    ground.write("a", "1");
    ground.write("z", "1");
    ground.create();
    ground.write("a", "2");
    ground.write("lost", "2");
    ground.write("z", "2");
    let before = ground.tree();
    // When a part of it is done, and the rest not yet begun.
    assert!(ground.dies("restore", 6));
    assert_ne!(ground.tree(), before);
    for pack in first {
        fs::remove_file(pack).unwrap();
    }
    let recovered = Ground::at(&base).recover().unwrap();
    assert!(!recovered.completed);
    assert_eq!(recovered.problems, Vec::new());
    assert_eq!(ground.tree(), before);
}

#[test]
fn a_journal_that_makes_no_sense_is_set_aside_and_said() {
    let (_folder, ground, _) = changed_ground();
    assert!(ground.dies("restore", 3));
    let journal = ground.checkpoints.state_dir().join("journal.json");
    fs::write(&journal, "{").unwrap();
    let error = ground
        .job(|job| ground.checkpoints.recover(job))
        .unwrap_err();
    assert!(error.message.contains(".corrupt-"), "{error}");
    assert!(!journal.exists());
    assert_eq!(ground.recover(), None);
}

#[test]
fn a_journal_is_followed_only_as_a_whole() {
    let (_folder, ground, _) = changed_ground();
    assert!(ground.dies("restore", 1));
    let before = ground.tree();
    let path = ground.checkpoints.state_dir().join("journal.json");
    let sound: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let outside = serde_json::json!([{ "path": "../outside" }]);
    for (field, value) in [
        ("version", serde_json::json!(2)),
        ("paths", outside.clone()),
        ("leftAlone", outside),
    ] {
        let mut journal = sound.clone();
        assert!(journal.get(field).is_some(), "{field}");
        journal[field] = value;
        fs::write(&path, journal.to_string()).unwrap();
        let recovered = ground.job(|job| ground.checkpoints.recover(job));
        let error = recovered.unwrap_err();
        assert!(error.message.contains(".corrupt-"), "{field}: {error}");
        assert_eq!(ground.recover(), None, "{field}");
        assert_eq!(ground.tree(), before, "{field}");
    }
}

#[test]
fn what_someone_put_in_the_way_after_the_interruption_stays() {
    let (_folder, ground, _) = changed_ground();
    assert!(ground.dies("restore", 1));
    // A pipe where a file is to come back, and a folder where a file is replaced.
    let made = Command::new("mkfifo")
        .arg(ground.root.join("gone"))
        .status();
    assert!(made.unwrap().success());
    ground.remove("shrinks");
    ground.write("shrinks/mine", "mine");
    let recovered = ground.recover().unwrap();
    let problems = recovered.problems.iter();
    let problems: Vec<String> = problems.map(|problem| problem.path.to_string()).collect();
    assert_eq!(problems, ["gone/deep/er", "shrinks"]);
    let gone = fs::symlink_metadata(ground.root.join("gone")).unwrap();
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&gone.file_type()));
    let mine = fs::read_to_string(ground.root.join("shrinks/mine"));
    assert_eq!(mine.unwrap(), "mine");
}

#[test]
fn recovery_keeps_an_empty_folder_that_rules_deny_by_now() {
    let (_folder, ground, _) = changed_ground();
    assert!(ground.dies("restore", 1));
    // It would go, as the checkpoint has neither folder nor file.
    ground.remove("new/file");
    ground.write(".clineignore", "new\n");
    ground.recover().unwrap();
    assert!(ground.root.join("new").is_dir());
}

#[test]
fn a_restore_that_is_rolled_back_gives_files_the_permissions_they_had() {
    let folder = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir(base.join("ws")).unwrap();
    let ground = Ground::at(&base);
    ground.write("z", "this content is lost");
    ground.create();
    let packs = ground.checkpoints.git_dir().join("objects/pack");
    let packs = fs::read_dir(packs).unwrap();
    let first: Vec<PathBuf> = packs.map(|pack| pack.unwrap().path()).collect();
    ground.write("a/kept", "");
    ground.create();
    ground.remove("z");
    ground.write("a/private", "mine");
    ground.chmod("a/private", 0o600);
    let before = ground.tree();
    // Files are deleted first.
    assert!(ground.dies("restore", 3));
    assert!(!ground.root.join("a/private").exists());
    for pack in first {
        fs::remove_file(pack).unwrap();
    }
    let recovered = Ground::at(&base).recover().unwrap();
    assert!(!recovered.completed);
    assert_eq!(ground.tree(), before);
}
