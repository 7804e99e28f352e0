//! Opens the page in a browser.

use std::{env, io::Write, process::Command};

use sightline_base::fs::find_program;
use sightline_local::process::detached::detach;
use sightline_page::Page;
use tempfile::{Builder, NamedTempFile};

/// Opens a browser. Returns the file that it reads, which only the user can read and which is deleted when
/// it is dropped. `None` if there is no browser.
pub(super) fn open(page: &Page) -> Option<NamedTempFile> {
    let program = program()?;
    let opened = || {
        let mut file = Builder::new()
            .prefix("sightline-")
            .suffix(".html")
            .tempfile()?;
        file.write_all(page.opening_file().as_bytes())?;
        file.flush()?;
        detach(Command::new(program).arg(file.path())).spawn()?;
        Ok(file)
    };
    opened()
        .inspect_err(|error: &std::io::Error| tracing::info!(%error, "cannot open a browser"))
        .ok()
}

/// Returns the program that opens files, if there is a desktop.
fn program() -> Option<&'static str> {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let name = if cfg!(windows) {
        "explorer"
    } else if cfg!(target_os = "macos") {
        "open"
    } else if is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") || is_set("BROWSER") {
        "xdg-open"
    } else {
        return None;
    };
    find_program(name).map(|_| name)
}
