//! Finds the denied files that a git command would print, by asking git for their names.
//!
//! The same command runs with `--name-only`, without the user's and the system's configuration, and
//! without pagers, filters, text conversion, hooks and the file system monitor. It is given little
//! time; a command that takes longer is judged by the files that git tracks.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use super::{
    expand::Field,
    judge::{DeniedName, Fix, Judge},
    programs::{GLOBAL_VALUES, Use, has},
};
use crate::{gitignore_stack, path::AbsPath};

/// Time for one git process.
const MAX_TIME: Duration = Duration::from_secs(1);
/// Maximum output of one git process, in bytes.
const MAX_OUTPUT: u64 = 32 << 20;
/// Maximum denied files whose contents `git grep` is asked for.
const MAX_GREPPED: usize = 200;
/// Maximum repositories of one command.
const MAX_DIRS: usize = 4;

/// Options of subcommands whose value is not a path.
const TEXTS: &str = "--message -S -G --format --pretty --author --committer --grep --since --until --after --before \
                     --date --diff-filter --trailer --cleanup --exclude --diff-algorithm --strategy --onto --reuse-message \
                     --fixup --squash";
/// Subcommands that print at most names of their operands, or whose contents are judged by git.
const NAMES: &str = "ls-files ls-tree status check-ignore check-attr log reflog shortlog diff show stash rev-list reset \
                     describe branch tag push pull fetch merge rebase sparse-checkout update-index diff-tree diff-index \
                     diff-files difftool grep archive whatchanged switch for-each-ref name-rev merge-base format-patch \
                     remote cherry cherry-pick revert bisect worktree init clone count-objects gc fsck var version help";
/// Subcommands that write their operands.
const WRITERS: &str = "checkout restore mv rm clean";
/// Other subcommands, which are no aliases.
const OTHERS: &str = "add commit blame annotate cat-file config apply am notes submodule rev-parse hash-object bundle \
                      fast-export show-ref show-branch symbolic-ref commit-tree write-tree read-tree maintenance lfs \
                      range-diff credential daemon send-email request-pull instaweb replace rerere";
/// Options with which git prints contents.
const PATCH: &str = "-p -u --patch --unified --patch-with-stat --patch-with-raw --binary -c --cc --dd --remerge-diff \
                     --diff-merges --check --word-diff --color-words -W --function-context -L";
/// Options with which git prints names or numbers only.
const NAMES_ONLY: &str = "--stat --shortstat --numstat --dirstat --summary --name-only --name-status --raw -s --no-patch \
                          --quiet --compact-summary --exit-code-only";
/// Options that are not passed on: they change the output, write a file or start a program.
const DROPPED: &str = "--graph --oneline --format --pretty --output -O --ext-diff --textconv --color --abbrev --full-index -z \
                       --show-signature --submodule --open-files-in-pager --line-prefix --exit-code --no-index --ext-grep \
                       --color-moved --ita-visible-in-index --patch-with-stat --interactive -i --no-color --src-prefix \
                       --dst-prefix --no-prefix --left-right --decorate --show-notes --notes --heading --break -n \
                       --relative --recurse-submodules";

/// A git command.
pub(super) struct Git {
    /// Options before the subcommand that select a folder or repository.
    globals: Vec<String>,
    pub(super) subcommand: String,
    words: Vec<Field>,
}

/// What a git command would print.
#[derive(Default)]
pub(super) struct Printed {
    /// Denied files whose contents it prints.
    pub(super) contents: Vec<DeniedName>,
    /// Denied files whose names it prints.
    pub(super) names: Vec<DeniedName>,
    /// Whether the contents could not be determined.
    pub(super) is_unknown: bool,
}

/// How the contents that a subcommand prints are found.
enum Kind {
    /// It prints none.
    Nothing,
    /// A command with `--name-only`.
    NameOnly(Vec<String>),
    Grep,
    /// The files of a tree.
    Tree,
    /// All tracked files.
    Tracked,
}

