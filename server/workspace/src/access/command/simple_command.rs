//! Checks a simple command: whether it prints its words, runs them as shell text or code, or
//! changes the directory.
//!
//! Every word is checked as a path in any case. The lists here only add paths that a word contains,
//! or exclude words that are merely printed.

use std::{collections::BTreeSet, path::PathBuf};

use super::{
    CommandChecker,
    expansion::ExpandedWord,
    invocation::{Invocation, program_name},
    options::{ProgramUse, excluded_path},
    printf,
    program_table::{self, has},
    shell::ShellState,
};

/// Shells: run the operand of `-c`, or their input, as a script.
const SHELLS: &[&str] = &[
    "sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "fish", "rbash", "csh", "tcsh", "at",
    "batch",
];
/// Hosts that mean this machine to `ssh`.
const LOCAL_HOSTS: &[&str] = &["localhost", "127.0.0.1", "::1"];
/// Shells of Windows: run the remaining words as one command.
const FOREIGN_SHELLS: &[&str] = &["pwsh", "powershell", "cmd"];
/// Programs that run their words, alone or joined, as a script.
const SCRIPT_TAKERS: &[&str] = &[
    "eval",
    "trap",
    "alias",
    "watch",
    "su",
    "runuser",
    "script",
    "flock",
    "env",
    "sg",
    "parallel",
    "xargs",
    "entr",
    "tmux",
    "screen",
    "hyperfine",
    "nix-shell",
    "npx",
    "docker",
    "podman",
    "iex",
    "invoke-expression",
    "start-process",
];
/// Programs that run their words or input as code in another language.
pub(super) const INTERPRETERS: &[&str] = &[
    "python",
    "pypy",
    "node",
    "nodejs",
    "deno",
    "bun",
    "perl",
    "ruby",
    "php",
    "lua",
    "luajit",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "gsed",
    "osascript",
    "tclsh",
    "rscript",
    "julia",
    "elixir",
    "groovy",
    "swift",
    "scala",
    "runghc",
    "sqlite3",
    "psql",
    "mysql",
    "vim",
    "vi",
    "nvim",
    "ex",
    "ed",
    "emacs",
    "gdb",
    "lldb",
    "jshell",
    "irb",
    "duckdb",
    "octave",
    "gnuplot",
    "m4",
    "cpp",
    "gcc",
    "cc",
    "clang",
    "make",
    "gmake",
    "bmake",
    "ninja",
    "just",
    "less",
    "more",
    "view",
    "ftp",
    "sftp",
    "pwsh",
    "powershell",
];
/// Programs that only print their words.
pub(super) const PRINTERS: &[&str] = &["echo", "printf", "write-output", "write-host"];
/// Programs that run the command after them unchanged.
pub(super) const PREFIXES: &[&str] = &[
    "command", "builtin", "exec", "sudo", "doas", "env", "nohup", "time", "busybox",
];
/// Programs that use the words they read as paths.
pub(super) const LIST_READERS: &[&str] = &[
    "xargs",
    "parallel",
    "cpio",
    "rsync",
    "tar",
    "read",
    "mapfile",
    "readarray",
];
/// Options that set the working directory.
const FOLDER_OPTIONS: &[&str] = &[
    "-C",
    "--directory",
    "--cwd",
    "--chdir",
    "--work-tree",
    "--prefix",
    "--git-dir",
    "-WorkingDirectory",
];

/// Programs that write, create, move, link or remove their operands.
const WRITERS: &[&str] = &[
    "rm",
    "rmdir",
    "unlink",
    "shred",
    "mv",
    "cp",
    "ln",
    "link",
    "install",
    "tee",
    "touch",
    "truncate",
    "chmod",
    "chown",
    "chgrp",
    "chattr",
    "setfacl",
    "dd",
    "sed",
    "gsed",
    "perl",
    "rsync",
    "patch",
    "mkdir",
    "mkfifo",
    "mknod",
    "sponge",
    "split",
    "csplit",
    "tar",
    "unzip",
    "git",
    "ed",
    "ex",
    "vi",
    "vim",
    "nvim",
    "curl",
    "wget",
    "ruby",
    "sort",
    "set-content",
    "add-content",
    "out-file",
    "remove-item",
    "move-item",
    "copy-item",
    "rename-item",
    "new-item",
    "clear-content",
    "del",
    "erase",
    "move",
    "copy",
    "ren",
    "rd",
];

