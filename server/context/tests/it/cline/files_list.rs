//! Compares the listing and its order with recordings of Cline. [`DIFFERENCES`] lists intended
//! differences and their reasons.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
};

use serde_json::Value;
use sightline_access::Access;
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, RelPath, Root, Roots},
};
use sightline_context::listing::{self, Entry, ListOptions, Listing, format};
use sightline_protocol::{files::FileKind, settings::Secrets};
use sightline_testing::fixtures;

/// Intended differences: the case, our result (lines, or the kind of an error;
/// `None` if our types cannot represent it), and the reason.
const DIFFERENCES: &[(&str, Option<&str>, &str)] = &[
    (
        "format/the-directory-itself",
        None,
        "a directory is no entry of its own listing",
    ),
    (
        "format/the-directory-itself-with-slash",
        None,
        "a directory is no entry of its own listing",
    ),
    (
        "format/outside-directory",
        None,
        "a listing holds only what is below the listed directory",
    ),
    (
        "list/target-is-file",
        Some(r#""invalidParams""#),
        "an empty list would be a lie",
    ),
    (
        "list/target-missing",
        Some(r#""notFound""#),
        "an empty list would be a lie",
    ),
    (
        "list/gitignore-anchored-pattern-matches-at-any-depth",
        Some(".gitignore\nsrc/\nsrc/c\nsrc/gen/\nsrc/gen/b"),
        "an anchored pattern matches at its place only, as in git",
    ),
    (
        "list/gitignore-negation-is-dropped",
        Some(".gitignore\na\nkeep.log"),
        "a negated pattern counts, as in git",
    ),
    (
        "list/gitignore-in-subdirectory-leaks-to-siblings",
        Some("a/\nb/\na/.gitignore\na/x\nb/secret\nb/y\nb/z/\nb/z/secret"),
        "a nested file rules its own directory only, as in git",
    ),
    (
        "list/symlinks",
        Some("broken\nfilelink\nlink\nreal/\nreal/x"),
        "links are not followed, and not printed as directories",
    ),
    (
        "list/random/012",
        Some("secret"),
        "the files above the listed directory count, as in git",
    ),
];

fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}

/// Returns -1, 0 or 1. Equal names keep their given order.
fn compare(a: &str, b: &str) -> i64 {
    let first = |names: [&str; 2]| format::sorted(&names.map(str::to_owned))[0];
    match (first([a, b]), first([b, a])) {
        (0, 1) => -1,
        (1, 0) => 1,
        _ => 0,
    }
}

fn sorted(names: &[String]) -> Vec<&String> {
    format::sorted(names)
        .into_iter()
        .map(|index| &names[index])
        .collect()
}

/// Returns `None` if an entry is not below the listed directory.
fn format_case(input: &Value) -> Option<String> {
    let base = input["absolutePath"]
        .as_str()
        .unwrap()
        .trim_end_matches('/');
    let mut found = Listing {
        truncated: input["didHitLimit"].as_bool().unwrap(),
        ..Listing::default()
    };
    for file in strings(&input["files"]) {
        file.strip_prefix(base)?
            .strip_prefix('/')
            .filter(|below| !below.is_empty())?;
        found.entries.push(Entry {
            rel: RelPath::new(Path::new(file.trim_start_matches('/'))).unwrap(),
            kind: match file.ends_with('/') {
                true => FileKind::Directory,
                false => FileKind::File,
            },
            denied: false,
        });
    }
    let base = RelPath::new(Path::new(base.trim_start_matches('/'))).unwrap();
    Some(listing::format(&found, &base))
}

/// Returns the recorded text with our closing line in place of the recorded one.
fn recorded_format(case: &Value) -> String {
    let text = case["expected"]["text"].as_str().unwrap();
    if case["input"]["didHitLimit"] == false {
        return text.to_owned();
    }
    let (list, _) = text.rsplit_once("\n\n(").unwrap();
    format!("{list}\n\n{}", format::CUT_SHORT)
}

fn create_entries(tree: &Value, at: &Path) {
    let mut links = Vec::new();
    for entry in tree.as_array().unwrap() {
        let path = entry["path"].as_str().unwrap();
        let paths = match entry["repeat"].as_u64() {
            Some(count) => (0..count)
                .map(|n| path.replace("###", &format!("{n:03}")))
                .collect(),
            None => vec![path.to_owned()],
        };
        for path in paths {
            let path = at.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match entry["type"].as_str().unwrap() {
                "dir" => fs::create_dir_all(path).unwrap(),
                "symlink" => links.push((entry["target"].as_str().unwrap(), path)),
                _ => fs::write(path, entry["content"].as_str().unwrap_or("")).unwrap(),
            }
        }
    }
    for (target, path) in links {
        #[cfg(unix)]
        std::os::unix::fs::symlink(target, path).unwrap();
        #[cfg(windows)]
        std::os::windows::fs::symlink_file(target, path).unwrap();
    }
}

/// Formats one path per line, and a last line if the list is truncated.
fn shown(mut paths: Vec<String>, truncated: bool, is_ordered: bool) -> String {
    if !is_ordered {
        paths.sort();
    }
    if truncated {
        paths.push("(more)".to_owned());
    }
    paths.join("\n")
}

fn list(case: &Value) -> String {
    let input = &case["input"];
    let home = tempfile::tempdir().unwrap();
    let workspace = home.path().join("ws");
    fs::create_dir(&workspace).unwrap();
    create_entries(&input["tree"], &workspace);
    let root = Root::new(AbsPath::new(&workspace).unwrap(), None);
    let (view, _) =
        Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Allow).view();
    let dir = RelPath::new(Path::new(input["directory"].as_str().unwrap())).unwrap();
    let options = ListOptions {
        recursive: input["recursive"].as_bool().unwrap(),
        limit: input["limit"].as_u64().unwrap() as u32,
        ..ListOptions::default()
    };
    let found = match listing::list(&view, 0, &dir, &options, &Cancel::default()) {
        Ok(found) => found,
        Err(error) => return serde_json::to_string(&error.kind()).unwrap(),
    };
    let paths = found
        .entries
        .iter()
        .map(|entry| {
            let below = entry.rel.as_path().strip_prefix(dir.as_path()).unwrap();
            let slash = if entry.kind == FileKind::Directory {
                "/"
            } else {
                ""
            };
            format!("{}{slash}", below.to_str().unwrap())
        })
        .collect();
    shown(paths, found.truncated, is_ordered(case))
}

