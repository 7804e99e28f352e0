//! Runs shells and interpreters: scripts and code in operands, in the input and in files.

mod folders;
pub(super) mod powershell;

use std::{borrow::Cow, collections::HashMap, path::PathBuf};

use regex::{Captures, Regex};

use super::{
    Checker, State,
    expand::{DECODED, Field, Output},
    judge::Writes,
    names, parse,
    programs::{self, COMMAND_LANGUAGES, Use, has, is_listed},
    syntax::Place,
};
use crate::read_small_file;
use sightline_base::limits::MAX_COMMAND_BYTES;

/// Maximum folders that `patch -p` removes from a path.
const MAX_REMOVED: usize = 8;
/// Maximum characters between a string in code and the start of the call to which it is given.
const MAX_ARGUMENTS: usize = 1000;
/// Maximum variables of code that begin with the value of another one.
const MAX_VARIABLES: usize = 4;
/// Maximum nesting of calls in the arguments of `join`.
const MAX_CALLS: usize = 5;
/// Maximum parts of a path that `join` gets, but one.
const MAX_PARTS: usize = 6;
/// Places of the standard input.
const STDIN_PATHS: [&str; 4] = ["/dev/stdin", "/dev/fd/", "/proc/self/fd/", "-"];

/// Words of code that run another program.
const RUNS_PROGRAMS: &str = "system popen spawn exec subprocess shell ` check_output check_call getoutput capture passthru \
                             qx %x";
/// Programs and subcommands of git that change files, as words of code.
const WRITERS: &str = "checkout chmod chown cp dd install ln mv rename reset restore rm rmdir rsync shred \
     sponge tee truncate unlink -i";

/// Marks of strings in code.
pub(super) const QUOTES: [char; 3] = ['\'', '"', '`'];

/// A variable of code, and the string that it gets.
const ASSIGNED: &str =
    r#"(\w+)\s*:?=\s*(?:[\w.]*(?:[Pp]ath|join)\(\s*)?["'`]([^"'`{\n]{1,255})["'`]"#;
/// A variable of code to which a string is joined, or that is in a string.
const JOINED: &str = r#"(join\(\s*)?\$?\b(\w+)(\s*[/,+.]\s*|\.joinpath\()(["'`])|[$#]?\{(\w+)\}"#;

