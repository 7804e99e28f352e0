//! What a git command prints: the denied files among the names that git gives for the same arguments.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    rc::Rc,
};

use super::{
    super::{
        expand::Field,
        judge::Judge,
        programs::{self, has},
        syntax::{DeniedName, Exclusion, Fix},
    },
    AbsPath, Changes, Git, MAX_DIRS,
    ask::{FileVersion, Repository, Version},
    excludes, object_path, status_paths, top_of, without_limits,
};

/// Subcommands whose contents a pathspec restricts.
const PATHSPECS: &str = "diff show log reflog whatchanged grep archive diff-tree diff-index diff-files format-patch \
                         range-diff fast-export difftool add checkout restore reset ls-files";
/// A pathspec that leaves out a path, at the top of the work tree and below.
const AT_TOP: Exclusion = Exclusion {
    name: ("", ""),
    path: (":!{}", ":!{}"),
    literal: ":(exclude,literal){}",
};
const BELOW_TOP: Exclusion = Exclusion {
    path: (":(top,exclude){}", ":(top,exclude){}"),
    literal: ":(top,exclude,literal){}",
    ..AT_TOP
};
/// Subcommands that print the files of commits.
const OF_COMMITS: &str =
    "diff-tree fast-export format-patch log range-diff reflog show whatchanged";
/// Options with which git prints contents.
const PATCH: &str = "-p -u -U --patch --unified --patch-with-stat --patch-with-raw --binary -c --cc --dd --remerge-diff \
                     --diff-merges --check --word-diff --color-words -W --function-context -L";
/// Options with which git prints names or numbers only.
const NAMES_ONLY: &str = "--stat --shortstat --numstat --dirstat --summary --name-only --name-status --raw -s --no-patch \
                          --quiet --compact-summary";
/// Options with which `git grep` prints names or numbers only.
const GREP_NAMES: &str =
    "-l -L -c -q --files-with-matches --name-only --files-without-match --count --quiet";
/// Options with which git starts a program, writes a file, or reads names from elsewhere.
const UNSAFE: [&str; 9] = [
    "--output",
    "--open-files-in-pager",
    "--ext-diff",
    "--textconv",
    "--remerge-diff",
    "--diff-merges",
    "--stdin",
    "--show-signature",
    "--help",
];
/// Options that change only how changes and names are printed.
const DECORATIONS: &str = "-p --patch --stat --numstat --name-only --name-status --graph -q --quiet --full-name -z -t -v -f \
                           --eol --debug --source --error-unmatch";
/// Options of `git grep` that do not change which files have matches.
const GREP_FORMS: &str = "-n -h -H -c -L -q -o -p -W --line-number --count --files-without-match --quiet --heading --break \
                          --only-matching --show-function --function-context --column --color --no-color";
/// Options whose value is the next word.
const GREP_VALUES: &str = "-e -f -m -A -B -C --max-count --max-depth --threads --after-context --before-context --context";
const ARCHIVE_VALUES: &str = "-o --output --format --prefix --mtime --remote --exec";
/// Options with which commands show changes before they use them.
const INTERACTIVE: &str = "-p --patch -i --interactive -e --edit";
const VERBOSE: &str = "-p --patch -v --verbose --interactive";

/// What a git command would print.
#[derive(Default)]
pub(in crate::command) struct Printed {
    /// Denied files whose contents it prints.
    pub(in crate::command) contents: Vec<DeniedName>,
    /// Denied files whose names it prints.
    pub(in crate::command) names: Vec<DeniedName>,
    /// Whether it prints any names of files, in each folder where it may run.
    pub(in crate::command) lists_any: bool,
    /// Whether the contents could not be determined.
    pub(in crate::command) is_unknown: bool,
}

/// How the contents that a subcommand prints are found.
enum Kind<'a> {
    /// It prints none.
    Nothing,
    /// The files whose changes a command prints.
    Changes(Vec<&'a str>),
    /// The changes of the index and the work tree.
    Uncommitted,
    Grep,
    /// The files of a tree.
    Tree,
    /// Everything that pathspecs match.
    Matching,
    Everything,
    /// The names that `ls-files` and `ls-tree` print.
    Listed,
    /// Changed and new files, which `status` and `clean` print.
    Status,
}

