//! Release notes: the section of a version in `CHANGELOG.md`.

use std::error::Error;

/// Returns the notes of the release `tag`, which must be that of this version.
pub(crate) fn of_tag(changelog: &str, tag: &str) -> Result<String, Box<dyn Error>> {
    let version = env!("CARGO_PKG_VERSION");
    if tag.strip_prefix('v') != Some(version) {
        return Err(format!("the tag is {tag}, but Cargo.toml has version {version}").into());
    }
    section(changelog, version)
        .ok_or_else(|| format!("CHANGELOG.md has no section `## {version}`").into())
}

/// Returns the section with the heading `## VERSION` or `## VERSION - DATE`.
fn section(changelog: &str, version: &str) -> Option<String> {
    let is_heading = |line: &&str| {
        line.strip_prefix("## ")
            .is_some_and(|heading| heading.split(' ').next() == Some(version))
    };
    let mut lines = changelog.lines().skip_while(|line| !is_heading(line));
    lines.next()?;
    let notes: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    Some(format!("{}\n", notes.join("\n").trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0 - 2026-12-01\n\n### Added\n\n- two\n\n## 0.2.0-rc\n\n- one\n";

    #[test]
    fn notes_are_the_section_of_a_version() {
        let notes = section(CHANGELOG, "0.2.0").unwrap();
        assert_eq!(notes, "### Added\n\n- two\n");
        assert_eq!(section(CHANGELOG, "0.2.0-rc").unwrap(), "- one\n");
        assert_eq!(section(CHANGELOG, "0.3.0"), None);
    }

    #[test]
    fn notes_require_the_tag_of_this_version() {
        assert!(of_tag(CHANGELOG, "v99.0.0").is_err());
        assert!(of_tag(CHANGELOG, env!("CARGO_PKG_VERSION")).is_err());
    }
}