impl Git {
    /// Parses the words after `git`.
    pub(super) fn new(words: &[Field]) -> Self {
        let mut globals = Vec::new();
        let mut at = 1;
        while let Some(text) = words
            .get(at)
            .map(Field::text)
            .filter(|text| text.starts_with('-'))
        {
            let value = words.get(at + 1).map(Field::text);
            let selects = |name: &str| has("-C --git-dir --work-tree", name);
            if has(GLOBAL_VALUES, &text) {
                if selects(&text) {
                    globals.push(text);
                    globals.extend(value);
                }
                at += 2;
            } else {
                if selects(text.split('=').next().unwrap_or_default()) {
                    globals.push(text);
                }
                at += 1;
            }
        }
        Self {
            globals,
            subcommand: words.get(at).map(Field::text).unwrap_or_default(),
            words: words.get(at + 1..).unwrap_or_default().to_vec(),
        }
    }

    /// Returns the folders in which git runs.
    pub(super) fn dirs(&self, dirs: &[PathBuf]) -> Vec<PathBuf> {
        let mut dirs = dirs.to_vec();
        for pair in self.globals.windows(2) {
            if pair[0] == "-C" {
                dirs = dirs.iter().map(|dir| dir.join(&pair[1])).collect();
            }
        }
        dirs.truncate(MAX_DIRS);
        dirs
    }

    /// Returns the words after the subcommand.
    pub(super) fn rest(&self) -> impl Iterator<Item = &Field> {
        self.words.iter()
    }

    /// Returns the command that git runs: `submodule foreach CMD`, `bisect run CMD`.
    pub(super) fn command(&self) -> Option<&[Field]> {
        let runs = |word: &Field| has("foreach run", &word.text());
        let at = self.words.iter().position(runs)?;
        has("submodule bisect", &self.subcommand).then(|| &self.words[at + 1..])
    }

    /// Returns the top of the work tree that contains a folder.
    pub(super) fn top(&self, dirs: &[PathBuf]) -> Option<PathBuf> {
        let mut above = dirs.iter().flat_map(|dir| dir.ancestors());
        let top = above.find(|top| gitignore_stack::WorkTree::of(top).is_some())?;
        Some(top.to_path_buf())
    }

