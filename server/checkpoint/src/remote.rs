//! Pushes checkpoints to a git remote and fetches them, by running git.
//!
//! git uses the user's configuration, keys and helpers to reach the remote. Environment variables
//! that redirect the repository, hooks and prompts are disabled.

use std::{
    ffi::OsString,
    fs,
    io::Read,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use sightline_protocol::error::ErrorKind;
use sightline_workspace::{
    cancel::Cancel,
    clock::now_millis,
    error::Error,
    storage::atomic_file::{failed, not_a_regular_file},
};

use super::{
    checkpoints::Checkpoints,
    job::Job,
    metadata::is_checkpoint,
    store::{
        fsck::check_checkpoints, lock, object::Oid, odb::Odb, refs, remote_refs,
        repository::Repository,
    },
    tree_diff::DeniedPaths,
    worktree::snapshot::below,
};

/// Interval at which cancellation is checked while git runs.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum size of a fetched object, in bytes. A few bytes can inflate to any size.
const MAX_OBJECT_BYTES: u64 = 1 << 30;
/// Environment variables that git receives: how to reach remotes, and where the user's
/// configuration is.
const ALLOWED_ENV: &[&str] = &[
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_PROXY_COMMAND",
    "GIT_PROXY_SSL_CAINFO",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
];

impl Checkpoints {
    /// Pushes every checkpoint to a git remote (URL or path). Returns the output of git.
    ///
    /// # Errors
    /// `invalidParams` for an invalid remote; `notFound` without checkpoints; `unsupported` without
    /// git; `storage` with the output of git; `cancelled`.
    pub fn push(&self, remote: &str, cancel: &Cancel) -> Result<String, Error> {
        check_remote(remote)?;
        let repository = match self.repository()? {
            Some(repository) if !repository.ids()?.is_empty() => repository,
            _ => {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!(
                        "{} has no checkpoints to push; create one first",
                        self.root.path.display()
                    ),
                ));
            }
        };
        let names = "refs/checkpoints/*:refs/checkpoints/*";
        let arguments = ["push", "--no-verify", "--porcelain", "--", remote, names];
        git(repository.dir(), &arguments, cancel)
    }

    /// Fetches checkpoints from a git remote, and adds the intact ones. Returns the output of git,
    /// and the reasons for the others, without denied names.
    ///
    /// # Errors
    /// `invalidParams` for an invalid remote; `unsupported` without git; `busy`; `storage` with the
    /// output of git; `cancelled`. No checkpoint is added then.
    pub fn fetch(&self, remote: &str, job: &Job<'_>) -> Result<String, Error> {
        let cancel = job.cancel;
        check_remote(remote)?;
        let _lock = lock::acquire(&self.storage, &self.state_dir(), cancel)?;
        let repository = self.open_or_create()?;
        let names = format!("+{}*:{}*", refs::PREFIX, refs::INCOMING);
        let arguments = [
            "fetch",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--prune",
            "--",
            remote,
            &names,
        ];
        let taken = git(repository.dir(), &arguments, cancel)
            .and_then(|output| Ok((output, publish_fetched(&repository, job)?)));
        make_private(repository.dir());
        // Even after an error, so that they are not checked again.
        let removed = refs::remove(repository.dir(), |name| name.starts_with(refs::INCOMING));
        let (mut output, left_out) = taken?;
        removed?;
        for line in left_out {
            output.push_str(&line);
            output.push('\n');
        }
        Ok(output)
    }
}

/// Removes the permissions of group and others from files that git wrote.
fn make_private(folder: &Path) {
    #[cfg(unix)]
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        use std::os::unix::fs::PermissionsExt;
        // Does not follow links.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let (path, mode) = (entry.path(), metadata.permissions().mode());
        if mode & 0o077 != 0 && !metadata.is_symlink() {
            let mode = fs::Permissions::from_mode(mode & 0o700);
            // Errors are ignored: the store's own folder is private anyway.
            let _ = fs::set_permissions(&path, mode);
        }
        if metadata.is_dir() {
            make_private(&path);
        }
    }
    #[cfg(not(unix))]
    let _ = folder;
}

