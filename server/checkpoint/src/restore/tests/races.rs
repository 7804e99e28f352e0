//! Restores while another program moves folders, and journals with hostile content.
#![cfg(unix)]

use std::{fs, path::PathBuf, sync::Once};

use sightline_access::Access;
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, Root, Roots},
    storage::Storage,
};
use sightline_protocol::settings::{CheckpointSettings, Secrets};
use tempfile::TempDir;

use crate::{
    checkpoints::Checkpoints,
    job::{Job, Progress},
    metadata::Request,
    store::object::{Mode, Oid},
    testing::{Folder, Scratch, TestFile},
};
use crate::{
    error::Error,
    restore::{
        journal::Journal,
        types::{Options, RestoreTarget, Restored, Scope},
    },
};

pub(in crate::restore) struct Fixture {
    _folder: TempDir,
    base: PathBuf,
    pub(in crate::restore) root: PathBuf,
    pub(in crate::restore) checkpoints: Checkpoints,
}

impl Fixture {
    pub(in crate::restore) fn new() -> Self {
        Self::with_data("data")
    }

    /// `data` is the data directory, relative to the scratch folder.
    fn with_data(data: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = sightline_base::path::canonicalize(folder.path()).unwrap();
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
        let view = Access::new(roots.into(), Vec::new(), Secrets::Allow)
            .view()
            .0;
        act(&Job {
            view: &view,
            root: 0,
            settings: &CheckpointSettings::default(),
            cancel: &Cancel::default(),
            progress,
        })
    }

    pub(in crate::restore) fn create(&self) -> Oid {
        let created = self.job(&|_| {}, |job| {
            self.checkpoints.create(job, &Request::default(), None)
        });
        created.unwrap().id
    }

