//! A real headless Neovim: splits, tab pages, edits, saves, and rules that
//! change under it. The answers it got are compared whole.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::harness::Workspace;

/// Neovim: `SIGHTLINE_NVIM`, else where `tests/run` puts it.
fn neovim() -> Option<PathBuf> {
    let named = std::env::var_os("SIGHTLINE_NVIM").map(PathBuf::from);
    let provisioned = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/neovim/bin/nvim");
    let found = named.unwrap_or(provisioned);
    if found.exists() {
        return Some(found);
    }
    let why = format!("{} is missing; tests/run provides it", found.display());
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("skipped: {why}");
    None
}

pub(crate) fn sample() -> Workspace {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/sample");
    let workspace = Workspace::new(&[]);
    copy(&sample, &workspace.root());
    workspace
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A search path on which only `git` and `jq` are found, so that the block is
/// the same on every machine.
fn tools(workspace: &Workspace) -> PathBuf {
    let folder = workspace.data().with_extension("bin");
    std::fs::create_dir(&folder).unwrap();
    for tool in ["git", "jq"] {
        let path = folder.join(tool);
        std::fs::write(&path, "").unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    folder
}

#[test]
fn a_real_neovim_gets_the_block_of_the_moment() {
    let Some(neovim) = neovim() else { return };
    let workspace = sample();
    let output = workspace.data().with_extension("json");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/neovim/session.lua");
    let run = Command::new(neovim)
        .env("PATH", tools(&workspace))
        .args(["--headless", "-u", "NONE", "-i", "NONE", "-l"])
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_sightline"))
        .args([&workspace.root(), &workspace.data(), &output])
        .env("XDG_STATE_HOME", workspace.data().with_extension("state"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "Neovim failed: {said}");
    let answers: Value = serde_json::from_slice(&std::fs::read(output).unwrap()).unwrap();

    let root = workspace.root().display().to_string();
    let text = |name: &str| {
        let text = answers[name]
            .as_str()
            .unwrap_or_else(|| panic!("{name}: {answers:#}"));
        text.replace(&root, "[ROOT]")
    };
    for name in ["unsaved", "saved", "rules_changed"] {
        for secret in [".env", "secrets", "suppliers", "PAYMENT"] {
            assert!(
                !text(name).contains(secret),
                "{name} names {secret}: {}",
                text(name)
            );
        }
    }
    assert_eq!(answers["read_dirty"]["text"], "# 🍎 unsaved\n");
    assert_eq!(answers["read_dirty"]["source"], "buffer");
    assert_eq!(
        answers["denied_now"]["error"]["data"]["kind"],
        "accessDenied"
    );
    assert!(answers["notified"].as_u64() >= Some(1), "{answers:#}");
    insta::assert_snapshot!("neovim_unsaved", text("unsaved"));
    insta::assert_snapshot!("neovim_saved", text("saved"));
    insta::assert_snapshot!("neovim_rules_changed", text("rules_changed"));
}