impl Git {
    /// Returns the denied files that the command prints. `lists`: also those whose names it prints.
    pub(in crate::command) fn printed(
        &self,
        judge: &mut Judge<'_>,
        dirs: &[PathBuf],
        lists: bool,
        fix: Option<Fix>,
        changes: &Changes,
    ) -> Printed {
        let mut printed = Printed::default();
        let lists = lists && !self.prints() && !matches!(self.kind(true), Kind::Nothing);
        // A guard asks for names only.
        if !lists && (!self.prints() || judge.guarded.is_some()) {
            return printed;
        }
        let mut dirs = self.dirs(dirs);
        dirs.sort();
        dirs.dedup();
        // A meaning of a word that is no folder, and that the line cannot make one.
        let is_same = changes.is_empty() && judge.written.is_empty() && !judge.writes_any();
        if cfg!(windows) && is_same && dirs.iter().any(|dir| dir.is_dir()) {
            dirs.retain(|dir| dir.is_dir());
        }
        let count = dirs.len();
        dirs.retain(|dir| !self.selection.is_empty() || top_of(dir).is_some());
        // The command line may make a repository there.
        let is_made = dirs.len() < count && !changes.commands.is_empty() && !lists;
        let tops: BTreeSet<PathBuf> = dirs.iter().filter_map(|dir| top_of(dir)).collect();
        let at = self.words.iter().position(|word| word.text() == "--");
        let mut words = self.words[..at.unwrap_or(self.words.len())].to_vec();
        // These mean the same in each folder.
        let is_path =
            |text: &str| text.contains(':') || dirs.iter().any(|dir| dir.join(text).exists());
        let are_same = words
            .iter()
            .all(|word| word.known().is_some_and(|text| !is_path(&text)));
        if let (true, Some(top), 1) = (dirs.len() > MAX_DIRS, tops.first(), tops.len())
            && self.selection.is_empty()
            && are_same
        {
            // All that the command prints in the folders of one repository.
            let specs = self.pathspecs();
            if at.is_some() && specs.iter().all(|spec| !spec.starts_with(':')) {
                words.push(Field::quoted("--"));
                let below = |dir: &PathBuf| {
                    dir.strip_prefix(top)
                        .map(Path::to_path_buf)
                        .unwrap_or_default()
                };
                let paths = dirs
                    .iter()
                    .flat_map(|dir| specs.iter().map(move |spec| below(dir).join(spec)));
                words.extend(paths.map(|path| Field::quoted(&path.to_string_lossy())));
            }
            let whole = Self {
                words,
                folders: Vec::new(),
                ..self.clone()
            };
            return whole.printed(judge, std::slice::from_ref(top), lists, None, changes);
        }
        printed.is_unknown = dirs.len() > MAX_DIRS || self.is_elsewhere || is_made;
        if printed.is_unknown {
            return printed;
        }
        for dir in &dirs {
            let top = top_of(dir).unwrap_or_else(|| dir.clone());
            let repository = Repository::new(dir, &top, &self.selection);
            let Some(mut repository) = repository.filter(|it| !self.enters_submodules(it)) else {
                printed.is_unknown = true;
                continue;
            };
            repository.fix = fix
                .clone()
                .and_then(|fix| self.fix(judge, &repository, fix));
            let now = self.files_now(judge, &repository, lists, &mut printed);
            let later = self.files_after(judge, &repository, changes);
            let Some(mut files) = now.zip(later).map(|(now, later)| [now, later].concat()) else {
                printed.is_unknown = true;
                continue;
            };
            if lists {
                // The names may be given to a command that prints other versions.
                files
                    .iter_mut()
                    .for_each(|file| file.version = Version::Any);
            }
            printed.contents.extend(repository.denied(judge, &files));
        }
        printed.lists_any &= dirs.len() == 1;
        if lists {
            printed.names.append(&mut printed.contents);
        }
        printed
    }

