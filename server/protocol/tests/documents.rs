//! Tests of the documents: links resolve, and included code equals its file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sightline_protocol::emit::REWRITE_COMMAND;

/// Marks a code block that includes a whole file.
const SHOWN: &str = "<!-- the file: ";

fn repository() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// Returns every document with its text.
fn documents() -> Vec<(PathBuf, String)> {
    let mut open = vec![repository()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() && !path.is_symlink() {
                // `text` contains parts of generated documents, with links relative to
                // those.
                let is_ours = !matches!(name.as_str(), "target" | "node_modules" | ".git" | "text");
                open.extend(is_ours.then_some(path));
            } else if name.ends_with(".md") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

/// Returns the lines outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    })
}

/// Returns the anchors that git hosts generate for the headings of a document.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|heading| {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
            let anchor: String = heading.chars().filter(is_kept).collect();
            let anchor = anchor.replace(' ', "-");
            let times = seen.entry(anchor.clone()).or_default();
            *times += 1;
            match times {
                1 => anchor,
                _ => format!("{anchor}-{}", *times - 1),
            }
        })
        .collect()
}

/// Returns the link targets of a line, including link definitions.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let direct = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    direct.chain(definition(line).map(|(_, target)| target))
}

/// Parses a link definition `[name]: target`.
fn definition(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('[')?.split_once("]: ")
}

/// Returns the names of reference links in a line: `[text][name]`.
fn references(line: &str) -> Vec<String> {
    let without_code: String = line.split('`').step_by(2).collect();
    let names = without_code.split("][").skip(1);
    names
        .filter_map(|rest| rest.split_once(']'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

#[test]
fn links_resolve() {
    let documents = documents();
    let mut checked = 0;
    let mut broken = Vec::new();
    for (path, text) in &documents {
        for target in prose(text).flat_map(links) {
            if target.contains("://") {
                continue;
            }
            checked += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let is_there = fs::canonicalize(&file).is_ok_and(|file| {
                anchor.is_empty()
                    || documents.iter().any(|(path, text)| {
                        *path == file && anchors(text).iter().any(|a| a == anchor)
                    })
            });
            if !is_there {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(checked > 100, "found only {checked} links");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn link_definitions_are_complete_and_used() {
    let mut checked = 0;
    for (path, text) in documents() {
        let path = path.display();
        let used: BTreeSet<String> = prose(&text).flat_map(references).collect();
        let defined: BTreeSet<&str> = prose(&text)
            .filter_map(definition)
            .map(|(name, _)| name)
            .collect();
        for name in &used {
            assert!(
                defined.contains(name.as_str()),
                "{path}: undefined link [{name}]"
            );
        }
        for name in defined {
            checked += 1;
            assert!(
                used.contains(name),
                "{path}: unused link definition [{name}]"
            );
        }
    }
    assert!(checked > 10, "found only {checked} definitions");
}

#[test]
fn index_lists_every_document() {
    let docs = repository().join("docs");
    let index = fs::read_to_string(docs.join("README.md")).unwrap();
    let listed: Vec<&str> = prose(&index).flat_map(links).collect();
    for (path, _) in documents() {
        let Ok(name) = path.strip_prefix(&docs) else {
            continue;
        };
        let name = name.to_str().unwrap();
        let is_listed = listed.contains(&name) || name == "README.md";
        assert!(is_listed, "docs/README.md does not link to {name}");
    }
}

#[test]
fn architecture_lists_every_module_once() {
    let text = fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let mut checked = 0;
    for part in text.split("\n`server/").skip(1) {
        let (crate_name, table) = part.split_once("/src`\n\n").unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|row| row.split('|').nth(1));
        let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let mut listed: Vec<&str> = names.filter(|name| !name.contains("::")).collect();
        listed.sort_unstable();
        let folder = repository().join(format!("server/{crate_name}/src"));
        let mut modules: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                path.file_stem().unwrap().to_str().unwrap().to_owned()
            })
            .filter(|name| !matches!(name.as_str(), "lib" | "main"))
            .collect();
        modules.sort_unstable();
        modules.dedup();
        assert_eq!(listed, modules, "server/{crate_name}/src");
        checked += 1;
    }
    assert_eq!(checked, 3);
}

#[test]
fn included_code_equals_its_file() {
    let rewrite = std::env::var_os("UPDATE_GENERATED").is_some_and(|value| value == "1");
    let mut shown = 0;
    for (path, text) in documents() {
        let mut parts = text.split(SHOWN);
        let mut current = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            shown += 1;
            let (name, rest) = part.split_once(" -->\n```").unwrap();
            let (language, rest) = rest.split_once('\n').unwrap();
            let (_, rest) = rest.split_once("\n```").unwrap();
            let code = fs::read_to_string(repository().join(name)).unwrap();
            let code = code.trim_end();
            current.push_str(&format!(
                "{SHOWN}{name} -->\n```{language}\n{code}\n```{rest}"
            ));
        }
        if rewrite && current != text {
            fs::write(&path, &current).unwrap();
        } else {
            let path = path.display();
            assert!(
                current == text,
                "{path} includes an outdated file. To update it: {REWRITE_COMMAND}"
            );
        }
    }
    assert!(shown > 0, "found no included file");
}
