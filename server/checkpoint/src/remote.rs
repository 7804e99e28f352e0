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

use sightline_base::{
    cancel::Cancel,
    clock::now_millis,
    storage::atomic_file::{failed, not_a_regular_file},
};

use super::{
    checkpoints::Checkpoints,
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
                return Err(Error::NotFound(format!(
                    "{} has no checkpoints to push; create one first",
                    self.root.path.display()
                )));
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
        let mut fetched = FETCHED.all(repository.dir())?;
        fetched.extend(new.iter().map(|id| (*id, now)));
        FETCHED.write_all(repository.dir(), &fetched)?;
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
    Err(Error::InvalidParams(format!(
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
    let mut child = git.args(arguments).spawn().map_err(Error::GitMissing)?;
    let out = read_pipe(child.stdout.take());
    let err = read_pipe(child.stderr.take());
    let status = wait(&mut child, cancel);
    let output = [out, err].map(|thread| thread.join().unwrap_or_default());
    let output = output.concat();
    let status = status?;
    if status.success() {
        return Ok(output);
    }
    Err(Error::GitFailed {
        command: arguments.first().copied().unwrap_or_default().to_owned(),
        status,
        output: output.trim().to_owned(),
    })
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
                return Err(Error::GitWait(error));
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
mod tests;
