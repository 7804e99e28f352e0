//! Rules for manifests and lock files: the direction between crates, banned dependencies, lints,
//! and the minimum Rust version.

use std::error::Error;

use toml_edit::{DocumentMut, Item, TableLike};

use super::Files;

/// Dependencies of doors only. Libraries decide without them.
const ONLY_DOORS: [&str; 7] = [
    "clap",
    "hyper",
    "lsp-types",
    "notify",
    "tokio",
    "tower-lsp",
    "tower-service",
];

/// The lowest floor of doors in `tidy.toml`.
const DOORS: i64 = 6;

/// Text before the minimum Rust version in documents.
const REQUIREMENT: &str = "[Rust](https://rustup.rs) ";

/// Checks the manifests of the crates in `server` against their floors, and all lock files.
pub(super) fn check(files: &Files, floors: Option<&Item>) -> Result<Vec<String>, Box<dyn Error>> {
    let mut problems = Vec::new();
    let floor = |name: &str| floors?.get(name)?.as_integer();
    for (path, text) in files {
        let Some(name) = path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        let manifest: DocumentMut = text.parse().map_err(|error| format!("{path}: {error}"))?;
        if manifest.contains_key("workspace") {
            continue;
        }
        let inherits = |table: &str, key: &str| {
            let value = manifest.get(table).and_then(|table| table.get(key));
            value.is_some_and(|value| {
                value.as_bool() == Some(true) || value.get("workspace").is_some()
            })
        };
        if !inherits("lints", "workspace") || !inherits("package", "rust-version") {
            problems.push(format!(
                "{path}: inherit `lints` and `rust-version` from the workspace"
            ));
        }
        let Some(name) = name.strip_prefix("server/") else {
            continue;
        };
        let Some(own) = floor(name) else {
            problems.push(format!("{path}: the crate has no floor in tidy.toml"));
            continue;
        };
        for dependency in dependencies(&manifest) {
            let is_up = match dependency.strip_prefix("sightline-") {
                Some(other) => floor(other).is_some_and(|other| other >= own),
                None => {
                    dependency == "sightline" || own < DOORS && ONLY_DOORS.contains(&dependency)
                }
            };
            if is_up {
                problems.push(format!("{path}: must not depend on {dependency}"));
            }
        }
    }
    problems.extend(banned(files)?);
    problems.extend(versions(files)?);
    Ok(problems)
}

/// Returns the names of dependencies of any kind and platform.
fn dependencies(manifest: &DocumentMut) -> Vec<&str> {
    let platforms = manifest.get("target").and_then(Item::as_table_like);
    let mut tables = vec![manifest.as_table() as &dyn TableLike];
    for (_, table) in platforms.iter().flat_map(|platforms| platforms.iter()) {
        tables.extend(table.as_table_like());
    }
    let mut names = Vec::new();
    for table in tables {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let found = table.get(kind).and_then(Item::as_table_like);
            for (name, value) in found.into_iter().flat_map(|table| table.iter()) {
                // Tests may use crates above.
                if kind != "dev-dependencies" || !name.starts_with("sightline") {
                    names.push(value.get("package").and_then(Item::as_str).unwrap_or(name));
                }
            }
        }
    }
    names
}

/// Finds crates in the lock files that `deny.toml` bans, unless only their `wrappers` depend on them.
fn banned(files: &Files) -> Result<Vec<String>, Box<dyn Error>> {
    let rules = files
        .get("deny.toml")
        .map(String::as_str)
        .unwrap_or_default();
    let rules: DocumentMut = rules
        .parse()
        .map_err(|error| format!("deny.toml: {error}"))?;
    let banned = rules["bans"]["deny"]
        .as_array()
        .ok_or("deny.toml bans no crates")?;
    let mut problems = Vec::new();
    for (path, text) in files
        .iter()
        .filter(|(path, _)| path.ends_with("Cargo.lock"))
    {
        let lock: DocumentMut = text.parse().map_err(|error| format!("{path}: {error}"))?;
        let packages: Vec<(&str, Vec<&str>)> = lock["package"]
            .as_array_of_tables()
            .into_iter()
            .flatten()
            .map(|package| {
                let name = package["name"].as_str().unwrap_or_default();
                (name, names(package.get("dependencies")))
            })
            .collect();
        for row in banned.iter().filter_map(|row| row.as_inline_table()) {
            let Some(name) = row.get("crate").and_then(|name| name.as_str()) else {
                return Err("deny.toml bans a crate without a name".into());
            };
            if packages.iter().all(|(package, _)| *package != name) {
                continue;
            }
            let Some(wrappers) = row.get("wrappers").and_then(|names| names.as_array()) else {
                problems.push(format!("{path}: {name} is banned in deny.toml"));
                continue;
            };
            let is_wrapper =
                |package: &str| wrappers.iter().any(|name| name.as_str() == Some(package));
            for (package, dependencies) in &packages {
                if dependencies.contains(&name) && !is_wrapper(package) {
                    problems.push(format!("{path}: {package} must not depend on {name}"));
                }
            }
        }
    }
    Ok(problems)
}

/// Returns the names of dependencies in a lock file, some of which have a version.
fn names(list: Option<&Item>) -> Vec<&str> {
    list.and_then(Item::as_array)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.as_str()?.split(' ').next())
        .collect()
}

/// Finds documents that name another minimum Rust version than the workspace.
fn versions(files: &Files) -> Result<Vec<String>, Box<dyn Error>> {
    let workspace = files
        .get("Cargo.toml")
        .map(String::as_str)
        .unwrap_or_default();
    let workspace: DocumentMut = workspace.parse()?;
    let version = workspace["workspace"]["package"]["rust-version"]
        .as_str()
        .ok_or("Cargo.toml has no rust-version")?;
    let mut problems = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".md")) {
        for (_, rest) in text
            .match_indices(REQUIREMENT)
            .map(|(at, found)| text.split_at(at + found.len()))
        {
            if !rest.starts_with(&format!("{version} ")) {
                problems.push(format!("{path}: the minimum Rust version is {version}"));
            }
        }
    }
    Ok(problems)
}
