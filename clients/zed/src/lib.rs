//! Starts the Sightline language server in Zed, and its tools for agents.
//!
//! Extensions cannot send or receive LSP messages, so this one only starts the program
//! and passes settings. The logic is in [`start`]; this module calls the Zed API.

pub mod start;

use zed_extension_api::{
    self as zed,
    serde_json::Value,
    settings::{ContextServerSettings, LspSettings},
    ContextServerId, LanguageServerId, Project, Result, Worktree,
};

struct Sightline;

impl zed::Extension for Sightline {
    fn new() -> Self {
        Self
    }

    fn language_server_command(
        &mut self,
        _: &LanguageServerId,
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
        let start = start::start(binary, worktree.which(start::SERVER), worktree.shell_env())?;
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
        let start = start::context_server(binary);
        Ok(zed::Command {
            command: start.program,
            args: start.arguments,
            env: start.variables,
        })
    }
}

zed::register_extension!(Sightline);
