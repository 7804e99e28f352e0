//! Detects well-known command line tools on the search path, once per session, without running a
//! program.

use std::ffi::OsStr;

use super::render::SectionDraft;
use sightline_base::fs::find_programs;

/// Known tools, in display order.
const TOOLS: &str = "gh git docker podman kubectl aws gcloud az terraform pulumi npm yarn pnpm pip cargo go curl jq make cmake \
     python node psql mysql redis-cli sqlite3 mongosh code grep sed awk brew apt yum gradle mvn bundle dotnet helm \
     ansible wget";

/// The detected tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CliTools(Vec<&'static str>);

impl CliTools {
    /// Searches the directories of `PATH`.
    pub fn detect(path: &OsStr) -> Self {
        let found = TOOLS
            .split(' ')
            .filter(|tool| find_programs(path, tool).next().is_some());
        Self(found.collect())
    }

    /// Returns the names of the tools.
    pub fn names(&self) -> &[&'static str] {
        &self.0
    }

    pub(super) fn draft(&self) -> SectionDraft {
        if self.0.is_empty() {
            return SectionDraft::default();
        }
        SectionDraft::text(&format!(
            "Commands can use these tools, found on the search path: {}",
            self.0.join(", ")
        ))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    use super::*;

    fn put(path: &Path, mode: u32) {
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn only_executables_are_found_in_display_order() {
        let one = tempfile::tempdir().unwrap();
        let two = tempfile::tempdir().unwrap();
        put(&one.path().join("wget"), 0o755);
        put(&two.path().join("git"), 0o755);
        put(&two.path().join("unheard-of"), 0o755);
        put(&two.path().join("make"), 0o644);
        fs::create_dir(two.path().join("node")).unwrap();
        let path = std::env::join_paths([one.path(), Path::new("relative"), two.path()]).unwrap();
        let tools = CliTools::detect(&path);
        assert_eq!(tools.names(), ["git", "wget"]);
        assert_eq!(tools.draft().lines.len(), 1);
        assert!(tools.draft().lines[0].ends_with(": git, wget"));
    }

    #[test]
    fn no_tools_make_no_section() {
        assert!(CliTools::detect(OsStr::new("")).draft().lines.is_empty());
    }
}