impl Checker<'_> {
    /// Runs a script as part of the command.
    pub(super) fn script(&mut self, text: &str, state: &mut State) -> Output {
        self.script_at(text, None, state)
    }

    /// Runs a word as a script.
    pub(super) fn script_word(&mut self, word: &Field, state: &mut State) -> Output {
        let text = word.text();
        let inside = |place: &Place| place.inside(&self.text, &word.span, &text);
        let place = self.place.as_ref().and_then(inside);
        self.script_at(&text, place, state)
    }

    pub(super) fn script_at(
        &mut self,
        text: &str,
        place: Option<Place>,
        state: &mut State,
    ) -> Output {
        if text.trim().is_empty() || self.judge.is_exhausted() {
            return Output::default();
        }
        if self.scripts_left == 0 {
            return self.give_up();
        }
        if text.contains(DECODED) {
            self.refuse_decoded();
            return Output::default();
        }
        self.scripts_left -= 1;
        let at = place.as_ref().map_or(0, |place| place.at);
        let outer = std::mem::replace(&mut self.place, place);
        let output = match parse::parse(text, at) {
            Ok(commands) => {
                self.follows_counts &= names::only_count(&commands);
                self.list(&commands, state)
            }
            Err(why) => {
                self.refuse(&format!("the command cannot be checked, because {why}"));
                Output::default()
            }
        };
        self.place = outer;
        self.read_items(text, state);
        output
    }

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
        let is_encoded = |word: &Field| {
            let text = word.text().to_lowercase();
            text.len() > 1 && "-encodedcommand".starts_with(&text) || text == "-ec"
        };
        if is_foreign && name != "cmd" && rest.iter().any(is_encoded) {
            self.refuse_decoded();
        }
        if let Some(at) = rest.iter().position(runs_next) {
            inner.stdin = Output::default();
            for word in &rest[..at] {
                self.use_field(word, Use::Read, name, state);
            }
            let texts: Vec<String> = rest[at + 1..].iter().map(Field::text).collect();
            if is_foreign {
                return self.foreign_script(name, &texts.join(" ").replace('^', ""), &mut inner);
            }
            // Further words are arguments of the script.
            for word in rest.get(at + 2..).unwrap_or_default() {
                self.use_field(word, Use::Read, name, state);
            }
            inner.set_arguments(rest.get(at + 3..).unwrap_or_default());
            return rest
                .get(at + 1)
                .map_or_else(Output::default, |word| self.script_word(word, &mut inner));
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
            self.judge.add_writes(Writes::Unknown);
        }
        if !has_script || has("at batch", name) {
            return self.interpret("sh", state);
        }
        Output::default()
    }

    /// Runs a script of a shell with another grammar. What a POSIX shell would not accept is judged by its words.
    fn foreign_script(&mut self, name: &str, text: &str, state: &mut State) -> Output {
        // Both take `\` for a separator.
        let text = &text.replace('\\', "/");
        let how = format!("code for `{name}` would read");
        if text.contains("::") {
            self.read_in_code(name, text, &state.dirs.clone(), &how);
        }
        if parse::parse(text, 0).is_ok() {
            return self.script(text, state);
        }
        self.read_items(text, state);
        self.use_words(name, text, state);
        Output::default()
    }

    pub(super) fn source(&mut self, rest: &[Field], state: &mut State) -> Output {
        for word in rest {
            if STDIN_PATHS.iter().any(|path| word.text().starts_with(path)) {
                return self.interpret("sh", state);
            }
            self.use_field(word, Use::Read, "source", state);
            self.run_written("sh", word, state);
            self.judge.add_writes(Writes::Unknown);
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

    /// Checks the files that a patch changes: on standard input, or in one of the files that are named.
    pub(super) fn patch(&mut self, name: &str, words: &[Field], dirs: &[PathBuf], state: &State) {
        let named = words
            .iter()
            .map(Field::text)
            .chain(state.stdin.path.clone());
        let places = named.flat_map(|path| dirs.iter().map(move |dir| dir.join(&path)));
        let read = |path: PathBuf| read_small_file(&path).ok().flatten();
        let mut texts: Vec<String> = places
            .filter_map(read)
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .collect();
        texts.extend(state.stdin.text.clone());
        let marks = ["+++ ", "--- ", "rename to ", "copy to "];
        for line in texts.iter().flat_map(|text| text.lines()) {
            let Some(path) = marks.iter().find_map(|mark| line.strip_prefix(mark)) else {
                continue;
            };
            let (path, _) = path.split_once('\t').unwrap_or((path, ""));
            let path = path.trim_matches([' ', '"']);
            for path in without_folders(path) {
                let field = Field::quoted(path);
                self.use_field_in(&field, Use::Write, name, dirs, state);
                self.guard_redirection(&field, state);
            }
        }
    }

    /// Runs the recipes of a makefile.
    fn run_recipes(&mut self, code: &str, state: &State) {
        for line in code.lines() {
            let after = line.split_once(';').map(|(_, recipe)| recipe);
            let recipe = line.strip_prefix('\t').or(after).unwrap_or_default();
            let command = recipe
                .trim_start_matches(['@', '-', '+'])
                .replace("$$", "$");
            // `$<` and other variables of `make`.
            if self.guard.is_some() || parse::parse(&command, 0).is_ok() {
                self.script(&command, &mut state.clone());
            }
        }
    }

    /// Checks the paths that code names.
    pub(super) fn code(&mut self, code: &str, program: &str, dirs: &[PathBuf], state: &State) {
        self.guard_code(program, code, state);
        if has(programs::MAKES, program) {
            self.run_recipes(code, state);
        }
        if code.contains(DECODED) {
            self.refuse_decoded();
        } else if code_reads(program, code) {
            let how = format!("code for `{program}` would read");
            let writes = code_writes(code);
            let mut names = names_in_code(program, code);
            let joined = with_joined_paths(code);
            names.extend(joined.iter().flat_map(|it| names_in_code(program, it)));
            // `__DIR__ . '/x'`, `process.cwd() + '/x'`
            let joined = |name: &String| Some(name.strip_prefix('/')?.to_owned());
            // `require('./keys')`
            let module = |name: &String| [".js", ".json", ".ts"].map(|end| format!("{name}{end}"));
            let modules = names
                .iter()
                .filter(|name| name.starts_with("./") || name.starts_with("../"));
            let modules = modules
                .flat_map(module)
                .filter(|name| self.judge.exists(name, dirs));
            let others = names.iter().filter_map(joined).chain(modules);
            let others: Vec<String> = others.collect();
            names.extend(others);
            // Commands that it runs may change what it reads.
            for name in names.iter().cloned().chain(lists_of_words(code)) {
                self.embedded(&name, state);
                // It may read what these list.
                let lists = ["find ", "git ls-files"]
                    .iter()
                    .any(|it| name.starts_with(it));
                if lists && runs_programs(code) {
                    let mut inner = state.clone();
                    inner.is_consumed = folders::reads_files(code);
                    let listed = self.script(&name, &mut inner).names;
                    self.deny_names(&listed, &how);
                }
            }
            let is_text = |name: &&String| {
                // A regular expression: `process\.env`.
                !cfg!(windows) && name.contains("\\.")
                    || name.contains(char::is_whitespace) && !self.judge.exists(name, dirs)
            };
            let names: Vec<&String> = names.iter().filter(|name| !is_text(name)).collect();
            for name in &names {
                self.is_fixable &= !self.judge.check_path(name, dirs, &how);
            }
            self.read_in_code(program, code, dirs, &how);
            // What the code itself writes counts for what follows it.
            for name in names.iter().filter(|_| writes) {
                self.judge.add_written(name, dirs, true);
            }
        }
    }
}

/// Returns the paths that code may name: its strings, their words, and for languages of commands
/// all words.
pub(super) fn names_in_code(program: &str, code: &str) -> Vec<String> {
    let is_path_char = |c: char| c.is_alphanumeric() || "._/~+-@%#*?".contains(c);
    let mut names = Vec::new();
    let is_command = is_listed(COMMAND_LANGUAGES, program);
    let runs = is_command || runs_programs(code);
    let mut rest = code;
    // For `sed`, a backquote is a character.
    let is_sed = has("sed gsed", program);
    let quotes = &QUOTES[..if is_sed { 2 } else { 3 }];
    while let Some(at) = rest.find(quotes) {
        let quote = rest[at..].chars().next().unwrap_or_default();
        rest = &rest[at + 1..];
        let Some(end) = rest.find(quote) else {
            break;
        };
        let literal = &rest[..end];
        let before = &code[..code.len() - rest.len() - 1];
        if quote == '`'
            || literal.contains(['(', '{', '$', '`'])
            || !is_text_argument(before, &rest[end + 1..])
        {
            names.push(literal.replace("\\n", "\n"));
            // A command, or a path with parts that are computed.
            if runs || quote == '`' || literal.contains(['{', '$', '%', '#', '|']) {
                let literal = literal.replace("\\n", "\n").replace("\\t", "\t");
                let words = literal.split(|c| c != '\\' && !is_path_char(c));
                names.extend(words.map(|word| word.trim_matches('\\').to_owned()));
            }
        }
        // The quote may also be the start of a string.
        rest = &rest[end..];
        if rest[1..].find(quote).is_none() {
            rest = &rest[1..];
        }
    }
    let mut before = '(';
    let mut start = 0;
    let is_command = is_command || code.contains("qx") || code.contains("%x");
    // `process.env`
    let has_properties = is_listed("python pypy node nodejs deno bun ts-node tsx", program);
    while let Some(at) = code[start..].find(is_path_char).filter(|_| !is_sed) {
        let at = start + at;
        before = code[..at].chars().next_back().unwrap_or(before);
        let end = code[at..]
            .find(|c| !is_path_char(c))
            .map_or(code.len(), |end| at + end);
        let run = &code[at..end];
        let is_regex = run.len() > 1 && run.starts_with('/') && run.ends_with('/');
        let starts = "(<{[|=,".contains(before) || (is_command && before.is_whitespace());
        let is_property = has_properties && !run.starts_with('.') && !run.contains('/');
        if starts && !is_regex && !is_property && run.contains(['.', '/']) {
            names.push(run.to_owned());
        }
        start = end;
    }
    if is_sed {
        // `r FILE` and `w FILE`, also without a blank.
        for (at, _) in code.match_indices(['r', 'R', 'w', 'W']) {
            let is_command = at == 0
                || code[..at].ends_with(|c: char| c.is_ascii_digit() || "$/;{ \n!|,".contains(c));
            let file = code[at + 1..].split(['\n', '}']).next().unwrap_or_default();
            if is_command {
                names.push(file.trim().to_owned());
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    names
}

/// Returns code in which paths that it joins from strings are one string: `'a' / 'b'` and
/// `join('a', 'b')` become `'a/b'`. In the last one, variables have their values.
pub(super) fn with_joined_paths(code: &str) -> Vec<String> {
    let between = |gap: &str| QUOTES.map(|quote| format!("{quote}{gap}{quote}")).join("|");
    // Calls in the first arguments.
    let nested = (0..MAX_CALLS).fold("[^()]*".to_owned(), |inner, _| {
        format!(r"(?:[^()]|\({inner}\))*")
    });
    let patterns = [
        ASSIGNED.to_owned(),
        JOINED.to_owned(),
        between(r"\s*\+\s*"),
        format!(r"([\w.*-])(?:{})", between(r"[)\s]*/\s*")),
        format!(
            r"((?:join|joinpath|Path|resolve)\(\(?{nested}?[\w.*-])(?:{})",
            between(r"\s*,\s*")
        ),
    ];
    let regexes = patterns.iter().filter_map(|it| Regex::new(it).ok());
    let regexes: Vec<Regex> = regexes.collect();
    let [assigned, joined, added, divided, call] = &regexes[..] else {
        return vec![code.to_owned()];
    };
    let join = |code: &str| {
        let code = added.replace_all(code, "");
        let mut code = divided.replace_all(&code, "$1/").into_owned();
        for _ in 0..MAX_PARTS {
            match call.replace_all(&code, "$1/") {
                Cow::Borrowed(_) => break,
                Cow::Owned(longer) => code = longer,
            }
        }
        code
    };
    let mut codes = vec![join(code)];
    for _ in 0..MAX_VARIABLES {
        let code = &codes[codes.len() - 1];
        let values: HashMap<String, String> = (assigned.captures_iter(code))
            .map(|it| (it[1].to_owned(), it[2].to_owned()))
            .collect();
        let mut left = MAX_COMMAND_BYTES;
        let replaced = joined.replace_all(code, |it: &Captures<'_>| {
            let part = |at| it.get(at).map_or("", |it| it.as_str());
            let (call, operator, quote) = (part(1), part(3), part(4));
            let value = values.get(part(2)).or(values.get(part(5)));
            let is_joined = !call.is_empty() || !operator.contains(',');
            let Some(value) = value.filter(|value| is_joined && value.len() <= left) else {
                return it[0].to_owned();
            };
            left -= value.len();
            let paren = if operator.contains('(') { "(" } else { "" };
            let slash = if operator.contains(['/', ',', '(']) {
                "/"
            } else {
                ""
            };
            format!("{call}{paren}{quote}{value}{slash}")
        });
        let longer = join(&replaced);
        if longer == *code {
            break;
        }
        codes.truncate(1);
        codes.push(longer);
    }
    codes
}

/// Returns lists of strings in code, with blanks between their words: `['grep', '-r', 'x']` may be a command.
fn lists_of_words(code: &str) -> Vec<String> {
    let lists = code
        .split('[')
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(']')?.0));
    let is_string = |word: &&str| word.len() > 1 && word.starts_with(['\'', '"']);
    let words = lists.map(|list| list.split(',').map(str::trim).take_while(is_string));
    let joined = words.map(|words| {
        words
            .map(|it| it.trim_matches(['\'', '"']))
            .collect::<Vec<_>>()
            .join(" ")
    });
    joined.filter(|command| command.contains(' ')).collect()
}

/// Returns whether a string between these parts of code is given to a function that does not open it as a file.
fn is_text_argument(before: &str, after: &str) -> bool {
    const FUNCTIONS: &str = "endswith exists existssync includes indexof isdir isfile log match print println replace replaceall search split startswith sub gsub";
    const METHODS: &str = "exist getsize lstat size stat statsync";
    // `'.env' in text` of Python
    if after.trim_start().starts_with("in ") {
        return true;
    }
    let mut depth = 0;
    let opens = |(_, c): &(usize, char)| {
        depth += match c {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        depth < 0
    };
    let mut last = before.char_indices().rev().take(MAX_ARGUMENTS);
    let Some((at, _)) = last.find(opens) else {
        return false;
    };
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    // `name not in ('.git', 'private')`
    if before[..at].trim_end().ends_with("not in") {
        return true;
    }
    let name = before[..at]
        .rsplit(|c| !is_name(c))
        .next()
        .unwrap_or_default();
    // `os.replace(a, b)` and `a.replace(b)` of a path move a file.
    let is_end = |c: char| c.is_whitespace() || QUOTES.contains(&c);
    let is_one_of = before.trim_end_matches(is_end).ends_with(',')
        || after.trim_start_matches(is_end).starts_with(',');
    let moves = name == "replace" && (!is_one_of || before[..at].ends_with("os.replace"));
    let is_method = before[..at - name.len()].ends_with('.');
    let name = name.to_lowercase();
    (has(FUNCTIONS, &name) || is_method && has(METHODS, &name)) && !moves
}

/// Returns whether code contains a word of functions that read files or run programs.
fn code_reads(program: &str, code: &str) -> bool {
    const WORDS: &[&str] = &[
        "open", "read", "load", "file", "path", "exec", "system", "popen", "spawn", "run",
        "include", "require", "import(", "source", "getline", "cat", "copy", "rename", "glob",
        "stream", "slurp", "<", "`", "import ", "line", "foreach", "scan", "shell",
    ];
    // Words in strings call nothing, except in `f"{open('x')}"`.
    let parts = code.split(['\'', '"']).enumerate();
    let calls =
        |(at, part): &(usize, &str)| at % 2 == 0 || part.contains('{') && part.contains('(');
    let outside: String = parts.filter(calls).map(|(_, part)| part).collect();
    let lower = outside.to_lowercase();
    // `ARGV[1] = ".env"` and `print | "cat .env"`
    let is_awk = program.ends_with("awk");
    let packed = code.replace(' ', "");
    let pipes = ["|\"", "\"|"].iter().any(|it| packed.contains(it));
    is_listed(COMMAND_LANGUAGES, program)
        || has("sed gsed", program)
        || is_awk && (pipes || lower.contains("argv"))
        || WORDS.iter().any(|word| lower.contains(word))
        || runs_programs(code)
}

/// Returns the words that may be those of a command that code runs.
pub(super) fn words_of(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|c: char| c.is_whitespace() || "'\"`()[],;".contains(c));
    words.filter(|word| !word.is_empty())
}

/// Returns whether code may run another program.
pub(super) fn runs_programs(code: &str) -> bool {
    RUNS_PROGRAMS.split(' ').any(|word| code.contains(word))
}

/// Returns whether code runs a program that changes files.
fn runs_a_writer(code: &str) -> bool {
    runs_programs(code) && (code.contains(" > ") || words_of(code).any(|word| has(WRITERS, word)))
}

/// Returns whether code contains a word of functions that change files, or the mode of an open file.
pub(super) fn code_writes(code: &str) -> bool {
    const WORDS: &str = "appendfile chmod chown copy delete link( move( os.replace put_contents remove rename rm( rm_ rmdir \
                         rmsync rmtree save touch truncate unlink write '> \">";
    let lower = code.to_lowercase();
    let lower = lower
        .replace("stdout.write", "")
        .replace("stderr.write", "");
    let is_mode = |text: &str| {
        text.len() < 4
            && text.contains(['w', 'a', 'x', '+'])
            && text.chars().all(|c| "rwaxbt+".contains(c))
    };
    WORDS.split(' ').any(|word| lower.contains(word))
        || lower.contains("link ")
        || runs_a_writer(code)
        || lower.split(['\'', '"']).any(is_mode)
}

/// Returns a path, and what is left of it without its first folders, as with `patch -p`.
pub(super) fn without_folders(path: &str) -> impl Iterator<Item = &str> {
    let starts = path.match_indices('/').map(|(at, _)| at + 1);
    let starts = std::iter::once(0).chain(starts).take(MAX_REMOVED);
    starts.map(|start| &path[start..])
}
