//! Names of files in code of other languages.

use super::programs::{COMMAND_LANGUAGES, has, is_listed};

/// Returns the paths that code may name: its strings, their words, and for languages of commands
/// all words.
pub(super) fn names(program: &str, code: &str) -> Vec<String> {
    let is_path_char = |c: char| c.is_alphanumeric() || "._/~+-@%#*?".contains(c);
    let mut names = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['\'', '"', '`']) {
        let quote = rest[at..].chars().next().unwrap_or_default();
        rest = &rest[at + 1..];
        let Some(end) = rest.find(quote) else {
            break;
        };
        names.push(rest[..end].to_owned());
        names.extend(rest[..end].split(|c| !is_path_char(c)).map(str::to_owned));
        // The quote may also be the start of a string.
        rest = &rest[end..];
        if rest[1..].find(quote).is_none() {
            rest = &rest[1..];
        }
    }
    let is_command = is_listed(COMMAND_LANGUAGES, program);
    let mut before = '(';
    let mut start = 0;
    let is_sed = has("sed gsed", program);
    while let Some(at) = code[start..].find(is_path_char).filter(|_| !is_sed) {
        let at = start + at;
        before = code[..at].chars().next_back().unwrap_or(before);
        let end = code[at..]
            .find(|c| !is_path_char(c))
            .map_or(code.len(), |end| at + end);
        let run = &code[at..end];
        let is_regex = run.len() > 1 && run.starts_with('/') && run.ends_with('/');
        let starts = "(<{[|=,".contains(before) || (is_command && before.is_whitespace());
        if starts && !is_regex && run.contains(['.', '/']) {
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

/// Returns whether code contains a word of functions that read files or run programs.
pub(super) fn reads(program: &str, code: &str) -> bool {
    const WORDS: &[&str] = &[
        "open", "read", "load", "file", "path", "exec", "system", "popen", "spawn", "run",
        "include", "require", "import(", "source", "getline", "cat", "copy", "rename", "glob",
        "stream", "slurp", "<", "`", "import ",
    ];
    // Words in strings call nothing.
    let outside: String = code.split(['\'', '"']).step_by(2).collect();
    let lower = outside.to_lowercase();
    is_listed(COMMAND_LANGUAGES, program)
        || has("sed gsed", program)
        || WORDS.iter().any(|word| lower.contains(word))
}

/// Returns whether code contains a word of functions that write files.
pub(super) fn writes(code: &str) -> bool {
    const WORDS: &[&str] = &[
        "write", "'w", "\"w", "'a", "\"a", "dump", "rename", "unlink", "remove", "copy",
        "truncate", ">", "touch", "system", "exec", "spawn", "save", "append", "rmtree", "mkdir",
        "symlink", "chmod", "-i",
    ];
    let lower = code.to_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}