    /// Returns the files that the command prints now. `None` if git cannot tell.
    fn files_now(
        &self,
        judge: &Judge<'_>,
        repository: &Repository,
        lists: bool,
        printed: &mut Printed,
    ) -> Option<Vec<FileVersion>> {
        let specs = self.pathspecs();
        let has_history = has(OF_COMMITS, &self.subcommand);
        let all = || repository.everything(&specs, self.subcommand == "grep", has_history);
        let found = match self.kind(lists) {
            Kind::Nothing => Some(Vec::new()),
            Kind::Everything if self.prints_no_file(repository) => Some(Vec::new()),
            Kind::Everything => return repository.everything(&[], false, true),
            Kind::Changes(_) if self.diffs_folders(repository) => {
                return repository.everything(&[], false, true);
            }
            Kind::Matching => None,
            Kind::Uncommitted => {
                let specs = [vec!["--".to_owned()], specs.clone()].concat();
                let staged = repository.changes(&["diff", "--cached"], &specs)?;
                Some([staged, repository.changes(&["diff"], &specs)?].concat())
            }
            Kind::Status => {
                let words = status_paths(&specs);
                let new = repository.untracked(&words[1..], self.sets("--ignored -x -X"))?;
                let changed = repository.changes(&["diff", "HEAD"], &words);
                Some([new, changed.or_else(all)?].concat())
            }
            Kind::Listed => {
                let question = self.question();
                let options = ["-z", "--full-name"].map(str::to_owned);
                let lines = match &question {
                    Some(words) => repository.run(&self.subcommand, &options, words)?,
                    None => repository.files(&specs, true)?,
                };
                printed.lists_any = question.is_some() && !lines.is_empty();
                // The lines of `ls-tree` begin with the mode and the id.
                let path = |line: String| line.rsplit('\t').next().unwrap_or_default().to_owned();
                Some(FileVersion::any_of(lines.into_iter().map(path)))
            }
            Kind::Tree => self.archived(repository),
            Kind::Grep => self.grep(judge, repository, lists),
            Kind::Changes(command) => self.question().and_then(|mut words| {
                if command[0] == "stash" && words.first().is_some_and(|word| has("show list", word))
                {
                    words.remove(0);
                }
                repository.changes(&command, &words)
            }),
        };
        found.or_else(all)
    }

    /// Returns the files of a tree that `git archive` packs.
    fn archived(&self, repository: &Repository) -> Option<Vec<FileVersion>> {
        let mut words = Vec::new();
        let mut texts = self.words.iter().map(Field::known);
        while let Some(text) = texts.next() {
            let text = text?;
            if has(ARCHIVE_VALUES, &text) {
                texts.next();
            } else if !text.starts_with('-') {
                words.push(text);
            }
        }
        repository.tree("--full-name", &words)
    }

