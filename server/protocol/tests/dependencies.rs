//! Which crate may depend on which: the direction the whole design stands on.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use serde_json::Value;

/// What a crate must not name in its manifest, in any kind of dependency.
const FORBIDDEN: [(&str, &[&str]); 2] = [
    // Wire types are plain data that any crate can use.
    (
        "sightline-protocol",
        &[
            "sightline",
            "sightline-core",
            "tower-lsp",
            "tokio",
            "lsp-types",
            "notify",
        ],
    ),
    // What the product knows works without an editor and without a runtime.
    (
        "sightline-core",
        &["sightline", "tower-lsp", "tokio", "lsp-types", "notify"],
    ),
];

#[test]
fn no_crate_depends_on_what_it_must_not_know() {
    let packages = packages();
    for (crate_name, forbidden) in FORBIDDEN {
        let named = dependencies(&packages, crate_name);
        assert!(!named.is_empty(), "{crate_name} names no dependency at all");
        for name in forbidden {
            assert!(
                !named.iter().any(|known| known == name),
                "{crate_name} must not depend on {name}: see ARCHITECTURE.md"
            );
        }
    }
    // The other direction, which also proves that edges are seen at all.
    for name in ["sightline-core", "sightline-protocol", "tower-lsp", "tokio"] {
        let named = dependencies(&packages, "sightline");
        assert!(named.iter().any(|known| known == name), "{name}");
    }
}

/// The manifests of the workspace as cargo reads them: renamed, optional and
/// platform-specific dependencies included.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn dependencies(packages: &[Value], crate_name: &str) -> Vec<String> {
    let package = packages
        .iter()
        .find(|package| package["name"] == crate_name)
        .unwrap_or_else(|| panic!("no crate {crate_name} in the workspace"));
    let dependencies = package["dependencies"].as_array().unwrap();
    dependencies
        .iter()
        .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
        .collect()
}
