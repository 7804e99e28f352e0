//! Key bindings for `config.toml`.

use sightline_engine::error::Error;
use toml_edit::{Item, Table, TableLike};

use super::{Merged, SERVER, parse, subtable};

/// Prefix of the bindings: `space`, then this key. Helix does not use it.
const MENU: &str = "A";

/// Key, command, and params with Helix's variables. Helix supports arguments since 25.07;
/// older versions only run the commands without params.
///
/// The params are JSON expanded by the editor, not a shell command, so file names need no
/// quoting.
const BINDINGS: [(&str, &str, &str); 8] = [
    ("e", "showEnvironment", ""),
    ("c", "checkpointNow", ""),
    ("d", "showChanges", ""),
    ("f", "restoreFile", ""),
    ("r", "restoreAll", ""),
    ("t", "showTurns", ""),
    ("u", "undoLastRestore", ""),
    ("a", "explainAccess", r#" "%{buffer_name}""#),
];

/// Adds the bindings to a `config.toml`, where their keys are free.
///
/// # Errors
/// `invalidParams` if the text is not TOML or has an unexpected structure.
pub(super) fn merge(text: &str) -> Result<Merged, Error> {
    let mut document = parse(text)?;
    let mut notes = Vec::new();
    for mode in ["normal", "select"] {
        let mut table = subtable(document.as_table_mut(), "keys")?;
        for name in [mode, "space"] {
            table = subtable(table, name)?;
        }
        if table.get(MENU).is_some_and(|there| !there.is_table_like()) {
            notes.push(format!(
                "`space {MENU}` is already bound in {mode} mode; no keys were added"
            ));
            continue;
        }
        if !table.contains_key(MENU) {
            table.insert(MENU, Item::Table(Table::new()));
        }
        let Some(menu) = table.get_mut(MENU).and_then(Item::as_table_like_mut) else {
            continue;
        };
        for (key, command, params) in BINDINGS {
            let command = format!("{SERVER}.{command}");
            let binding = binding(&command, params);
            match menu.get(key).map(Item::as_str) {
                None => {
                    menu.insert(key, binding.into());
                }
                Some(Some(there)) if there == binding => {}
                Some(_) => notes.push(format!(
                    "`space {MENU} {key}` is already bound in {mode} mode; {command} was not added"
                )),
            }
        }
    }
    Ok(Merged {
        text: document.to_string(),
        notes,
    })
}

fn binding(command: &str, params: &str) -> String {
    format!(":lsp-workspace-command {command}{params}")
}

/// Removes the bindings from a `config.toml`, and the tables that are empty then.
///
/// # Errors
/// `invalidParams` if the text is not TOML.
pub(super) fn remove(text: &str) -> Result<Merged, Error> {
    let mut document = parse(text)?;
    for mode in ["normal", "select"] {
        remove_below(document.as_table_mut(), &["keys", mode, "space", MENU]);
    }
    Ok(Merged {
        text: document.to_string(),
        notes: Vec::new(),
    })
}

/// Removes our bindings from the table at a path, and the tables on the path that become empty.
fn remove_below(table: &mut dyn TableLike, path: &[&str]) {
    let Some((name, rest)) = path.split_first() else {
        for (key, command, params) in BINDINGS {
            let ours = binding(&format!("{SERVER}.{command}"), params);
            if table.get(key).and_then(Item::as_str) == Some(ours.as_str()) {
                table.remove(key);
            }
        }
        return;
    };
    let Some(below) = table.get_mut(name).and_then(Item::as_table_like_mut) else {
        return;
    };
    let was_empty = below.is_empty();
    remove_below(below, rest);
    if below.is_empty() && !was_empty {
        table.remove(name);
    }
}
