//! `sightline doctor`: checks what the server needs on this machine.

use std::{ffi::OsStr, fs, path::Path, process::Command, sync::Arc};

use serde::Serialize;
use sightline_access::{Access, RULE_FILE};
use sightline_base::{
    escape,
    fs::find_program,
    path::{Root, Roots},
    plural::plural,
    storage::Storage,
};
use sightline_engine::{
    error::Error,
    render::{ADDED, REMOVED},
    settings::{
        config_file::{self, ConfigFiles},
        sources::SettingsSources,
    },
};
use sightline_ipc as ipc;
use sightline_local::process::version;
use sightline_protocol::settings::Secrets;

use super::{
    NEGATIVE, Workspace,
    agents::{AgentState, states},
    checkpoints::{moved_hint, size},
    exec,
    gateway::usage,
    log, offline, print_as,
    requests::Requests,
    uninstall,
};

/// Recommended number of inotify watches: one per directory of a large project.
const ENOUGH_WATCHES: u64 = 65_536;

/// Supported editors, by program name.
const EDITORS: [(&str, &str); 6] = [
    ("nvim", "Neovim"),
    ("hx", "Helix"),
    ("helix", "Helix"),
    ("code", "VS Code"),
    ("zed", "Zed"),
    ("emacs", "Emacs"),
];

/// The output of `sightline doctor --json`.
#[derive(Serialize)]
pub(super) struct Report {
    findings: Vec<Finding>,
    ok: bool,
}

#[derive(Serialize)]
struct Finding {
    found: String,
    ok: bool,
    /// What to do about a problem.
    remedy: String,
    what: &'static str,
}

/// Runs all checks and prints the findings. Returns 1 if there is a problem.
pub(super) fn run(workspace: &Workspace) -> Result<i32, Error> {
    let report = report(workspace)?;
    let done = print_as(workspace, &report, |report| {
        report.findings.iter().map(Finding::line).collect()
    })?;
    Ok(if report.ok { done } else { NEGATIVE })
}

/// Runs all checks.
pub(super) fn report(workspace: &Workspace) -> Result<Report, Error> {
    let root = offline::root(workspace)?;
    let files = ConfigFiles::read(config_file::user_file(), std::slice::from_ref(&root));
    let files = Arc::new(files);
    let settings = SettingsSources::default().set_files(files.clone()).0;
    let mut findings = vec![
        program(),
        storage(workspace.storage.as_deref()),
        servers(workspace.storage.as_deref(), &root),
        agents(root.path.as_path(), workspace.storage.as_deref()),
        rules(&root, settings.access.secrets),
        configuration(&files),
        hiding(),
        git(),
        ownership(root.path.as_path()),
        watches(),
        editors(),
    ];
    findings.extend(moved_checkpoints(workspace));
    findings.extend(refused(workspace));
    findings.extend(requests_to_models(workspace.storage.as_deref()));
    Ok(Report {
        ok: findings.iter().all(|finding| finding.ok),
        findings,
    })
}

fn storage(named: Option<&Path>) -> Finding {
    let what = "data directory";
    let path = match offline::storage_dir(named) {
        Ok(path) => path,
        Err(error) => return Finding::failed(what, error.message, "set HOME"),
    };
    let opened = Storage::open(&path).and_then(|storage| storage.results().map(|_| storage));
    match opened {
        Ok(storage) => Finding::passed(what, format!("{}{}", path.display(), sizes(&storage))),
        Err(error) => {
            let text = error.to_string();
            let (found, remedy) = text.split_once("; ").unwrap_or((
                &text,
                "change its owner or mode (chown, chmod 700), or set `storage.path` to another directory",
            ));
            Finding::failed(what, found.to_owned(), remedy)
        }
    }
}

/// Counts what agents were refused today.
fn refused(workspace: &Workspace) -> Option<Finding> {
    let what = "decisions";
    match log::today(workspace) {
        Ok((0, 0)) => None,
        Ok((denied, redacted)) => {
            let reads = plural(denied, "read");
            let found = format!(
                "{reads} refused and {redacted} redacted today; `sightline log` lists them"
            );
            Some(Finding::passed(what, found))
        }
        Err(error) => Some(Finding::failed(what, error.message, "move the file away")),
    }
}

/// Counts what agents asked their models through the gateway today.
fn requests_to_models(storage: Option<&Path>) -> Option<Finding> {
    let what = "gateway";
    let used = offline::storage_dir(storage).and_then(|folder| usage::today(&folder));
    match used {
        Ok(found) => Some(Finding::passed(what, found?)),
        Err(error) => Some(Finding::failed(what, error.message, "move the file away")),
    }
}

