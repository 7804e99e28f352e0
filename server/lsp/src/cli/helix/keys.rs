//! The key bindings of `config.toml`: they carry the file and the selection.

use sightline_core::error::Error;
use toml_edit::{Item, Table};

use super::{Merged, SERVER, parse, subtable};
use crate::capabilities;

/// Where the bindings are: `space`, then this key, then theirs. Free in Helix.
const MENU: &str = "A";

/// A key, the command behind it, and its params as Helix fills them in. Helix
/// knows arguments since 25.07; before, only the commands without any work.
///
/// The params are JSON made by the editor, not a command line made by a shell: a
/// file may have any name.
const BINDINGS: [(&str, &str, &str); 5] = [
    ("e", "environmentDetails", ""),
    ("c", "createCheckpoint", ""),
    ("u", "undoLastRestore", ""),
    ("a", "checkAccess", r#" {"paths": ["%{buffer_name}"]}"#),
    (
        "r",
        "readFile",
        r#" {"path": "%{buffer_name}", "startLine": %{selection_line_start}, "endLine": %{selection_line_end}}"#,
    ),
];

/// A `config.toml` with the bindings in it, where their keys are free.
///
/// # Errors
/// `invalidParams` when the text is no TOML or not shaped as Helix wants it.
pub(super) fn merge(text: &str) -> Result<Merged, Error> {
    let mut document = parse(text)?;
    let commands = capabilities::commands();
    let mut notes = Vec::new();
    for mode in ["normal", "select"] {
        let mut table = subtable(document.as_table_mut(), "keys")?;
        for name in [mode, "space"] {
            table = subtable(table, name)?;
        }
        if table.get(MENU).is_some_and(|there| !there.is_table_like()) {
            notes.push(format!(
                "space {MENU} is taken in {mode} mode: no keys were bound"
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
            if !commands.contains(&command) {
                continue;
            }
            let binding = format!(":lsp-workspace-command {command}{params}");
            match menu.get(key).map(Item::as_str) {
                None => {
                    menu.insert(key, binding.into());
                }
                Some(Some(there)) if there == binding => {}
                Some(_) => notes.push(format!(
                    "space {MENU} {key} is taken in {mode} mode: not bound to {command}"
                )),
            }
        }
    }
    Ok(Merged {
        text: document.to_string(),
        notes,
    })
}
