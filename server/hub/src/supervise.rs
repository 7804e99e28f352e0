//! The process between a relay and its server. It ends the server with everything that it started:
//! when the relay ends in any way, when it is asked to, and when the server itself has ended.
//!
//! The server uses the streams of this process, and is in its process group. On Linux, processes that
//! leave the group or their parent are found too, because they become children of this process.

use std::{
    ffi::OsString,
    io,
    process::Command,
    time::{Duration, Instant},
};

#[cfg(target_os = "linux")]
use rustix::process::getpid;
use rustix::process::{Pid, Signal, WaitOptions, getppid};
use tokio::{
    runtime,
    signal::unix::{SignalKind, signal},
    time,
};

/// Time to end after SIGTERM, before SIGKILL.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the end of processes is checked while they are ended.
const STEP: Duration = Duration::from_millis(10);
/// How often the relay is looked for where the kernel does not report its end.
const WATCH: Duration = Duration::from_millis(500);

/// Runs a command until it ends or `parent` does. Returns its exit code.
///
/// # Errors
/// If it cannot be started.
pub fn supervise(parent: u32, command: &[OsString]) -> io::Result<i32> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
        rustix::process::set_child_subreaper(Some(getpid()))?;
    }
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(parent, command))
}

async fn run(parent: u32, command: &[OsString]) -> io::Result<i32> {
    let mut children = signal(SignalKind::child())?;
    let mut ends = [
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::hangup())?,
    ];
    let [terminate, interrupt, hangup] = &mut ends;
    // It may have ended before its end was to be reported.
    let is_orphan = || getppid().is_none_or(|pid| pid.as_raw_nonzero().get() as u32 != parent);
    if is_orphan() {
        return Ok(1);
    }
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let server = Pid::from_child(&Command::new(program).args(arguments).spawn()?);
    let mut code = None;
    while code.is_none() {
        tokio::select! {
            _ = children.recv() => {}
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => break,
            () = time::sleep(WATCH), if cfg!(not(target_os = "linux")) => {
                if is_orphan() {
                    break;
                }
            }
        }
        reap(server, &mut code);
    }
    for (wish, patience) in [(Signal::TERM, PATIENCE), (Signal::KILL, PATIENCE)] {
        let end = Instant::now() + patience;
        send(wish);
        while reap(server, &mut code) && Instant::now() < end {
            if wish == Signal::KILL {
                // Killed processes leave their children to this one.
                send(wish);
            }
            time::sleep(STEP).await;
        }
    }
    Ok(code.unwrap_or(128 + 15))
}

/// Collects ended children. Returns whether any are left.
fn reap(server: Pid, code: &mut Option<i32>) -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                if pid == server {
                    let signal = status.terminating_signal().map(|signal| 128 + signal);
                    *code = status.exit_status().or(signal).or(Some(1));
                }
            }
            Ok(None) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Sends a signal to all processes below this one; where they cannot be listed, to its group.
fn send(signal: Signal) {
    #[cfg(target_os = "linux")]
    for pid in descendants(getpid()) {
        // It may be gone already.
        let _ = rustix::process::kill_process(pid, signal);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = rustix::process::kill_current_process_group(signal);
}

/// Returns the processes below another one.
#[cfg(target_os = "linux")]
fn descendants(top: Pid) -> Vec<Pid> {
    let all: Vec<(Pid, i32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let pid = Pid::from_raw(name.to_str()?.parse().ok()?)?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name of the program, in parentheses, may contain any character.
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
            Some((pid, parent.parse().ok()?))
        })
        .collect();
    let mut found = vec![top];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at].as_raw_nonzero().get();
        let below = all.iter().filter(|(_, above)| *above == parent);
        found.extend(below.map(|(pid, _)| *pid));
        at += 1;
    }
    found.split_off(1)
}