    /// Returns the command that an alias stands for.
    pub(super) fn alias(&self, dirs: &[PathBuf]) -> Option<String> {
        let is_known = [NAMES, WRITERS, OTHERS]
            .iter()
            .any(|names| has(names, &self.subcommand));
        if is_known || self.subcommand.is_empty() {
            return None;
        }
        let mut command = Command::new("git");
        let key = format!("alias.{}", self.subcommand);
        command
            .current_dir(dirs.first()?)
            .args(["config", "--get", &key]);
        let text = String::from_utf8(output(command)?).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| match text.strip_prefix('!') {
            Some(script) => script.to_owned(),
            None => format!("git {text}"),
        })
    }

    /// Returns what git does with its operands.
    pub(super) fn uses(&self) -> Vec<(Field, Use)> {
        let is_set = |names: &str| self.words.iter().any(|word| has(names, &word.text()));
        let name = self.subcommand.as_str();
        let only_index = match name {
            "rm" => is_set("--cached"),
            "restore" => is_set("--staged -S") && !is_set("--worktree -W"),
            "cat-file" => is_set("-e -t -s"),
            _ => false,
        };
        let operand = if only_index || has(NAMES, name) && !is_set("--no-index") {
            Use::Stat
        } else if has(WRITERS, name) {
            Use::Write
        } else {
            Use::Read
        };
        let mut uses = Vec::new();
        let mut ended = false;
        let mut words = self.words.iter();
        let mut is_pattern = name == "grep" && !is_set("-e -f");
        while let Some(word) = words.next() {
            let text = word.text();
            if !ended && text.starts_with('-') && text.len() > 1 {
                ended = text == "--";
                let option = text.split('=').next().unwrap_or(&text);
                let is_text = has(TEXTS, option)
                    || (text.len() > 2
                        && has("-S -G -m", text.get(..2).unwrap_or_default())
                        && !text.starts_with("--"));
                let has_message = has("commit tag stash merge notes revert cherry-pick", name);
                let takes_word = match text.as_str() {
                    "-m" | "-am" | "-sm" => has_message,
                    "-b" | "-B" => has("checkout switch", name),
                    "-x" => has("rebase clean", name),
                    "-s" | "-X" => has("merge rebase", name),
                    "-e" => has("grep clean", name),
                    text => has(TEXTS, text),
                };
                if takes_word {
                    words.next();
                } else if has("-F --file -t --template --pathspec-from-file", option) {
                    uses.extend(
                        words
                            .next()
                            .filter(|_| option.len() == text.len())
                            .map(|value| (value.clone(), Use::Read)),
                    );
                } else if !is_text {
                    let skipped = text
                        .find('=')
                        .map_or(2, |at| text[..at].chars().count() + 1);
                    uses.push((word.skip(skipped), Use::Read));
                }
            } else if is_pattern && !ended {
                is_pattern = false;
            } else if excludes(&text) {
                // A pathspec that leaves out.
            } else if let Some(path) = object_path(&text).filter(|_| !ended) {
                let kind = if only_index || name == "rev-list" {
                    Use::Stat
                } else {
                    Use::Read
                };
                uses.push((Field::quoted(path), kind));
            } else {
                uses.push((word.clone(), operand));
            }
        }
        uses
    }

    /// Returns the denied files that the command prints. `lists`: also those whose names it prints.
    pub(super) fn printed(
        &self,
        judge: &mut Judge<'_>,
        dirs: &[PathBuf],
        lists: bool,
        fix: usize,
    ) -> Printed {
        let mut printed = Printed::default();
        let mut tops: Vec<PathBuf> = Vec::new();
        for dir in self.dirs(dirs) {
            let is_work_tree = |top: &&Path| gitignore_stack::WorkTree::of(top).is_some();
            let top = dir.ancestors().find(is_work_tree).map(Path::to_path_buf);
            let Some(top) = top.filter(|top| !tops.contains(top)) else {
                continue;
            };
            tops.push(top.clone());
            let repository = Repository::new(&dir, &top, fix);
            self.printed_in(judge, &repository, lists, &mut printed);
        }
        printed
    }

    fn printed_in(
        &self,
        judge: &mut Judge<'_>,
        repository: &Repository,
        lists: bool,
        printed: &mut Printed,
    ) {
        if lists && has("ls-files ls-tree", &self.subcommand) {
            let options = ["-z", "--full-name"].map(str::to_owned);
            let words = self.passed("-z --full-name -s --stage -t -v");
            if let Some(paths) = repository.run(&self.subcommand, &options, &words) {
                // The lines of `ls-tree` begin with the mode and the id.
                let path = |line: &String| line.rsplit('\t').next().unwrap_or_default().to_owned();
                printed
                    .names
                    .extend(repository.denied(judge, &paths.iter().map(path).collect::<Vec<_>>()));
            }
            return;
        }
        let has_unknown = self.words.iter().any(Field::has_unknown);
        let (subcommand, options) = match self.kind() {
            Kind::Nothing => return,
            Kind::Tracked => return self.tracked(judge, repository, printed),
            _ if has_unknown => return self.tracked(judge, repository, printed),
            Kind::Grep => return self.grep(judge, repository, printed),
            Kind::Tree => (
                "ls-tree",
                ["-r", "-z", "--name-only", "--full-tree"]
                    .map(str::to_owned)
                    .to_vec(),
            ),
            Kind::NameOnly(command) => {
                let mut options: Vec<String> = [
                    "--name-only",
                    "-z",
                    "--no-ext-diff",
                    "--no-textconv",
                    "--no-relative",
                    "--ignore-submodules=all",
                ]
                .map(str::to_owned)
                .to_vec();
                if has("log show whatchanged reflog stash", &command[0]) {
                    options.push("--format=".to_owned());
                }
                let subcommand = command[0].clone();
                options.splice(0..0, command[1..].iter().cloned());
                return match repository.run(&subcommand, &options, &self.passed(DROPPED)) {
                    Some(paths) => printed.contents.extend(repository.denied(judge, &paths)),
                    None => self.tracked(judge, repository, printed),
                };
            }
        };
        match repository.run(
            subcommand,
            &options,
            &self.passed(
                "--format -o --output --prefix -v --worktree-attributes --remote --exec --add-file",
            ),
        ) {
            Some(paths) => printed.contents.extend(repository.denied(judge, &paths)),
            None => self.tracked(judge, repository, printed),
        }
    }

    fn kind(&self) -> Kind {
        let texts: Vec<String> = self.words.iter().map(Field::text).collect();
        let is_set = |names: &str| {
            let before_paths = texts.iter().take_while(|text| *text != "--");
            before_paths.into_iter().any(|text| {
                let name = text.split('=').next().unwrap_or(text);
                has(names, name)
                    || (text.starts_with("-U") && has(names, "-u"))
                    || (text.starts_with("-L") && has(names, "-L"))
            })
        };
        let command =
            |words: &[&str]| Kind::NameOnly(words.iter().map(|word| (*word).to_owned()).collect());
        let is_patch = is_set(PATCH);
        let only_names = is_set(NAMES_ONLY) && !is_patch;
        match self.subcommand.as_str() {
            _ if is_set("--help") => Kind::Nothing,
            "diff" if is_set("--no-index") => Kind::Nothing,
            name @ ("diff" | "show") if !only_names => {
                // A single object is checked by its path.
                let mut operands = texts
                    .iter()
                    .filter(|text| !text.starts_with('-'))
                    .peekable();
                let is_object = name == "show"
                    && operands.peek().is_some()
                    && operands.all(|text| object_path(text).is_some());
                if is_object {
                    Kind::Nothing
                } else {
                    command(&[name])
                }
            }
            "difftool" => command(&["diff"]),
            "range-diff" | "fast-export" | "bundle" | "format-patch" => Kind::Tracked,
            name @ ("diff-tree" | "diff-index" | "diff-files" | "log" | "reflog"
            | "whatchanged")
                if is_patch =>
            {
                command(&[name])
            }
            "stash" if is_patch => match texts.first().map(String::as_str) {
                Some(name @ ("show" | "list")) => command(&["stash", name]),
                _ => command(&["diff"]),
            },
            "add" | "checkout" | "restore" | "reset"
                if is_set("-p --patch -i --interactive -e --edit") =>
            {
                Kind::Tracked
            }
            "commit" | "status" if is_set("-p --patch -v --verbose -vv --interactive") => {
                Kind::Tracked
            }
            "grep"
                if !is_set(
                    "-l -L -c -q --files-with-matches --name-only --files-without-match --count --quiet",
                ) =>
            {
                Kind::Grep
            }
            "archive" if !is_set("-l --list") => Kind::Tree,
            "cat-file" => {
                let names_elsewhere = texts.iter().any(|text| {
                    text.starts_with("--batch")
                        || text.starts_with("--textconv")
                        || text.starts_with("--filters")
                });
                let is_unknown = self.words.iter().any(Field::has_unknown)
                    || texts.iter().all(|text| text.starts_with('-'));
                if names_elsewhere || is_unknown {
                    Kind::Tracked
                } else {
                    Kind::Nothing
                }
            }
            _ => Kind::Nothing,
        }
    }

    /// Returns the words after the subcommand without options that must not be passed on.
    fn passed(&self, dropped: &str) -> Vec<String> {
        let mut passed = Vec::new();
        let mut ended = false;
        let mut words = self.words.iter().map(Field::text).peekable();
        if self.subcommand == "stash" {
            words.next_if(|text| matches!(text.as_str(), "show" | "list" | "push" | "save"));
        }
        while let Some(text) = words.next() {
            let name = text.split('=').next().unwrap_or(&text);
            let is_option = !ended && text.starts_with('-');
            ended |= text == "--";
            if is_option && text != "--" {
                let is_patch =
                    has(PATCH, name) && !has("-c --cc --dd --remerge-diff --diff-merges", name);
                let is_dropped = has(dropped, name)
                    || is_patch
                    || has(NAMES_ONLY, name)
                    || text.starts_with("-U")
                    || text.starts_with("-O")
                    || text.starts_with("-L");
                if is_dropped && !(name == "-n" && self.subcommand != "grep") {
                    if has("-L -O --output -o --prefix --format --remote --exec", &text)
                        && name != "--format"
                    {
                        words.next();
                    }
                    continue;
                }
            } else if !ended
                && object_path(&text).is_some()
                && !has("archive ls-tree", &self.subcommand)
            {
                continue;
            }
            passed.push(text);
        }
        passed
    }

    /// Judges a command by the tracked files that its pathspecs match.
    fn tracked(&self, judge: &mut Judge<'_>, repository: &Repository, printed: &mut Printed) {
        match repository.tracked(&self.pathspecs()) {
            Some(paths) => printed.contents.extend(repository.denied(judge, &paths)),
            None => printed.is_unknown = true,
        }
    }

    /// Returns the pathspecs of the command.
    fn pathspecs(&self) -> Vec<String> {
        let texts: Vec<String> = self.words.iter().filter_map(Field::known).collect();
        match texts.iter().position(|text| text == "--") {
            Some(at) => texts[at + 1..].to_vec(),
            None => texts.into_iter().filter(|text| excludes(text)).collect(),
        }
    }

    /// `git grep` prints lines of the files that match. Only denied files are searched.
    fn grep(&self, judge: &mut Judge<'_>, repository: &Repository, printed: &mut Printed) {
        let words = self.passed(DROPPED);
        let dashes = words.iter().position(|text| text == "--");
        let (before, after) = words.split_at(dashes.unwrap_or(words.len()));
        let mut specs: Vec<String> = after.iter().skip(1).cloned().collect();
        let mut options = Vec::new();
        let mut revisions = Vec::new();
        let mut needs_pattern = !before
            .iter()
            .any(|text| text.starts_with("-e") || text.starts_with("-f"));
        let mut texts = before.iter();
        while let Some(text) = texts.next() {
            if text.starts_with('-') {
                options.push(text.clone());
                if has("-e -f -m --max-count -A -B -C --max-depth --threads", text) {
                    options.extend(texts.next().cloned());
                }
            } else if std::mem::take(&mut needs_pattern) {
                options.extend(["-e".to_owned(), text.clone()]);
            } else if dashes.is_none()
                && (text.starts_with(':')
                    || text.contains('*')
                    || repository.dir.join(text).exists())
            {
                specs.push(text.clone());
            } else {
                revisions.push(text.clone());
            }
        }
        let forms = [
            "-l",
            "-z",
            "--full-name",
            "--no-textconv",
            "--no-recurse-submodules",
        ]
        .map(str::to_owned);
        if !revisions.is_empty() || has_any(&options, "--untracked --no-index --cached") {
            let mut all = options;
            all.extend(revisions);
            all.push("--".to_owned());
            all.extend(specs);
            let found = repository.run("grep", &forms, &all);
            let paths = found.unwrap_or_default();
            let path = |text: &String| text.rsplit(':').next().unwrap_or_default().to_owned();
            let paths: Vec<String> = paths.iter().map(path).collect();
            printed.contents.extend(repository.denied(judge, &paths));
            return;
        }
        let specs = if specs.iter().all(|spec| excludes(spec)) {
            [vec![".".to_owned()], specs].concat()
        } else {
            specs
        };
        let Some(tracked) = repository.tracked(&specs) else {
            printed.is_unknown = true;
            return;
        };
        let denied = repository.denied(judge, &tracked);
        if denied.is_empty() {
            return;
        }
        let mut all = options;
        all.push("--".to_owned());
        all.extend(
            denied
                .iter()
                .take(MAX_GREPPED)
                .map(|name| format!(":(top,literal){}", name.path)),
        );
        match repository.run("grep", &forms, &all) {
            Some(paths) if denied.len() <= MAX_GREPPED => {
                printed.contents.extend(repository.denied(judge, &paths))
            }
            _ => printed.contents.extend(denied),
        }
    }
}

