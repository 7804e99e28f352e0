//! What programs do with their words: which print them, which run them as shell
//! text or as code, which change the folder.
//!
//! Every word of every program is judged as a path in any case. The lists here
//! only add what a word can hide, or take back words that are merely printed.

use std::path::PathBuf;

use super::{Audit, print, shell::Scope, word::Field};

/// Run their `-c` operand, or their input, as shell text.
const SHELLS: &[&str] = &[
    "sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "fish", "rbash", "csh", "tcsh",
];
/// Take the rest of their words as one command.
const FOREIGN_SHELLS: &[&str] = &["pwsh", "powershell", "cmd"];
/// Run words, alone or together, as shell text.
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
/// Run their words or input as code in a language of their own.
const INTERPRETERS: &[&str] = &[
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
    "pwsh",
    "powershell",
];
/// Only print their words.
const PRINTERS: &[&str] = &["echo", "printf", "write-output", "write-host"];
/// Run the command behind them unchanged.
const PREFIXES: &[&str] = &[
    "command", "builtin", "exec", "sudo", "doas", "env", "nohup", "time", "busybox",
];
/// Make paths of words they read.
const LIST_READERS: &[&str] = &[
    "xargs",
    "parallel",
    "cpio",
    "rsync",
    "tar",
    "read",
    "mapfile",
    "readarray",
];
/// Options that name the folder to work in.
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

/// A simple command: for each word, what it can stand for.
pub(super) struct Invocation {
    words: Vec<Vec<Field>>,
}

impl Invocation {
    pub(super) fn new(words: Vec<Vec<Field>>) -> Self {
        let words = words.into_iter().filter(|word| !word.is_empty()).collect();
        Self { words }
    }

    /// The program at a word: its name without path or extension, in lower case.
    pub(super) fn program(&self, at: usize) -> String {
        let Some(field) = self.words.get(at).and_then(|word| word.first()) else {
            return String::new();
        };
        let text = field.text().to_lowercase();
        let name = text.rsplit(['/', '\\']).next().unwrap_or(&text);
        name.strip_suffix(".exe").unwrap_or(name).to_owned()
    }

    /// All fields of the words behind the first.
    pub(super) fn operands(&self) -> impl Iterator<Item = &Field> {
        self.words.iter().skip(1).flatten()
    }

    /// The words from one on, as text.
    fn texts(&self, from: usize) -> Vec<String> {
        self.words
            .iter()
            .skip(from)
            .filter_map(|word| word.first())
            .map(Field::text)
            .collect()
    }

    /// Where the operands of a printing program start, when this is one.
    fn printer(&self) -> Option<(String, usize)> {
        let mut at = 0;
        loop {
            let name = self.program(at);
            if PRINTERS.contains(&name.as_str()) {
                return Some((name, at + 1));
            }
            if !PREFIXES.contains(&name.as_str()) {
                return None;
            }
            at += 1;
        }
    }
}

