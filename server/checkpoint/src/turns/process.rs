//! The process of an agent, which tells whether a turn without an end is still running.

use serde::{Deserialize, Serialize};

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProcess {
    pub(super) pid: u32,
    /// Start time in the unit of the system, as process ids are reused.
    started: u64,
}

/// Programs between an agent and the hook that it runs.
const WRAPPERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "fish", "env", "timeout", "sudo",
];

impl AgentProcess {
    /// Returns the first of these processes that is not a shell: `ancestors` are the ids of the
    /// processes that started this one, the nearest first. `None` if the system does not tell.
    pub fn among(ancestors: &[u32]) -> Option<Self> {
        ancestors.iter().find_map(|pid| {
            let (name, started) = status(*pid)?;
            (!WRAPPERS.contains(&name.as_str())).then_some(Self { pid: *pid, started })
        })
    }

    pub(super) fn is_alive(self) -> bool {
        status(self.pid).is_some_and(|(_, started)| started == self.started)
    }
}

/// Returns the name and the start time of a process.
fn status(pid: u32) -> Option<(String, u64)> {
    if cfg!(not(target_os = "linux")) {
        return None;
    }
    // `PID (NAME) STATE …`; a name may contain parentheses. The start time is field 22.
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (start, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    let name = start.split_once('(')?.1.to_owned();
    (state != "Z").then_some((name, started))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_until_it_ends() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let process = AgentProcess::among(&[child.id()]).unwrap();
        assert!(process.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.is_alive());
        let reused = AgentProcess {
            pid: std::process::id(),
            started: 1,
        };
        assert!(!reused.is_alive(), "another process with the same id");
    }
}
