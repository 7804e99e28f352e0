//! A real headless Neovim: splits, tab pages, edits, saves, and changing rules. Complete
//! results are compared.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::harness::Workspace;

/// Returns the path of Neovim: `SIGHTLINE_NVIM`, else where `tests/run` puts it.
pub(crate) fn neovim() -> Option<PathBuf> {
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

/// A search path with only `git` and `jq`, so that the block is the same on every
/// machine.
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

/// Runs a script of `tests/neovim` and returns the results it collected. Returns `None`
/// without Neovim.
fn played(workspace: &Workspace, script: &str) -> Option<Value> {
    let output = workspace.data().with_extension("json");
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/neovim");
    let run = Command::new(neovim()?)
        .env("PATH", tools(workspace))
        .args(["--headless", "-u", "NONE", "-i", "NONE", "-l"])
        .arg(scripts.join(script))
        .arg(env!("CARGO_BIN_EXE_sightline"))
        .args([&workspace.root(), &workspace.data(), &output])
        .env("XDG_STATE_HOME", workspace.data().with_extension("state"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "Neovim failed: {text}");
    Some(serde_json::from_slice(&std::fs::read(output).unwrap()).unwrap())
}

#[test]
fn a_real_neovim_gets_the_current_block() {
    let workspace = sample();
    let Some(answers) = played(&workspace, "session.lua") else {
        return;
    };
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

#[test]
fn a_real_neovim_drives_a_whole_conversation() {
    let workspace = sample();
    let Some(answers) = played(&workspace, "conversation.lua") else {
        return;
    };
    for (name, answer) in answers.as_object().unwrap() {
        assert!(
            name == "gone" || answer.get("error").is_none(),
            "{name}: {answer:#}"
        );
    }
    let count = |name: &str| answers[name]["messages"].as_array().unwrap().len();
    assert_eq!(answers["appended"]["count"], 22);
    assert_eq!(answers["counted"]["items"].as_array().unwrap().len(), 22);
    assert_eq!(answers["fits"]["decision"], "fits");
    assert_eq!(count("fits"), 22);
    // Ten reads of one file: all but the newest are replaced.
    assert_eq!(answers["deduplicated"]["decision"], "deduplicated");
    assert_eq!(
        answers["deduplicated"]["edits"].as_array().unwrap().len(),
        9
    );
    assert_eq!(
        answers["truncated"]["deletedRange"],
        serde_json::json!([2, 11])
    );
    assert_eq!(count("truncated"), 12);
    assert_eq!(count("loaded"), 22, "what is left out is still stored");

    assert_eq!(answers["plan"]["needed"], true, "{:#}", answers["plan"]);
    assert_eq!(answers["plan"]["files"][0]["path"], "src/cart.py");
    let prompt = answers["plan"]["prompt"].as_str().unwrap();
    assert!(prompt.contains("Keep the names of functions.") && prompt.contains("Mend the cart."));
    assert_eq!(answers["compacted"]["filesIncluded"][0], "src/cart.py");
    assert_eq!(
        answers["after"]["messages"],
        answers["compacted"]["messages"]
    );
    assert!(
        answers["after"]["messages"][0]
            .to_string()
            .contains("The cart adds up again.")
    );

    assert_eq!(answers["tasks"]["tasks"][0]["taskId"], "nvim-1");
    assert_eq!(answers["tasks"]["tasks"][0]["title"], "Mend the cart.");
    let resumed = &answers["resumed"];
    assert_eq!(resumed["interruptedTools"][0], "call_7");
    assert_eq!(count("resumed"), count("after") + 3);
    let resumption = resumed["resumption"].as_str().unwrap();
    assert!(resumption.starts_with("[TASK RESUMPTION]"), "{resumption}");
    assert!(resumption.contains("src/cart.py"), "{resumption}");
    // All messages are back, and those added later.
    assert_eq!(count("whole_again"), 26);
    assert!(answers["deleted"]["freedBytes"].as_u64() > Some(1000));
    assert_eq!(answers["gone"]["error"]["data"]["kind"], "notFound");
}

#[test]
fn a_real_neovim_creates_and_restores_checkpoints() {
    let workspace = sample();
    let Some(answers) = played(&workspace, "checkpoints.lua") else {
        return;
    };
    for (name, answer) in answers.as_object().unwrap() {
        assert!(answer.get("error").is_none(), "{name}: {answer:#}");
    }
    let paths = |name: &str, field: &str| -> Vec<String> {
        let all = answers[name][field].as_array().unwrap().iter();
        all.map(|one| one["path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(answers["created"]["label"], "before");
    assert_eq!(answers["created"]["skipped"], serde_json::json!([]));
    let changed = ["src/cart.py", "src/made.py", "src/prices.py"];
    assert_eq!(paths("diff", "files"), changed);
    assert_eq!(paths("preview", "changes"), changed[1..]);
    assert_eq!(paths("preview", "conflicts"), changed[..1]);
    assert_eq!(paths("restored", "outcomes"), changed[1..]);
    assert_eq!(answers["typed"], "# 😀 unsaved");
    assert_ne!(answers["prices"][0], "changed by the agent");

    assert_eq!(paths("forced", "outcomes"), changed[..1]);
    assert_eq!(answers["replaced"], true, "{:#}", answers["buffer"]);
    assert_eq!(answers["buffer"], answers["disk"]);
    // What the first restore changed.
    assert_eq!(paths("undone", "outcomes"), changed[1..]);
    assert_eq!(answers["agent"][0], "changed by the agent");
    assert_eq!(answers["list"]["checkpoints"].as_array().unwrap().len(), 4);
    assert_eq!(answers["stats"]["count"], 4);
    assert_eq!(answers["verified"]["ok"], true);
}