impl Audit<'_> {
    /// Judges a simple command and lets it change its scope.
    pub(super) fn invoke(&mut self, invocation: &Invocation, scope: &mut Scope) {
        let name = invocation.program(0);
        if name.is_empty() {
            return;
        }
        if let Some((printer, from)) = invocation.printer() {
            self.print(&printer, from, invocation, scope);
            return;
        }
        let how = format!("`{name}` would be given this path");
        let dirs = self.folders(invocation, scope);
        for (at, word) in invocation.words.iter().enumerate() {
            if self.is_exhausted() {
                return;
            }
            for field in word {
                // A name alone is looked for elsewhere.
                if at > 0 || field.text().contains(['/', '\\']) {
                    self.judge_field(field, &dirs, &how);
                }
                if at > 0 && name == "git" {
                    self.judge_object(&field.text(), &dirs, &how);
                }
            }
        }
        for at in 0..invocation.words.len() {
            if self.is_exhausted() {
                return;
            }
            self.judge_code(invocation, at, &dirs, scope);
        }
        if let Some(text) = scope.stdin.clone()
            && (0..invocation.words.len())
                .any(|at| LIST_READERS.contains(&invocation.program(at).as_str()))
        {
            self.judge_list(&text, invocation, &dirs, &how, scope);
        }
        if matches!(
            name.as_str(),
            "cd" | "chdir"
                | "pushd"
                | "popd"
                | "set-location"
                | "push-location"
                | "pop-location"
                | "sl"
        ) {
            self.change_folder(invocation, scope);
        }
    }

    /// A program that prints its words reads none of them; but a pattern prints
    /// the names it matches, and what is printed may be used as more than text.
    fn print(&mut self, printer: &str, from: usize, invocation: &Invocation, scope: &mut Scope) {
        let how = format!("`{printer}` would print its name");
        for field in invocation.words.iter().skip(from).flatten() {
            if field.has_pattern() {
                self.judge_matches(field, &scope.dirs, &how);
            }
            if scope.output_used {
                let how = format!("what `{printer}` prints would be used");
                for word in field.text().split_whitespace() {
                    self.judge_field(&Field::unquoted(word), &scope.dirs, &how);
                }
            }
        }
        let texts = invocation.texts(from);
        let printed = match printer {
            "printf" => print::printed_by_printf(&texts),
            _ => print::printed_by_echo(&texts),
        };
        scope.printed.push_str(&printed);
        scope.printed.push('\n');
    }

    /// The folders the words of a command are seen from: where it runs, and
    /// where its options send it.
    fn folders(&self, invocation: &Invocation, scope: &Scope) -> Vec<PathBuf> {
        let mut dirs = scope.dirs.clone();
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
                let more: Vec<PathBuf> = scope.dirs.iter().map(|dir| dir.join(named)).collect();
                dirs.extend(more);
            }
        }
        dirs
    }

    /// `HEAD:/path`, `:/path`, `:(top)path`: git counts these from the top of
    /// the work tree.
    fn judge_object(&mut self, text: &str, dirs: &[PathBuf], how: &str) {
        let Some((_, path)) = text.split_once(':') else {
            return;
        };
        let path = match path.strip_prefix('(') {
            Some(magic) => magic.split_once(')').map_or(magic, |(_, path)| path),
            None => path,
        };
        self.judge_path(path.trim_start_matches(['/', '!', '^']), dirs, how);
    }

    /// Judges what the program at a word runs as shell text or code. Looked for
    /// at every word, so that it does not matter what stands before it.
    fn judge_code(&mut self, invocation: &Invocation, at: usize, dirs: &[PathBuf], scope: &Scope) {
        let name = invocation.program(at);
        let versionless = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let runs_code = [SHELLS, FOREIGN_SHELLS, SCRIPT_TAKERS]
            .iter()
            .any(|list| list.contains(&name.as_str()))
            || INTERPRETERS.contains(&versionless);
        if !runs_code {
            return;
        }
        let rest = invocation.texts(at + 1);
        let mut inner = scope.clone();
        inner.dirs = dirs.to_vec();
        if SHELLS.contains(&name.as_str()) {
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
        if INTERPRETERS.contains(&versionless) {
            let how = format!("code for `{name}` names it");
            for text in rest.iter().chain(&scope.stdin) {
                if text.contains(|c: char| c.is_whitespace() || "'\"`()".contains(c)) {
                    for path in named_in_code(text) {
                        self.judge_field(&Field::unquoted(&path), dirs, &how);
                    }
                }
            }
        }
    }

    /// Judges a list of paths that stands on the input.
    fn judge_list(
        &mut self,
        text: &str,
        invocation: &Invocation,
        dirs: &[PathBuf],
        how: &str,
        scope: &mut Scope,
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
                scope.assign(&name, items.iter().cloned());
            }
            return;
        }
        for item in items {
            self.judge_field(&Field::unquoted(&item), dirs, how);
        }
    }
}

/// Is this `-c`, also with other letters?
fn runs_operand(word: &str) -> bool {
    let letters = word.strip_prefix('-').or_else(|| word.strip_prefix('+'));
    word == "--command"
        || letters.is_some_and(|letters| {
            letters.contains('c') && letters.chars().all(|c| c.is_ascii_alphabetic())
        })
}

/// Does everything behind this word run as a command?
fn runs_rest(word: &str) -> bool {
    let word = word.to_lowercase();
    matches!(word.as_str(), "/c" | "/k" | "/r" | "-c")
        || (word.len() > 2 && "-command".starts_with(&word))
}

/// Everything in code that could be a path: what is quoted, and every run of
/// characters paths are made of.
fn named_in_code(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for quote in ['\'', '"', '`'] {
        // Between any two quotes, for nobody knows which of them open.
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
