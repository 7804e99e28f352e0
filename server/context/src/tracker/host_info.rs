//! Names of the operating system, architecture and editor, as Node.js reports them.

use sightline_protocol::tracker::EnvironmentEntry;

/// Value of an unknown field.
pub(super) const UNKNOWN: &str = "Unknown";

/// Returns the record of this machine, this server and the editor `host_name` at `now`, in
/// milliseconds since the Unix epoch.
pub fn environment_entry(host_name: &str, host_version: &str, now: i64) -> EnvironmentEntry {
    EnvironmentEntry {
        ts: now,
        os_name: os_name(std::env::consts::OS).to_owned(),
        os_version: os_version(),
        os_arch: os_arch(std::env::consts::ARCH).to_owned(),
        host_name: host_name.to_owned(),
        host_version: host_version.to_owned(),
        cline_version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn os_name(os: &str) -> &str {
    match os {
        "macos" => "darwin",
        "windows" => "win32",
        "solaris" | "illumos" => "sunos",
        other => other,
    }
}

fn os_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "x64",
        "x86" => "ia32",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64",
        "loongarch64" => "loong64",
        other => other,
    }
}

#[cfg(unix)]
fn os_version() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

/// Not available without an additional dependency.
#[cfg(not(unix))]
fn os_version() -> String {
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_as_in_node() {
        assert_eq!(
            ["linux", "macos", "windows"].map(os_name),
            ["linux", "darwin", "win32"]
        );
        assert_eq!(
            ["x86_64", "aarch64", "x86", "riscv64"].map(os_arch),
            ["x64", "arm64", "ia32", "riscv64"]
        );
        let entry = environment_entry("Neovim", "0.11.4", 7);
        assert_eq!((entry.ts, entry.host_name.as_str()), (7, "Neovim"));
        assert_eq!(entry.cline_version, env!("CARGO_PKG_VERSION"));
        #[cfg(target_os = "linux")]
        {
            let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
            assert_eq!(entry.os_version, release.trim());
        }
    }
}