/// Finds the checkpoints of this folder at another place.
fn moved_checkpoints(workspace: &Workspace) -> Option<Finding> {
    let found = moved_hint(&Requests::offline(workspace))?;
    let remedy = "run `sightline checkpoint adopt`";
    Some(Finding::failed(
        "checkpoints of a moved folder",
        found,
        remedy,
    ))
}

/// Returns the sizes of the parts of a data directory, as ` (12.50 MB: projects 11.20 MB, ...)`.
fn sizes(storage: &Storage) -> String {
    let parts = uninstall::sizes(storage).unwrap_or_default();
    let total: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    let names: Vec<String> = parts
        .iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(name, bytes)| format!("{name} {}", size(*bytes)))
        .collect();
    if names.is_empty() {
        return " (empty)".to_owned();
    }
    format!(" ({}: {})", size(total), names.join(", "))
}

/// Checks the configuration files.
fn configuration(files: &ConfigFiles) -> Finding {
    let what = "configuration files";
    let mut problems = files.problems();
    if let Some(problem) = problems.next() {
        let found = match problems.count() {
            0 => problem.to_string(),
            more => format!("{problem} (and {more} more)"),
        };
        let found = escape::one_line(&found).into_owned();
        return Finding::failed(what, found, "correct it; `sightline config` shows the rest");
    }
    let existing = files.all().filter(|file| file.exists);
    let paths: Vec<String> = existing
        .map(|file| file.path.display().to_string())
        .collect();
    let found = if paths.is_empty() {
        "none".to_owned()
    } else {
        paths.join(", ")
    };
    Finding::passed(what, found)
}

fn program() -> Finding {
    let path = std::env::current_exe().map_or_else(
        |error| format!("unknown path: {error}"),
        |path| path.display().to_string(),
    );
    Finding::passed("program", format!("{} {path}", version::VERSION))
}

fn servers(named: Option<&Path>, root: &Root) -> Finding {
    let running = offline::storage_dir(named)
        .and_then(|dir| Ok(Storage::open(&dir)?))
        .map_or(0, |storage| ipc::client::running(&storage, Some(root)));
    let servers = plural(running, "server");
    Finding::passed(
        "running servers",
        format!("{servers} for {}", root.path.display()),
    )
}

fn agents(root: &Path, storage: Option<&Path>) -> Finding {
    let what = "agents";
    let states = match states(root, storage) {
        Ok(states) => states,
        Err(error) => return Finding::failed(what, error.message, "set HOME"),
    };
    let connected = states.iter().filter(|state| state.is_connected());
    let names: Vec<String> = connected.map(AgentState::title).collect();
    let found = if names.is_empty() {
        "none connected; see `sightline agents`".to_owned()
    } else {
        names.join(", ")
    };
    let problems: Vec<(String, &str)> = states
        .iter()
        .flat_map(|state| state.problems.iter().map(move |problem| (state, problem)))
        .map(|(state, problem)| {
            let found = format!("{}: {}", state.title(), problem.what);
            (found, problem.remedy.as_str())
        })
        .collect();
    if problems.is_empty() {
        return Finding::passed(what, found);
    }
    let mut remedies: Vec<&str> = problems.iter().map(|(_, remedy)| *remedy).collect();
    remedies.dedup();
    let problems: Vec<&str> = problems.iter().map(|(found, _)| found.as_str()).collect();
    Finding::failed(
        what,
        format!("{found}; {}", problems.join("; ")),
        &remedies.join("; "),
    )
}

fn rules(root: &Root, secrets: Secrets) -> Finding {
    let what = "access rules";
    let built_in = match secrets {
        Secrets::Deny => "built-in secrets (.env, private keys, ...) are denied",
        Secrets::Allow => "built-in secrets are allowed by `access.secrets`",
    };
    let access = Access::new(Roots::new(vec![root.clone()]).into(), Vec::new(), secrets);
    let files = access.watched_files().into_iter().filter(|file| {
        file.file_name() == Some(OsStr::new(RULE_FILE)) && fs::symlink_metadata(file).is_ok()
    });
    let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
    if files.is_empty() {
        let found = format!(
            "no {RULE_FILE} in {} or its parents; {built_in}",
            root.path.display()
        );
        return Finding::passed(what, found);
    }
    let view = access.view().0;
    let lifting = view.lifting_rules(0).into_iter();
    let lifting: Vec<String> = lifting
        .map(|rule| {
            format!(
                "{}:{}: {}",
                rule.source,
                rule.line,
                escape::one_line(&rule.pattern)
            )
        })
        .collect();
    let built_in = match (secrets, lifting.as_slice()) {
        (Secrets::Deny, [_, ..]) => format!("{built_in}, except by {}", lifting.join(", ")),
        _ => built_in.to_owned(),
    };
    match view.unusable(0) {
        Some(reason) => Finding::failed(
            what,
            reason.to_string(),
            "make .clineignore a readable text file",
        ),
        None => Finding::passed(what, format!("{}; {built_in}", files.join(", "))),
    }
}

