//! Applies `deny.toml` to the dependencies of the three workspaces, as `cargo deny check bans
//! licenses sources` does, and the minimum Rust version. Banned crates are found by `cargo xtask
//! tidy`. Advisories need a database from the network and are not checked here.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use toml_edit::{DocumentMut, Item};

/// The folders with a `Cargo.lock`.
const WORKSPACES: [&str; 3] = ["", "clients/zed", "fuzz"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn parse(path: &str) -> DocumentMut {
    let text = fs::read_to_string(repository().join(path)).unwrap();
    text.parse()
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the elements of an array of tables or of an array of inline tables.
fn rows(item: &Item) -> Vec<&dyn toml_edit::TableLike> {
    match item {
        Item::ArrayOfTables(tables) => tables.iter().map(|table| table as _).collect(),
        item => {
            let rows = item.as_array().unwrap().iter();
            rows.map(|row| row.as_inline_table().unwrap() as _)
                .collect()
        }
    }
}

fn text<'a>(row: &'a dyn toml_edit::TableLike, key: &str) -> &'a str {
    row.get(key).and_then(Item::as_str).unwrap_or_default()
}

fn strings(item: &Item) -> BTreeSet<&str> {
    let values = item.as_array().unwrap().iter();
    values.map(|value| value.as_str().unwrap()).collect()
}

#[test]
fn locked_crates_come_from_one_registry() {
    let mut registries = BTreeSet::new();
    for workspace in WORKSPACES {
        let lock = parse(&Path::new(workspace).join("Cargo.lock").to_string_lossy());
        let packages = rows(&lock["package"]);
        assert!(packages.len() > 10, "{workspace}");
        let sources = packages.iter().map(|package| text(*package, "source"));
        registries.extend(
            sources
                .filter(|source| !source.is_empty())
                .map(str::to_owned),
        );
    }
    let registries: Vec<_> = registries.iter().collect();
    assert!(
        matches!(registries[..], [one] if one.starts_with("registry+") && one.ends_with("crates.io-index")),
        "{registries:?}"
    );
}

#[test]
fn licenses_features_and_rust_versions_are_allowed() {
    let rules = parse("deny.toml");
    let allowed = strings(&rules["licenses"]["allow"]);
    let exceptions: BTreeSet<_> = rows(&rules["licenses"]["exceptions"])
        .into_iter()
        .flat_map(|row| {
            let licenses = strings(row.get("allow").unwrap()).into_iter();
            licenses.map(|license| (text(row, "crate"), license))
        })
        .collect();
    let features: BTreeSet<_> = rows(&rules["bans"]["features"])
        .into_iter()
        .flat_map(|row| {
            let denied = strings(row.get("deny").unwrap()).into_iter();
            denied.map(|feature| (text(row, "crate"), feature))
        })
        .collect();
    let version = |text: &str| -> Vec<u32> {
        let parts = text.split('.').take(2);
        parts.map(|part| part.parse().unwrap()).collect()
    };
    for workspace in WORKSPACES {
        let Some(metadata) = metadata(workspace) else {
            continue;
        };
        let packages = metadata["packages"].as_array().unwrap();
        let own = packages.iter().find(|package| package["source"].is_null());
        let oldest = own.unwrap()["rust_version"].as_str().map(version);
        let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
        for package in packages {
            let name = package["name"].as_str().unwrap();
            let license = package["license"].as_str().unwrap_or_default();
            let expression = spdx::Expression::parse_mode(license, spdx::ParseMode::LAX)
                .unwrap_or_else(|error| panic!("{name}: {license:?}: {error}"));
            let is_allowed = expression.evaluate(|required| {
                let required = required.to_string();
                allowed.contains(required.as_str()) || exceptions.contains(&(name, &required))
            });
            assert!(is_allowed, "{workspace}: {name} has the license {license}");
            if let (Some(oldest), Some(needed)) = (&oldest, package["rust_version"].as_str()) {
                assert!(
                    version(needed) <= *oldest,
                    "{workspace}: {name} needs Rust {needed}"
                );
            }
            let node = nodes.iter().find(|node| node["id"] == package["id"]);
            for feature in node.unwrap()["features"].as_array().unwrap() {
                let feature = feature.as_str().unwrap();
                let is_banned = features.contains(&(name, feature));
                assert!(!is_banned, "{workspace}: {name} with feature {feature}");
            }
        }
    }
}

/// Only `sightline-gateway` connects to other machines.
#[test]
fn the_program_has_no_tls_and_no_http_client() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges=normal", "--prefix=none"])
        .args(["--format={p} {f}", "--package=sightline"])
        .current_dir(repository())
        .output()
        .unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    let hyper = tree.lines().find(|line| line.starts_with("hyper v"));
    let features: Vec<&str> = hyper.unwrap().split([' ', ',']).collect();
    assert!(
        features.contains(&"server") && !features.contains(&"client"),
        "{features:?}"
    );
    for banned in [
        "hyper-rustls v",
        "ring v",
        "rustls v",
        "sightline-gateway v",
    ] {
        assert!(
            tree.lines().all(|line| !line.starts_with(banned)),
            "{banned}"
        );
    }
}

/// Returns the packages and features of all platforms, which cargo may have to download. Prints
/// the reason if it cannot.
///
/// # Panics
/// In continuous integration, where packages can be downloaded.
#[allow(clippy::print_stderr)]
fn metadata(workspace: &str) -> Option<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--format-version=1"])
        .current_dir(repository().join(workspace))
        .output()
        .unwrap();
    if output.status.success() {
        return Some(serde_json::from_slice(&output.stdout).unwrap());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    assert!(std::env::var_os("CI").is_none(), "{workspace}: {reason}");
    eprintln!("skipped: licenses of {workspace:?}: {reason}");
    None
}