/// Adds the intact fetched checkpoints. Returns the reasons for the others.
fn publish_fetched(repository: &Repository, job: &Job<'_>) -> Result<Vec<String>, Error> {
    let known = repository.ids()?;
    let mut left_out = Vec::new();
    let mut new: Vec<Oid> = Vec::new();
    for (name, oid) in refs::all(repository.dir())? {
        let Some(id) = name.strip_prefix(refs::INCOMING) else {
            continue;
        };
        if Oid::from_hex(id) != Some(oid) {
            left_out.push(format!(
                "skipped {id:?}: the ref does not point to its commit"
            ));
        } else if known.binary_search(&oid).is_err() {
            new.push(oid);
        }
    }
    let mut denied = DeniedPaths::new(job);
    let mut denies = |path: &[u8], is_dir| denied.denies(&below(path, b""), is_dir);
    let reader = Odb::new(repository.dir(), MAX_OBJECT_BYTES);
    let problems = check_checkpoints(&reader, &new, is_checkpoint, job.cancel, &mut denies)?;
    new.retain(|id| problems.iter().all(|(bad, _)| bad != id));
    left_out.extend(
        problems
            .iter()
            .map(|(id, what)| format!("skipped {id}: {what}")),
    );
    job.cancel.commit()?;
    if !new.is_empty() {
        let now = now_millis().cast_unsigned();
        let mut fetched = remote_refs::all(repository.dir())?;
        fetched.extend(new.iter().map(|id| (*id, now)));
        remote_refs::write_all(repository.dir(), &fetched)?;
    }
    for id in new {
        repository.publish(id)?;
    }
    Ok(left_out)
}

fn check_remote(remote: &str) -> Result<(), Error> {
    if !remote.is_empty() && !remote.starts_with('-') && !remote.contains('\0') {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "invalid git remote {remote:?}: pass a URL or the path of a repository"
    )))
}

/// Returns the environment variables that git must not receive.
fn denied_env(names: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_denied = |name: &OsString| {
        let name = name.to_string_lossy().to_ascii_uppercase();
        name.starts_with("GIT_") && !ALLOWED_ENV.contains(&name.as_str())
    };
    names.filter(is_denied).collect()
}

/// A git command for a store, without hooks and prompts.
fn git_command(dir: &Path) -> Command {
    let mut git = Command::new("git");
    for name in denied_env(std::env::vars_os().map(|(name, _)| name)) {
        git.env_remove(name);
    }
    git.env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "")
        .env("LC_ALL", "C")
        .arg("--git-dir")
        .arg(dir);
    for setting in [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        // Private files regardless of the umask.
        "core.sharedRepository=0600",
        "gc.auto=0",
        "maintenance.auto=false",
        // Other protocols, such as `fd::` and `ext::`, run commands from the URL or block.
        "protocol.allow=never",
        "protocol.ext.allow=never",
        "protocol.fd.allow=never",
        "protocol.file.allow=always",
        "protocol.git.allow=always",
        "protocol.ssh.allow=always",
        "protocol.http.allow=always",
        "protocol.https.allow=always",
        "push.gpgSign=false",
        "push.followTags=false",
        // Always fetch into a single pack.
        "fetch.unpackLimit=1",
        "transfer.unpackLimit=1",
        "fetch.writeCommitGraph=false",
        "fetch.pruneTags=false",
    ] {
        git.arg("-c").arg(setting);
    }
    git.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    git
}

/// Prevents ssh from prompting on the terminal, unless the user configured an ssh command.
fn disable_ssh_prompts(git: &mut Command, dir: &Path) {
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    if ["GIT_SSH", "GIT_SSH_COMMAND"].iter().any(is_set) {
        return;
    }
    let mut config = git_command(dir);
    let configured = config.args(["config", "--get", "core.sshCommand"]).output();
    if configured.is_ok_and(|output| output.stdout.is_empty()) {
        git.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
    }
}

