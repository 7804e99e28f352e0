//! Restores while somebody moves things about, and journals somebody else wrote.
#![cfg(unix)]

use std::{fs, path::PathBuf, sync::Once};

use tempfile::TempDir;

use super::{Options, RestoreTarget, Restored, journal::Journal};
use crate::{
    access::Access,
    cancel::Cancel,
    checkpoint::{
        Checkpoints, Job, Oid, Progress, Request, Settings,
        store::object::Mode,
        testing::{Folder, Scratch, TestFile},
    },
    error::Error,
    path::{AbsPath, Root, Roots},
    storage::Storage,
};

pub(super) struct Ground {
    _folder: TempDir,
    base: PathBuf,
    pub(super) root: PathBuf,
    pub(super) checkpoints: Checkpoints,
}

impl Ground {
    pub(super) fn new() -> Self {
        Self::with_data("data")
    }

    /// `data` is the data directory, below the scratch folder.
    fn with_data(data: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(folder.path()).unwrap();
        let root = base.join("ws");
        fs::create_dir(&root).unwrap();
        let storage = Storage::open(&base.join(data)).unwrap();
        Self {
            _folder: folder,
            checkpoints: Checkpoints::new(&storage, &Self::workspace(&root)),
            base,
            root,
        }
    }

    fn workspace(root: &std::path::Path) -> Root {
        Root::new(AbsPath::new(root).unwrap(), None)
    }