    /// Returns the files with lines that match; of the tracked ones, only denied files are searched.
    fn grep(
        &self,
        judge: &Judge<'_>,
        repository: &Repository,
        lists: bool,
    ) -> Option<Vec<FileVersion>> {
        let words = self.question()?;
        if lists && self.sets("-L --files-without-match") {
            return None;
        }
        let dashes = words.iter().position(|text| text == "--");
        let (before, after) = words.split_at(dashes.unwrap_or(words.len()));
        let mut specs: Vec<String> = after.iter().skip(1).cloned().collect();
        let mut options = Vec::new();
        let mut revisions = Vec::new();
        let mut needs_pattern = !self.sets("-e -f");
        let mut texts = before.iter();
        while let Some(text) = texts.next() {
            let name = text.split('=').next().unwrap_or(text);
            if has(GREP_FORMS, name) {
            } else if text.starts_with('-') || !needs_pattern && has("( )", text) {
                options.push(text.clone());
                let is_cluster = text.len() > 2 && text.ends_with('e') && !text.starts_with("--");
                if has(GREP_VALUES, text) || is_cluster {
                    options.extend(texts.next().cloned());
                }
            } else if std::mem::take(&mut needs_pattern) {
                options.extend(["-e".to_owned(), text.clone()]);
            } else if dashes.is_none()
                && (text.starts_with(':') || text.contains('*') || repository.has_file(text))
            {
                specs.push(text.clone());
            } else {
                revisions.push(text.clone());
            }
        }
        if needs_pattern && !specs.is_empty() {
            options.extend(["-e".to_owned(), specs.remove(0)]);
        }
        let searches_all = !revisions.is_empty() || self.sets("--cached --untracked");
        let mut denied = Vec::new();
        if !searches_all {
            let tags = ["-v", "-z", "--full-name"].map(str::to_owned);
            let here = specs
                .iter()
                .all(|spec| excludes(spec))
                .then(|| ".".to_owned());
            let here: Vec<String> = here.into_iter().chain(specs.clone()).collect();
            let lines =
                repository.run("ls-files", &tags, &[vec!["--".to_owned()], here].concat())?;
            // `h PATH` is assumed to be unchanged: the version in the index is searched.
            let file = |line: &String| {
                let (tag, path) = line.split_once(' ')?;
                let version = match tag.bytes().all(|byte| byte.is_ascii_lowercase()) {
                    _ if lists => Version::Any,
                    true => Version::Object(format!(":{path}")),
                    false => Version::OnDisk,
                };
                let path = path.to_owned();
                Some(FileVersion { path, version })
            };
            let tracked: Vec<FileVersion> = lines.iter().filter_map(file).collect();
            let names = repository.denied(judge, &tracked);
            if names.is_empty() {
                return Some(Vec::new());
            }
            let is_denied = |file: &FileVersion| names.iter().any(|name| name.path == file.path);
            denied = tracked.into_iter().filter(is_denied).collect();
            specs = denied
                .iter()
                .map(|file| format!(":(top,literal){}", file.path))
                .collect();
        }
        let forms = "-l -z --full-name --no-textconv --no-recurse-submodules".split(' ');
        options.extend(forms.map(str::to_owned));
        options.extend(revisions.iter().cloned());
        let specs = [vec!["--".to_owned()], specs].concat();
        let found = repository.run("grep", &options, &specs)?;
        if !searches_all {
            denied.retain(|file| found.contains(&file.path));
            return Some(denied);
        }
        // The names in the tree of a folder are relative to it, and of an id the file is not known.
        let path = |text: &String| match revisions.is_empty() {
            true => Some(text.clone()),
            false => revisions.iter().find_map(|tree| {
                let tree = tree.strip_suffix(':').unwrap_or(tree);
                Some(text.strip_prefix(tree)?.strip_prefix(':')?.to_owned())
            }),
        };
        let is_folder = |tree: &String| object_path(tree).is_some_and(|path| !path.is_empty());
        if revisions.iter().any(is_folder) {
            return None;
        }
        let paths = found.iter().map(path).collect::<Option<Vec<_>>>()?;
        Some(FileVersion::any_of(paths))
    }

    /// Returns whether the command prints files of submodules.
    fn enters_submodules(&self, repository: &Repository) -> bool {
        let names_them = |word: &Field| {
            let text = word.text();
            let is_short =
                text == "--submodule" || text.ends_with("=log") || text.ends_with("=short");
            text.starts_with("--recurse-s") || text.starts_with("--subm") && !is_short
        };
        repository.has_submodules() && (self.sets_submodules || self.words.iter().any(names_them))
    }

    /// Returns whether it compares trees of folders, in which names are relative to the folder.
    fn diffs_folders(&self, repository: &Repository) -> bool {
        let texts = self.words.iter().map(Field::text);
        self.subcommand == "diff"
            && texts.take_while(|text| text != "--").any(|text| {
                !text.ends_with(':')
                    && object_path(&text).is_some_and(|path| repository.dir.join(path).is_dir())
            })
    }

