//! What keeps the hooks in force, on this machine.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use sightline_access::{Change, CommandGuard};
use sightline_agents::wiring::{Wiring, commands};
use sightline_engine::{error::Error, settings::config_file};

use super::super::{Workspace, agents, offline};

/// Refuses changes of what keeps the hooks in force.
pub(crate) struct HookGuard(Wiring);

impl HookGuard {
    /// Collects the places for a session in a folder.
    ///
    /// # Errors
    /// If there is no home directory.
    pub(crate) fn new(workspace: &Workspace, folder: &Path) -> Result<Self, Error> {
        let project = workspace.root.clone().unwrap_or(folder.to_owned());
        let data = offline::storage_dir(workspace.storage.as_deref()).ok();
        let configuration = config_file::user_file();
        let configuration = configuration.and_then(|file| file.parent().map(Path::to_owned));
        let ours: Vec<PathBuf> = data.into_iter().chain(configuration).collect();
        let name = format!("{}{}", commands::PROGRAM, env::consts::EXE_SUFFIX);
        let path = env::var_os("PATH").unwrap_or_default();
        let programs = env::split_paths(&path).filter(|folder| folder.is_absolute());
        let programs = programs
            .map(|folder| folder.join(&name))
            .chain(env::current_exe());
        let programs: Vec<PathBuf> = programs.collect();
        let locations = agents::locations(project)?;
        Ok(Self(Wiring::new(&locations, &ours, &programs, real)))
    }
}

impl CommandGuard for HookGuard {
    fn places(&self) -> Vec<PathBuf> {
        self.0.paths().map(Path::to_owned).collect()
    }

    fn change_refusal(&self, path: &Path, change: Change) -> Option<String> {
        let refusal = |path: &Path| match change {
            Change::Any | Change::Possible => {
                self.0.refusal(path, |path| fs::read_to_string(path).ok())
            }
            Change::Copy => self.0.copy_refusal(path),
            Change::Folder => self.0.folder_refusal(path),
        };
        refusal(path).or_else(|| refusal(&real(path)))
    }

    fn run_refusal(&self, words: &[Option<&str>], is_certain: bool) -> Option<String> {
        commands::refusal(words, is_certain)
    }
}

/// Returns a path without links. The last name need not exist.
fn real(path: &Path) -> PathBuf {
    let of_parent = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let real = path.canonicalize().ok().or_else(of_parent);
    real.unwrap_or_else(|| path.to_owned())
}
