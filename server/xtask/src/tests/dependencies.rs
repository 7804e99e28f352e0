//! Tests the dependency direction between crates.

use std::process::Command;

use serde_json::Value;

/// Dependencies of any kind that a crate must not have, from the lowest crate to the highest. A
/// crate may depend on the crates above its line only.
const FORBIDDEN: [(&str, &[&str]); 8] = [
    (
        "sightline-protocol",
        &[
            "sightline-base",
            "sightline-access",
            "sightline-workspace",
            "sightline-checkpoint",
            "sightline-conversation",
            "sightline-agents",
            "sightline",
        ],
    ),
    (
        "sightline-base",
        &[
            "sightline-access",
            "sightline-workspace",
            "sightline-checkpoint",
            "sightline-conversation",
            "sightline-agents",
            "sightline",
        ],
    ),
    (
        "sightline-access",
        &[
            "sightline-checkpoint",
            "sightline-conversation",
            "sightline-agents",
            "sightline",
        ],
    ),
    (
        "sightline-workspace",
        &[
            "sightline-checkpoint",
            "sightline-conversation",
            "sightline-agents",
            "sightline",
        ],
    ),
    (
        "sightline-checkpoint",
        &["sightline-conversation", "sightline-agents", "sightline"],
    ),
    (
        "sightline-conversation",
        &["sightline-checkpoint", "sightline-agents", "sightline"],
    ),
    (
        "sightline-agents",
        &[
            "sightline-workspace",
            "sightline-checkpoint",
            "sightline-conversation",
            "sightline",
        ],
    ),
    (
        "sightline-exec",
        &[
            "sightline-checkpoint",
            "sightline-conversation",
            "sightline-agents",
            "sightline",
        ],
    ),
];

/// Only the server speaks LSP, runs asynchronously and watches files.
const ONLY_SERVER: [&str; 4] = ["tower-lsp", "tokio", "lsp-types", "notify"];

#[test]
fn crates_have_no_forbidden_dependencies() {
    let packages = packages();
    for (crate_name, forbidden) in FORBIDDEN {
        let named = dependencies(&packages, crate_name);
        assert!(!named.is_empty(), "{crate_name} has no dependencies");
        for name in forbidden.iter().chain(&ONLY_SERVER) {
            assert!(
                !named.iter().any(|known| known == name),
                "{crate_name} must not depend on {name}: see ARCHITECTURE.md"
            );
        }
    }
    // Allowed dependencies, which shows that the check finds dependencies.
    let named = dependencies(&packages, "sightline");
    for name in ["sightline-workspace", "tower-lsp", "tokio"] {
        assert!(named.iter().any(|known| known == name), "{name}");
    }
}

/// Returns the workspace packages from cargo metadata, including renamed, optional and
/// platform-specific dependencies.
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
        .unwrap_or_else(|| panic!("the workspace has no crate {crate_name}"));
    let dependencies = package["dependencies"].as_array().unwrap();
    dependencies
        .iter()
        .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
        .collect()
}
