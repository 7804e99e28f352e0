//! Runs git for the check of a command.
//!
//! Nothing that the environment, the configuration or the repository names is run: no pager, filter,
//! text conversion, hook, driver and file system monitor. Git is given little time.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use super::{
    super::{
        judge::Judge,
        syntax::{DeniedName, Fix},
    },
    excludes,
};
use sightline_base::path::AbsPath;

/// Time for one git process.
const MAX_TIME: Duration = Duration::from_secs(1);
/// Maximum output of one git process, in bytes.
const MAX_OUTPUT: u64 = 32 << 20;

/// A repository, and how git runs in it.
pub(super) struct Repository {
    pub(super) dir: PathBuf,
    pub(super) top: PathBuf,
    /// Whether there is no work tree.
    is_bare: bool,
    /// Settings that disable the filters of the repository.
    settings: Vec<String>,
    /// Options that select the repository and the meaning of pathspecs.
    selection: Vec<String>,
    /// How the command can leave out a file.
    pub(super) fix: Option<Fix>,
}

impl Repository {
    /// `top`: the top of the work tree, unless `selection` has another. `None` if the configuration
    /// cannot be read.
    pub(super) fn new(dir: &Path, top: &Path, selection: &[String]) -> Option<Self> {
        let mut repository = Self {
            dir: dir.to_path_buf(),
            top: top.to_path_buf(),
            is_bare: !top.join(".git").exists(),
            settings: Vec::new(),
            selection: selection.to_vec(),
            fix: None,
        };
        if selection
            .iter()
            .any(|option| option.contains("-dir=") || option.contains("-tree="))
        {
            let top = repository.run("rev-parse", &["--show-toplevel".to_owned()], &[]);
            let top = top.as_ref().and_then(|fields| fields.first());
            repository.is_bare = top.is_none();
            repository.top = top.map_or(dir.to_path_buf(), |top| {
                PathBuf::from(top.trim_end_matches('\n'))
            });
        }
        let keys = repository.run(
            "config",
            &["--list", "--name-only", "-z"].map(str::to_owned),
            &[],
        );
        for key in keys? {
            let Some(driver) = key
                .strip_prefix("filter.")
                .and_then(|key| key.rsplit_once('.'))
            else {
                continue;
            };
            let value = if driver.1 == "required" { "false" } else { "" };
            repository.settings.push(format!("{key}={value}"));
        }
        Some(repository)
    }

    /// Runs git and returns the fields of its output. `None` if it fails or takes too long.
    pub(super) fn run(
        &self,
        subcommand: &str,
        options: &[String],
        words: &[String],
    ) -> Option<Vec<String>> {
        let mut command = self.command();
        command.arg(subcommand).args(options).args(words);
        let bytes = output(command)?;
        let fields = bytes.split(|byte| *byte == 0);
        let texts = fields.map(|field| {
            String::from_utf8_lossy(field)
                .trim_start_matches('\n')
                .to_owned()
        });
        Some(texts.filter(|text| !text.is_empty()).collect())
    }