/// Runs git and returns its output.
fn git(dir: &Path, arguments: &[&str], cancel: &Cancel) -> Result<String, Error> {
    cancel.check()?;
    require_regular_files(dir)?;
    let mut git = git_command(dir);
    disable_ssh_prompts(&mut git, dir);
    // Allows killing git's child processes too.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut git, 0);
    let mut child = git.args(arguments).spawn().map_err(|error| {
        Error::new(
            ErrorKind::Unsupported,
            format!("cannot run git: {error}; install git and make sure it is on the PATH"),
        )
    })?;
    let out = read_pipe(child.stdout.take());
    let err = read_pipe(child.stderr.take());
    let status = wait(&mut child, cancel);
    let output = [out, err].map(|thread| thread.join().unwrap_or_default());
    let output = output.concat();
    let status = status?;
    if status.success() {
        return Ok(output);
    }
    Err(Error::storage(format!(
        "git {} failed ({status}): {}; check that the remote exists and needs no prompt",
        arguments.first().copied().unwrap_or_default(),
        output.trim()
    )))
}

/// Refuses a store that contains links, pipes or devices: git would follow them or block.
fn require_regular_files(dir: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(dir).map_err(|error| failed("list", dir, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| failed("list", dir, &error))?;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => require_regular_files(&entry.path())?,
            Ok(kind) if !kind.is_file() => return Err(not_a_regular_file(&entry.path())),
            _ => {}
        }
    }
    Ok(())
}

fn read_pipe(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, cancel: &Cancel) -> Result<ExitStatus, Error> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if cancel.is_cancelled() => {
                kill(child);
                return Err(Error::cancelled());
            }
            Ok(None) => thread::sleep(POLL_INTERVAL),
            Err(error) => {
                kill(child);
                return Err(Error::storage(format!("cannot wait for git: {error}")));
            }
        }
    }
}