    /// Returns how the command can leave out a file, at the end of its words.
    fn fix(&self, judge: &Judge<'_>, repository: &Repository, fix: Fix) -> Option<Rc<Fix>> {
        let has_lines = self.words.iter().any(|word| word.text().starts_with("-L"));
        let is_found = has(PATHSPECS, &self.subcommand) && !self.diffs_folders(repository);
        if fix.at == 0 || !is_found || has_lines {
            return None;
        }
        // The first operand of `grep` is its pattern.
        let is_grep = self.subcommand == "grep" && !self.sets("-e -f");
        let mut follows = false;
        let is_path = |text: &String| {
            let is_path = self.subcommand == "ls-files"
                || follows
                || text == "--"
                || text.contains(['*', '?', '['])
                || text.starts_with(":(")
                || excludes(text)
                || repository.has_file(text);
            follows |= text == "--";
            is_path
        };
        let texts = self.words.iter().map(Field::text);
        let operands = texts.filter(|text| text == "--" || !text.starts_with('-'));
        let paths: Vec<String> = operands
            .skip(usize::from(is_grep))
            .filter(is_path)
            .collect();
        // Without the denied ones, nothing would be left.
        let denies = |path: AbsPath| judge.denial_by_name(&path).is_some();
        let place = |text: &String| AbsPath::new(&repository.dir.join(text));
        let mut named = paths.iter().filter(|text| *text != "--" && !excludes(text));
        if named.clone().next().is_some() && named.all(|it| place(it).is_some_and(denies)) {
            return None;
        }
        let is_at_top = repository.is_at_top();
        Some(Rc::new(Fix {
            opening: match paths.is_empty() {
                false => "",
                true if is_at_top || has("grep archive ls-files", &self.subcommand) => " -- .",
                true => " -- :/",
            },
            exclusion: if is_at_top { AT_TOP } else { BELOW_TOP },
            base: Some(String::new()),
            ..fix
        }))
    }

    /// Returns the words that git can be asked with. `None` if they are not known, or could start a program or
    /// write a file.
    pub(in crate::command) fn question(&self) -> Option<Vec<String>> {
        let mut words = Vec::new();
        let (mut is_path, mut is_any) = (false, false);
        let row = programs::row("git", Some(&self.subcommand));
        let mut before = String::new();
        for word in &self.words {
            // A path that is not known may be any.
            let is_known = self.subcommand == "grep" || word.can_vanish();
            let any = || (is_path && !is_known).then(|| ":/".to_owned());
            is_any |= word.known().is_none();
            let text = word.known().or_else(any)?;
            let name = text.split('=').next().unwrap_or(&text);
            // Not in `log -S --`.
            is_path |= text == "--" && !row.is_some_and(|row| has(row.get("texts"), &before));
            before.clone_from(&text);
            let is_unsafe = name.len() > 3
                && name != "--text"
                && UNSAFE.iter().any(|known| known.starts_with(name))
                || self.subcommand == "grep"
                    && name.starts_with('-')
                    && letters(name).contains('O');
            if is_unsafe && !is_path {
                return None;
            }
            if is_path || !has(DECORATIONS, name) || self.subcommand == "grep" {
                words.push(text);
            }
        }
        // With a limit, other files of the same commits count.
        Some(if is_any { without_limits(words) } else { words })
    }

    /// Returns whether the command prints contents.
    pub(in crate::command) fn prints(&self) -> bool {
        !matches!(self.kind(false), Kind::Nothing)
    }

    /// Returns the last word before `--` that is one of these options, also as an abbreviation or in a cluster.
    fn last_of(&self, options: &str) -> Option<usize> {
        let texts = self.words.iter().map(Field::text);
        let texts: Vec<String> = texts.take_while(|text| text != "--").collect();
        texts.iter().rposition(|text| {
            let name = text.split('=').next().unwrap_or(text);
            options
                .split_ascii_whitespace()
                .any(|option| match option.strip_prefix("--") {
                    Some(_) => name.len() > 4 && option.starts_with(name) && name != "--color",
                    None => letters(name).contains(&option[1..]),
                })
        })
    }

    pub(super) fn sets(&self, options: &str) -> bool {
        self.last_of(options).is_some()
    }

