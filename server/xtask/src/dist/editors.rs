//! The packages of editors: VS Code, Neovim and Zed.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use super::{
    Output, Project, Result, VERSION,
    archive::{self, Entry},
    files_below,
    platform::Platform,
    succeed,
};
use crate::repository;

/// Files and folders of the extension for Zed, which is distributed as source.
const ZED: [&str; 6] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "extension.toml",
    "src",
];

/// Folders of the plugin for Neovim.
const NVIM: [&str; 5] = ["doc", "lsp", "lua", "plugin", "screenshots"];

/// Writes the VS Code extension of a platform, which contains the program.
pub(super) fn write_vsix(
    output: &Output,
    platform: &Platform,
    program: &Path,
    repository_url: Option<&str>,
) -> Result<()> {
    let folder = repository().join("clients/vscode");
    let npm = |arguments: &[&str]| {
        let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
        let mut npm = Command::new(program);
        npm.current_dir(&folder).args(arguments);
        npm
    };
    if !folder.join("node_modules/@vscode/vsce").is_dir() {
        succeed(&mut npm(&[
            "ci",
            "--ignore-scripts",
            "--loglevel=error",
            "--no-audit",
            "--no-fund",
        ]))?;
    }
    let name = format!("sightline-{}-{VERSION}.vsix", platform.vscode);
    let mut package = npm(&["run", "--silent", "package"]);
    package
        // The times of all files, so that equal content gives equal bytes.
        .env("SOURCE_DATE_EPOCH", archive::MODIFIED.to_string())
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .env("SIGHTLINE_VSIX_TARGET", platform.vscode)
        .env("SIGHTLINE_VSIX_PROGRAM", program)
        .env("SIGHTLINE_VSIX_FILE", output.folder.join(&name));
    if let Some(url) = repository_url {
        package.env("SIGHTLINE_VSIX_REPOSITORY", url);
    }
    succeed(&mut package)?;
    output.print(&name);
    Ok(())
}

/// Writes the plugin for Neovim, as a folder and as an archive, and the extension for Zed.
pub(super) fn write_shared(output: &Output, project: &Project) -> Result<()> {
    let plugin = nvim_plugin(&project.license)?;
    let root = output.folder.join("sightline.nvim");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    for entry in &plugin {
        let path = root.join(&entry.path);
        fs::create_dir_all(path.parent().unwrap_or(&root))?;
        fs::write(path, &entry.content)?;
    }
    output.print("sightline.nvim");
    let name = format!("sightline.nvim-v{VERSION}");
    output.write(&format!("{name}.tar.gz"), &archive::tar_gz(&name, &plugin)?)?;

    let name = format!("sightline-zed-v{VERSION}");
    let mut extension = collect(&repository().join("clients/zed"), &ZED)?;
    if let Some(url) = project.repository_url {
        for entry in &mut extension {
            if entry.path == "extension.toml" {
                // A key of the top level precedes all tables.
                let line = format!("repository = {}\n", serde_json::to_string(url)?);
                entry.content.splice(0..0, line.into_bytes());
            }
        }
    }
    output.write(
        &format!("{name}.tar.gz"),
        &archive::tar_gz(&name, &extension)?,
    )
}

/// Returns the plugin for Neovim with its license and help tags.
fn nvim_plugin(license: &str) -> Result<Vec<Entry>> {
    let mut entries = collect(&repository().join("clients/nvim"), &NVIM)?;
    entries.retain(|entry| entry.path != "doc/tags" && !entry.path.ends_with(".py"));
    let help = entries
        .iter()
        .find(|entry| entry.path == "doc/sightline.txt")
        .ok_or("clients/nvim has no doc/sightline.txt")?;
    let tags = help_tags(&String::from_utf8_lossy(&help.content));
    entries.push(Entry::file("doc/tags", tags));
    entries.push(Entry::file("LICENSE", license));
    entries.push(Entry::file(
        "README.md",
        fs::read(repository().join("clients/nvim/README.md"))?,
    ));
    Ok(entries)
}

/// Returns the tags file of a help file, as `:helptags` writes it.
fn help_tags(help: &str) -> String {
    let mut is_code = false;
    let mut tags = BTreeSet::new();
    for line in help.lines() {
        // A code block ends at a line that is not indented.
        is_code &= line.is_empty() || line.starts_with([' ', '\t']);
        if !is_code {
            let words = line.split_whitespace();
            tags.extend(words.filter_map(|word| {
                word.strip_prefix('*')?
                    .strip_suffix('*')
                    .filter(|tag| !tag.is_empty() && !tag.contains(['*', '|']))
            }));
        }
        let last = line.rsplit(' ').next().unwrap_or_default();
        is_code |= last.starts_with('>') && last[1..].chars().all(|c| c.is_ascii_lowercase());
    }
    tags.iter()
        .map(|tag| {
            let pattern = tag.replace('\\', "\\\\").replace('/', "\\/");
            format!("{tag}\tsightline.txt\t/*{pattern}*\n")
        })
        .collect()
}

/// Returns files and the files of folders, with paths below `folder`.
fn collect(folder: &Path, names: &[&str]) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for name in names {
        let path = folder.join(name);
        if path.is_dir() {
            entries.extend(files_below(&path, name)?);
        } else {
            entries.push(Entry::file(*name, fs::read(path)?));
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{super::platform::PLATFORMS, help_tags, repository};

    #[test]
    fn zed_downloads_archives_that_are_built() {
        let source = fs::read_to_string(repository().join("clients/zed/src/release.rs")).unwrap();
        let (code, _) = source.split_once("#[cfg(test)]").unwrap();
        let targets: Vec<&str> = code
            .split('"')
            .filter(|text| {
                ["-linux-", "-darwin", "-windows-"]
                    .iter()
                    .any(|system| text.contains(system))
            })
            .collect();
        assert_eq!(targets.len(), 5, "{targets:?}");
        for target in targets {
            assert!(
                PLATFORMS.iter().any(|platform| platform.target == target),
                "{target}"
            );
        }
    }

    #[test]
    fn help_tags_are_sorted_and_skip_code() {
        let help = "*b.txt* Title  *a*\n*no tag and *:C/d*\nCode: >vim\n  *code*\n<\n  *e*\n";
        let expected = [
            ":C/d\tsightline.txt\t/*:C\\/d*",
            "a\tsightline.txt\t/*a*",
            "b.txt\tsightline.txt\t/*b.txt*",
            "e\tsightline.txt\t/*e*",
        ];
        assert_eq!(help_tags(help).lines().collect::<Vec<_>>(), expected);
    }
}
