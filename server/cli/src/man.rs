//! `sightline man`: manual pages, generated from the command line definition.

use std::path::PathBuf;

use clap_mangen::Man as Page;
use sightline_engine::error::Error;

use super::{DONE, internal, print_to};

#[derive(clap::Args)]
pub(super) struct Man {
    /// Command whose page to print, such as `checkpoint create`; by default, the main
    /// page.
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    to: Option<PathBuf>,
}

pub(super) fn run(arguments: &Man, mut program: clap::Command) -> Result<i32, Error> {
    if let Some(folder) = &arguments.to {
        std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(program, folder))
            .map_err(|error| {
                Error::storage(format!("cannot write to {}: {error}", folder.display()))
            })?;
        return Ok(DONE);
    }
    // `help` and its copies of every command need no pages.
    program = program.disable_help_subcommand(true);
    program.build();
    let mut command = &program;
    for name in &arguments.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            Error::invalid(format!(
                "`{}` has no command {name:?}; `--help` lists them",
                command.get_bin_name().unwrap_or("sightline")
            ))
        })?;
    }
    let mut page = Vec::new();
    Page::new(command.clone())
        .render(&mut page)
        .map_err(internal)?;
    print_to(std::io::stdout().lock(), &page)?;
    Ok(DONE)
}
