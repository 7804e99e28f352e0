//! Adds a table to a TOML file, and removes it. Everything else keeps its bytes.

use std::ops::Range;

use toml_edit::{Document, Item, Table, TomlError};

use super::EditError;

/// A table with a heading.
#[derive(Clone, Debug)]
pub struct TomlTable {
    /// Names of the heading.
    pub heading: [&'static str; 2],
    /// The keys and values.
    pub table: Table,
}

/// Adds the table at the end of the file, or replaces an outdated one in its place.
///
/// # Errors
/// If the text is not TOML, or the table above is written inline.
pub fn add(text: &str, wanted: &TomlTable) -> Result<String, EditError> {
    let [above, name] = wanted.heading;
    let document = Document::parse(text).map_err(syntax)?;
    if document.get(above).is_some_and(|item| !item.is_table()) {
        return Err(EditError::InlineTable(above));
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut table = format!("[{above}.{name}]{newline}");
    for (key, value) in wanted.table.get_values() {
        table.push_str(&format!(
            "{} = {}{newline}",
            key[0],
            value.to_string().trim()
        ));
    }
    let added = match range(&document, wanted) {
        Some(_) if find(text, wanted)? == Some(true) => return Ok(text.to_owned()),
        Some(range) => format!("{}{table}{}", &text[..range.start], &text[range.end..]),
        // A heading can follow anything, so the rest of the file keeps its bytes.
        None if text.is_empty() => table,
        None if text.ends_with('\n') => format!("{text}{newline}{table}"),
        None => format!("{text}{newline}{newline}{table}"),
    };
    Document::parse(&added).map_err(syntax)?;
    Ok(added)
}

/// Removes the table, and an empty line before it.
///
/// # Errors
/// If the text is not TOML.
pub fn remove(text: &str, wanted: &TomlTable) -> Result<String, EditError> {
    let document = Document::parse(text).map_err(syntax)?;
    let Some(range) = range(&document, wanted) else {
        return Ok(text.to_owned());
    };
    let before = &text[..range.start];
    let line = before
        .strip_suffix('\n')
        .map(|rest| rest.strip_suffix('\r').unwrap_or(rest));
    let before = line
        .filter(|rest| rest.is_empty() || rest.ends_with('\n'))
        .unwrap_or(before);
    Ok(format!("{before}{}", &text[range.end..]))
}

/// Returns the lines of the table.
fn range(document: &Document<&str>, wanted: &TomlTable) -> Option<Range<usize>> {
    let [above, name] = wanted.heading;
    let table = document.get(above)?.get(name)?;
    let heading = table.span()?;
    let values = table
        .as_table_like()?
        .iter()
        .filter_map(|(_, item)| item.span());
    let last = values.fold(heading.end, |end, value| end.max(value.end));
    let text = document.raw();
    let rest = text[last..]
        .find('\n')
        .map_or(text.len() - last, |newline| newline + 1);
    Some(heading.start..last + rest)
}

/// Returns whether the table is present as it would be added; `None` if there is none.
///
/// # Errors
/// If the text is not TOML.
pub fn find(text: &str, wanted: &TomlTable) -> Result<Option<bool>, EditError> {
    let document = Document::parse(text).map_err(syntax)?;
    let [above, name] = wanted.heading;
    let item = document.get(above).and_then(|item| item.get(name));
    Ok(item.map(|item| is_same(item, &wanted.table)))
}

fn is_same(item: &Item, wanted: &Table) -> bool {
    let plain = |table: &dyn toml_edit::TableLike| -> Vec<(String, String)> {
        let mut values: Vec<_> = table
            .iter()
            .map(|(key, item)| {
                let mut item = item.clone();
                if let Some(value) = item.as_value_mut() {
                    value.decor_mut().clear();
                }
                (key.to_owned(), item.to_string())
            })
            .collect();
        values.sort();
        values
    };
    item.as_table_like()
        .is_some_and(|table| plain(table) == plain(wanted))
}

fn syntax(error: TomlError) -> EditError {
    EditError::Syntax(error.to_string())
}
