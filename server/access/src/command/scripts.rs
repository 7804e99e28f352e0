//! Runs shells and interpreters: scripts and code in operands, in the input and in files.

use std::path::PathBuf;

use super::{
    Checker, State, code,
    expand::{Field, Output},
    programs::{self, Use, has},
};

/// Places of the standard input.
const STDIN_PATHS: [&str; 4] = ["/dev/stdin", "/dev/fd/", "/proc/self/fd/", "-"];

impl Checker<'_> {
    /// Runs a shell: the operand of `-c`, a script, or the input.
    pub(super) fn shell(&mut self, name: &str, rest: &[Field], state: &mut State) -> Output {
        let mut inner = state.clone();
        let is_foreign = has("pwsh powershell cmd", name);
        let runs_next = |word: &Field| {
            let text = word.text().to_lowercase();
            let is_cluster = text.len() > 1
                && text.starts_with('-')
                && !text.starts_with("--")
                && text.ends_with('c');
            is_cluster || has("/c /k -command -commandwithargs --command", &text)
        };
        for word in rest {
            self.deny_names(&word.names, &format!("`{name}` would read"));
        }
        if let Some(at) = rest.iter().position(runs_next) {
            inner.stdin = Output::default();
            let texts: Vec<String> = rest[at + 1..].iter().map(Field::text).collect();
            if is_foreign {
                return self.script(&texts.join(" ").replace('^', ""), &mut inner);
            }
            // Further words are arguments of the script.
            for word in rest.get(at + 2..).unwrap_or_default() {
                self.use_field(word, Use::Read, name, state);
            }
            return texts
                .first()
                .map_or_else(Output::default, |text| self.script(text, &mut inner));
        }
        let mut has_script = false;
        for word in rest {
            let text = word.text();
            if STDIN_PATHS.iter().any(|path| text.starts_with(path)) {
                continue;
            }
            has_script = true;
            self.use_field(word, Use::Read, name, state);
            self.run_written(name, word, state);
        }
        if !has_script || has("at batch", name) {
            return self.interpret("sh", state);
        }
        Output::default()
    }

    pub(super) fn source(&mut self, rest: &[Field], state: &mut State) -> Output {
        for word in rest {
            if STDIN_PATHS.iter().any(|path| word.text().starts_with(path)) {
                return self.interpret("sh", state);
            }
            self.use_field(word, Use::Read, "source", state);
            self.run_written("sh", word, state);
        }
        Output::default()
    }

    pub(super) fn refuse_decoded(&mut self) {
        self.refuse(
            "the command decodes text and runs it, so it cannot be checked; run the text itself",
        );
    }

    /// Runs the input as a script or as code.
    pub(super) fn interpret(&mut self, name: &str, state: &State) -> Output {
        let input = &state.stdin;
        if input.is_decoded {
            self.refuse_decoded();
        }
        let Some(text) = &input.text else {
            return Output::default();
        };
        if has(programs::SHELLS, name) {
            let mut inner = state.clone();
            inner.stdin = Output::default();
            return self.script(text, &mut inner);
        }
        self.code(text, name, &state.dirs, state);
        Output::default()
    }

    /// Runs a file that the command has written before.
    pub(super) fn run_written(&mut self, name: &str, word: &Field, state: &State) {
        let path = word.text();
        let of_dir = |dir: &PathBuf| {
            let plain = dir.join(path.trim_start_matches("./"));
            self.files
                .get(&plain)
                .or_else(|| self.files.get(&dir.join(&path)))
        };
        let mut written = word
            .file
            .as_deref()
            .into_iter()
            .chain(state.dirs.iter().filter_map(of_dir));
        let Some(file) = written.find(|file| file.text.is_some()).cloned() else {
            return;
        };
        if file.is_decoded {
            self.refuse_decoded();
        }
        let text = file.text.unwrap_or_default();
        let interpreter = text.lines().next().filter(|line| line.starts_with("#!"));
        let interpreter = interpreter.and_then(|line| line.split(['/', ' ']).next_back());
        let is_shell = has(programs::SHELLS, interpreter.unwrap_or(name))
            || !programs::is_interpreter(interpreter.unwrap_or(name));
        let mut inner = state.clone();
        inner.stdin = Output::default();
        if is_shell {
            self.script(&text, &mut inner);
        } else {
            self.code(&text, interpreter.unwrap_or(name), &state.dirs, &inner);
        }
    }

    /// Runs `ssh`: words for another machine are not checked.
    pub(super) fn remote(&mut self, words: &[Field], state: &mut State) -> Output {
        let is_local = |word: &Field| {
            let text = word.text();
            has(
                "localhost 127.0.0.1 ::1",
                text.rsplit('@').next().unwrap_or(&text),
            )
        };
        if let Some(at) = words.iter().position(is_local) {
            let texts: Vec<String> = words[at + 1..].iter().map(Field::text).collect();
            return if texts.is_empty() {
                self.interpret("sh", state)
            } else {
                self.script(&texts.join(" "), &mut state.clone())
            };
        }
        for pair in words.windows(2) {
            if has("-i -F -E -S", &pair[0].text()) {
                self.use_field(&pair[1], Use::Read, "ssh", state);
            }
        }
        Output::default()
    }

    /// Checks the paths that code names.
    pub(super) fn code(&mut self, code: &str, program: &str, dirs: &[PathBuf], state: &State) {
        if code::reads(program, code) {
            let how = format!("code for `{program}` would read");
            let writes = code::writes(code);
            for name in code::names(program, code) {
                self.is_fixable &= !self.judge.check_path(&name, dirs, &how);
                if writes {
                    self.judge.add_written(&name, dirs);
                }
                self.embedded(&name, state);
            }
        }
    }
}