/// Maximum places in a word where a command may start.
const MAX_EMBEDDED: usize = 8;
/// Maximum nesting of containers.
const MAX_CONTAINERS: usize = 4;

impl CommandChecker<'_> {
    /// Checks a simple command and applies it to the state.
    pub(super) fn invoke(&mut self, invocation: &Invocation, state: &mut ShellState) {
        if invocation.len() == 0 {
            return;
        }
        self.guard_invocation(invocation, state);
        let name = invocation.program(0);
        if let Some((printer, from)) = invocation.printer() {
            self.print(&printer, from, invocation, state);
            return;
        }
        let how = format!("`{name}` would be given this path");
        let dirs = self.working_dirs(invocation, state);
        let (used, find) = invocation.uses();
        let mut non_paths = BTreeSet::new();
        if let Some(used) = &used {
            non_paths.extend(&used.non_paths);
            self.check_recursive_read(invocation, used, state);
        }
        if let Some(find) = &find {
            non_paths.extend(&find.non_paths);
            let inner = find
                .commands
                .iter()
                .filter_map(|at| ProgramUse::at(invocation, *at));
            non_paths.extend(inner.flat_map(|inner| inner.non_paths));
            self.check_find(invocation, find, state);
        }
        let is_left_out = |text: &str| {
            program_table::leaves_out(text) || (name == "git" && excluded_path(text).is_some())
        };
        non_paths.extend(
            (0..invocation.len()).filter(|at| invocation.exact(*at).is_some_and(is_left_out)),
        );
        if self.checks_all_words {
            non_paths.clear();
        }
        for (at, word) in invocation.words.iter().enumerate() {
            if non_paths.contains(&at) {
                continue;
            }
            for field in word {
                if self.is_exhausted() {
                    return;
                }
                let text = field.text();
                // A command name without a slash is searched in `PATH`.
                if at > 0 || word.len() > 1 || text.contains(['/', '\\']) {
                    self.check_word(field, &dirs, &how);
                }
                if at > 0 && name == "git" {
                    self.check_git_object(&text, &dirs, &how);
                }
                self.check_embedded(&text, state);
            }
        }
        let writer =
            (0..invocation.len()).find(|at| WRITERS.contains(&invocation.program(*at).as_str()));
        let operands = writer.map_or(invocation.len(), |at| at + 1);
        for field in invocation.words.iter().skip(operands).flatten() {
            for piece in field.path_candidates() {
                self.add_written(&ExpandedWord::quoted(&piece), &dirs);
            }
            if field.has_pattern() {
                self.add_written(field, &dirs);
            }
        }
        for at in 0..invocation.len() {
            if self.is_exhausted() {
                return;
            }
            self.check_code(invocation, at, &dirs, &non_paths, state);
        }
        if let Some(text) = state.stdin.clone()
            && (0..invocation.len())
                .any(|at| LIST_READERS.contains(&invocation.program(at).as_str()))
        {
            self.check_path_list(&text, invocation, &dirs, &how, state);
        }
        if self.containers < MAX_CONTAINERS
            && let Some(inside) = invocation.without_mounts()
        {
            self.containers += 1;
            self.invoke(&inside, &mut state.clone());
            self.containers -= 1;
        }
        match name.as_str() {
            "cd" | "chdir" | "pushd" | "popd" | "set-location" | "push-location"
            | "pop-location" | "sl" => self.change_dir(invocation, state),
            "declare" | "typeset" | "local" => {
                let texts = invocation.texts(1);
                if texts
                    .iter()
                    .any(|text| text.starts_with('-') && text.contains('n'))
                {
                    let names = texts
                        .iter()
                        .map(|text| text.split('=').next().unwrap_or(text));
                    state.references.extend(names.map(str::to_owned));
                }
            }
            _ => {}
        }
    }

    /// Checks a command in a word or variable: `--pager='cat .env'`.
    pub(super) fn check_embedded(&mut self, text: &str, state: &ShellState) {
        if !text.contains(char::is_whitespace) {
            return;
        }
        let starts = text.match_indices(['=', ':']).map(|(at, _)| at + 1);
        for start in std::iter::once(0).chain(starts).take(MAX_EMBEDDED) {
            let command = text[start..].trim_start_matches([' ', '|', '!', '-', '@']);
            let first = command.split_whitespace().next().unwrap_or_default();
            if first.len() < command.trim_end().len()
                && has(
                    program_table::COMMANDS,
                    program_name(first).trim_end_matches(';'),
                )
            {
                self.script(command, state);
            }
        }
    }

    /// Handles a program that prints its words. It reads none of them, but a pattern prints the
    /// names that it matches, and the output may be used other than as text.
    fn print(
        &mut self,
        printer: &str,
        from: usize,
        invocation: &Invocation,
        state: &mut ShellState,
    ) {
        let how = format!("`{printer}` would print its name");
        for field in invocation.words.iter().skip(from).flatten() {
            if field.has_pattern() {
                self.check_matches(field, &state.dirs, &how);
            }
            if state.output_used {
                let how = format!("the output of `{printer}` would be used");
                for word in field.text().split_whitespace() {
                    self.check_word(&ExpandedWord::unquoted(word), &state.dirs, &how);
                }
            }
        }
        let mut texts = invocation.texts(from);
        if printer == "printf" && texts.len() > 1 && texts[0] == "-v" {
            let mut values = texts.split_off(1);
            let name = values.remove(0);
            values.push(printf::printed_by_printf(&values));
            state.assign(&name, values);
            return;
        }
        let printed = match printer {
            "printf" => printf::printed_by_printf(&texts),
            _ => printf::printed_by_echo(&texts),
        };
        state.printed.push_str(&printed);
        state.printed.push('\n');
    }

    /// Returns the directories that the words are relative to: the working directories, and those
    /// set by options.
    fn working_dirs(&self, invocation: &Invocation, state: &ShellState) -> Vec<PathBuf> {
        let mut dirs = state.dirs.clone();
        let texts = invocation.texts(0);
        for (at, text) in texts.iter().enumerate() {
            let named = FOLDER_OPTIONS.iter().find_map(|option| {
                let rest = text.strip_prefix(option)?;
                match rest.strip_prefix('=') {
                    Some(value) => Some(value),
                    None if rest.is_empty() => texts.get(at + 1).map(String::as_str),
                    None => (*option == "-C").then_some(rest),
                }
            });
            if let Some(named) = named {
                let more: Vec<PathBuf> = state.dirs.iter().map(|dir| dir.join(named)).collect();
                dirs.extend(more);
            }
        }
        dirs
    }

    /// Checks `HEAD:/path`, `:/path` and `:(top)path`, which git resolves from the top of the work
    /// tree.
    fn check_git_object(&mut self, text: &str, dirs: &[PathBuf], how: &str) {
        let Some((_, path)) = text.split_once(':') else {
            return;
        };
        let path = match path.strip_prefix('(') {
            Some(magic) => magic.split_once(')').map_or(magic, |(_, path)| path),
            None => path,
        };
        self.check_path(path.trim_start_matches(['/', '!', '^']), dirs, how);
    }

    /// Checks the script or code that the program at a word runs. Called for every word, so that
    /// the preceding words do not matter.
    fn check_code(
        &mut self,
        invocation: &Invocation,
        at: usize,
        dirs: &[PathBuf],
        non_paths: &BTreeSet<usize>,
        state: &ShellState,
    ) {
        let name = invocation.program(at);
        let versionless = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let interprets = INTERPRETERS.contains(&versionless) || INTERPRETERS.contains(&&*name);
        let is_shell = SHELLS.contains(&name.as_str());
        let is_local = |text: &String| LOCAL_HOSTS.contains(&text.as_str());
        let is_remote = name == "ssh";
        let runs_code = [FOREIGN_SHELLS, SCRIPT_TAKERS]
            .iter()
            .any(|list| list.contains(&name.as_str()));
        if !(interprets || is_shell || is_remote || runs_code) {
            return;
        }
        let rest = invocation.texts_but(at + 1, non_paths);
        let mut inner = state.clone();
        inner.dirs = dirs.to_vec();
        if is_shell || (is_remote && rest.iter().any(is_local)) {
            if let Some(option) = rest.iter().position(|word| runs_operand(word)) {
                inner.stdin = None;
                for text in &rest[option + 1..] {
                    self.script(text, &inner);
                }
            } else if let Some(text) = inner.stdin.take() {
                self.script(&text, &inner);
            }
        }
        if FOREIGN_SHELLS.contains(&name.as_str()) {
            if let Some(option) = rest.iter().position(|word| runs_rest(word)) {
                self.script(&rest[option + 1..].join(" "), &inner);
            } else if let Some(text) = inner.stdin.take() {
                self.script(&text, &inner);
            }
        }
        if SCRIPT_TAKERS.contains(&name.as_str()) {
            if name == "eval" || name == "watch" || name == "iex" {
                self.script(&rest.join(" "), &inner);
            }
            for text in &rest {
                let text = match text.split_once('=') {
                    Some((_, value)) if name == "alias" || text.starts_with("--") => value,
                    _ => text,
                };
                if text.contains(char::is_whitespace) {
                    self.script(text, &inner);
                }
            }
        }
        if interprets {
            let how = format!("code for `{name}` names it");
            for text in rest.iter().chain(&state.stdin) {
                if text.contains(|c: char| c.is_whitespace() || "'\"`()".contains(c)) {
                    for path in named_in_code(text) {
                        self.check_word(&ExpandedWord::unquoted(&path), dirs, &how);
                    }
                }
            }
        }
    }

    /// Checks a list of paths in the input.
    fn check_path_list(
        &mut self,
        text: &str,
        invocation: &Invocation,
        dirs: &[PathBuf],
        how: &str,
        state: &mut ShellState,
    ) {
        let lines = text.split(['\n', '\0']).map(str::trim);
        let items: Vec<String> = lines
            .chain(text.split_whitespace())
            .map(str::to_owned)
            .collect();
        if matches!(
            invocation.program(0).as_str(),
            "read" | "mapfile" | "readarray"
        ) {
            for name in invocation.texts(1) {
                state.assign(&name, items.iter().cloned());
            }
            return;
        }
        let texts = invocation.texts(1);
        let place = placeholder(&texts);
        for item in items {
            if self.is_exhausted() {
                return;
            }
            self.check_word(&ExpandedWord::unquoted(&item), dirs, how);
            let Some(place) = place else { continue };
            for text in texts.iter().filter(|text| text.contains(place)) {
                let text = text.replace(place, &item);
                self.check_word(&ExpandedWord::quoted(&text), dirs, how);
                self.check_embedded(&text, state);
            }
        }
    }
}

