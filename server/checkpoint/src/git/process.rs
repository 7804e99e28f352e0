//! Runs git, without hooks and prompts.

use std::{
    ffi::OsString,
    io::{Read, Write},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use sightline_base::{cancel::Cancel, git::NO_HOOKS, words::is_one_of};
use sightline_protocol::error::ErrorKind;

use crate::error::Error;

/// Interval at which cancellation is checked while git runs.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Environment variables that git receives: how to reach remotes, where the user's configuration is, and
/// the author of commits.
const ALLOWED_ENV: &str = "GIT_SSH GIT_SSH_COMMAND GIT_SSH_VARIANT GIT_SSL_CAINFO GIT_SSL_CAPATH GIT_PROXY_COMMAND GIT_PROXY_SSL_CAINFO \
     GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM GIT_EXEC_PATH GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL \
     GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE";

/// Returns the environment variables that git must not receive.
fn denied_env(names: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_denied = |name: &OsString| {
        let name = name.to_string_lossy().to_ascii_uppercase();
        name.starts_with("GIT_") && !is_one_of(&name, ALLOWED_ENV)
    };
    names.filter(is_denied).collect()
}

/// A git command without hooks and prompts.
pub(crate) fn git_command() -> Command {
    let mut git = Command::new("git");
    for name in denied_env(std::env::vars_os().map(|(name, _)| name)) {
        git.env_remove(name);
    }
    git.env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "")
        .env("LC_ALL", "C");
    for setting in [
        NO_HOOKS,
        "core.fsmonitor=false",
        "gc.auto=0",
        "maintenance.auto=false",
    ] {
        git.arg("-c").arg(setting);
    }
    git
}

/// What a process wrote, and how it ended.
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Runs git with this input until it ends or is cancelled.
pub(crate) fn run(git: &mut Command, input: Vec<u8>, cancel: &Cancel) -> Result<Output, Error> {
    cancel.check()?;
    // Allows killing git's child processes too.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(git, 0);
    let stdin = if input.is_empty() {
        Stdio::null()
    } else {
        Stdio::piped()
    };
    let mut child = git
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            let why =
                format!("cannot run git: {error}; install git and make sure it is on the PATH");
            Error::new(ErrorKind::Unsupported, why)
        })?;
    let writer = child.stdin.take().map(|mut stdin| {
        // Fails if git ends early, which its status tells.
        thread::spawn(move || {
            let _ = stdin.write_all(&input);
        })
    });
    let out = read_pipe(child.stdout.take());
    let err = read_pipe(child.stderr.take());
    let status = wait(&mut child, cancel);
    let [stdout, stderr] = [out, err].map(|thread| thread.join().unwrap_or_default());
    if let Some(writer) = writer {
        let _ = writer.join();
    }
    Ok(Output {
        status: status?,
        stdout,
        stderr,
    })
}

fn read_pipe(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
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
    use super::*;

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