    pub(in crate::restore) fn restore_while(
        &self,
        id: Oid,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Restored, Error> {
        let wanted = RestoreTarget {
            id,
            paths: Vec::new(),
            scope: Scope::All,
        };
        self.job(progress, |job| {
            self.checkpoints
                .restore(job, &wanted, &Default::default(), &Options::default())
        })
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Restores many files, and replaces the root by a link when `stage` is reported. Returns the number
/// of paths that failed for this reason.
fn restored_while_replaced(stage: &str) -> Result<usize, Error> {
    let fixture = Fixture::new();
    let outside = fixture.base.join("outside");
    fs::create_dir(&outside).unwrap();
    for number in 0..400 {
        fixture.write(&format!("folder{}/{number}", number % 7), "then");
    }
    let id = fixture.create();
    for number in 0..400 {
        fixture.write(&format!("folder{}/{number}", number % 7), "now!");
        fs::create_dir_all(outside.join(format!("folder{}", number % 7))).unwrap();
        if number % 4 == 0 {
            fs::remove_file(fixture.root.join(format!("folder{}/{number}", number % 7))).unwrap();
        }
    }
    let once = Once::new();
    let restored = fixture.restore_while(id, &|progress| {
        if progress.stage == stage {
            once.call_once(|| {
                fs::rename(&fixture.root, fixture.base.join("real")).unwrap();
                std::os::unix::fs::symlink(&outside, &fixture.root).unwrap();
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
fn nothing_is_restored_when_the_root_becomes_a_link_during_the_scan() {
    restored_while_replaced("scanning files").unwrap_err();
}

#[test]
fn a_journal_that_was_not_committed_is_ignored() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let journal = Journal::new(id, id, &[], &Default::default(), &Default::default());
    // As if the process was killed before the commit.
    std::mem::forget(fixture.checkpoints.prepare_journal(&journal).unwrap());
    assert!(!fixture.checkpoints.has_journal());
    let recovered = fixture.job(&|_| {}, |job| fixture.checkpoints.recover(job));
    assert_eq!(recovered.unwrap(), None);
}

impl Fixture {
    /// Leaves the state of a restore that was killed right after its journal was written.
    fn simulate_interrupted(&self, restoring: Oid) -> Oid {
        let undo = self.create();
        let journal = Journal::new(
            restoring,
            undo,
            &[],
            &Default::default(),
            &Default::default(),
        );
        let written = self.checkpoints.prepare_journal(&journal).unwrap();
        written.commit().unwrap();
        undo
    }

    fn recover(&self) -> Result<Vec<String>, Error> {
        let recovered = self.job(&|_| {}, |job| self.checkpoints.recover(job))?;
        let problems = recovered.unwrap().problems.into_iter();
        let messages = problems.map(|problem| format!("{}: {}", problem.path, problem.reason));
        Ok(messages.collect())
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    /// Creates a checkpoint of files that never were in the workspace.
    fn foreign_checkpoint(&self, files: &[TestFile<'_>]) -> Oid {
        let scratch = Scratch::at(&self.base);
        assert_eq!(scratch.checkpoints.git_dir(), self.checkpoints.git_dir());
        scratch.checkpoint(1, files)
    }
}

#[test]
fn recovery_neither_changes_nor_names_denied_paths() {
    let fixture = Fixture::new();
    for path in ["s/secret", "s/gone", "open"] {
        fixture.write(path, "then");
    }
    let id = fixture.create();
    fixture.write("s/secret", "now");
    fixture.write("open", "now");
    fs::remove_file(fixture.root.join("s/gone")).unwrap();
    fixture.simulate_interrupted(id);
    fixture.write(".clineignore", "s/\n");
    let problems = fixture.recover().unwrap();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("deny 2 paths"), "{problems:?}");
    assert!(!problems[0].contains("s/"), "{problems:?}");
    assert_eq!(fixture.read("s/secret").as_deref(), Some("now"));
    assert_eq!(fixture.read("s/gone"), None);
    assert_eq!(fixture.read("open").as_deref(), Some("then"));
    assert!(!fixture.checkpoints.has_journal());
}

#[test]
fn a_journal_waits_while_the_access_rules_are_invalid() {
    let fixture = Fixture::new();
    fixture.write("open", "then");
    let id = fixture.create();
    fixture.write("open", "now");
    fixture.simulate_interrupted(id);
    fs::write(fixture.root.join(".clineignore"), [0xff, 0xfe, 0]).unwrap();
    let rules_work = fixture.job(&|_| {}, |job| job.view.unusable(0).is_none());
    assert!(!rules_work);
    fixture.recover().unwrap_err();
    assert!(fixture.checkpoints.has_journal());
    assert_eq!(fixture.read("open").as_deref(), Some("now"));
    fs::remove_file(fixture.root.join(".clineignore")).unwrap();
    fixture.recover().unwrap();
    assert_eq!(fixture.read("open").as_deref(), Some("then"));
}

#[test]
fn recovery_writes_neither_into_git_directories_nor_outside_the_root() {
    let fixture = Fixture::new();
    fixture.write("a", "now");
    fs::create_dir_all(fixture.root.join(".git/hooks")).unwrap();
    fs::create_dir_all(fixture.root.join("below/.GIT")).unwrap();
    let foreign = fixture.foreign_checkpoint(&[
        (b"a", b"then", Mode::File),
        (b".git/hooks/post-checkout", b"#!/bin/sh", Mode::Executable),
        (b"below/.GIT/config", b"x", Mode::File),
        (b"../escaped", b"x", Mode::File),
    ]);
    fixture.simulate_interrupted(foreign);
    let problems = fixture.recover().unwrap();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with(".git/hooks/post-checkout: part of a git"));
    assert_eq!(fixture.read(".git/hooks/post-checkout"), None);
    assert_eq!(fixture.read("below/.GIT/config"), None);
    assert!(!fixture.base.join("escaped").exists());
    assert_eq!(fixture.read("a").as_deref(), Some("then"));
}

#[test]
fn the_servers_own_data_below_the_root_is_never_restored() {
    let fixture = Fixture::with_data("ws/mine");
    fixture.write("a", "now");
    fixture.create();
    let storage = Storage::open(&fixture.root.join("mine")).unwrap();
    let checkpoints = Checkpoints::new(&storage, &Fixture::workspace(&fixture.root));
    let foreign = {
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
            folder: Folder::Theirs(fixture.base.clone()),
            storage,
            checkpoints,
        };
        scratch.checkpoint(1, files)
    };
    let restored = fixture.restore_while(foreign, &|_| {}).unwrap();
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
    fixture.write("a", "again");
    fixture.simulate_interrupted(foreign);
    assert_eq!(fixture.recover().unwrap().len(), 2);
    assert_eq!(fixture.read("a").as_deref(), Some("then"));
    assert_eq!(fixture.read("mine/planted"), None);
    assert!(!fixture.root.join("mine/projects/planted").exists());
}

#[test]
fn rule_files_are_not_restored() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "");
    fixture.write("conf/more.rules", "");
    fixture.write("a", "then");
    let id = fixture.create();
    fixture.write(
        ".clineignore",
        "!include .gitignore\n!include conf/linked.rules\n",
    );
    std::os::unix::fs::symlink("more.rules", fixture.root.join("conf/linked.rules")).unwrap();
    fixture.write(".gitignore", "*.key\n");
    fixture.write("conf/more.rules", "*.pem\n");
    fixture.write("a", "now");
    let restored = fixture.restore_while(id, &|_| {}).unwrap();
    let rules = [".gitignore", "conf/linked.rules", "conf/more.rules"];
    let is_kept = |problems: &[(String, String)]| {
        let named = problems
            .iter()
            .filter(|(_, why)| why.contains("contains access rules"));
        assert_eq!(
            named.map(|(path, _)| path.as_str()).collect::<Vec<_>>(),
            rules
        );
        assert_eq!(fixture.read(".gitignore").as_deref(), Some("*.key\n"));
        assert_eq!(
            fixture.read("conf/linked.rules").as_deref(),
            Some("*.pem\n")
        );
        assert_eq!(fixture.read("a").as_deref(), Some("then"));
    };
    let named = |problem: crate::restore::Conflict| (problem.path.to_string(), problem.reason);
    is_kept(
        &restored
            .conflicts
            .into_iter()
            .map(named)
            .collect::<Vec<_>>(),
    );
    // Recovery leaves them too.
    fixture.write("a", "now");
    fixture.simulate_interrupted(id);
    let recovered = fixture.job(&|_| {}, |job| fixture.checkpoints.recover(job));
    let problems = recovered.unwrap().unwrap().problems;
    is_kept(&problems.into_iter().map(named).collect::<Vec<_>>());
}

#[test]
fn rule_files_included_by_the_checkpoint_are_not_restored() {
    let fixture = Fixture::new();
    fixture.write("old.rules", "now");
    let id = fixture.foreign_checkpoint(&[
        (b".clineignore", b"!include old.rules\n", Mode::File),
        (b"old.rules", b"*.key\n", Mode::File),
    ]);
    let conflicts = fixture.restore_while(id, &|_| {}).unwrap().conflicts;
    let named = conflicts.iter().map(|it| it.path.to_string());
    assert_eq!(named.collect::<Vec<_>>(), [".clineignore", "old.rules"]);
    assert_eq!(fixture.read("old.rules").as_deref(), Some("now"));
    assert_eq!(fixture.read(".clineignore"), None);
}

/// The write of the new content fails, and so does the write that puts the old content back.
#[test]
#[cfg(target_os = "linux")]
fn a_partly_written_file_is_completed_by_the_next_operation() {
    const THEN: &str = "content of the checkpoint, whose write fails";
    const NOW: &str = "today this is written, and it cannot be put back";
    let fixture = Fixture::new();
    fixture.write("file", THEN);
    let id = fixture.create();
    fixture.write("file", NOW);
    fixture.write("new", "1");
    let failing = || crate::restore::apply::in_place::tests::FAILING_WRITES.lock();
    let writes: [(&[u8], &[u8]); 2] = [
        (THEN.as_bytes(), &THEN.as_bytes()[12..16]),
        (NOW.as_bytes(), &NOW.as_bytes()[4..8]),
    ];
    failing().extend(writes);
    let restored = fixture.restore_while(id, &|_| {}).unwrap();
    let errors: Vec<_> = restored
        .outcomes
        .iter()
        .filter_map(|outcome| Some((outcome.path.to_string(), outcome.error.as_deref()?)))
        .collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].0, "file");
    assert!(
        errors[0]
            .1
            .contains("cannot write the previous content back"),
        "{errors:?}"
    );
    let partly = fixture.read("file").unwrap();
    assert!(partly != THEN && partly != NOW, "{partly}");
    assert!(fixture.checkpoints.has_journal());
    failing().retain(|write| !writes.contains(write));
    // Only the partly written file is completed.
    fixture.write("new", "2");
    let recovered = fixture.job(&|_| {}, |job| fixture.checkpoints.recover(job));
    let recovered = recovered.unwrap().unwrap();
    assert!(recovered.completed);
    let problems: Vec<_> = recovered
        .problems
        .iter()
        .map(|problem| problem.path.to_string())
        .collect();
    assert_eq!(problems, ["file"]);
    assert_eq!(fixture.read("file").as_deref(), Some(THEN));
    assert_eq!(fixture.read("file.kept-1"), Some(partly));
    assert_eq!(fixture.read("new").as_deref(), Some("2"));
    assert!(!fixture.checkpoints.has_journal());
}
