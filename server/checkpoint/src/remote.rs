//! Pushes checkpoints to a git remote and fetches them, by running git.
//!
//! git uses the user's configuration, keys and helpers to reach the remote. Environment variables
//! that redirect the repository, hooks and prompts are disabled.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use sightline_base::{
    cancel::Cancel,
    clock::now_millis,
    storage::atomic_file::{failed, not_a_regular_file},
};
use sightline_protocol::error::ErrorKind;

use super::{
    checkpoints::Checkpoints,
    git::process::{git_command, run},
    job::Job,
    metadata::is_checkpoint,
    store::{
        annotations::FETCHED, fsck::check_checkpoints, lock, object::Oid, odb::Odb, refs,
        repository::Repository,
    },
    tree_diff::DeniedPaths,
    worktree::snapshot::below,
};
use crate::error::Error;

/// Maximum size of a fetched object, in bytes. A few bytes can inflate to any size.
const MAX_OBJECT_BYTES: u64 = 1 << 30;

impl Checkpoints {
    /// Pushes every checkpoint to a git remote (URL or path). Returns the number of those that it did not have.
    ///
    /// # Errors
    /// `invalidParams` for an invalid remote; `notFound` without checkpoints; `unsupported` without
    /// git; `storage` with the output of git; `cancelled`.
    pub fn push(&self, remote: &str, cancel: &Cancel) -> Result<usize, Error> {
        check_remote(remote)?;
        let repository = match self.repository()? {
            Some(repository) if !repository.ids()?.is_empty() => repository,
            _ => {
                return Err(Error::NotFound(format!(
                    "{} has no checkpoints to push; create one first",
                    self.root.path.display()
                )));
            }
        };
        let names = "refs/checkpoints/*:refs/checkpoints/*";
        let arguments = ["push", "--no-verify", "--porcelain", "--", remote, names];
        let output = git(repository.dir(), &arguments, cancel)?;
        Ok(output.lines().filter(|line| line.starts_with('*')).count())
    }

    /// Fetches checkpoints from a git remote, and adds the intact ones. Returns their number, and the reasons
    /// for the others, without denied names.
    ///
    /// # Errors
    /// `invalidParams` for an invalid remote; `unsupported` without git; `busy`; `storage` with the
    /// output of git; `cancelled`. No checkpoint is added then.
    pub fn fetch(&self, remote: &str, job: &Job<'_>) -> Result<(usize, Vec<String>), Error> {
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
            .and_then(|_| publish_fetched(&repository, job));
        make_private(repository.dir());
        // Even after an error, so that they are not checked again.
        let removed = refs::remove(repository.dir(), |name| name.starts_with(refs::INCOMING));
        let fetched = taken?;
        removed?;
        Ok(fetched)
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

/// Adds the intact fetched checkpoints. Returns their number, and the reasons for the others.
fn publish_fetched(repository: &Repository, job: &Job<'_>) -> Result<(usize, Vec<String>), Error> {
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
        let mut fetched = FETCHED.all(repository.dir())?;
        fetched.extend(new.iter().map(|id| (*id, now)));
        FETCHED.write_all(repository.dir(), &fetched)?;
    }
    let count = new.len();
    for id in new {
        repository.publish(id)?;
    }
    Ok((count, left_out))
}

fn check_remote(remote: &str) -> Result<(), Error> {
    if !remote.is_empty() && !remote.starts_with('-') && !remote.contains('\0') {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidParams,
        format!("invalid git remote {remote:?}: pass a URL or the path of a repository"),
    ))
}

/// A git command for a store.
fn store_command(dir: &Path) -> Command {
    let mut git = git_command();
    git.arg("--git-dir").arg(dir);
    for setting in [
        // Private files regardless of the umask.
        "core.sharedRepository=0600",
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
    git
}

/// Prevents ssh from prompting on the terminal, unless the user configured an ssh command.
fn disable_ssh_prompts(git: &mut Command, dir: &Path) {
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    if ["GIT_SSH", "GIT_SSH_COMMAND"].iter().any(is_set) {
        return;
    }
    let mut config = store_command(dir);
    config.stdin(Stdio::null());
    let configured = config.args(["config", "--get", "core.sshCommand"]).output();
    if configured.is_ok_and(|output| output.stdout.is_empty()) {
        git.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
    }
}

/// Runs git and returns its standard output.
fn git(dir: &Path, arguments: &[&str], cancel: &Cancel) -> Result<String, Error> {
    cancel.check()?;
    require_regular_files(dir)?;
    let mut git = store_command(dir);
    disable_ssh_prompts(&mut git, dir);
    let output = run(git.args(arguments), Vec::new(), cancel)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    // The lines below say less.
    let why = text.trim().lines().next().unwrap_or_default();
    Err(Error::storage(format!(
        "cannot {} checkpoints: {} ({}); the remote must be a URL or path that exists and needs no prompt",
        arguments.first().copied().unwrap_or_default(),
        why.trim_start_matches("fatal: "),
        output.status
    )))
}

/// Refuses a store that contains links, pipes or devices: git would follow them or block.
fn require_regular_files(dir: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(dir).map_err(|error| failed("list", dir, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| failed("list", dir, error))?;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => require_regular_files(&entry.path())?,
            Ok(kind) if !kind.is_file() => return Err(not_a_regular_file(&entry.path()).into()),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