    fn job<R>(&self, progress: &(dyn Fn(Progress) + Sync), act: impl FnOnce(&Job<'_>) -> R) -> R {
        let roots = Roots::new(vec![Self::workspace(&self.root)]);
        let view = Access::new(roots.into(), Vec::new()).view().0;
        act(&Job {
            view: &view,
            root: 0,
            settings: &Settings::default(),
            cancel: &Cancel::default(),
            progress,
        })
    }

    pub(super) fn create(&self) -> Oid {
        let created = self.job(&|_| {}, |job| {
            self.checkpoints.create(job, &Request::default(), None)
        });
        created.unwrap().id
    }

    pub(super) fn restore_while(
        &self,
        id: Oid,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Restored, Error> {
        let wanted = RestoreTarget {
            id,
            paths: Vec::new(),
        };
        self.job(progress, |job| {
            self.checkpoints
                .restore(job, &wanted, &[], &Options::default())
        })
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Restores many files while the root is replaced by a link once `stage` is
/// told of; gives what was said of each path that was not restored.
fn restored_while_replaced(stage: &str) -> Result<usize, Error> {
    let ground = Ground::new();
    let outside = ground.base.join("outside");
    fs::create_dir(&outside).unwrap();
    for number in 0..400 {
        ground.write(&format!("folder{}/{number}", number % 7), "then");
    }
    let id = ground.create();
    for number in 0..400 {
        ground.write(&format!("folder{}/{number}", number % 7), "now!");
        fs::create_dir_all(outside.join(format!("folder{}", number % 7))).unwrap();
        if number % 4 == 0 {
            fs::remove_file(ground.root.join(format!("folder{}/{number}", number % 7))).unwrap();
        }
    }
    let once = Once::new();
    let restored = ground.restore_while(id, &|progress| {
        if progress.stage == stage {
            once.call_once(|| {
                fs::rename(&ground.root, ground.base.join("real")).unwrap();
                std::os::unix::fs::symlink(&outside, &ground.root).unwrap();
            });
        }
    });
    assert!(once.is_completed(), "{stage}");
    for number in 0..400 {
        let there = outside.join(format!("folder{}/{number}", number % 7));
        assert!(!there.exists(), "{}", there.display());
    }
    let failed = restored?.outcomes.into_iter();
    let failed = failed.filter(|outcome| {
        let why = outcome.error.as_deref();
        why.is_some_and(|why| why.contains("moved or replaced"))
    });
    Ok(failed.count())
}

#[test]
fn nothing_is_written_outside_when_the_root_becomes_a_link_during_a_restore() {
    assert!(restored_while_replaced("restoring").unwrap() > 0);
}

#[test]
fn nothing_is_restored_when_the_root_becomes_a_link_while_it_is_looked_at() {
    restored_while_replaced("scanning files").unwrap_err();
}

#[test]
fn a_journal_that_was_only_prepared_is_none() {
    let ground = Ground::new();
    let id = ground.create();
    let journal = Journal::new(id, id, &[], &Default::default());
    // As who is killed before it is shown.
    std::mem::forget(ground.checkpoints.prepare_journal(&journal).unwrap());
    assert!(!ground.checkpoints.has_journal());
    let recovered = ground.job(&|_| {}, |job| ground.checkpoints.recover(job));
    assert_eq!(recovered.unwrap(), None);
}

impl Ground {
    /// As a restore of `restoring` leaves it that died right after its journal.
    fn interrupted(&self, restoring: Oid) -> Oid {
        let undo = self.create();
        let journal = Journal::new(restoring, undo, &[], &Default::default());
        let written = self.checkpoints.prepare_journal(&journal).unwrap();
        written.commit().unwrap();
        undo
    }

    fn recover(&self) -> Result<Vec<String>, Error> {
        let recovered = self.job(&|_| {}, |job| self.checkpoints.recover(job))?;
        let problems = recovered.unwrap().problems.into_iter();
        let said = problems.map(|problem| format!("{}: {}", problem.path, problem.reason));
        Ok(said.collect())
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    /// A checkpoint of files that were never here.
    fn made_up(&self, files: &[TestFile<'_>]) -> Oid {
        let scratch = Scratch::at(&self.base);
        assert_eq!(scratch.checkpoints.git_dir(), self.checkpoints.git_dir());
        scratch.checkpoint(1, files)
    }
}

#[test]
fn recovery_leaves_alone_what_is_denied_now_and_does_not_name_it() {
    let ground = Ground::new();
    for path in ["s/secret", "s/gone", "open"] {
        ground.write(path, "then");
    }
    let id = ground.create();
    ground.write("s/secret", "now");
    ground.write("open", "now");
    fs::remove_file(ground.root.join("s/gone")).unwrap();
    ground.interrupted(id);
    ground.write(".clineignore", "s/\n");
    let problems = ground.recover().unwrap();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("deny 2 paths"), "{problems:?}");
    assert!(!problems[0].contains("s/"), "{problems:?}");
    assert_eq!(ground.read("s/secret").as_deref(), Some("now"));
    assert_eq!(ground.read("s/gone"), None);
    assert_eq!(ground.read("open").as_deref(), Some("then"));
    assert!(!ground.checkpoints.has_journal());
}

#[test]
fn a_journal_waits_while_the_access_rules_cannot_be_used() {
    let ground = Ground::new();
    ground.write("open", "then");
    let id = ground.create();
    ground.write("open", "now");
    ground.interrupted(id);
    fs::write(ground.root.join(".clineignore"), [0xff, 0xfe, 0]).unwrap();
    let rules_work = ground.job(&|_| {}, |job| job.view.unusable(0).is_none());
    assert!(!rules_work);
    ground.recover().unwrap_err();
    assert!(ground.checkpoints.has_journal());
    assert_eq!(ground.read("open").as_deref(), Some("now"));
    fs::remove_file(ground.root.join(".clineignore")).unwrap();
    ground.recover().unwrap();
    assert_eq!(ground.read("open").as_deref(), Some("then"));
}

#[test]
fn recovery_writes_into_no_repository_and_not_out_of_the_root() {
    let ground = Ground::new();
    ground.write("a", "now");
    fs::create_dir_all(ground.root.join(".git/hooks")).unwrap();
    fs::create_dir_all(ground.root.join("below/.GIT")).unwrap();
    let hostile = ground.made_up(&[
        (b"a", b"then", Mode::File),
        (b".git/hooks/post-checkout", b"#!/bin/sh", Mode::Executable),
        (b"below/.GIT/config", b"x", Mode::File),
        (b"../escaped", b"x", Mode::File),
    ]);
    ground.interrupted(hostile);
    let problems = ground.recover().unwrap();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with(".git/hooks/post-checkout: it belongs to a git"));
    assert_eq!(ground.read(".git/hooks/post-checkout"), None);
    assert_eq!(ground.read("below/.GIT/config"), None);
    assert!(!ground.base.join("escaped").exists());
    assert_eq!(ground.read("a").as_deref(), Some("then"));
}

#[test]
fn the_servers_own_data_below_the_root_is_never_restored() {
    let ground = Ground::with_data("ws/mine");
    ground.write("a", "now");
    ground.create();
    let storage = Storage::open(&ground.root.join("mine")).unwrap();
    let checkpoints = Checkpoints::new(&storage, &Ground::workspace(&ground.root));
    let hostile = {
        let files: &[TestFile<'_>] = &[
            (b"a", b"then", Mode::File),
            (b"mine/planted", b"x", Mode::File),
            (
                b"mine/projects/planted/state/journal.json",
                b"{}",
                Mode::File,
            ),
        ];
        let scratch = Scratch {
            folder: Folder::Theirs(ground.base.clone()),
            storage,
            checkpoints,
        };
        scratch.checkpoint(1, files)
    };
    let restored = ground.restore_while(hostile, &|_| {}).unwrap();
    let outcomes: Vec<String> = restored
        .outcomes
        .iter()
        .map(|it| it.path.to_string())
        .collect();
    assert_eq!(outcomes, ["a"]);
    assert!(
        restored
            .conflicts
            .iter()
            .all(|it| it.reason.contains("own data"))
    );
    assert_eq!(restored.conflicts.len(), 2);
    ground.write("a", "again");
    ground.interrupted(hostile);
    assert_eq!(ground.recover().unwrap().len(), 2);
    assert_eq!(ground.read("a").as_deref(), Some("then"));
    assert_eq!(ground.read("mine/planted"), None);
    assert!(!ground.root.join("mine/projects/planted").exists());
}

#[test]
fn files_that_access_rules_come_from_are_not_restored() {
    let ground = Ground::new();
    ground.write(".gitignore", "");
    ground.write("conf/more.rules", "");
    ground.write("a", "then");
    let id = ground.create();
    ground.write(
        ".clineignore",
        "!include .gitignore\n!include conf/linked.rules\n",
    );
    std::os::unix::fs::symlink("more.rules", ground.root.join("conf/linked.rules")).unwrap();
    ground.write(".gitignore", "*.key\n");
    ground.write("conf/more.rules", "*.pem\n");
    ground.write("a", "now");
    let restored = ground.restore_while(id, &|_| {}).unwrap();
    let rules = [".gitignore", "conf/linked.rules", "conf/more.rules"];
    let is_kept = |problems: &[(String, String)]| {
        let named = problems
            .iter()
            .filter(|(_, why)| why.contains("access rules come from it"));
        assert_eq!(
            named.map(|(path, _)| path.as_str()).collect::<Vec<_>>(),
            rules
        );
        assert_eq!(ground.read(".gitignore").as_deref(), Some("*.key\n"));
        assert_eq!(ground.read("conf/linked.rules").as_deref(), Some("*.pem\n"));
        assert_eq!(ground.read("a").as_deref(), Some("then"));
    };
    let named = |problem: super::Conflict| (problem.path.to_string(), problem.reason);
    is_kept(
        &restored
            .conflicts
            .into_iter()
            .map(named)
            .collect::<Vec<_>>(),
    );
    // Nor by a recovery.
    ground.write("a", "now");
    ground.interrupted(id);
    let recovered = ground.job(&|_| {}, |job| ground.checkpoints.recover(job));
    let problems = recovered.unwrap().unwrap().problems;
    is_kept(&problems.into_iter().map(named).collect::<Vec<_>>());
}

#[test]
fn what_the_checkpoints_own_rules_include_is_not_restored() {
    let ground = Ground::new();
    ground.write("old.rules", "now");
    let id = ground.made_up(&[
        (b".clineignore", b"!include old.rules\n", Mode::File),
        (b"old.rules", b"*.key\n", Mode::File),
    ]);
    let conflicts = ground.restore_while(id, &|_| {}).unwrap().conflicts;
    let named = conflicts.iter().map(|it| it.path.to_string());
    assert_eq!(named.collect::<Vec<_>>(), [".clineignore", "old.rules"]);
    assert_eq!(ground.read("old.rules").as_deref(), Some("now"));
    assert_eq!(ground.read(".clineignore"), None);
}
