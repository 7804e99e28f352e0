//! Checkpoints that another process prunes during a preview, diff or restore.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::restore_support::{Ground, all, counted, with_contents};
use sightline_base::cancel::Cancel;
use sightline_checkpoint::{
    Filter, Job, Keep, Oid, Progress, Request, Side, error::Error, restore::Options,
};
use sightline_protocol::error::ErrorKind;

/// Enough files for a scan to report progress.
const FILES: usize = 300;

/// A workspace with two checkpoints that share nothing. It matches neither.
fn ground() -> (Ground, Oid, Oid) {
    let ground = Ground::new(&[]);
    let mut ids = ["first", "second"].map(|text| {
        for number in 0..FILES {
            ground.write(&[(
                &format!("{}/{number}", number % 7),
                &format!("{text} {number}"),
            )]);
        }
        ground.create()
    });
    ground.write(&[("0/0", "third")]);
    ids.reverse();
    let [second, first] = ids;
    (ground, first, second)
}

/// Runs `act` while another process prunes a checkpoint, at the first progress report.
fn while_pruned<T>(
    ground: &Ground,
    id: Oid,
    act: impl FnOnce(&Job<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let other = Ground::at(ground.data().parent().unwrap());
    let is_pruned = AtomicBool::new(false);
    let progress = |_: Progress| {
        if !is_pruned.swap(true, Ordering::SeqCst) {
            let keep = Keep {
                without: vec![id],
                ..Keep::default()
            };
            let pruned = other.checkpoints.prune(&keep, &Cancel::default());
            assert_eq!(pruned.unwrap().removed, [id]);
        }
    };
    let done = ground.job(|job| {
        act(&Job {
            progress: &progress,
            ..*job
        })
    });
    assert!(is_pruned.load(Ordering::SeqCst), "nothing was told of");
    done
}

#[test]
fn a_checkpoint_pruned_during_a_scan_is_not_found() {
    let (ground, first, _) = ground();
    let before = ground.tree();
    let error = while_pruned(&ground, first, |job| {
        ground
            .checkpoints
            .preview(job, &all(first), &Default::default())
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);

    let (other, first, second) = self::ground();
    let error = while_pruned(&other, first, |job| {
        let (from, to) = (Side::Checkpoint(first), Side::WorkTree);
        other.checkpoints.diff(job, &from, &to, &with_contents())
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    // The remaining checkpoint works, and the pruned one is gone for both.
    assert_eq!(other.restore(second).outcomes.len(), 1);
    for error in [
        other
            .job(|job| {
                other
                    .checkpoints
                    .preview(job, &all(first), &Default::default())
            })
            .unwrap_err(),
        other
            .try_restore(&all(first), &[], &Options::default())
            .unwrap_err(),
        other
            .try_diff(
                &Side::Checkpoint(second),
                &Side::Checkpoint(first),
                &with_contents(),
            )
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
    let listed = other.checkpoints.list(&Filter::default()).unwrap();
    assert!(listed.iter().all(|checkpoint| checkpoint.id != first));
    assert_eq!(ground.tree(), before);
}

#[test]
fn a_checkpoint_pruned_while_a_restore_waits_is_not_restored() {
    let (ground, first, _) = ground();
    let base = ground.data();
    let other = Ground::at(base.parent().unwrap());
    let waiting = Ground::at(base.parent().unwrap());
    let before = ground.tree();
    std::thread::scope(|scope| {
        let mut restoring = None;
        let has_begun = AtomicBool::new(false);
        let name = ground
            .checkpoints
            .git_dir()
            .join(format!("refs/checkpoints/{first}"));
        // The other process holds the lock, so the restore waits.
        let (begin, begun) = std::sync::mpsc::channel();
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let gone = std::sync::Mutex::new(gone);
        let holder = scope.spawn(move || {
            let progress = |_: Progress| {
                if !has_begun.swap(true, Ordering::SeqCst) {
                    begin.send(()).unwrap();
                    gone.lock().unwrap().recv().unwrap();
                    fs::remove_file(&name).unwrap();
                }
            };
            other.job(|job| {
                let job = Job {
                    progress: &progress,
                    ..*job
                };
                other
                    .checkpoints
                    .create(&job, &Request::default(), None)
                    .unwrap()
            })
        });
        begun.recv().unwrap();
        let restore = || waiting.try_restore(&all(first), &[], &Options::default());
        restoring.replace(scope.spawn(restore));
        // Waiting is not observable; the delay makes it likely.
        std::thread::sleep(Duration::from_millis(100));
        go.send(()).unwrap();
        holder.join().unwrap();
        let error = restoring.unwrap().join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    });
    assert_eq!(ground.tree(), before);
    assert_eq!(counted(&ground), 2);
}