fn is_ordered(case: &Value) -> bool {
    case["expected"]["orderIsDeterministic"].as_bool().unwrap()
}

fn recorded_list(case: &Value) -> String {
    shown(
        strings(&case["expected"]["paths"]),
        case["expected"]["didHitLimit"].as_bool().unwrap(),
        is_ordered(case),
    )
}

#[test]
fn every_recorded_case() {
    let Some(cases) = fixtures::load("cline/files_list.json") else {
        return;
    };
    let mut differences: BTreeMap<&str, (Option<&str>, &str)> = DIFFERENCES
        .iter()
        .map(|(name, ours, why)| (*name, (*ours, *why)))
        .collect();
    let mut problems = Vec::new();
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let (recorded, ours) = match case["kind"].as_str().unwrap() {
            "collationOrder" => {
                let groups = case["expected"]["groups"].as_array().unwrap();
                let names: Vec<String> = groups.iter().rev().flat_map(strings).collect();
                let recorded: Vec<String> = groups.iter().flat_map(strings).collect();
                (
                    recorded.join(" "),
                    Some(
                        sorted(&names)
                            .into_iter()
                            .cloned()
                            .collect::<Vec<_>>()
                            .join(" "),
                    ),
                )
            }
            "compareNames" => {
                let pairs = case["input"]["pairs"].as_array().unwrap();
                let signs: Vec<i64> = pairs
                    .iter()
                    .map(|pair| compare(pair[0].as_str().unwrap(), pair[1].as_str().unwrap()))
                    .collect();
                let recorded = case["expected"]["signs"].to_string();
                (recorded, Some(serde_json::to_string(&signs).unwrap()))
            }
            "formatFilesList" if case["comparatorConsistent"] == true => {
                (recorded_format(case), format_case(&case["input"]))
            }
            // The recorded order depends on the sort algorithm: compare as a set.
            "formatFilesList" => {
                let set = |text: String| {
                    let lines: BTreeSet<&str> = text.lines().collect();
                    lines.into_iter().collect::<Vec<_>>().join("\n")
                };
                (
                    set(recorded_format(case)),
                    format_case(&case["input"]).map(set),
                )
            }
            "listFiles" => (recorded_list(case), Some(list(case))),
            other => panic!("{name}: kind {other} is not known here"),
        };
        let is_same = ours.as_ref() == Some(&recorded);
        match differences.remove(name) {
            None if is_same => {}
            None => problems.push(format!(
                "{name}\n  recorded {recorded:?}\n  ours     {ours:?}"
            )),
            Some(_) if is_same => problems.push(format!("{name}: the same; drop the difference")),
            Some((expected, why)) if expected != ours.as_deref() => problems.push(format!(
                "{name} differs ({why})\n  expected {expected:?}\n  ours     {ours:?}"
            )),
            Some(_) => {}
        }
    }
    problems.extend(
        differences
            .keys()
            .map(|name| format!("{name}: no such case")),
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
