//! Rules for single files: size, production lines, words of comments and documents, cut chains.

use std::collections::BTreeMap;

use super::{Figure, Files, code, crates, figure, is_test};

/// Maximum number of lines of a source file.
const FILE_LINES: usize = 600;

/// Maximum number of source files in a folder.
const FOLDER_FILES: usize = 15;

/// Endings of source files.
const SOURCES: [&str; 7] = [".rs", ".lua", ".ts", ".js", ".mjs", ".cjs", ".py"];

/// Words and phrases that plain technical English does not need.
const WORDS: [&str; 23] = [
    "anew",
    "are told",
    "beside",
    "by itself",
    "by themselves",
    "for want of",
    "gives back",
    "is told",
    "meanwhile",
    "nobody",
    "nobody's",
    "of its own",
    "of their own",
    "put right",
    "somebody",
    "somebody's",
    "stands",
    "taken back",
    "taken over",
    "that which",
    "the way out",
    "whoever",
    "whomever",
];

/// Iterators that begin a chain.
const ITERATORS: [&str; 6] = [
    ".bytes();",
    ".chars();",
    ".into_iter();",
    ".iter();",
    ".lines();",
    ".values();",
];

/// Measures files, folders and crates.
pub(super) fn figures(files: &Files) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut folders = BTreeMap::<&str, usize>::new();
    for (path, text) in files {
        let name = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_generated = text.lines().take(3).any(|line| line.contains("enerated"));
        if is_generated || !SOURCES.iter().any(|ending| path.ends_with(ending)) {
            continue;
        }
        *folders.entry(name).or_default() += 1;
        let lines = text.lines().count();
        figures.push(figure(
            "files",
            path,
            lines,
            FILE_LINES,
            "lines: split the file",
        ));
    }
    for (folder, count) in folders {
        let hint = "source files: group them in folders";
        figures.push(figure("folders", folder, count, FOLDER_FILES, hint));
    }
    for (name, sources) in crates(files) {
        let production = || sources.iter().filter(|(file, _)| !is_test(file));
        let lines = production().map(|(_, text)| code(text).count()).sum();
        let hint = "production lines: remove code, or raise the figure and say why";
        figures.push(figure("lines", name, lines, 0, hint));
        let cut: Vec<_> = production()
            .flat_map(|(file, text)| {
                cut_chains(text)
                    .into_iter()
                    .map(move |line| format!("{file}:{line}"))
            })
            .collect();
        let detail = format!("chains cut by `let`: {}", cut.join(" "));
        figures.push(figure("chains", name, cut.len(), 0, detail));
    }
    figures
}

/// Finds forbidden words in comments and documents.
pub(super) fn words(files: &Files) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in files {
        let is_document = path.ends_with(".md");
        if !is_document && !SOURCES.iter().any(|ending| path.ends_with(ending)) {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            let is_comment = ["//", "--", "#", "*"]
                .iter()
                .any(|start| line.trim_start().starts_with(start));
            if !is_document && !is_comment {
                continue;
            }
            let separator = |c: char| !c.is_alphanumeric() && c != '\'' && c != '`';
            let line = format!(" {} ", line.to_lowercase()).replace(separator, " ");
            problems.extend(
                WORDS
                    .iter()
                    .filter(|word| line.contains(&format!(" {word} ")))
                    .map(|word| format!("{path}:{}: write another word for \"{word}\"", at + 1)),
            );
        }
    }
    problems
}

/// Returns the lines of `let x = …;` whose only purpose is the call that follows: the next
/// statement shadows `x` with a call on it, or `x` is an iterator on which it goes on.
fn cut_chains(text: &str) -> Vec<usize> {
    let lines: Vec<_> = code(text).collect();
    let is_cut = |at: usize| {
        let (_, line) = lines[at];
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let (name, _) = code.strip_prefix("let ")?.split_once(" = ")?;
        let name = name.strip_prefix("mut ").unwrap_or(name);
        // Lines of a statement that do not end it are indented, or begin with a closing bracket.
        let end = (at..lines.len()).find(|at| {
            let line = lines[*at].1;
            line.ends_with(';') && line.len() - line.trim_start().len() == indent
                || *at == lines.len() - 1
        })?;
        let (_, next) = lines.get(end + 1)?;
        let next = next.trim_start();
        let (target, value) = match next.strip_prefix("let ") {
            Some(rest) => rest.split_once(" = ")?,
            None => ("", next),
        };
        let goes_on = value
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('.') || rest.is_empty());
        let is_iterator = ITERATORS
            .iter()
            .any(|ending| lines[end].1.ends_with(ending));
        (goes_on && (target.trim_start_matches("mut ") == name || is_iterator)).then_some(())
    };
    (0..lines.len())
        .filter(|at| is_cut(*at).is_some())
        .map(|at| lines[at].0)
        .collect()
}
