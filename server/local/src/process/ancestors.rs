//! The processes that started this one.

/// Maximum number of processes.
const MAX_ANCESTORS: usize = 64;

/// Returns the process ids of this process, its parent and so on, as far as the system tells them.
pub fn ancestors() -> Vec<u32> {
    let mut found = vec![std::process::id()];
    let parents = Parents::new();
    while let Some(parent) = found.last().and_then(|pid| parents.of(*pid))
        && parent > 1
        && found.len() < MAX_ANCESTORS
    {
        found.push(parent);
    }
    found
}

#[cfg(target_os = "linux")]
struct Parents;

#[cfg(target_os = "linux")]
impl Parents {
    fn new() -> Self {
        Self
    }

    fn of(&self, pid: u32) -> Option<u32> {
        // `PID (NAME) STATE PARENT …`; a name may contain parentheses.
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = status.rsplit_once(')')?;
        fields.split_whitespace().nth(1)?.parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
struct Parents(std::collections::HashMap<u32, u32>);

#[cfg(not(target_os = "linux"))]
impl Parents {
    fn new() -> Self {
        let listed = std::process::Command::new("ps")
            .args(["-axo", "pid=,ppid="])
            .stdin(std::process::Stdio::null())
            .output();
        let text = listed.map(|output| output.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let pairs = text.lines().filter_map(|line| {
            let mut numbers = line.split_whitespace();
            Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
        });
        Self(pairs.collect())
    }

    fn of(&self, pid: u32) -> Option<u32> {
        self.0.get(&pid).copied()
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn the_parent_is_the_second() {
        let found = super::ancestors();
        assert_eq!(found[0], std::process::id());
        assert_eq!(found[1], std::os::unix::process::parent_id());
    }
}
