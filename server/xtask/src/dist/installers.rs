//! Installers, which download an archive of a release: `install.sh`, the Homebrew formula and
//! the entry of the mason registry. Filled from the templates in `packaging/`.

use std::{collections::BTreeMap, fs};

use super::{Output, Result, VERSION, checksums::sha256, platform::PLATFORMS};
use crate::repository;

const TEMPLATES: [&str; 3] = ["install.sh", "sightline.rb", "mason.yaml"];

/// Writes the installers for the archives in the directory. An installer for
/// platforms whose archive is absent is skipped with a message.
pub(super) fn write(output: &Output, repository_url: &str) -> Result<()> {
    let mut checksums = BTreeMap::new();
    for platform in &PLATFORMS {
        if let Ok(content) = fs::read(output.folder.join(platform.archive_file(VERSION))) {
            checksums.insert(platform.target, sha256(&content));
        }
    }
    for name in TEMPLATES {
        let template = fs::read_to_string(repository().join("packaging").join(name))?;
        match fill(&template, repository_url, &checksums) {
            Ok(text) => output.write(name, text.as_bytes())?,
            Err(target) => println!("{name}: skipped, because the archive of {target} is absent"),
        }
    }
    Ok(())
}

/// Fills the placeholders `@NAME@` of a template. Fails with the target of an unknown checksum.
fn fill(
    template: &str,
    repository_url: &str,
    checksums: &BTreeMap<&'static str, String>,
) -> std::result::Result<String, &'static str> {
    let list: String = checksums
        .iter()
        .map(|(target, sum)| format!("{target}={sum}\n"))
        .collect();
    let mut text = template
        .replace("@VERSION@", VERSION)
        .replace("@REPOSITORY@", repository_url)
        .replace("@CHECKSUMS@", list.trim_end())
        .replace("@MASON_ID@", &mason_id(repository_url))
        .replace("@MASON_ASSETS@", &mason_assets());
    for platform in &PLATFORMS {
        let placeholder = format!("@SHA256:{}@", platform.target);
        if text.contains(&placeholder) {
            let sum = checksums.get(platform.target).ok_or(platform.target)?;
            text = text.replace(&placeholder, sum);
        }
    }
    Ok(text)
}

/// Returns the package URL of a release: the last two names of the address are its owner and
/// name.
fn mason_id(repository_url: &str) -> String {
    let mut names = repository_url.rsplit('/');
    let name = names.next().unwrap_or_default();
    let owner = names.next().unwrap_or_default();
    format!("pkg:github/{owner}/{name}@v{VERSION}")
}

/// Returns the list of archives. In the mason registry, the version is the tag.
fn mason_assets() -> String {
    PLATFORMS
        .iter()
        .map(|platform| {
            let folder = platform
                .archive_name("{{ version }}")
                .replace("-v{{", "-{{");
            let file = platform
                .archive_file("{{ version }}")
                .replace("-v{{", "-{{");
            format!(
                "    - target: {}\n      file: {file}\n      bin: {folder}/{}\n",
                platform.mason,
                platform.program()
            )
        })
        .collect::<String>()
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_no_unknown_placeholders() {
        let checksums = PLATFORMS
            .iter()
            .map(|platform| (platform.target, "0".repeat(64)))
            .collect();
        for name in TEMPLATES {
            let path = repository().join("packaging").join(name);
            let template = fs::read_to_string(path).unwrap();
            let text = fill(
                &template,
                "https://forge.invalid/owner/sightline",
                &checksums,
            )
            .unwrap();
            let rest = text.replace("\"$@\"", "").replace("sightline@v", "");
            assert!(!rest.contains('@'), "{name}: {text}");
        }
        let formula = fs::read_to_string(repository().join("packaging/sightline.rb")).unwrap();
        assert!(fill(&formula, "", &BTreeMap::new()).is_err());
    }

    #[test]
    fn checksums_are_those_of_the_archives() {
        let folder = tempfile::tempdir().unwrap();
        let output = Output {
            folder: folder.path().to_owned(),
        };
        for platform in &PLATFORMS {
            let archive = output.folder.join(platform.archive_file(VERSION));
            fs::write(archive, platform.target).unwrap();
        }
        write(&output, "https://forge.invalid/owner/sightline").unwrap();
        let read = |name: &str| fs::read_to_string(output.folder.join(name)).unwrap();
        let script = read("install.sh");
        for platform in &PLATFORMS {
            let sum = sha256(platform.target.as_bytes());
            assert!(
                script.contains(&format!("{}={sum}", platform.target)),
                "{script}"
            );
        }
        let formula = read("sightline.rb");
        let lines: Vec<&str> = formula.lines().map(str::trim).collect();
        let mut checked = 0;
        for pair in lines.windows(2) {
            let Some(sum) = pair[1].strip_prefix("sha256 ") else {
                continue;
            };
            let mut platforms = PLATFORMS.iter();
            let target =
                platforms.find(|platform| pair[0].contains(&platform.archive_file(VERSION)));
            let expected = sha256(target.unwrap().target.as_bytes());
            assert_eq!(sum.trim_matches('"'), expected, "{}", pair[0]);
            checked += 1;
        }
        assert_eq!(checked, 4, "{formula}");
        assert!(read("mason.yaml").contains("pkg:github/owner/sightline@"));
    }
}