fn has_any(texts: &[String], names: &str) -> bool {
    texts.iter().any(|text| has(names, text))
}

/// Returns whether a pathspec leaves out files: `:!path`, `:^path`, `:(exclude)path`.
fn excludes(text: &str) -> bool {
    text.strip_prefix(':')
        .is_some_and(|rest| match rest.strip_prefix('(') {
            Some(magic) => magic
                .split(')')
                .next()
                .is_some_and(|magic| magic.split(',').any(|word| word == "exclude")),
            None => rest.trim_start_matches('/').starts_with(['!', '^']),
        })
}

/// Returns the path in `REVISION:path`, `:path`, `:/path` and `:(top)path`.
fn object_path(text: &str) -> Option<&str> {
    if text.starts_with('-') || text.contains("://") || excludes(text) {
        return None;
    }
    let (_, path) = text.split_once(':')?;
    let path = match path.strip_prefix('(') {
        Some(magic) => magic.split_once(')').map_or(magic, |(_, path)| path),
        None => path,
    };
    let path = path.trim_start_matches('/');
    // `:0:path` names a stage.
    Some(path.split_once(':').map_or(path, |(_, path)| path))
}

/// A repository, and how git runs in it.
struct Repository {
    dir: PathBuf,
    top: PathBuf,
    /// Settings that disable the filters of the repository.
    settings: Vec<String>,
    /// Where to add a pathspec to the command, or 0.
    fix: usize,
}

