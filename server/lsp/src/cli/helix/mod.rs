//! `sightline helix-config`: this server beside those Helix starts already.
//!
//! Helix has no way to start a server for every language, and a list of servers
//! in the user's `languages.toml` replaces the built-in one. So what is made here
//! repeats what Helix or the user has, and adds one name at its end: nothing that
//! worked before is taken away. What the user wrote stays as it is written.

mod config_file;
mod keys;
mod languages;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use sightline_core::error::Error;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::{DONE, doctor, print};

/// The name of the server in Helix's configuration, and of its program.
const SERVER: &str = "sightline";

#[derive(clap::Args)]
pub(super) struct HelixConfig {
    /// Helix's names of the languages to be there for, separated by commas;
    /// `all` for all that Helix 25.01 and later know. Without it, the common ones.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    languages: Vec<String>,
    /// Merge into Helix's configuration instead of printing: into
    /// `languages.toml` and `config.toml` of a folder (without PATH, of the
    /// user's), or into a `languages.toml` alone. The file as it was is kept.
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    merge: Option<Option<PathBuf>>,
}

/// A configuration file with our entries in it.
#[derive(Debug)]
struct Merged {
    text: String,
    /// What was left as it is, and why; for the user.
    notes: Vec<String>,
}

pub(super) fn run(arguments: &HelixConfig) -> Result<i32, Error> {
    let wanted = languages::wanted(&arguments.languages)?;
    let program = program();
    let Some(target) = &arguments.merge else {
        return print_both(&wanted, &program);
    };
    let folder = match target {
        Some(path) if path.extension().is_some_and(|end| end == "toml") => {
            merge(path, |text| languages::merge(text, &wanted, &program))?.write()?;
            return Ok(DONE);
        }
        Some(folder) => folder.clone(),
        None => helix_folder()?,
    };
    // Nothing is written unless both can be merged.
    let languages = merge(&folder.join("languages.toml"), |text| {
        languages::merge(text, &wanted, &program)
    })?;
    let keys = merge(&folder.join("config.toml"), keys::merge)?;
    languages.write()?;
    keys.write()?;
    Ok(DONE)
}

fn print_both(wanted: &[languages::Language], program: &str) -> Result<i32, Error> {
    let languages = languages::merge("", wanted, program)?;
    let keys = keys::merge("")?;
    print(&format!(
        "# In languages.toml of Helix's configuration folder:\n\n{}\n\
         # In config.toml beside it:\n\n{}",
        languages.text.trim_start(),
        keys.text.trim_start(),
    ))?;
    Ok(DONE)
}

/// A file that was read and merged, and not written yet.
struct Pending {
    file: config_file::File,
    merged: Merged,
}

fn merge(path: &Path, merge: impl Fn(&str) -> Result<Merged, Error>) -> Result<Pending, Error> {
    let file = config_file::File::read(path)?;
    let merged = merge(file.text()).map_err(|error| {
        Error::new(
            error.kind,
            format!(
                "merge into {}: {}; nothing was changed",
                path.display(),
                error.message
            ),
        )
    })?;
    Ok(Pending { file, merged })
}

impl Pending {
    fn write(self) -> Result<(), Error> {
        let path = self.file.path().display().to_string();
        let said = if self.merged.text == self.file.text() {
            format!("{path}: nothing to add\n")
        } else {
            match self.file.replace(&self.merged.text)? {
                Some(backup) => {
                    format!("{path}: written; as it was before: {}\n", backup.display())
                }
                None => format!("{path}: written\n"),
            }
        };
        print(&said)?;
        for note in self.merged.notes {
            print(&format!("  {note}\n"))?;
        }
        Ok(())
    }
}

/// What Helix starts: the name while it is on the search path, so that the
/// configuration goes to other machines; else this very program.
fn program() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if doctor::on_path(&path, SERVER) {
        return SERVER.to_owned();
    }
    std::env::current_exe().map_or_else(
        |_| SERVER.to_owned(),
        |program| program.to_string_lossy().into_owned(),
    )
}

/// Where Helix looks for its configuration.
fn helix_folder() -> Result<PathBuf, Error> {
    let absolute = |name: &str| {
        let set = std::env::var_os(name).map(PathBuf::from);
        set.filter(|path| path.is_absolute())
    };
    let base = if cfg!(windows) {
        absolute("APPDATA")
    } else {
        let home = || Some(directories::BaseDirs::new()?.home_dir().join(".config"));
        absolute("XDG_CONFIG_HOME").or_else(home)
    };
    base.map(|base| base.join("helix")).ok_or_else(|| {
        Error::storage(
            "find Helix's configuration folder: there is no home folder; name it after --merge",
        )
    })
}

fn parse(text: &str) -> Result<DocumentMut, Error> {
    text.parse()
        .map_err(|error| Error::invalid(format!("it is no TOML: {error}")))
}

/// The table of this name, made where there is none.
fn subtable<'a>(parent: &'a mut dyn TableLike, name: &str) -> Result<&'a mut dyn TableLike, Error> {
    if !parent.contains_key(name) {
        // It is named in the headings of what goes into it, and needs none itself.
        let mut table = Table::new();
        table.set_implicit(true);
        parent.insert(name, Item::Table(table));
    }
    parent
        .get_mut(name)
        .and_then(Item::as_table_like_mut)
        .ok_or_else(|| Error::invalid(format!("`{name}` is no table")))
}