    /// Returns git in this repository, without a subcommand.
    pub(super) fn command(&self) -> Command {
        let mut command = git();
        command.env("GIT_CONFIG_NOSYSTEM", "1").env(
            "GIT_CONFIG_GLOBAL",
            if cfg!(windows) { "NUL" } else { "/dev/null" },
        );
        // A merge could run a driver.
        let settings = "safe.directory=* core.fsmonitor=false core.hooksPath=/dev/null core.attributesFile=/dev/null \
                        core.pager=cat diff.external= log.diffMerges=separate log.showSignature=false submodule.recurse=false";
        for setting in settings.split(' ') {
            command.args(["-c", setting]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command
            .current_dir(&self.dir)
            .arg("--no-pager")
            .args(&self.selection);
        command
    }

    /// Returns the tracked files that pathspecs match; all of them without any. `others`: also the
    /// untracked ones.
    pub(super) fn files(&self, specs: &[String], others: bool) -> Option<Vec<String>> {
        // Without an index, none are tracked.
        if self.is_bare {
            return None;
        }
        let mut words = if others {
            vec!["-c".to_owned(), "-o".to_owned()]
        } else {
            Vec::new()
        };
        words.push("--".to_owned());
        if specs.iter().all(|spec| excludes(spec)) {
            words.push(":/".to_owned());
        }
        words.extend(specs.iter().cloned());
        self.run(
            "ls-files",
            &["-z", "--full-name"].map(str::to_owned),
            &words,
        )
    }

    /// Returns whether git runs at the top of the work tree.
    pub(super) fn is_at_top(&self) -> bool {
        std::fs::canonicalize(&self.dir).ok() == std::fs::canonicalize(&self.top).ok()
    }

    /// Returns the absolute path of one that git prints.
    pub(super) fn place(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    /// Returns whether a word could be a path of the work tree.
    pub(super) fn has_file(&self, text: &str) -> bool {
        !text.is_empty() && !self.is_bare && self.dir.join(text).exists()
    }

    pub(super) fn has_submodules(&self) -> bool {
        self.top.join(".gitmodules").exists()
    }

    /// Returns whether the configuration, also that of the user, makes commands enter submodules.
    pub(super) fn enters_submodules(&self) -> bool {
        ["diff.submodule", "submodule.recurse"].iter().any(|key| {
            let mut command = git();
            command
                .current_dir(&self.dir)
                .args(["config", "--get", key]);
            output(command).is_some_and(|value| !value.is_empty() && value != b"false\n")
        })
    }

    /// Returns the denied ones of paths relative to the top of the work tree.
    pub(super) fn denied(&self, judge: &Judge<'_>, paths: &[String]) -> Vec<DeniedName> {
        let mut names: Vec<DeniedName> = Vec::new();
        // Without a work tree, the files could be those of the workspace.
        let roots: Vec<PathBuf> = judge.roots().filter(|_| self.is_bare).collect();
        for path in paths {
            let mut places = std::iter::once(&self.top)
                .chain(&roots)
                .map(|top| top.join(path));
            let found = places.find_map(|place| {
                let denial = judge.denial_by_name(&AbsPath::new(&place)?)?;
                Some((place, denial))
            });
            let Some((place, denial)) = found else {
                continue;
            };
            // Rule files contain no secrets.
            let denial =
                Some(denial).filter(|denial| denial.rule.as_ref().is_none_or(|rule| rule.line > 0));
            let is_new = |denial: &crate::Denial| {
                !names
                    .iter()
                    .any(|name| name.path == *path && name.denial.rule == denial.rule)
            };
            if let Some(denial) = denial.filter(|denial| is_new(denial)) {
                names.push(DeniedName {
                    path: path.clone(),
                    place,
                    is_dir: false,
                    denial,
                    fix: self.fix,
                });
            }
        }
        self.without_public(judge, names)
    }
}

/// Returns `git` without variables of the environment that could start a program or write a file.
pub(crate) fn git() -> Command {
    let mut command = Command::new("git");
    command.env_clear();
    for name in "PATH HOME SYSTEMROOT USERPROFILE XDG_CONFIG_HOME GIT_CONFIG_GLOBAL".split(' ') {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    for (name, value) in [
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("LC_ALL", "C"),
    ] {
        command.env(name, value);
    }
    command
}

/// Runs a process and returns its output. `None` if it fails or takes too long.
pub(super) fn output(command: Command) -> Option<Vec<u8>> {
    output_of(command, Vec::new())
}

/// [`output`] of a process that reads `input`.
pub(crate) fn output_of(mut command: Command, input: Vec<u8>) -> Option<Vec<u8>> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let stdout = child.stdout.take()?;
    let stdin = child.stdin.take()?;
    let (sender, receiver) = mpsc::channel();
    // It may write output before it has read everything.
    thread::spawn(move || { stdin }.write_all(&input));
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let result = stdout.take(MAX_OUTPUT).read_to_end(&mut bytes);
        let _ = sender.send(result.map(|_| bytes));
    });
    let bytes = receiver.recv_timeout(MAX_TIME);
    if !matches!(bytes, Ok(Ok(_))) {
        let _ = child.kill();
    }
    let status = child.wait().ok()?;
    // `git grep` exits with 1 without matches.
    let is_done = status.code().is_some_and(|code| code <= 1);
    bytes
        .ok()?
        .ok()
        .filter(|bytes| is_done && (bytes.len() as u64) < MAX_OUTPUT)
}
