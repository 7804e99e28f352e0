//! Asks git for files and their versions.
//!
//! Nothing that the environment, the configuration or the repository names is run: no pager, filter,
//! text conversion, hook, driver and file system monitor. Git is given little time.

use std::{
    collections::HashMap,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    rc::Rc,
    sync::mpsc,
    thread,
    time::Duration,
};

use super::{
    super::{
        judge::Judge,
        syntax::{DeniedName, Fix},
    },
    excludes, object_path,
};
use crate::{Denial, Verdict};
use sightline_base::{
    git::{NO_HOOKS, git},
    path::AbsPath,
};

/// Options with which git prints files and their versions, and nothing else. They come after those of the command.
const RAW: &str = "-s --raw --no-abbrev -z --no-color --no-ext-diff --no-textconv --no-relative --ignore-submodules=all";
/// `git log` of all commits.
const HISTORY: [&str; 5] = ["log", "--all", "--reflog", "-m", "--root"];
/// Number of digits of an id that people are shown.
const MIN_ID: usize = 10;
/// Time for one git process.
const MAX_TIME: Duration = Duration::from_secs(1);
/// Maximum output of one git process, in bytes.
const MAX_OUTPUT: u64 = 32 << 20;

/// A repository, and how git runs in it.
pub(super) struct Repository {
    pub(super) dir: PathBuf,
    pub(super) top: PathBuf,
    /// Whether there is no work tree.
    pub(super) is_bare: bool,
    /// Settings that disable the filters of the repository.
    settings: Vec<String>,
    /// Options that select the repository and the meaning of pathspecs.
    selection: Vec<String>,
    /// How the command can leave out a file.
    pub(super) fix: Option<Rc<Fix>>,
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
        let settings = "safe.directory=* core.fsmonitor=false core.attributesFile=/dev/null \
                        core.pager=cat gpg.program=false gpg.ssh.program=false gpg.x509.program=false diff.external= log.diffMerges=separate log.showSignature=false submodule.recurse=false";
        for setting in settings.split(' ').chain([NO_HOOKS]) {
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

    /// Returns the untracked files that pathspecs match.
    pub(super) fn untracked(
        &self,
        specs: &[String],
        with_ignored: bool,
    ) -> Option<Vec<FileVersion>> {
        let mut options = ["-o", "-z", "--full-name"].map(str::to_owned).to_vec();
        options.extend((!with_ignored).then(|| "--exclude-standard".to_owned()));
        let words = [vec!["--".to_owned()], specs.to_vec()].concat();
        let new = self.run("ls-files", &options, &words)?.into_iter();
        let file = |path| FileVersion {
            path,
            version: Version::OnDisk,
        };
        Some(new.map(file).collect())
    }

    /// Returns whether git runs at the top of the work tree.
    pub(super) fn is_at_top(&self) -> bool {
        sightline_base::path::canonicalize(&self.dir).ok()
            == sightline_base::path::canonicalize(&self.top).ok()
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
}

/// A version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Any,
    OnDisk,
    /// An object with this name: an id, `REVISION:path`, `:path`.
    Object(String),
}

/// A version of a file that a command may print.
#[derive(Clone, Debug)]
pub(super) struct FileVersion {
    /// The path, relative to the top of the work tree.
    pub(super) path: String,
    pub(super) version: Version,
}

impl FileVersion {
    /// Any version of files.
    pub(super) fn any_of(paths: impl IntoIterator<Item = String>) -> Vec<Self> {
        let any = |path| Self {
            path,
            version: Version::Any,
        };
        paths.into_iter().map(any).collect()
    }

    /// The versions that git prints without naming a commit: the one on the disk, and that in the index.
    pub(super) fn current(paths: Vec<String>) -> Vec<Self> {
        let of = |path: String| {
            let staged = Version::Object(format!(":{path}"));
            [Version::OnDisk, staged].map(|version| Self {
                path: path.clone(),
                version,
            })
        };
        paths.into_iter().flat_map(of).collect()
    }
}

impl Repository {
    /// Asks git for the files whose changes a command would print, and the versions on both sides. `None` if it fails,
    /// or prints something else too.
    pub(super) fn changes(&self, command: &[&str], words: &[String]) -> Option<Vec<FileVersion>> {
        let mut options: Vec<String> = RAW.split(' ').map(str::to_owned).collect();
        if ["log", "show", "whatchanged", "reflog", "stash"].contains(&command[0]) {
            options.push("--format=".to_owned());
        }
        options.extend((command[0] == "diff-tree").then(|| "-r".to_owned()));
        let first: Vec<String> = command[1..].iter().map(|word| (*word).to_owned()).collect();
        let dashes = words.iter().position(|word| word == "--");
        let (before, paths) = words.split_at(dashes.unwrap_or(words.len()));
        let last = [before, &options, paths].concat();
        let fields = self.run(command[0], &first, &last).or_else(|| {
            // Between a version and a file on the disk, options must come first.
            let first = [first.as_slice(), &options].concat();
            self.run(command[0], &first, words)
        })?;
        self.of_raw(&fields, words)
    }

