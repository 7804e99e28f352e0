//! Tests of creating checkpoints.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
};

use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, Root},
    storage::Storage,
};
use sightline_protocol::{error::ErrorKind, settings::CheckpointSettings};

use super::MAX_SKIPPED;
use crate::{
    checkpoints::Checkpoints,
    job::Job,
    list::Filter,
    metadata::{CheckpointMetadata, Counts, CreateIf, Request},
    prune::Keep,
    restore::types::{Options, RestoreTarget},
    store::{
        annotations::FETCHED,
        object::{Mode, Oid},
    },
    testing::{Scratch, git},
};

fn write(scratch: &Scratch, path: &str, text: &str) {
    fs::write(scratch.folder.path().join("ws").join(path), text).unwrap();
}

fn create(scratch: &Scratch) -> (Oid, CheckpointMetadata) {
    let request = Request::default();
    let checkpoint = scratch.job(&Cancel::default(), |job| {
        scratch.checkpoints.create(job, &request, None)
    });
    let checkpoint = checkpoint.unwrap();
    (checkpoint.id, checkpoint.metadata.clone())
}

#[test]
fn a_missing_workspace_folder_is_not_found() {
    let scratch = Scratch::new();
    let root = scratch.folder.path().join("missing");
    let storage = Storage::open(&scratch.folder.path().join("data")).unwrap();
    let root = Root::new(AbsPath::new(&root).unwrap(), None);
    let checkpoints = Checkpoints::new(&storage, &root);
    let refused = scratch.job(&Cancel::default(), |job| {
        checkpoints.create(job, &Request::default(), None)
    });
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    let begin = "cannot scan the workspace folder ";
    assert!(refused.to_string().starts_with(begin), "{refused}");
}

#[test]
fn the_data_directory_and_the_filesystem_root_are_refused() {
    let scratch = Scratch::new();
    let data = scratch.folder.path().join("data");
    fs::create_dir_all(data.join("inside")).unwrap();
    let storage = Storage::open(&data).unwrap();
    let top = data.ancestors().last().unwrap();
    for root in [&*data, &data.join("inside"), top] {
        let root = Root::new(AbsPath::new(root).unwrap(), None);
        let checkpoints = Checkpoints::new(&storage, &root);
        let request = Request::default();
        let refused = scratch.job(&Cancel::default(), |job| {
            checkpoints.create(job, &request, None)
        });
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        let what = if root.path.as_path() == top {
            "the filesystem root"
        } else {
            "the server's data directory"
        };
        assert_eq!(
            refused.to_string(),
            format!(
                "cannot create checkpoints of {what} ({}); open another folder, or a subfolder",
                root.path.as_path().display()
            )
        );
        assert!(!checkpoints.git_dir().exists());
    }
}

#[test]
fn a_fetched_checkpoint_is_not_the_previous_one() {
    let scratch = Scratch::new();
    write(&scratch, "a", "1");
    let (_, metadata) = create(&scratch);
    assert_eq!(metadata.counts.added, 1);
    let newer = metadata.created + 1;
    let theirs = scratch.checkpoint(newer, &[(b"b", b"theirs", Mode::File)]);
    FETCHED
        .write_all(&scratch.dir(), &[(theirs, newer)].into())
        .unwrap();
    assert!(scratch.get(theirs).metadata.fetched);
    // A new process with empty caches.
    let scratch = Scratch::at(scratch.folder.path());
    write(&scratch, "a", "22");
    let (_, metadata) = create(&scratch);
    let modified = Counts {
        modified: 1,
        ..Counts::default()
    };
    assert_eq!(metadata.counts, modified);
}

#[test]
fn a_first_checkpoint_is_not_created_after_another() {
    let scratch = Scratch::new();
    write(&scratch, "a", "0");
    let (before_edit, _) = create(&scratch);
    write(&scratch, "a", "1");
    let first = Request {
        create_if: CreateIf::First,
        ..Request::default()
    };
    let late = scratch.job(&Cancel::default(), |job| {
        scratch.checkpoints.create(job, &first, None)
    });
    assert_eq!(late.unwrap().id, before_edit);
    assert_ne!(create(&scratch).0, before_edit);
}

