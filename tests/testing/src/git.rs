//! The git program as a reference.

use std::{
    env,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

/// Returns git for a folder, ignoring user and system configuration.
pub fn git(folder: &Path, ignore_case: bool) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap())
        .arg("-c")
        .arg(format!("core.ignorecase={ignore_case}"))
        .args(["-c", "core.excludesFile="]);
    command
}

/// Creates an empty repository in a folder.
pub fn init(folder: &Path) {
    let made = git(folder, false).args(["init", "-q"]).status();
    assert!(made.unwrap().success());
}

/// Runs git in a folder of a repository, and returns its output.
///
/// # Panics
/// If it fails.
pub fn run(folder: &Path, arguments: &[&str]) -> String {
    let output = git(folder, false)
        .env_remove("GIT_CEILING_DIRECTORIES")
        .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
        .args(["-c", "init.defaultBranch=main"])
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns whether git is installed. If not, reports that a test is skipped, or fails in
/// CI.
pub fn is_installed() -> bool {
    let is_installed = Command::new("git").arg("--version").output().is_ok();
    if !is_installed {
        assert!(env::var_os("CI").is_none(), "git is needed");
        eprintln!("skipped: git is not installed");
    }
    is_installed
}

/// The line of a rule file that decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Line number, starting at 1.
    pub number: u32,
    /// The pattern.
    pub pattern: String,
}

impl Line {
    /// Returns whether it ignores what it matches.
    pub fn ignores(&self) -> bool {
        !self.pattern.starts_with('!')
    }
}

/// Returns the deciding line for each path, by `git check-ignore`.
pub fn check_ignore(
    folder: &Path,
    ignore_case: bool,
    paths: &[impl AsRef<str>],
) -> Vec<Option<Line>> {
    let mut child = git(folder, ignore_case)
        .args(["check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for path in paths {
        // A leading colon would be pathspec magic.
        write!(input, "./{}\0", path.as_ref()).unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let fields: Vec<&str> = text.split_terminator('\0').collect();
    assert_eq!(fields.len(), 4 * paths.len(), "git answered: {text:?}");
    let lines = fields.chunks(4).map(|fields| {
        Some(Line {
            number: fields[1].parse().ok()?,
            pattern: fields[2].to_owned(),
        })
    });
    lines.collect()
}