impl Repository {
    fn new(dir: &Path, top: &Path, fix: usize) -> Self {
        let mut repository = Self {
            dir: dir.to_path_buf(),
            top: top.to_path_buf(),
            settings: Vec::new(),
            fix,
        };
        let keys = repository.run(
            "config",
            &["--list", "--name-only", "-z"].map(str::to_owned),
            &[],
        );
        for key in keys.unwrap_or_default() {
            let Some(driver) = key
                .strip_prefix("filter.")
                .and_then(|key| key.rsplit_once('.'))
            else {
                continue;
            };
            let value = if driver.1 == "required" { "false" } else { "" };
            repository.settings.push(format!("{key}={value}"));
        }
        repository
    }

    /// Runs git and returns the fields of its output. `None` if it fails or takes too long.
    fn run(&self, subcommand: &str, options: &[String], words: &[String]) -> Option<Vec<String>> {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"GIT_") {
                command.env_remove(name);
            }
        }
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            (
                "GIT_CONFIG_GLOBAL",
                if cfg!(windows) { "NUL" } else { "/dev/null" },
            ),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("LC_ALL", "C"),
        ] {
            command.env(name, value);
        }
        for setting in [
            "safe.directory=*",
            "core.fsmonitor=false",
            "core.hooksPath=/dev/null",
            "core.attributesFile=/dev/null",
            "log.showSignature=false",
            "submodule.recurse=false",
        ] {
            command.args(["-c", setting]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command
            .current_dir(&self.dir)
            .arg("--no-pager")
            .arg(subcommand)
            .args(options)
            .args(words);
        let bytes = output(command)?;
        let fields = bytes.split(|byte| *byte == 0);
        let texts = fields.map(|field| {
            String::from_utf8_lossy(field)
                .trim_start_matches('\n')
                .to_owned()
        });
        Some(texts.filter(|text| !text.is_empty()).collect())
    }

    /// Returns the tracked files that pathspecs match; all of them without any.
    fn tracked(&self, specs: &[String]) -> Option<Vec<String>> {
        let mut words = vec!["--".to_owned()];
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

    /// Returns the denied ones of paths relative to the top of the work tree.
    fn denied(&self, judge: &Judge<'_>, paths: &[String]) -> Vec<DeniedName> {
        let mut names: Vec<DeniedName> = Vec::new();
        let is_top = std::fs::canonicalize(&self.dir).ok() == std::fs::canonicalize(&self.top).ok();
        let spec = if is_top { "':!{}'" } else { "':!/{}'" };
        for path in paths {
            let place = self.top.join(path);
            let denial =
                AbsPath::new(&place).and_then(|place| judge.view.denial_of(&place, || false));
            // Rule files contain no secrets.
            let denial =
                denial.filter(|denial| denial.rule.as_ref().is_none_or(|rule| rule.line > 0));
            let is_new = |denial: &crate::access::Denial| {
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
                    fix: (self.fix > 0).then_some(Fix {
                        at: self.fix,
                        file: spec,
                        folder: spec,
                        by_name: false,
                    }),
                });
            }
        }
        names
    }
}

/// Runs a process and returns its output. `None` if it fails or takes too long.
fn output(mut command: Command) -> Option<Vec<u8>> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let stdout = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
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