/// Tries whether `sightline exec` can hide denied files here.
fn hiding() -> Finding {
    let what = "hidden files";
    let found = match exec::hiding_problem() {
        None => "`sightline exec` works".to_owned(),
        // Optional: only this command needs it.
        Some(reason) => format!("`sightline exec` does not work: {reason}"),
    };
    Finding::passed(what, found)
}

fn git() -> Finding {
    let what = "git";
    let version = command("git", &["--version"]);
    let Some(version) = version else {
        return Finding::passed(what, "not installed (optional)".to_owned());
    };
    let who = |key| command("git", &["config", "--get", key]).unwrap_or_default();
    let (name, email) = (who("user.name"), who("user.email"));
    if name.is_empty() || email.is_empty() {
        let found =
            format!("{version}; no user.name or user.email (only your own commits need them)");
        return Finding::passed(what, found);
    }
    Finding::passed(what, format!("{version}; commits as {name} <{email}>"))
}

#[cfg(unix)]
fn ownership(root: &Path) -> Finding {
    use std::os::unix::fs::MetadataExt;
    let what = "workspace owner";
    let us = fs::metadata("/proc/self").or_else(|_| fs::metadata(std::env::temp_dir()));
    let ids = fs::metadata(root).map(|metadata| (metadata.uid(), metadata.gid()));
    match (ids, us) {
        (Ok((uid, gid)), Ok(us)) if uid == us.uid() || us.uid() == 0 => {
            Finding::passed(what, format!("user {uid}, group {gid}"))
        }
        (Ok((uid, gid)), Ok(us)) => Finding::failed(
            what,
            format!(
                "user {uid}, group {gid}; this program runs as user {}",
                us.uid()
            ),
            "reading works; git may require `git config --global --add safe.directory`",
        ),
        _ => Finding::failed(
            what,
            format!("cannot read {}", root.display()),
            "check its path",
        ),
    }
}

#[cfg(not(unix))]
fn ownership(root: &Path) -> Finding {
    Finding::passed("workspace owner", root.display().to_string())
}

fn watches() -> Finding {
    let what = "file watches";
    let read = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok()?;
        text.trim().parse().ok()
    };
    match (read("max_user_watches"), read("max_user_instances")) {
        (Some(watches), Some(instances)) if watches < ENOUGH_WATCHES || instances < 128 => {
            Finding::failed(
                what,
                format!("{watches} watches, {instances} instances per user"),
                "raise fs.inotify.max_user_watches to 524288 and fs.inotify.max_user_instances \
                 to 512 (sysctl); until then, changes are polled every two seconds",
            )
        }
        (Some(watches), Some(instances)) => Finding::passed(
            what,
            format!("{watches} watches, {instances} instances per user"),
        ),
        _ if cfg!(target_os = "linux") => Finding::passed(what, "limits not known".to_owned()),
        _ => Finding::passed(
            what,
            "not used for checkpoints on this system; each one examines every file".to_owned(),
        ),
    }
}

fn editors() -> Finding {
    let what = "editors";
    let mut found: Vec<&str> = EDITORS
        .iter()
        .filter(|(program, _)| find_program(program).is_some())
        .map(|(_, name)| *name)
        .collect();
    found.dedup();
    if found.is_empty() {
        return Finding::passed(
            what,
            "none of Neovim, Helix, VS Code, Zed or Emacs is on the PATH (optional)".to_owned(),
        );
    }
    Finding::passed(what, found.join(", "))
}

fn command(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

impl Finding {
    fn line(&self) -> String {
        let (what, found) = (self.what, &self.found);
        match self.ok {
            true => format!("{ADDED}ok  {ADDED:#}{what}: {found}\n"),
            false => format!(
                "{REMOVED}FIX {REMOVED:#}{what}: {found}\n    -> {}\n",
                self.remedy
            ),
        }
    }

    fn passed(what: &'static str, found: String) -> Self {
        Self {
            what,
            ok: true,
            found,
            remedy: String::new(),
        }
    }

    fn failed(what: &'static str, found: String, remedy: &str) -> Self {
        Self {
            what,
            ok: false,
            found,
            remedy: remedy.to_owned(),
        }
    }
}
