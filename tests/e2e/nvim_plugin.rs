//! The Neovim plugin in a fresh setup: an empty home, the plugin in `pack/`, an
//! `init.lua` that only calls `setup`, the server on the search path, a UI attached. The
//! scripts in `tests/neovim` contain the assertions; this module only runs them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{harness::Workspace, neovim};

pub(crate) fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    here.canonicalize().unwrap()
}

/// Runs a script of `tests/neovim` in a workspace; skipped without Neovim.
fn play(workspace: &Workspace, script: &str) {
    let Some(neovim) = neovim::neovim() else {
        return;
    };
    let root = workspace.root();
    let programs = Path::new(env!("CARGO_BIN_EXE_sightline")).parent().unwrap();
    let run = Command::new(neovim)
        .args(["--headless", "-u", "NONE", "-i", "NONE", "-l"])
        .arg(repository().join("tests/neovim").join(script))
        .args([programs, &repository(), root.parent().unwrap()])
        .env("XDG_STATE_HOME", workspace.data().with_extension("state"))
        .output()
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr),
    );
    assert!(run.status.success(), "{script}: {stdout}\n{stderr}");
}

#[test]
fn the_plugin_reports_what_a_fresh_neovim_shows() {
    play(&neovim::sample(), "plugin.lua");
}

#[test]
fn the_plugins_commands_statusline_and_help_work() {
    play(&neovim::sample(), "plugin_commands.lua");
}

#[test]
fn the_plugin_takes_checkpoints_compares_restores_and_undoes() {
    play(&Workspace::new(&[]), "plugin_checkpoints.lua");
}
