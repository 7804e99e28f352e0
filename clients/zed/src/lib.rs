//! Starts the Sightline language server in Zed, and its tools for agents.
//!
//! Extensions cannot send or receive LSP messages, so this one only starts the program, which
//! it downloads if there is none, and passes settings. The logic is in [`start`] and
//! [`release`]; this module calls the Zed API.

pub mod release;
pub mod start;

use std::{fs, path::Path};

use zed_extension_api::{
    self as zed,
    serde_json::Value,
    settings::{ContextServerSettings, LspSettings},
    ContextServerId, DownloadedFileType, LanguageServerId, LanguageServerInstallationStatus,
    Project, Result, Worktree,
};

const MANIFEST: &str = include_str!("../extension.toml");

/// Folder of downloads. Zed runs an extension in a separate directory, and resolves the
/// relative programs it returns there.
const DOWNLOADS: &str = "releases";

struct Sightline;

impl zed::Extension for Sightline {
    fn new() -> Self {
        Self
    }

    fn language_server_command(
        &mut self,
        server: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<zed::Command> {
        let settings = LspSettings::for_worktree(start::SERVER, worktree)?;
        let binary = settings
            .binary
            .map_or_else(start::Binary::default, |set| start::Binary {
                path: set.path,
                arguments: set.arguments,
                variables: set.env.unwrap_or_default().into_iter().collect(),
            });
        let start = start::start(
            binary,
            worktree.which(start::SERVER),
            || downloaded().map_or_else(|| download(server), Ok),
            worktree.shell_env(),
        )?;
        Ok(zed::Command {
            command: start.program,
            args: start.arguments,
            env: start.variables,
        })
    }

    fn language_server_initialization_options(
        &mut self,
        _: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<Value>> {
        let settings = LspSettings::for_worktree(start::SERVER, worktree)?;
        Ok(start::initialization_options(
            settings.initialization_options,
            settings.settings,
        ))
    }

    fn language_server_workspace_configuration(
        &mut self,
        _: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<Value>> {
        let settings = LspSettings::for_worktree(start::SERVER, worktree)?;
        Ok(start::workspace_configuration(settings.settings))
    }

    fn context_server_command(
        &mut self,
        _: &ContextServerId,
        project: &Project,
    ) -> Result<zed::Command> {
        let settings = ContextServerSettings::for_project(start::SERVER, project)?;
        let binary = settings
            .command
            .map_or_else(start::Binary::default, |set| start::Binary {
                path: set.path,
                arguments: set.arguments,
                variables: set.env.unwrap_or_default().into_iter().collect(),
            });
        let start = start::context_server(binary, downloaded(), zed::current_platform().0);
        Ok(zed::Command {
            command: start.program,
            args: start.arguments,
            env: start.variables,
        })
    }
}

/// Returns the path of the program of this version, if it was downloaded.
fn downloaded() -> Option<String> {
    let (system, processor) = zed::current_platform();
    let release = release::release(MANIFEST, system, processor).ok()?;
    let program = format!("{DOWNLOADS}/{}/{}", release.tag, release.program);
    Path::new(&program).is_file().then_some(program)
}

/// Downloads the program of this version, removes other versions, and returns its path.
fn download(server: &LanguageServerId) -> Result<String> {
    let status = |status| zed::set_language_server_installation_status(server, &status);
    status(LanguageServerInstallationStatus::Downloading);
    let result = try_download();
    status(match &result {
        Ok(_) => LanguageServerInstallationStatus::None,
        Err(error) => LanguageServerInstallationStatus::Failed(error.clone()),
    });
    result
}

fn try_download() -> Result<String> {
    let (system, processor) = zed::current_platform();
    let wanted = release::release(MANIFEST, system, processor)?;
    let found = zed::github_release_by_tag_name(&wanted.repository, &wanted.tag)?;
    let asset = found
        .assets
        .iter()
        .find(|asset| asset.name == wanted.archive)
        .ok_or_else(|| format!("release {} has no {}", wanted.tag, wanted.archive))?;
    let kind = if wanted.archive.ends_with(".zip") {
        DownloadedFileType::Zip
    } else {
        DownloadedFileType::GzipTar
    };
    // Renamed when complete, so that an interrupted download is repeated.
    let unfinished = format!("{DOWNLOADS}/unfinished");
    let complete = format!("{DOWNLOADS}/{}", wanted.tag);
    let failed = |error: std::io::Error| format!("cannot write to {DOWNLOADS}: {error}");
    // Windows keeps the program of another version while it runs.
    let _ = fs::remove_dir_all(DOWNLOADS);
    fs::create_dir_all(DOWNLOADS).map_err(failed)?;
    zed::download_file(&asset.download_url, &unfinished, kind)?;
    zed::make_file_executable(&format!("{unfinished}/{}", wanted.program))?;
    fs::rename(&unfinished, &complete).map_err(failed)?;
    Ok(format!("{complete}/{}", wanted.program))
}

zed::register_extension!(Sightline);
