//! Faults below the stores: failing system calls, short writes, a full disk, killed
//! processes. Afterwards, the state is either the previous or the requested one, errors
//! are reported, and the next run works.
//!
//! Uses real processes. A file size limit and a small file system need only a shell;
//! `strace` makes the N-th call of a kind fail or kills the process there.
//! `SIGHTLINE_FAULTS=all` tries every call instead of a sample.

mod ground;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::harness::program;
use ground::{ACTS, Act, Ground, find};

fn is_thorough() -> bool {
    std::env::var("SIGHTLINE_FAULTS").is_ok_and(|what| what == "all")
}

/// Reports why a test is skipped; fails in CI.
pub(crate) fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("skipped: {why}");
}

/// A file size limit: the write that reaches it is short, the next one fails, as on a
/// full disk. The signal that comes with it must not end the process.
#[test]
fn short_and_failing_writes() {
    for act in ACTS {
        let ground = Ground::new(act);
        let mut failed = 0;
        // In blocks of 512 bytes.
        let limits = (0..60).filter(|limit| is_thorough() || *limit < 4 || limit % 8 == 3);
        for limit in limits {
            ground.reset();
            let mut shell = Command::new("sh");
            // Output goes through pipes, which have no limit.
            let script = format!("ulimit -f {limit}; exec \"$@\"");
            shell
                .args(["-c", &script, "sh"])
                .arg(program().get_program());
            let output = ground.run_in(shell, act);
            let code = output.status.code();
            assert!(
                code.is_some(),
                "{act:?}, {limit} blocks: {:?}",
                output.status
            );
            failed += u32::from(
                code != Some(0) || (act == Act::Append && ground.stored(&output).is_none()),
            );
            if act == Act::Append && ground.stored(&output).is_none() {
                let name = "tasks/t/conversation.jsonl";
                let log = fs::read(ground.workspace.data().join(name)).unwrap();
                let is_as_before = Some(&log) == ground.data.get(Path::new(name));
                assert!(is_as_before, "{limit} blocks: a part was added");
            }
            ground.check(&output, &format!("files of {limit} blocks at most"), false);
        }
        assert!(failed > 0 || act == Act::Prune, "{act:?} never failed");
    }
}

/// A file system with this many free bytes.
#[test]
fn a_full_disk() {
    let try_out = Command::new("unshare")
        .args(["-rm", "sh", "-c", "mount -t tmpfs none /mnt"])
        .output();
    if !try_out.is_ok_and(|output| output.status.success()) {
        return skipped("no file system can be mounted in a namespace of its own (unshare -rm)");
    }
    for act in ACTS {
        let ground = Ground::new(act);
        let mut failed = 0;
        let pages = (1..24).filter(|pages| is_thorough() || pages % 5 == 1);
        for pages in pages {
            ground.reset();
            let mut shell = Command::new("unshare");
            let data = ground.workspace.data();
            let script = format!(
                "mkdir $0.full && mount -t tmpfs -o size=4m none $0.full && cp -r $0/. $0.full/ && \
                 mount -o remount,size=$(( ($(du -s --block-size=4096 $0.full | cut -f1) + {pages}) * 4096 )) $0.full && \
                 mkdir $0.real && mount --bind $0 $0.real && mount --bind $0.full $0 && \"$@\"; code=$?; \
                 umount $0; rm -rf $0.real/*; cp -r $0.full/. $0.real/; exit $code"
            );
            shell
                .args(["-rm", "sh", "-c", &script])
                .arg(&data)
                .arg(program().get_program());
            let output = ground.run_in(shell, act);
            failed += u32::from(
                !output.status.success()
                    || (act == Act::Append && ground.stored(&output).is_none()),
            );
            for left in ["full", "real"] {
                fs::remove_dir(data.with_extension(left)).unwrap();
            }
            ground.check(&output, &format!("{pages} pages left"), false);
        }
        println!("{act:?}: {failed} failed");
    }
}

/// Counts the file system calls by name.
fn calls(ground: &Ground) -> BTreeMap<&'static str, usize> {
    const KINDS: &[&str] = &[
        "write",
        "pwrite64",
        "fsync",
        "fdatasync",
        "ftruncate",
        "rename",
        "renameat",
        "renameat2",
        "unlink",
        "unlinkat",
        "mkdir",
        "mkdirat",
        "linkat",
        "fchmod",
        "symlinkat",
        "openat",
        "getdents64",
    ];
    let trace = ground.workspace.data().with_file_name("trace");
    ground.reset();
    let mut strace = Command::new("strace");
    let which = format!("trace={}", KINDS.join(","));
    strace
        .args(["-f", "-qq", "-o"])
        .arg(&trace)
        .args(["-e", &which])
        .arg(program().get_program());
    ground.run_in(strace, ground.act);
    let trace = fs::read_to_string(trace).unwrap();
    // `strace` counts calls per thread when it injects faults.
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start().split('(').next().unwrap_or_default();
        *counts.entry((thread, call)).or_default() += 1;
    }
    let most = |kind: &&str| {
        let of_kind = counts.iter().filter(|((_, call), _)| call == kind);
        of_kind.map(|(_, count)| *count).max().unwrap_or_default()
    };
    KINDS.iter().map(|kind| (*kind, most(kind))).collect()
}

pub(crate) fn has_strace() -> bool {
    let strace = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output();
    strace.is_ok_and(|output| output.status.success())
}

