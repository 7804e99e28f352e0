//! The release of this version, from which Zed downloads the program.
//!
//! The functions work on plain data. Names of archives are those of `cargo xtask dist`.

use zed_extension_api::{Architecture, Os};

/// A program in a release on GitHub.
#[derive(Debug, PartialEq)]
pub struct Release {
    /// Owner and name of the repository: `owner/name`.
    pub repository: String,
    /// Git tag of the release.
    pub tag: String,
    /// File name of the archive.
    pub archive: String,
    /// Path of the program in the archive.
    pub program: String,
}

/// Returns the release of this version for a platform.
///
/// `manifest` is the text of `extension.toml`, whose `repository` names the repository.
///
/// # Errors
/// The manifest names no repository on GitHub, or no program is built for the platform.
pub fn release(manifest: &str, system: Os, processor: Architecture) -> Result<Release, String> {
    let repository =
        github_repository(manifest).ok_or("this extension names no releases on GitHub")?;
    let (target, suffix) = match (system, processor) {
        // Does not depend on the C library of the system.
        (Os::Linux, Architecture::X8664) => ("x86_64-unknown-linux-musl", "tar.gz"),
        (Os::Linux, Architecture::Aarch64) => ("aarch64-unknown-linux-gnu", "tar.gz"),
        (Os::Mac, Architecture::X8664) => ("x86_64-apple-darwin", "tar.gz"),
        (Os::Mac, Architecture::Aarch64) => ("aarch64-apple-darwin", "tar.gz"),
        (Os::Windows, Architecture::X8664) => ("x86_64-pc-windows-msvc", "zip"),
        _ => return Err("no program is released for this platform".to_owned()),
    };
    let tag = concat!("v", env!("CARGO_PKG_VERSION")).to_owned();
    let name = format!("sightline-{tag}-{target}");
    let program = match system {
        Os::Windows => "sightline.exe",
        Os::Mac | Os::Linux => "sightline",
    };
    Ok(Release {
        repository,
        archive: format!("{name}.{suffix}"),
        program: format!("{name}/{program}"),
        tag,
    })
}

/// Returns `owner/name` of the `repository` in an `extension.toml`.
fn github_repository(manifest: &str) -> Option<String> {
    let line = manifest
        .lines()
        .take_while(|line| !line.starts_with('['))
        .find_map(|line| line.strip_prefix("repository = "))?;
    let url = line.trim().trim_matches('"').trim_end_matches('/');
    let path = url.strip_prefix("https://github.com/")?;
    let path = path.strip_suffix(".git").unwrap_or(path);
    (path.split('/').filter(|part| !part.is_empty()).count() == 2).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str =
        "repository = \"https://github.com/owner/sightline\"\nid = \"sightline\"\n";

    #[test]
    fn a_release_has_an_archive_for_each_platform() {
        let linux = release(MANIFEST, Os::Linux, Architecture::X8664).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let expected = Release {
            repository: "owner/sightline".into(),
            tag: format!("v{version}"),
            archive: format!("sightline-v{version}-x86_64-unknown-linux-musl.tar.gz"),
            program: format!("sightline-v{version}-x86_64-unknown-linux-musl/sightline"),
        };
        assert_eq!(linux, expected);
        let windows = release(MANIFEST, Os::Windows, Architecture::X8664).unwrap();
        assert!(windows.archive.ends_with("-x86_64-pc-windows-msvc.zip"));
        assert!(windows.program.ends_with("/sightline.exe"));
        release(MANIFEST, Os::Windows, Architecture::X86).unwrap_err();
    }

    #[test]
    fn only_a_repository_on_github_has_releases() {
        for url in [
            "https://github.com/owner/name/",
            "https://github.com/owner/name.git",
        ] {
            let manifest = format!("id = \"a\"\nrepository = \"{url}\"\n[a]\n");
            assert_eq!(github_repository(&manifest), Some("owner/name".into()));
        }
        for manifest in [
            include_str!("../extension.toml"),
            "repository = \"https://example.org/owner/name\"",
            "repository = \"https://github.com/owner\"",
            "[table]\nrepository = \"https://github.com/owner/name\"",
        ] {
            assert_eq!(github_repository(manifest), None, "{manifest}");
        }
    }
}
