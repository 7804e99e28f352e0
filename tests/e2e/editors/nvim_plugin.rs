//! Runs the tests of the Neovim plugin, `clients/nvim/tests`, with the server of this build.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{editors::neovim, harness::Workspace};

pub(crate) fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    here.canonicalize().unwrap()
}

#[test]
fn the_plugin_passes_its_tests_in_a_real_neovim() {
    let Some(neovim) = neovim::neovim() else {
        return;
    };
    let workspace = Workspace::new(&[]);
    let server = Path::new(env!("CARGO_BIN_EXE_sightline"));
    let mut folders = vec![server.parent().unwrap().to_owned()];
    folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let run = Command::new(neovim)
        .arg("-l")
        .arg(repository().join("clients/nvim/tests/run.lua"))
        .env("PATH", env::join_paths(folders).unwrap())
        .env("XDG_STATE_HOME", workspace.data().with_extension("state"))
        .output()
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr),
    );
    assert!(run.status.success(), "{stdout}\n{stderr}");
}