    /// Parses the output of `--raw -z`. `None` if there is something else in it.
    fn of_raw(&self, fields: &[String], words: &[String]) -> Option<Vec<FileVersion>> {
        let mut found = Vec::new();
        let mut fields = fields.iter();
        while let Some(field) = fields.next() {
            // The message of a tag comes first, the names in a tree alone.
            let field = match field.strip_prefix("tag ") {
                Some(tag) => tag.rfind("\n:").map_or("", |at| &tag[at + 1..]),
                None => field,
            };
            // The commit of `diff-tree`.
            if field.is_empty() || is_id(field) || field.starts_with("tree ") {
                continue;
            }
            // `:MODE MODE ID ID STATUS`, with a colon, a mode and an id more for each other parent of a merge.
            let entry = field.trim_start_matches(':');
            let parents = field.len() - entry.len();
            let columns: Vec<&str> = entry.split(' ').collect();
            if parents == 0 || columns.len() != 2 * parents + 3 {
                return None;
            }
            let status = columns[2 * parents + 2];
            let is_renamed = parents == 1 && status.starts_with(['R', 'C']);
            let old = fields.next()?;
            let new = if is_renamed { fields.next()? } else { old };
            for side in 0..=parents {
                let path = if side < parents { old } else { new };
                // The content of an id is that of any file.
                let is_hex = || path.bytes().all(|byte| byte.is_ascii_hexdigit());
                if words.contains(path) && is_hex() && !self.has_file(path) {
                    return None;
                }
                let (mode, id) = (columns[side], columns[parents + 1 + side]);
                let version = if status.starts_with('U') {
                    Version::Any
                } else if is_id(id) {
                    Version::Object(id.to_owned())
                } else if mode.bytes().any(|byte| byte != b'0') {
                    Version::OnDisk
                } else {
                    continue;
                };
                // Of a file that was only renamed, no content is printed.
                if side == parents || !(is_renamed && status.ends_with("100")) {
                    let path = path.clone();
                    found.push(FileVersion { path, version });
                }
            }
        }
        Some(found)
    }

    /// Returns the files that git has below some paths: tracked ones, with `history` those of commits, and with
    /// `others` untracked ones.
    pub(super) fn everything(
        &self,
        specs: &[String],
        others: bool,
        history: bool,
    ) -> Option<Vec<FileVersion>> {
        let mut paths = self.files(specs, others)?;
        if history {
            let specs = [vec!["--".to_owned()], specs.to_vec()].concat();
            let logged = self.changes(&HISTORY, &specs).unwrap_or_default();
            paths.extend(logged.into_iter().map(|file| file.path));
        }
        Some(FileVersion::any_of(paths))
    }

    /// Returns the files of a tree: below the current folder, or with `option` all of them. `None` if git fails.
    pub(super) fn tree(&self, option: &str, words: &[String]) -> Option<Vec<FileVersion>> {
        let options = ["-r", "-z", option].map(str::to_owned);
        let lines = self.run("ls-tree", &options, words)?;
        // The names in the tree of a folder are relative to it.
        let folder = words
            .iter()
            .find_map(|word| object_path(word))
            .unwrap_or("");
        let end = if folder.is_empty() { "" } else { "/" };
        let folder = format!("{}{end}", folder.trim_end_matches('/'));
        if folder.starts_with('.') {
            return None;
        }
        let file = |line: &String| {
            let (entry, path) = line.split_once('\t')?;
            let id = entry.rsplit(' ').next()?;
            Some(FileVersion {
                path: format!("{folder}{path}"),
                version: Version::Object(id.to_owned()),
            })
        };
        lines.iter().map(file).collect()
    }

    /// Returns the denied ones of files.
    pub(super) fn denied(&self, judge: &Judge<'_>, files: &[FileVersion]) -> Vec<DeniedName> {
        let mut versions: HashMap<&str, Vec<&Version>> = HashMap::new();
        let mut paths: Vec<&str> = Vec::new();
        for file in files {
            let known = versions.entry(&file.path).or_insert_with(|| {
                paths.push(&file.path);
                Vec::new()
            });
            known.push(&file.version);
        }
        // Without a work tree, the files could be those of the workspace.
        let roots: Vec<PathBuf> = judge.roots().filter(|_| self.is_bare).collect();
        let name = |path: &str| {
            let mut places = std::iter::once(&self.top)
                .chain(&roots)
                .map(|top| top.join(path));
            let (place, denial) = places.find_map(|place| {
                let denial = judge.denial_by_name(&AbsPath::new(&place)?)?;
                Some((place, denial))
            })?;
            // Rule files contain no secrets.
            if denial.rule.as_ref().is_some_and(|rule| rule.line == 0) {
                return None;
            }
            let denial = if denial.by_content {
                self.secret_among(judge, path, &versions[path], denial)?
            } else {
                denial
            };
            Some(DeniedName {
                fix: self.fix.clone(),
                ..DeniedName::new(path.to_owned(), place, false, denial)
            })
        };
        paths.into_iter().filter_map(name).collect()
    }