/// Returns the placeholder of `xargs -I`.
fn placeholder(texts: &[String]) -> Option<&str> {
    texts
        .iter()
        .enumerate()
        .find_map(|(at, text)| match text.strip_prefix("-I") {
            Some("") => texts.get(at + 1).map(String::as_str),
            Some(attached) => Some(attached),
            None => text.strip_prefix("--replace="),
        })
}

/// Returns whether a word is `-c`, possibly combined with other letters.
fn runs_operand(word: &str) -> bool {
    let letters = word.strip_prefix('-').or_else(|| word.strip_prefix('+'));
    word == "--command"
        || letters.is_some_and(|letters| {
            letters.contains('c') && letters.chars().all(|c| c.is_ascii_alphabetic())
        })
}

/// Returns whether all words after this one are run as a command.
fn runs_rest(word: &str) -> bool {
    let word = word.to_lowercase();
    matches!(word.as_str(), "/c" | "/k" | "/r" | "-c")
        || (word.len() > 2 && "-command".starts_with(&word))
}

/// Returns everything in code that could be a path: quoted strings and runs of path characters.
pub(super) fn named_in_code(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for quote in ['\'', '"', '`'] {
        // Between any two quotes, because it is unknown which ones open a string.
        let pieces: Vec<&str> = code.split(quote).collect();
        if pieces.len() > 2 {
            names.extend(
                pieces[1..pieces.len() - 1]
                    .iter()
                    .map(|piece| (*piece).to_owned()),
            );
        }
    }
    let outside = |c: char| !(c.is_alphanumeric() || "._/~+-\\@%#".contains(c));
    names.extend(
        code.split(outside)
            .filter(|run| !run.is_empty())
            .map(str::to_owned),
    );
    names.sort();
    names.dedup();
    names
}