fn kill(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, path::PathBuf};

    use super::*;
    use crate::{
        create::Request,
        metadata::{CheckpointMetadata, Purpose, commit_of},
        prune::Keep,
        store::{
            object::{Kind, Mode, encode_tree, name_of},
            pack_writer::PackWriter,
        },
        testing::{Scratch, assert_private, fsck, git},
    };

    fn remote(scratch: &Scratch) -> (PathBuf, String) {
        let path = scratch.folder.path().join("remote.git");
        git(&path, &["init", "-q", "--bare"]);
        let text = path.to_str().unwrap().to_owned();
        (path, text)
    }

    #[test]
    fn a_store_is_pushed_and_fetched() {
        let here = Scratch::new();
        let cancel = Cancel::default();
        let (path, url) = remote(&here);
        let error = here.checkpoints.push(&url, &cancel).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
        let first = here.checkpoint(1, &[(b"a", b"1", Mode::File), (b"e", b"", Mode::Folder)]);
        let second = here.checkpoint(2, &[(b"a", b"2", Mode::Executable)]);
        here.checkpoints.push(&url, &cancel).unwrap();
        here.checkpoints.push(&url, &cancel).unwrap();

        let there = Scratch::new();
        let mine = there.checkpoint(3, &[(b"m", b"m", Mode::File)]);
        there.fetch(&url, &cancel).unwrap();
        assert_eq!(there.ids(), [mine, second, first]);
        let mut same = (*here.get(first)).clone();
        same.metadata.fetched = true;
        assert_eq!(*there.get(first), same);
        assert_eq!(there.verify(), [""; 0]);
        fsck(&there.dir());
        let names = git(&there.dir(), &["for-each-ref", "--format=%(refname)"]);
        assert!(!names.contains("incoming"), "{names}");
        assert_private(there.dir().parent().unwrap());
        // As a git without the server's settings leaves it.
        git(&there.dir(), &["pack-refs", "--all"]);
        git(&there.dir(), &["repack", "-q"]);
        there.fetch(&url, &cancel).unwrap();
        assert_private(there.dir().parent().unwrap());
        assert_eq!(there.ids().len(), 3);
        drop(path);
    }

    #[test]
    fn claims_of_fetched_checkpoints_are_ignored() {
        let here = Scratch::new();
        let undo = |restoring| Purpose::Undo {
            restoring,
            paths: Vec::new(),
        };
        let theirs = CheckpointMetadata {
            created: u64::MAX,
            sequence: u64::MAX,
            task: Some("t".to_owned()),
            group: Some("g".to_owned()),
            group_roots: vec!["file:///x".to_owned()],
            rewind: Some("r".to_owned()),
            purpose: undo(None),
            ..CheckpointMetadata::default()
        };
        let evil = here.checkpoint_with(theirs, &[(b"a", b"evil", Mode::File)]);
        let url = here.dir();
        let url = url.to_str().unwrap();

        let there = Scratch::new();
        let cancel = Cancel::default();
        let first = there.checkpoint(5, &[(b"m", b"m", Mode::File)]);
        let mine = CheckpointMetadata {
            created: 6,
            purpose: undo(Some(first)),
            ..CheckpointMetadata::default()
        };
        let mine = there.checkpoint_with(mine, &[(b"m", b"1", Mode::File)]);
        there.fetch(url, &cancel).unwrap();
        assert_eq!(there.ids().len(), 3);
        assert_eq!(there.checkpoints.last_undo().unwrap(), Some(mine));
        let metadata = &there.get(evil).metadata;
        assert!(
            metadata.fetched && metadata.created < u64::MAX / 2,
            "{metadata:?}"
        );
        assert_eq!(
            (&metadata.task, &metadata.group, &metadata.rewind),
            (&None, &None, &None)
        );
        assert_eq!(metadata.group_roots, [""; 0]);

        // A local checkpoint with an extreme time too.
        let metadata = CheckpointMetadata {
            created: u64::MAX - 1,
            sequence: u64::MAX - 1,
            ..CheckpointMetadata::default()
        };
        there.checkpoint_with(metadata, &[]);
        let create = |job: &Job<'_>| there.checkpoints.create(job, &Request::default(), None);
        let made = there.job(&cancel, create).unwrap();
        assert_eq!(made.metadata.created, u64::MAX - 1);

        // A rebuilt store keeps the list, and the fetched checkpoint is pruned first.
        there.repository().record_damage("a test").unwrap();
        assert!(there.rebuilt().is_some());
        let again = Scratch::at(there.folder.path());
        assert!(again.get(evil).metadata.fetched);
        let keep = Keep {
            newest: Some(1),
            ..Keep::default()
        };
        let removed = again.checkpoints.prune(&keep, &cancel).unwrap().removed;
        assert!(
            !removed.contains(&evil) && !removed.contains(&made.id),
            "{removed:?}"
        );
        let small = again.repository().size() - 1;
        let keep = Keep {
            max_bytes: Some(small),
            ..Keep::default()
        };
        let removed = again.checkpoints.prune(&keep, &cancel).unwrap().removed;
        assert_eq!(removed, [evil]);
        assert_eq!(remote_refs::all(&again.dir()).unwrap().len(), 0);
    }

    #[test]
    fn damaged_checkpoints_are_not_fetched() {
        let here = Scratch::new();
        let good = here.checkpoint(1, &[(b"a", b"1", Mode::File)]);
        let repository = here.repository();
        let pack = PackWriter::new(repository.dir()).unwrap();
        let blob = name_of(Kind::Blob, b"x");
        pack.put(Kind::Blob, blob, b"x").unwrap();
        let put = |mode, name: &[u8], oid| {
            let tree = encode_tree([(mode, name, oid)].into_iter());
            let oid = name_of(Kind::Tree, &tree);
            pack.put(Kind::Tree, oid, &tree).unwrap();
            oid
        };
        let below = put(Mode::File, b"..", blob);
        let tree_name = put(Mode::Folder, b"keys", below);
        let metadata = CheckpointMetadata {
            created: 2,
            ..CheckpointMetadata::default()
        };
        let evil = repository
            .write_checkpoint(pack, &commit_of(tree_name, &metadata))
            .unwrap();
        let dir = here.dir();
        git(
            &dir,
            &[
                "update-ref",
                &format!("refs/checkpoints/{tree_name}"),
                &good.to_string(),
            ],
        );
        git(
            &dir,
            &["update-ref", "refs/checkpoints/x", &good.to_string()],
        );

        let there = Scratch::new();
        let output = there.fetch(dir.to_str().unwrap(), &Cancel::default());
        let output = output.unwrap();
        assert_eq!(there.ids(), [good]);
        assert!(
            output.contains(&format!("skipped {evil}: the folder keys has an entry")),
            "{output}"
        );
        assert!(output.contains("skipped \"x\""), "{output}");
        assert!(
            output.contains(&format!("skipped \"{tree_name}\"")),
            "{output}"
        );

        let strict = Scratch::new();
        let rules = strict.folder.path().join("ws/.clineignore");
        fs::write(rules, "keys/\n").unwrap();
        let output = strict.fetch(dir.to_str().unwrap(), &Cancel::default());
        let output = output.unwrap();
        let counted = format!("skipped {evil}: access rules deny 1 more");
        assert!(
            output.contains(&counted) && !output.contains("keys"),
            "{output}"
        );
    }

    #[test]
    fn oversized_objects_are_not_fetched() {
        let here = Scratch::new();
        here.checkpoint(1, &[(b"a", &[0; 4096], Mode::File)]);
        let repository = here.repository();
        let ids = repository.ids().unwrap();
        let cancel = Cancel::default();
        let check_checkpoints = |largest| {
            let reader = Odb::new(repository.dir(), largest);
            let allowed = &mut |_: &[u8], _| false;
            check_checkpoints(&reader, &ids, is_checkpoint, &cancel, allowed).unwrap()
        };
        assert_eq!(check_checkpoints(4096), []);
        let over = check_checkpoints(4095);
        assert!(
            over[0]
                .1
                .starts_with("the file a is too large (4096 bytes)"),
            "{over:?}"
        );
        let over = check_checkpoints(10);
        assert!(over[0].1.starts_with("the commit is too large"), "{over:?}");
    }

    #[test]
    fn a_remote_cannot_be_an_option_or_command() {
        let scratch = Scratch::new();
        scratch.checkpoint(1, &[]);
        let proof = scratch.folder.path().join("proof");
        let command = format!("ext::sh -c touch% {}", proof.display());
        let cancel = Cancel::default();
        for (url, kind) in [
            ("--upload-pack=touch", ErrorKind::InvalidParams),
            ("", ErrorKind::InvalidParams),
            (command.as_str(), ErrorKind::Storage),
            ("fd::0,1", ErrorKind::Storage),
            ("other::x", ErrorKind::Storage),
            ("/does/not/exist", ErrorKind::Storage),
        ] {
            assert_eq!(
                scratch.checkpoints.push(url, &cancel).unwrap_err().kind,
                kind,
                "{url}"
            );
            let error = scratch.fetch(url, &cancel).unwrap_err();
            assert_eq!(error.kind, kind, "{url}");
        }
        let error = scratch.fetch("/does/not/exist", &cancel).unwrap_err();
        assert!(
            error
                .message
                .contains("does not appear to be a git repository"),
            "{error}"
        );
        assert!(!proof.exists());
        for url in ["fd::0,1", "other::x"] {
            let error = scratch.fetch(url, &cancel).unwrap_err();
            assert!(error.message.contains("not allowed"), "{error}");
        }
    }

    #[test]
    fn a_remote_that_never_answers_can_be_cancelled() {
        let scratch = Scratch::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("git://{}/x", listener.local_addr().unwrap());
        let cancel = Cancel::default();
        std::thread::scope(|scope| {
            let fetching = scope.spawn(|| scratch.fetch(&url, &cancel));
            let _connection = listener.accept().unwrap();
            cancel.cancel();
            let error = fetching.join().unwrap().unwrap_err();
            assert_eq!(error.kind, ErrorKind::Cancelled);
        });
        assert_eq!(scratch.ids(), []);
    }

    #[test]
    fn git_receives_only_allowed_variables() {
        let names = [
            "GIT_DIR",
            "GIT_INDEX_FILE",
            "git_work_tree",
            "GIT_SSH_COMMAND",
            "PATH",
            "GIT_CONFIG_COUNT",
        ];
        let denied_env = denied_env(names.map(OsString::from).into_iter());
        assert_eq!(
            denied_env,
            [
                "GIT_DIR",
                "GIT_INDEX_FILE",
                "git_work_tree",
                "GIT_CONFIG_COUNT"
            ]
        );
    }
}
