//! `cargo xtask release --dry-run`: everything of a release up to its uploads.
//!
//! Checks the versions and the changelog, builds the packages of this machine, tries them, and prints
//! the commands that upload them.

pub(crate) mod notes;

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use serde_json::Value;
use toml_edit::{DocumentMut, Item};

use crate::{dist, generate::included_code::IS_RELEASED, repository};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Args)]
pub(crate) struct Options {
    /// Upload nothing. Required, because uploads need accounts: they are printed as commands.
    #[arg(long, required = true)]
    dry_run: bool,
    /// Program to package instead of building one, with `sightline-gateway` next to it.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Address of the repository that hosts the releases.
    #[arg(long, value_name = "URL")]
    repository: String,
}

/// Prepares the release in `target/dist`. Finishes everything before it reports what is missing.
pub(crate) fn run(options: &Options) -> Result<()> {
    debug_assert!(options.dry_run, "required by the command line");
    let mut problems = versions(&repository())?;
    let changelog = fs::read_to_string(repository().join("CHANGELOG.md"))?;
    if let Err(error) = notes::of_tag(&changelog, &format!("v{VERSION}")) {
        problems.push(format!(
            "{error}: rename `Unreleased` to the version and the date"
        ));
    }

    if !IS_RELEASED {
        problems.push("the documents say that there are no releases: set `IS_RELEASED` in server/xtask/src/generate/included_code.rs and run `cargo xtask generate`".to_owned());
    }

    let folder = repository().join("target/dist");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    dist::run(&dist::Options::everything(
        options.binary.clone(),
        &options.repository,
    ))?;
    let mut tests = Command::new(repository().join("tests/packages/run"));
    tests.env("SIGHTLINE_DIST", &folder);
    if !tests.current_dir(repository()).status()?.success() {
        problems.push("the packages do not work: see tests/packages/run above".to_owned());
    }

    println!("\nUploads, in this order, with the packages of all platforms in target/dist:");
    for command in uploads(&files(&folder)?) {
        println!("  {command}");
    }
    if problems.is_empty() {
        println!("\nReady to release {VERSION}.");
        return Ok(());
    }
    Err(format!(
        "not ready to release {VERSION}:\n- {}",
        problems.join("\n- ")
    )
    .into())
}

/// Returns a sentence for each file with another version than `Cargo.toml`.
fn versions(repository: &Path) -> Result<Vec<String>> {
    let read = |name: &str| fs::read_to_string(repository.join(name));
    let toml = |name: &str| -> Result<DocumentMut> { Ok(read(name)?.parse()?) };
    let extension: Value = serde_json::from_str(&read("clients/vscode/package.json")?)?;
    let zed = toml("clients/zed/extension.toml")?;
    let crate_of_zed = toml("clients/zed/Cargo.toml")?;
    let version = |table: Option<&Item>| table?.get("version")?.as_str().map(str::to_owned);
    let found = [
        (
            "clients/vscode/package.json",
            extension["version"].as_str().map(str::to_owned),
        ),
        ("clients/zed/extension.toml", version(Some(zed.as_item()))),
        (
            "clients/zed/Cargo.toml",
            version(crate_of_zed.get("package")),
        ),
    ];
    let other = found
        .into_iter()
        .filter(|(_, version)| version.as_deref() != Some(VERSION));
    Ok(other
        .map(|(name, version)| {
            let version = version.as_deref().unwrap_or("none");
            format!("{name} has version {version}, but Cargo.toml has {VERSION}")
        })
        .collect())
}

/// Returns the names of the files in a folder, sorted.
fn files(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the commands that publish packages, each with the registry's own program.
fn uploads(names: &[String]) -> Vec<String> {
    let path = |name: &String| format!("target/dist/{name}");
    let with_ending = |ending: &str| {
        let found = names.iter().filter(|name| name.ends_with(ending));
        found.map(path).collect::<Vec<_>>()
    };
    let mut commands = vec![
        format!(
            "git tag v{VERSION} && git push origin v{VERSION}    # the workflow publishes the release on GitHub"
        ),
        format!("gh run watch && gh release download v{VERSION} --dir target/dist --clobber"),
        format!("twine upload {}", with_ending(".whl").join(" ")),
    ];
    let main = format!("target/dist/npm-sightline-{VERSION}.tgz");
    let mut npm = with_ending(".tgz");
    npm.retain(|package| *package != main);
    // The main package depends on those of the platforms.
    npm.push(main);
    commands.extend(npm.iter().map(|package| format!("npm publish {package}")));
    for package in with_ending(".vsix") {
        commands.push(format!("npx vsce publish --packagePath {package}"));
        commands.push(format!("npx ovsx publish {package}"));
    }
    commands.extend(
        [
            "copy target/dist/sightline.nvim to its mirror repository, commit and push it",
            "copy target/dist/sightline.rb to the Homebrew tap, commit and push it",
            "open a pull request with target/dist/mason.yaml in the mason registry",
            "open a pull request with the version in the registry of Zed extensions",
        ]
        .map(|step| format!("# {step}")),
    );
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_equal_everywhere() {
        assert_eq!(versions(&repository()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn another_version_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("clients/vscode/package.json", r#"{"version": "0.0.1"}"#);
        write("clients/zed/extension.toml", "id = \"sightline\"\n");
        let package = format!("[package]\nversion = \"{VERSION}\"\n");
        write("clients/zed/Cargo.toml", &package);
        let expected = [
            ("clients/vscode/package.json", "0.0.1"),
            ("clients/zed/extension.toml", "none"),
        ]
        .map(|(name, version)| {
            format!("{name} has version {version}, but Cargo.toml has {VERSION}")
        });
        assert_eq!(versions(folder.path()).unwrap(), expected);
    }

    #[test]
    fn the_npm_package_that_depends_on_others_is_last() {
        let names = [
            format!("npm-sightline-{VERSION}.tgz"),
            format!("npm-sightline-linux-x64-{VERSION}.tgz"),
            format!("npm-sightline-win32-x64-{VERSION}.tgz"),
        ];
        let commands = uploads(&names);
        let published: Vec<&String> = commands
            .iter()
            .filter(|command| command.starts_with("npm publish"))
            .collect();
        let expected = ["-linux-x64", "-win32-x64", ""].map(|platform| {
            format!("npm publish target/dist/npm-sightline{platform}-{VERSION}.tgz")
        });
        assert_eq!(published, expected.iter().collect::<Vec<_>>());
    }
}
