//! The setting `access.commands = "hide"` in the user's configuration file of Sightline.

use toml_edit::{DocumentMut, Item, Table, TomlError, value};

use super::EditError;

const TABLE: &str = "access";
const KEY: &str = "commands";
const VALUE: &str = "hide";

/// Sets it. Everything else keeps its bytes.
///
/// # Errors
/// If the text is not TOML, or `access` is no table.
pub(super) fn add(text: &str) -> Result<String, EditError> {
    if find(text)? == Some(true) {
        return Ok(text.to_owned());
    }
    let mut document = parsed(text)?;
    let table = document
        .entry(TABLE)
        .or_insert(Item::Table(Table::new()))
        .as_table_like_mut()
        .ok_or_else(|| EditError::NotAnObject(vec![TABLE.to_owned()]))?;
    table.insert(KEY, value(VALUE));
    Ok(document.to_string())
}

/// Removes it, and the table if nothing else is in it.
///
/// # Errors
/// If the text is not TOML.
pub(super) fn remove(text: &str) -> Result<String, EditError> {
    let mut document = parsed(text)?;
    if find(text)? == Some(true)
        && let Some(table) = document[TABLE].as_table_like_mut()
    {
        table.remove(KEY);
        if table.is_empty() {
            document.remove(TABLE);
        }
    }
    Ok(document.to_string())
}

/// Returns whether it is set; `None` if the file has no such setting.
///
/// # Errors
/// If the text is not TOML.
pub(super) fn find(text: &str) -> Result<Option<bool>, EditError> {
    let document = parsed(text)?;
    let set = document.get(TABLE).and_then(|table| table.get(KEY));
    Ok(set.map(|set| set.as_str() == Some(VALUE)))
}

fn parsed(text: &str) -> Result<DocumentMut, EditError> {
    text.parse().map_err(|error: TomlError| {
        let at = error.span().map_or(0, |span| span.start);
        EditError::Syntax {
            format: "TOML",
            line: text[..at.min(text.len())].matches('\n').count() + 1,
            message: error.message().to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_added_and_removed() {
        for (before, after) in [
            ("", "[access]\ncommands = \"hide\"\n"),
            (
                "# mine\n[access]\nsecrets = \"deny\" # x\n",
                "# mine\n[access]\nsecrets = \"deny\" # x\ncommands = \"hide\"\n",
            ),
            (
                "[tasks]\nmaxCount = 3\n",
                "[tasks]\nmaxCount = 3\n\n[access]\ncommands = \"hide\"\n",
            ),
        ] {
            assert_eq!(add(before).unwrap(), after);
            assert_eq!(add(after).unwrap(), after);
            assert_eq!(find(&remove(after).unwrap()).unwrap(), None);
        }
        assert!(add("access = 1\n").is_err() && add("[").is_err());
        let changed = add("[access]\ncommands = \"check\"\n").unwrap();
        assert_eq!(find(&changed).unwrap(), Some(true));
    }
}
