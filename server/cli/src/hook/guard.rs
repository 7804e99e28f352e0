//! What keeps the hooks in force, on this machine.

use std::{
    env,
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use sightline_access::{Change, CommandGuard};
use sightline_agents::wiring::{Wiring, commands};
use sightline_engine::{error::Error, settings::config_file};

use super::super::{Workspace, agents, offline};

/// Size of the parts in which programs are compared, in bytes.
const CHUNK: usize = 1 << 16;

/// Refuses changes of what keeps the hooks in force.
pub(crate) struct HookGuard {
    wiring: Wiring,
    /// The files of our program, without links.
    programs: Vec<PathBuf>,
}

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
        let wiring = Wiring::new(&locations, &ours, &programs, real);
        let mut programs: Vec<PathBuf> = programs
            .iter()
            .filter_map(|program| program.canonicalize().ok())
            .collect();
        programs.sort();
        programs.dedup();
        Ok(Self { wiring, programs })
    }
}

impl CommandGuard for HookGuard {
    fn places(&self) -> Vec<PathBuf> {
        self.wiring.paths().map(Path::to_owned).collect()
    }

    fn change_refusal(&self, path: &Path, change: Change) -> Option<String> {
        let refusal = |path: &Path| match change {
            Change::Any | Change::Possible => self
                .wiring
                .refusal(path, |path| fs::read_to_string(path).ok()),
            Change::Copy => self.wiring.copy_refusal(path),
            Change::Folder => self.wiring.folder_refusal(path),
        };
        refusal(path).or_else(|| refusal(&real(path)))
    }

    fn run_refusal(&self, words: &[Option<&str>], is_certain: bool) -> Option<String> {
        commands::refusal(words, is_certain)
    }

    fn program_name(&self, path: &Path) -> Option<&'static str> {
        let is_copy = |program: &PathBuf| has_same_content(program, path).unwrap_or(false);
        self.programs
            .iter()
            .any(is_copy)
            .then_some(commands::PROGRAM)
    }
}

/// Returns whether two files have the same content, such as a program and a copy of it.
fn has_same_content(one: &Path, other: &Path) -> io::Result<bool> {
    let (metadata, of_other) = (fs::metadata(one)?, fs::metadata(other)?);
    if !of_other.is_file() || metadata.len() != of_other.len() {
        return Ok(false);
    }
    if one == fs::canonicalize(other)? {
        return Ok(true);
    }
    let mut files = [
        BufReader::with_capacity(CHUNK, File::open(one)?),
        BufReader::with_capacity(CHUNK, File::open(other)?),
    ];
    loop {
        let [first, second] = &mut files;
        let (first_part, second_part) = (first.fill_buf()?, second.fill_buf()?);
        let length = first_part.len().min(second_part.len());
        if first_part[..length] != second_part[..length] {
            return Ok(false);
        }
        if length == 0 {
            return Ok(first_part.len() == second_part.len());
        }
        first.consume(length);
        second.consume(length);
    }
}

/// Returns a path without links. The last name need not exist.
fn real(path: &Path) -> PathBuf {
    let of_parent = || {
        Some(
            sightline_base::path::canonicalize(path.parent()?)
                .ok()?
                .join(path.file_name()?),
        )
    };
    let real = sightline_base::path::canonicalize(path)
        .ok()
        .or_else(of_parent);
    real.unwrap_or_else(|| path.to_owned())
}