#[test]
fn a_file_that_changes_during_a_checkpoint_is_read_again() {
    let scratch = Scratch::new();
    write(&scratch, "a", "first");
    create(&scratch);
    // The stat cache keeps the file, the store loses its content.
    let none = Keep {
        newest: Some(0),
        ..Keep::default()
    };
    let pruned = scratch.checkpoints.prune(&none, &Cancel::default());
    assert_eq!(pruned.unwrap().removed.len(), 1);
    let changed = AtomicBool::new(false);
    let progress = |progress: crate::Progress| {
        if progress.stage == "storing" && !changed.swap(true, Ordering::SeqCst) {
            write(&scratch, "a", "other");
        }
    };
    let request = Request::default();
    let checkpoint = scratch.job(&Cancel::default(), |job| {
        let job = Job {
            progress: &progress,
            ..*job
        };
        scratch.checkpoints.create(&job, &request, None)
    });
    let checkpoint = checkpoint.unwrap();
    assert!(changed.load(Ordering::SeqCst), "it was read once more");
    assert_eq!(scratch.verify(), Vec::<String>::new());
    let name = format!("{}:a", checkpoint.tree);
    assert_eq!(git(&scratch.dir(), &["cat-file", "blob", &name]), "other");
}

#[test]
fn a_truncated_list_of_skipped_files_prevents_deletions() {
    let scratch = Scratch::new();
    let names: Vec<String> = (0..MAX_SKIPPED + 3).map(|n| format!("{n:02}")).collect();
    for name in &names {
        write(&scratch, name, "too large");
    }
    let few_bytes = CheckpointSettings {
        max_file_size: 3,
        ..CheckpointSettings::default()
    };
    let cancel = Cancel::default();
    let request = Request::default();
    let checkpoint = scratch.job(&cancel, |job| {
        let job = Job {
            settings: &few_bytes,
            ..*job
        };
        scratch.checkpoints.create(&job, &request, None)
    });
    let checkpoint = checkpoint.unwrap();
    let skipped = &checkpoint.metadata.skipped;
    assert_eq!(skipped.len(), MAX_SKIPPED + 1);
    let last = skipped.last().unwrap();
    assert_eq!((&*last.path, &*last.reason), ("", "3 more skipped"));
    // Now all of them would be captured.
    let wanted = RestoreTarget {
        id: checkpoint.id,
        paths: Vec::new(),
        scope: crate::restore::Scope::All,
    };
    let options = Options::default();
    let restored = scratch.job(&cancel, |job| {
        scratch
            .checkpoints
            .restore(job, &wanted, &Default::default(), &options)
    });
    let restored = restored.unwrap();
    assert_eq!(restored.outcomes, []);
    assert_eq!(restored.conflicts.len(), names.len());
    let reason = &restored.conflicts[names.len() - 1].reason;
    assert!(reason.contains("list is incomplete"), "{reason}");
    for name in &names {
        assert!(scratch.folder.path().join("ws").join(name).exists());
    }
    assert!(
        !scratch
            .checkpoints
            .list(&Filter::default())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn limits_are_inclusive() {
    let scratch = Scratch::new();
    write(&scratch, "a", "four");
    write(&scratch, "b", "fives");
    let create = |settings: CheckpointSettings| {
        let request = Request::default();
        scratch.job(&Cancel::default(), |job| {
            let job = Job {
                settings: &settings,
                ..*job
            };
            scratch.checkpoints.create(&job, &request, None)
        })
    };
    let allowed = |max_files, max_total_size| CheckpointSettings {
        max_files,
        max_total_size,
        ..CheckpointSettings::default()
    };
    for (files, bytes) in [(1, 9), (2, 8)] {
        let refused = create(allowed(files, bytes)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
        let expected = format!(
            "the first checkpoint would contain more than {files} files (setting checkpoints.maxFiles) or {bytes} bytes (checkpoints.maxTotalSize); exclude files with .gitignore or checkpoints.exclude, or confirm the size (`confirmLarge`, or --confirm-large on the command line)"
        );
        assert_eq!(refused.to_string(), expected);
    }
    let settings = CheckpointSettings {
        max_file_size: 4,
        ..allowed(2, 9)
    };
    let checkpoint = create(settings).unwrap();
    assert_eq!(
        checkpoint.metadata.files, 1,
        "one of four bytes is not too large"
    );
    create(allowed(2, 9)).unwrap();
}

#[test]
fn a_stored_checkpoint_cannot_be_cancelled() {
    let scratch = Scratch::new();
    write(&scratch, "a", "1");
    let cancel = Cancel::default();
    let request = Request::default();
    let created = scratch.job(&cancel, |job| {
        scratch.checkpoints.create(job, &request, None)
    });
    assert!(created.is_ok());
    assert!(!cancel.cancel(), "too late");
}