    /// `lists`: of a command that prints names only, the files whose names it prints.
    fn kind(&self, lists: bool) -> Kind<'_> {
        let texts: Vec<String> = self.words.iter().map(Field::text).collect();
        let has_patch = self.sets(PATCH) && self.last_of("-s --no-patch") < self.last_of(PATCH);
        let only_names = self.sets(NAMES_ONLY) && !has_patch && !lists;
        let names_them = self.sets(NAMES_ONLY) || self.subcommand.starts_with("diff-");
        let is_patch = has_patch || lists && names_them;
        let is_verbose = self.sets(VERBOSE);
        let is_interactive = self.sets(INTERACTIVE);
        let first = texts.first().map_or("", String::as_str);
        let name = self.subcommand.as_str();
        match name {
            _ if texts.iter().any(|text| text == "--help") => Kind::Nothing,
            "ls-files" | "ls-tree" if lists => Kind::Listed,
            "status" | "clean" if lists => Kind::Status,
            // [`Self::without_repository`] judges these.
            "diff" | "grep" if self.sets("--no-index") => Kind::Nothing,
            "diff" if !only_names => Kind::Changes(vec![name]),
            "difftool" => Kind::Changes(vec!["diff"]),
            "show" if !only_names => {
                // A single object is checked by its path.
                let mut operands = texts
                    .iter()
                    .filter(|text| !text.starts_with('-'))
                    .peekable();
                let is_object = operands.peek().is_some()
                    && operands.all(|text| object_path(text).is_some() && !text.starts_with(":/"));
                if is_object {
                    Kind::Nothing
                } else {
                    Kind::Changes(vec![name])
                }
            }
            "log" | "whatchanged" | "reflog" if self.sets("-L") => Kind::Matching,
            "reflog" if has("expire delete exists drop", first) => Kind::Nothing,
            "diff-tree" | "diff-index" | "diff-files" | "log" | "reflog" | "whatchanged"
                if is_patch =>
            {
                Kind::Changes(vec![name])
            }
            "stash" if is_patch && first == "show" => Kind::Changes(vec![name, "show"]),
            "stash" if is_patch && first == "list" => Kind::Changes(vec![name, "list"]),
            "stash" if first != "show" && self.sets("-p --patch") => Kind::Uncommitted,
            "add" if is_interactive => Kind::Uncommitted,
            "commit" if is_verbose && self.sets("--amend") => Kind::Everything,
            "commit" | "status" if is_verbose => Kind::Uncommitted,
            "checkout" | "restore" | "reset" if is_interactive => Kind::Matching,
            "grep" if lists || !self.sets(GREP_NAMES) || self.sets("-O --open-files-in-pager") => {
                Kind::Grep
            }
            "archive" if !self.sets("-l --list") => Kind::Tree,
            "format-patch" | "range-diff" | "fast-export" | "send-email" => Kind::Matching,
            "request-pull" if self.sets("-p") => Kind::Matching,
            "bundle" if first == "create" => Kind::Everything,
            "checkout-index" if self.sets("-a --all --stdin") => Kind::Everything,
            "pack-objects" | "unpack-file" | "merge-tree" => Kind::Everything,
            "cat-file" if self.only_checks() => Kind::Nothing,
            "cat-file" if !self.only_index() || self.sets("--batch") => {
                let named =
                    |word: &&Field| object_path(&word.text()).is_some() && !word.has_unknown();
                let converts =
                    self.sets("--textconv --filters --batch --batch-check --batch-command");
                let names = self.words.iter().filter(named).count();
                if names == 1 && !converts {
                    Kind::Nothing
                } else {
                    Kind::Everything
                }
            }
            _ => Kind::Nothing,
        }
    }

    /// Returns the pathspecs of the command.
    fn pathspecs(&self) -> Vec<String> {
        let text = |word: &Field| word.known().unwrap_or_else(|| ":/".to_owned());
        let texts: Vec<String> = self.words.iter().map(text).collect();
        if has("log whatchanged", &self.subcommand) && self.sets("-L") {
            // The files whose lines are printed.
            let is_value = |(at, text): &(usize, &String)| {
                text.starts_with("-L") || *at > 0 && texts[at - 1] == "-L"
            };
            let values = texts.iter().enumerate().filter(is_value);
            let files = values.filter_map(|(_, text)| Some(text.rsplit_once(':')?.1.to_owned()));
            return files.collect();
        }
        match texts.iter().position(|text| text == "--") {
            Some(at) => texts[at + 1..].to_vec(),
            None => texts.into_iter().filter(|text| excludes(text)).collect(),
        }
    }
}

/// Returns the letters of a cluster of options, up to one that has a value.
fn letters(text: &str) -> &str {
    let letters = text.strip_prefix('-').filter(|it| !it.starts_with('-'));
    let letters = letters.unwrap_or_default();
    let end = letters.find(|c: char| "mFCtSGe".contains(c));
    &letters[..end.map_or(letters.len(), |end| end + 1)]
}
