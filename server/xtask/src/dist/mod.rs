//! Builds the release packages in `target/dist`.
//!
//! Packages of a platform contain its program: the archive, the wheel, the npm package and the
//! VS Code extension. Shared packages are the npm package that selects the platform, the plugin
//! for Neovim, the extension for Zed and the list of crates (SBOM). Installers name the archives and their checksums, so
//! they are written when the archives of all platforms are in the directory. `SHA256SUMS` is
//! written last, for all files.

mod archive;
mod checksums;
mod editors;
mod installers;
mod npm;
mod platform;
mod sbom;
mod wheel;

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use archive::Entry;
use clap::{Args, ValueEnum};
use platform::Platform;

use crate::repository;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const DESCRIPTION: &str =
    "Language server for AI coding agents: editor context, access rules and checkpoints";
const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

#[derive(Args)]
pub(crate) struct Options {
    /// Packages to build; by default, all.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Target triple of the program; by default, that of this machine.
    #[arg(long)]
    target: Option<String>,
    /// Program to package instead of building one, with `sightline-gateway` next to it.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Address of the repository that hosts the releases, which the extensions for VS Code and
    /// Zed, the wheel and the npm packages name. Without it, no installers are written.
    #[arg(long, value_name = "URL")]
    repository: Option<String>,
    /// Do not build the VS Code extension, which needs npm.
    #[arg(long)]
    no_vsix: bool,
}

impl Options {
    /// Returns the options of a release, for this machine. Without npm, there is no VS Code extension.
    pub(crate) fn everything(binary: Option<PathBuf>, repository: &str) -> Self {
        let npm = Command::new("npm").arg("--version").output();
        Self {
            only: None,
            target: None,
            binary,
            repository: Some(repository.to_owned()),
            no_vsix: npm.is_err(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// Packages with a program.
    Platform,
    /// Packages without a program.
    Shared,
}

/// Texts that are the same in all packages.
struct Project<'a> {
    license: String,
    /// Page of the package in a registry, in Markdown.
    readme: String,
    repository_url: Option<&'a str>,
}

impl<'a> Project<'a> {
    fn read(repository_url: Option<&'a str>) -> Result<Self> {
        let mut readme = fs::read_to_string(repository().join("packaging/README.md"))?;
        if let Some(url) = repository_url {
            readme.push_str(&format!("\nDocumentation and source: <{url}>\n"));
        }
        Ok(Self {
            license: fs::read_to_string(repository().join("LICENSE"))?,
            readme,
            repository_url,
        })
    }
}

/// The programs of a platform.
#[derive(Clone, Copy)]
struct Programs<'a> {
    program: &'a [u8],
    gateway: &'a [u8],
}

impl Programs<'_> {
    /// Returns the programs below a folder, whose path ends with `/`.
    fn entries(&self, platform: &Platform, folder: &str) -> Vec<Entry> {
        [
            (platform.program(), self.program),
            (platform.gateway(), self.gateway),
        ]
        .map(|(name, content)| Entry::program(format!("{folder}{name}"), content))
        .into()
    }
}

/// Builds the packages and prints their paths.
pub(crate) fn run(options: &Options) -> Result<()> {
    write_packages(options, &Output::create()?)
}

fn write_packages(options: &Options, output: &Output) -> Result<()> {
    let repository_url = options
        .repository
        .as_deref()
        .map(|url| url.trim_end_matches('/'));
    let project = Project::read(repository_url)?;
    if options.only != Some(Part::Shared) {
        platform_packages(options, output, &project)?;
    }
    if options.only != Some(Part::Platform) {
        let (name, content) = npm::main_package(&project)?;
        output.write(&name, &content)?;
        editors::write_shared(output, &project)?;
        sbom::write(output)?;
        match repository_url {
            Some(url) => installers::write(output, url)?,
            None => println!("installers: skipped, because --repository is absent"),
        }
    }
    checksums::write(output)
}

