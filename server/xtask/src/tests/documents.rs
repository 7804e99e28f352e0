//! Tests of the documents: links resolve, and every module is listed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::{generate::included_code, repository};

fn documents() -> Vec<(PathBuf, String)> {
    included_code::documents(&repository()).unwrap()
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
fn the_documentation_of_a_crate_lists_every_module_once() {
    for entry in fs::read_dir(repository().join("server")).unwrap() {
        let folder = entry.unwrap().path().join("src");
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        let text = ["lib.rs", "main.rs"]
            .iter()
            .find_map(|name| fs::read_to_string(folder.join(name)).ok())
            .unwrap();
        let docs: String = text
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .fold(String::new(), |docs, line| docs + line + "\n");
        let (_, list) = docs.split_once("\n Modules:\n").unwrap();
        let names = list.split("\n - ").skip(1);
        let names = names.flat_map(|row| {
            let row = row.split_once(": ").map_or(row, |(names, _)| names);
            row.split('`').skip(1).step_by(2)
        });
        let mut listed: Vec<&str> = names.collect();
        listed.sort_unstable();
        let mut modules: Vec<String> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir() || path.extension() == Some("rs".as_ref()))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .filter(|name| !matches!(name.as_str(), "lib" | "main") && !name.ends_with("_tests"))
            .collect();
        modules.sort_unstable();
        modules.dedup();
        assert_eq!(listed, modules, "{}", folder.display());
    }
}

/// A page that is read in a quarter of an hour.
#[test]
fn architecture_is_short() {
    let size = fs::metadata(repository().join("ARCHITECTURE.md"))
        .unwrap()
        .len();
    assert!(size <= 12 * 1024, "{size}");
}