    /// Returns a denial if one of the versions of a file may be secret. `path` is relative to the top of the work tree.
    fn secret_among(
        &self,
        judge: &Judge<'_>,
        path: &str,
        versions: &[&Version],
        denial: Denial,
    ) -> Option<Denial> {
        if versions.contains(&&Version::Any) {
            return self.secret_in_any_version(judge, path, denial);
        }
        if versions.contains(&&Version::OnDisk)
            && let Some(denial) = self.secret_on_disk(judge, path)
        {
            return Some(denial);
        }
        let objects = versions.iter().filter_map(|version| match version {
            Version::Object(name) => Some(name.clone()),
            Version::Any | Version::OnDisk => None,
        });
        let mut objects: Vec<String> = objects.collect();
        objects.sort();
        objects.dedup();
        self.secret(denial, &objects)
    }

    fn secret_on_disk(&self, judge: &Judge<'_>, path: &str) -> Option<Denial> {
        match judge
            .view
            .check_absolute(&AbsPath::new(&self.top.join(path))?)
        {
            Verdict::Denied(denial) => Some(denial),
            Verdict::Allowed | Verdict::Outside => None,
        }
    }

    /// Returns a denial if a version of a file may be secret: on the disk, in the index or in a commit. `path` is relative
    /// to the top of the work tree.
    pub(super) fn secret_in_any_version(
        &self,
        judge: &Judge<'_>,
        path: &str,
        denial: Denial,
    ) -> Option<Denial> {
        if let Some(denial) = self.secret_on_disk(judge, path) {
            return Some(denial);
        }
        let words = ["--".to_owned(), format!(":(top,literal){path}")];
        let logged = self.changes(&HISTORY, &words);
        let staged = self.run("ls-files", &["-s", "-z"].map(str::to_owned), &words);
        let Some((logged, staged)) = logged.zip(staged) else {
            return Some(denial.unknown());
        };
        let of_log = logged.into_iter().filter_map(|file| match file.version {
            Version::Object(id) => Some(id),
            Version::Any | Version::OnDisk => None,
        });
        let of_index = staged
            .iter()
            .filter_map(|line| line.split(' ').nth(1).map(str::to_owned));
        let mut ids: Vec<String> = of_log.chain(of_index).collect();
        ids.sort();
        ids.dedup();
        // A file of a submodule has none here.
        if ids.is_empty() {
            return Some(denial.unknown());
        }
        self.secret(denial, &ids)
    }

    /// Returns a denial if one of the objects may be secret.
    pub(super) fn secret(&self, denial: Denial, objects: &[String]) -> Option<Denial> {
        if objects.is_empty() {
            return None;
        }
        let Some(contents) = self.blobs(objects) else {
            return Some(denial.unknown());
        };
        contents.iter().zip(objects).find_map(|(content, object)| {
            let denial = denial.clone().of_content(content)?;
            Some(denial.of_version(&version_name(object)))
        })
    }

    /// Returns the contents of objects. `None` if one is not a file.
    fn blobs(&self, objects: &[String]) -> Option<Vec<Vec<u8>>> {
        if objects.iter().any(|name| name.contains('\n')) {
            return None;
        }
        let mut command = self.command();
        command.args(["cat-file", "--batch"]);
        let names: String = objects.iter().map(|name| format!("{name}\n")).collect();
        let output = output_of(command, names.into_bytes())?;
        let mut contents = Vec::new();
        let mut rest = output.as_slice();
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest)?;
            let (header, after) = (str::from_utf8(&rest[..end]).ok()?, &rest[end + 1..]);
            let (_, kind) = header.split_once(' ')?;
            let length: usize = kind.strip_prefix("blob ")?.parse().ok()?;
            contents.push(after.get(..length)?.to_vec());
            rest = after.get(length + 1..)?;
        }
        (contents.len() == objects.len()).then_some(contents)
    }
}

/// Returns the name of a version for people.
fn version_name(object: &str) -> String {
    match object {
        _ if object.starts_with(':') => "the version in the index".to_owned(),
        _ if is_id(object) => format!("the version {}", &object[..MIN_ID]),
        _ => format!("`{object}`"),
    }
}

/// Returns whether a word is the id of an object that exists.
fn is_id(word: &str) -> bool {
    word.len() >= 40
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.bytes().any(|byte| byte != b'0')
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