fn platform_packages(options: &Options, output: &Output, project: &Project) -> Result<()> {
    let target = options.target.clone().map_or_else(host, Ok)?;
    let platform = Platform::of(&target)?;
    let path = match &options.binary {
        Some(path) => path.clone(),
        None => build(options.target.as_deref())?,
    };
    let read = |path: &Path| {
        fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let program = read(&path)?;
    let gateway = read(&path.with_file_name(platform.gateway()))?;
    let programs = Programs {
        program: &program,
        gateway: &gateway,
    };

    let archive = program_archive(platform, &path, programs)?;
    output.write(&platform.archive_file(VERSION), &archive)?;
    let (name, content) = wheel::build(platform, programs, project)?;
    output.write(&name, &content)?;
    let (name, content) = npm::platform_package(platform, programs, project)?;
    output.write(&name, &content)?;
    if options.no_vsix {
        println!("VS Code extension: skipped, because of --no-vsix");
    } else {
        editors::write_vsix(output, platform, &path, project.repository_url)?;
    }
    Ok(())
}

/// Returns the archive of a program with its documents, completions and manual pages. The
/// program is run, so it must be one for this machine.
fn program_archive(platform: &Platform, path: &Path, programs: Programs<'_>) -> Result<Vec<u8>> {
    let mut entries = programs.entries(platform, "");
    for name in ["README.md", "CHANGELOG.md", "LICENSE"] {
        entries.push(Entry::file(name, fs::read(repository().join(name))?));
    }
    for shell in SHELLS {
        let script = output_of(Command::new(path).args(["completions", shell]))?;
        entries.push(Entry::file(
            format!("completions/sightline.{shell}"),
            script,
        ));
    }
    let pages = repository().join("target/dist/.man");
    fs::create_dir_all(&pages)?;
    output_of(Command::new(path).arg("man").arg("--to").arg(&pages))?;
    entries.extend(files_below(&pages, "man")?);
    fs::remove_dir_all(&pages)?;

    let name = platform.archive_name(VERSION);
    if platform.is_windows() {
        for entry in &mut entries {
            entry.path = format!("{name}/{}", entry.path);
        }
        return archive::zip(&entries);
    }
    archive::tar_gz(&name, &entries)
}

/// Builds the programs and returns the path of the first. They are built apart, so that only the
/// gateway has an HTTP client. They contain no paths of this machine.
fn build(target: Option<&str>) -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".cargo")))
        .ok_or("the environment has neither CARGO_HOME nor a home directory")?;
    let flags = [(home, "cargo"), (repository(), "sightline")]
        .map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()));
    for package in ["sightline", "sightline-gateway"] {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--package", package, "--locked", "--release"])
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
            .current_dir(repository());
        if let Some(target) = target {
            cargo.args(["--target", target]);
        }
        succeed(&mut cargo)?;
    }
    let mut path = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| repository().join("target"), PathBuf::from);
    path.extend(target);
    path.push("release");
    path.push(format!("sightline{}", std::env::consts::EXE_SUFFIX));
    Ok(path)
}

/// Returns the target triple of this machine.
fn host() -> Result<String> {
    let version = String::from_utf8(output_of(Command::new("rustc").arg("-vV"))?)?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| "rustc does not print its host".into())
}

/// Returns the files below a folder, with paths below `prefix`, sorted.
fn files_below(folder: &Path, prefix: &str) -> Result<Vec<Entry>> {
    let mut children = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    children.sort_by_key(fs::DirEntry::file_name);
    let mut entries = Vec::new();
    for child in children {
        let path = format!("{prefix}/{}", child.file_name().to_string_lossy());
        if child.file_type()?.is_dir() {
            entries.extend(files_below(&child.path(), &path)?);
        } else {
            entries.push(Entry::file(path, fs::read(child.path())?));
        }
    }
    Ok(entries)
}

/// Returns the standard output of a command that must succeed.
fn output_of(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .output()
        .map_err(|error| format!("cannot run {:?}: {error}", command.get_program()))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{:?} failed: {errors}", command.get_program()).into());
    }
    Ok(output.stdout)
}

/// Runs a command with the streams of this program.
fn succeed(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .map_err(|error| format!("cannot run {:?}: {error}", command.get_program()))?;
    if !status.success() {
        return Err(format!("{:?} failed: {status}", command.get_program()).into());
    }
    Ok(())
}

/// The directory of the packages.
struct Output {
    folder: PathBuf,
}

impl Output {
    fn create() -> Result<Self> {
        let folder = repository().join("target/dist");
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, content)?;
        self.print(name);
        Ok(())
    }

    /// Returns the names of the files, sorted. Folders and hidden files are omitted.
    fn files(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for child in fs::read_dir(&self.folder)? {
            let child = child?;
            let name = child.file_name().to_string_lossy().into_owned();
            if child.file_type()?.is_file() && !name.starts_with('.') {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn print(&self, name: &str) {
        println!("{}", self.folder.join(name).display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_all_files_are_written_without_a_repository() {
        let folder = tempfile::tempdir().unwrap();
        let output = Output {
            folder: folder.path().to_owned(),
        };
        let options = Options {
            only: Some(Part::Shared),
            target: None,
            binary: None,
            repository: None,
            no_vsix: true,
        };
        write_packages(&options, &output).unwrap();
        let sums = fs::read_to_string(folder.path().join("SHA256SUMS")).unwrap();
        let (sums, names): (Vec<_>, Vec<_>) = sums
            .lines()
            .map(|line| line.split_once("  ").unwrap())
            .unzip();
        let packages = [
            format!("npm-sightline-{VERSION}.tgz"),
            format!("sightline-{VERSION}.cdx.json"),
            format!("sightline-zed-v{VERSION}.tar.gz"),
            format!("sightline.nvim-v{VERSION}.tar.gz"),
        ];
        assert_eq!(names, packages);
        for (sum, name) in sums.into_iter().zip(names) {
            let content = fs::read(folder.path().join(name)).unwrap();
            assert_eq!(sum, checksums::sha256(&content), "{name}");
        }
    }
}
