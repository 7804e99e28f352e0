//! `sightline helix-config`: adds this server to Helix's language servers.
//!
//! Helix cannot start a server for every language, and a server list in the user's
//! `languages.toml` replaces the built-in one. The generated lists therefore repeat what
//! Helix or the user has configured and append one name, so nothing is removed. The
//! formatting of the user's file is preserved.

mod keys;
mod languages;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use sightline_base::fs::{config_file, find_program};
use sightline_engine::error::Error;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::{DONE, print};

/// Name of the server in Helix's configuration, and of its program.
const SERVER: &str = "sightline";

#[derive(clap::Args)]
pub(super) struct HelixConfig {
    /// Helix languages to configure, separated by commas; `all` for all languages that
    /// Helix 25.01 and later have. Default: the common ones.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    languages: Vec<String>,
    /// Merge into Helix's configuration instead of printing: into `languages.toml` and
    /// `config.toml` of a folder (by default the user's), or into a single
    /// `languages.toml`. The previous file is kept as a backup.
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    merge: Option<Option<PathBuf>>,
    /// Remove what `--merge` adds, from `languages.toml` and `config.toml` of a folder (by default
    /// the user's), or from a single `languages.toml`. The previous file is kept as a backup.
    #[arg(long, value_name = "PATH", num_args = 0..=1, conflicts_with_all = ["merge", "languages"])]
    remove: Option<Option<PathBuf>>,
}

/// A configuration file with our entries.
#[derive(Debug)]
struct Merged {
    text: String,
    /// Notes for the user about entries that were not added.
    notes: Vec<String>,
}

pub(super) fn run(arguments: &HelixConfig) -> Result<i32, Error> {
    if let Some(target) = &arguments.remove {
        return change(target.as_ref(), "remove", &languages::remove, &keys::remove);
    }
    let wanted = languages::wanted(&arguments.languages)?;
    let program = program();
    let Some(target) = &arguments.merge else {
        return print_both(&wanted, &program);
    };
    let add = |text: &str| languages::merge(text, &wanted, &program);
    change(target.as_ref(), "add", &add, &keys::merge)
}

/// Changes one or both files. `verb` says what is done to the entries.
fn change(
    target: Option<&PathBuf>,
    verb: &'static str,
    languages: &dyn Fn(&str) -> Result<Merged, Error>,
    keys: &dyn Fn(&str) -> Result<Merged, Error>,
) -> Result<i32, Error> {
    let folder = match target {
        Some(path) if path.extension().is_some_and(|end| end == "toml") => {
            merge(path, languages)?.write(verb)?;
            return Ok(DONE);
        }
        Some(folder) => folder.clone(),
        None => helix_folder()?,
    };
    // Nothing is written unless both files can be changed.
    let languages = merge(&folder.join("languages.toml"), languages)?;
    let keys = merge(&folder.join("config.toml"), keys)?;
    languages.write(verb)?;
    keys.write(verb)?;
    Ok(DONE)
}

fn print_both(wanted: &[languages::Language], program: &str) -> Result<i32, Error> {
    let languages = languages::merge("", wanted, program)?;
    let keys = keys::merge("")?;
    print(&format!(
        "# In languages.toml of Helix's configuration folder:\n\n{}\n\
         # In config.toml in the same folder:\n\n{}",
        languages.text.trim_start(),
        keys.text.trim_start(),
    ))?;
    Ok(DONE)
}

/// A merged file that is not written yet.
struct Pending {
    file: config_file::File,
    merged: Merged,
}

fn merge(path: &Path, merge: &dyn Fn(&str) -> Result<Merged, Error>) -> Result<Pending, Error> {
    let file = config_file::File::read(path)?;
    let merged = merge(file.text()).map_err(|error| {
        Error::new(
            error.kind,
            format!(
                "cannot change {}: {}; nothing was changed",
                path.display(),
                error.message
            ),
        )
    })?;
    Ok(Pending { file, merged })
}

impl Pending {
    fn write(self, verb: &str) -> Result<(), Error> {
        let path = self.file.path().display().to_string();
        let report = if self.merged.text == self.file.text() {
            format!("{path}: nothing to {verb}\n")
        } else if self.merged.text.is_empty() {
            self.file.delete()?;
            format!("{path}: deleted, since nothing else was in it\n")
        } else {
            match self.file.replace_with_backup(&self.merged.text)? {
                Some(backup) => {
                    format!("{path}: written; backup: {}\n", backup.display())
                }
                None => format!("{path}: written\n"),
            }
        };
        print(&report)?;
        for note in self.merged.notes {
            print(&format!("  {note}\n"))?;
        }
        Ok(())
    }
}

/// Returns the command for Helix: the bare name if it is on the search path, so that the
/// configuration works on other machines, else the path of this program.
fn program() -> String {
    if find_program(SERVER).is_some() {
        return SERVER.to_owned();
    }
    std::env::current_exe().map_or_else(
        |_| SERVER.to_owned(),
        |program| program.to_string_lossy().into_owned(),
    )
}

/// Returns Helix's configuration folder.
fn helix_folder() -> Result<PathBuf, Error> {
    let absolute = |name: &str| {
        let set = std::env::var_os(name).map(PathBuf::from);
        set.filter(|path| path.is_absolute())
    };
    let base = if cfg!(windows) {
        absolute("APPDATA")
    } else {
        let home = || Some(sightline_base::path::home_dir()?.join(".config"));
        absolute("XDG_CONFIG_HOME").or_else(home)
    };
    base.map(|base| base.join("helix")).ok_or_else(|| {
        Error::storage(
            "cannot find Helix's configuration folder: no home directory; pass the folder to --merge",
        )
    })
}

fn parse(text: &str) -> Result<DocumentMut, Error> {
    text.parse()
        .map_err(|error| Error::invalid(format!("not valid TOML: {error}")))
}

/// Returns a subtable, creating it if necessary.
fn subtable<'a>(parent: &'a mut dyn TableLike, name: &str) -> Result<&'a mut dyn TableLike, Error> {
    if !parent.contains_key(name) {
        // An implicit table has no heading.
        let mut table = Table::new();
        table.set_implicit(true);
        parent.insert(name, Item::Table(table));
    }
    parent
        .get_mut(name)
        .and_then(Item::as_table_like_mut)
        .ok_or_else(|| Error::invalid(format!("`{name}` is not a table")))
}