/// A file or folder of the store that cannot be accessed for a moment is neither missing nor damaged,
/// and its objects are not unreachable.
#[test]
fn a_store_that_cannot_be_accessed_is_not_damaged() {
    if !has_strace() {
        return skipped("strace is not installed, or may not trace");
    }
    for (act, is_loose) in [
        (Act::Create, false),
        (Act::Restore, false),
        (Act::Prune, false),
        (Act::Prune, true),
    ] {
        let mut ground = Ground::new(act);
        if is_loose {
            ground.unpack_objects();
        }
        let store = find(&ground.workspace.data(), "checkpoints.git");
        let (mut runs, mut injected) = (0, 0);
        for path in paths_in(&store) {
            for fault in ["openat:error=EMFILE", "statx:error=EIO"] {
                // The N-th time, or from then on.
                let last = if is_thorough() { 12 } else { 2 };
                for when in (1..=last).flat_map(|nth| [format!("{nth}"), format!("{nth}+")]) {
                    ground.reset();
                    let log = tempfile::NamedTempFile::new().unwrap();
                    let (call, _) = fault.split_once(':').unwrap();
                    let (trace, inject) = (
                        format!("trace={call}"),
                        format!("inject={fault}:when={when}"),
                    );
                    let mut strace = Command::new("strace");
                    strace.args(["-f", "-qq", "-e", &trace, "-e", &inject, "-P"]);
                    strace.arg(&path).arg("-o").arg(log.path());
                    strace.arg(program().get_program());
                    let output = ground.run_in(strace, act);
                    runs += 1;
                    if !fs::read_to_string(log.path()).unwrap().contains("INJECTED") {
                        break;
                    }
                    injected += 1;
                    let stderr = String::from_utf8_lossy(&output.stderr);
                    let what = format!(
                        "{act:?}, {fault}, call {when} of {}: {stderr}",
                        path.display()
                    );
                    let is_broken = |path: PathBuf| path.to_string_lossy().contains("broken");
                    let mut stores = fs::read_dir(store.parent().unwrap()).unwrap();
                    assert!(
                        !stores.any(|entry| is_broken(entry.unwrap().path())),
                        "{what}: the store was rebuilt"
                    );
                    ground.check(&output, &what, false);
                }
            }
        }
        println!("{act:?}: {runs} runs, {injected} with a fault");
        assert!(injected > 20, "{act:?}: {injected}");
    }
}

/// Returns a folder and everything in it.
fn paths_in(folder: &Path) -> Vec<PathBuf> {
    let mut paths = vec![folder.to_path_buf()];
    let mut at = 0;
    while let Some(path) = paths.get(at).cloned() {
        let entries = path.is_dir().then(|| fs::read_dir(path).unwrap());
        let entries = entries.into_iter().flatten();
        paths.extend(entries.map(|entry| entry.unwrap().path()));
        at += 1;
    }
    paths
}

#[test]
fn a_restore_reports_that_the_store_was_rebuilt() {
    let ground = Ground::new(Act::Prune);
    let packs = fs::read_dir(find(&ground.workspace.data(), "pack")).unwrap();
    let indexes = packs
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "idx"));
    let newest = indexes
        .max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap())
        .unwrap();
    fs::write(newest, "").unwrap();
    let output = ground.run_in(program(), Act::Restore);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr.contains("has been rebuilt; 1 checkpoint was lost"),
        "{stderr}"
    );
}

/// The N-th call fails or kills the process, for every N.
#[test]
fn failing_calls_and_kills_at_every_call() {
    if !has_strace() {
        return skipped("strace is not installed, or may not trace");
    }
    for act in ACTS {
        let ground = Ground::new(act);
        let log = tempfile::NamedTempFile::new().unwrap();
        let (mut runs, mut failed) = (0, 0);
        for (call, count) in calls(&ground) {
            let faults: &[&str] = match call {
                "write" | "pwrite64" | "ftruncate" => {
                    &["error=ENOSPC", "error=EINTR", "signal=SIGKILL"]
                }
                "fsync" | "fdatasync" => &["error=EIO", "signal=SIGKILL"],
                "openat" => &["error=EACCES", "error=EMFILE"],
                "getdents64" => &["error=EIO"],
                _ => &["error=EACCES", "error=ENOSPC", "signal=SIGKILL"],
            };
            for fault in faults {
                let step = if is_thorough() || count < 5 {
                    1
                } else {
                    count.div_ceil(4)
                };
                for nth in (1..=count).step_by(step) {
                    ground.reset();
                    let mut strace = Command::new("strace");
                    let inject = format!("inject={call}:{fault}:when={nth}");
                    let trace = format!("trace={call}");
                    strace.args(["-f", "-qq", "-e", &trace, "-e", &inject, "-o"]);
                    strace.arg(log.path());
                    strace.arg(program().get_program());
                    let output = ground.run_in(strace, act);
                    let stderr = String::from_utf8_lossy(&output.stderr);
                    if stderr.contains("error while loading shared libraries") {
                        continue;
                    }
                    runs += 1;
                    failed += u32::from(!output.status.success());
                    // Calls are counted per thread, so the message may fail as well.
                    let log = fs::read_to_string(log.path()).unwrap();
                    let mut lines = log.lines();
                    let is_silenced =
                        lines.any(|line| line.contains(" write(2,") && line.contains("INJECTED"));
                    ground.check(&output, &inject, is_silenced);
                }
            }
        }
        println!("{act:?}: {runs} runs, {failed} failed");
        assert!(failed > 5, "{act:?}: {failed} of {runs}");
    }
}
