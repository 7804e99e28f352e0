//! Code that a command line gives to an interpreter: the files that it names, if it changes files.

use super::{Change, Checker, Reach, State, effects, invocation::Invocation};
use crate::command::{
    expand::Field,
    programs::{self, has},
    scripts::{QUOTES, code_writes, names_in_code, runs_programs, with_joined_paths, words_of},
};

/// Returns whether code of a programming language, among the words of a command or in its input, changes no
/// file. Without code, a script runs.
pub(super) fn only_reads(invocation: &Invocation, programs: &[usize], state: &State) -> bool {
    let is_code = |name: &str| programs::is_language(name) && !effects::takes_script(name);
    let mut programs = programs.iter().map(|at| (*at, invocation.program(*at)));
    let Some((at, program)) = programs.find(|(_, program)| is_code(program)) else {
        return false;
    };
    let words = invocation.texts(at + 1);
    let is_option = |text: &String| text.starts_with('-') && text.len() > 1;
    let looks_like_code = |text: &String| text.contains([' ', '\n', '\'', '"', '`', '(', ')']);
    let mut codes: Vec<&String> = words
        .windows(2)
        .filter(|pair| is_option(&pair[0]) && looks_like_code(&pair[1]))
        .map(|pair| &pair[1])
        .collect();
    if words.iter().all(|text| text == "-" || is_option(text)) {
        codes.extend(&state.stdin.text);
    }
    !codes.is_empty()
        && !effects::writes(&program, &words)
        && !codes.iter().any(|code| code_writes(code))
}

impl Checker<'_> {
    /// Checks files and commands that code names.
    pub(in crate::command) fn guard_code(&mut self, program: &str, code: &str, state: &State) {
        let runs = runs_programs(code);
        if runs {
            self.guard_words(words_of(code).collect());
        }
        if self.guard.is_none() || programs::is_language(program) && !code_writes(code) {
            return;
        }
        for code in &with_joined_paths(code) {
            for name in names_in_code(program, code) {
                // Words in a string are a command, if anything.
                let is_string = |quote: &char| code.contains(&format!("{quote}{name}{quote}"));
                // `q(…)`, `%w(…)`
                let is_in = has("perl ruby", program) && code.contains(&format!("({name})"));
                if runs || is_in || QUOTES.iter().any(is_string) {
                    self.guard_name(&name, code, state);
                }
            }
        }
    }

    /// Checks a name in code that changes files. A folder counts if the statement, or the next one,
    /// changes files.
    fn guard_name(&mut self, name: &str, code: &str, state: &State) {
        // `${process.env.HOME}/.claude`, `{home}/.claude`
        let known = name.rsplit_once('}').map_or(name, |(_, rest)| rest);
        let plain: Vec<&str> = known
            .split('/')
            .take_while(|part| !part.contains(['*', '?', '[', '{', '$']))
            .collect();
        let path = plain.join("/");
        let path = path.trim_end_matches('/');
        if path.is_empty() {
            return;
        }
        let change = if code_writes(code) {
            Change::Any
        } else {
            Change::Possible
        };
        // It may be appended to the home directory.
        let of_home = format!("~/{}", path.trim_start_matches(['~', '/']));
        let statements: Vec<&str> = code.split(['\n', ';']).collect();
        let is_compared = |text: &str| {
            let (_, rest) = text.split_once(name).unwrap_or_default();
            let rest = rest.trim_start_matches(QUOTES).trim_start();
            rest.starts_with("in ") || rest.starts_with("not in ")
        };
        let changes = (0..statements.len()).any(|at| {
            let next = statements.get(at + 1).unwrap_or(&"");
            let statement = statements[at];
            statement.contains(name)
                && !is_compared(statement)
                && (code_writes(statement) || code_writes(next))
        });
        for path in [path, &of_home] {
            let field = Field::quoted(path);
            self.guard_word(&field, &state.dirs, Reach::File, change);
            if changes {
                self.guard_word(&field, &state.dirs, Reach::Into, Change::Folder);
            }
        }
    }
}
