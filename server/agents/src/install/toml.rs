//! Adds a table to a TOML file, updates it and removes it, and sets single values. Everything else keeps its bytes.

use std::ops::Range;

use toml_edit::{Document, DocumentMut, Item, Table, TableLike, TomlError, Value};

use super::{EditError, program::Program};

/// A table with a heading: a server that starts this program.
#[derive(Clone, Debug)]
pub struct TomlTable {
    /// Names of the heading.
    pub heading: [&'static str; 2],
    /// The keys and values.
    pub table: Table,
    /// The program that it starts. Other versions of the table are recognized by it.
    pub program: Program,
}

/// Adds the table at the end of the file, or updates its keys in their place.
///
/// # Errors
/// If the text is not TOML, the table above is written inline, or a table of this name starts
/// another program.
pub fn add(text: &str, wanted: &TomlTable) -> Result<String, EditError> {
    let [above, name] = wanted.heading;
    let document = parsed(text)?;
    if document
        .get(above)
        .is_some_and(|item| item.get(name).is_some())
    {
        let table = our_table(&document, wanted);
        let table = table.ok_or_else(|| EditError::NotOurs(format!("{above}.{name}")))?;
        return match with_heading(table) {
            Some(table) => update(&document, table, wanted),
            None => update_in_place(&document, table, wanted),
        };
    }
    if document.get(above).is_some_and(|item| !item.is_table()) {
        return Err(EditError::InlineTable(above));
    }
    let newline = newline(text);
    let mut table = format!("[{above}.{name}]{newline}");
    for (key, value) in wanted.table.get_values() {
        table.push_str(&format!(
            "{} = {}{newline}",
            key[0],
            value.to_string().trim()
        ));
    }
    // A heading can follow anything, so the rest of the file keeps its bytes.
    let added = match text {
        "" => table,
        text if text.ends_with('\n') => format!("{text}{newline}{table}"),
        text => format!("{text}{newline}{newline}{table}"),
    };
    let mut expected = plain(document.as_table());
    let table = Some(plain(&wanted.table));
    put(&mut expected, &document, wanted.heading, table);
    checked(added, &expected)
}

/// Sets what starts the program where it differs, and adds missing keys. The user's arguments and
/// other keys stay.
fn update(
    document: &Document<&str>,
    table: &Table,
    wanted: &TomlTable,
) -> Result<String, EditError> {
    let text = document.raw();
    let newline = newline(text);
    let mut expected = plain(document.as_table());
    let [above, name] = wanted.heading;
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (key, item) in wanted.table.iter() {
        let wanted_value = plain_item(item);
        match table.get(key) {
            None => {
                let line = format!("{key} = {}{newline}", item.to_string().trim());
                let end = own_lines(text, table).map_or(text.len(), |lines| lines.end);
                edits.push((end..end, line));
                expected[above][name][key] = wanted_value;
            }
            // `args` begin with `mcp`, by which the table was recognized.
            Some(found) if key == "command" && plain_item(found) != wanted_value => {
                let span = found.span().ok_or(EditError::OtherChange)?;
                edits.push((span, item.to_string().trim().to_owned()));
                expected[above][name][key] = wanted_value;
            }
            Some(_) => {}
        }
    }
    if edits.is_empty() {
        return Ok(text.to_owned());
    }
    // Lines that are added at the same place keep their order.
    edits.sort_by_key(|(range, _)| range.start);
    let mut updated = text.to_owned();
    for (range, new) in edits.into_iter().rev() {
        let needs_break = range.is_empty() && !updated[..range.start].ends_with('\n');
        let new = if needs_break {
            format!("{newline}{new}")
        } else {
            new
        };
        updated.replace_range(range, &new);
    }
    checked(updated, &expected)
}

/// The same for a table that is written inline or with dotted keys.
fn update_in_place(
    document: &Document<&str>,
    table: &Item,
    wanted: &TomlTable,
) -> Result<String, EditError> {
    let [above, name] = wanted.heading;
    let mut expected = plain(document.as_table());
    let mut edited = mutable(document)?;
    for (key, item) in wanted.table.iter() {
        let found = table.get(key).map(plain_item);
        if found.is_some() && (key != "command" || found == Some(plain_item(item))) {
            continue;
        }
        expected[above][name][key] = plain_item(item);
        edited[above][name][key] = item.clone();
    }
    checked(edited.to_string(), &expected)
}

/// Removes a table that is written inline or with dotted keys.
fn remove_in_place(document: &Document<&str>, heading: [&str; 2]) -> Result<String, EditError> {
    let [above, name] = heading;
    let mut expected = plain(document.as_table());
    let mut edited = mutable(document)?;
    let tables = edited
        .get_mut(above)
        .and_then(Item::as_table_like_mut)
        .ok_or(EditError::OtherChange)?;
    tables.remove(name);
    if tables.is_empty() && !has_heading(document, above) {
        edited.remove(above);
    }
    put(&mut expected, document, heading, None);
    checked(edited.to_string(), &expected)
}

fn mutable(document: &Document<&str>) -> Result<DocumentMut, EditError> {
    document.raw().parse().map_err(|_| EditError::OtherChange)
}

/// Returns whether a table has a heading.
fn has_heading(document: &Document<&str>, name: &str) -> bool {
    document
        .get(name)
        .is_some_and(|item| with_heading(item).is_some())
}

/// Returns a table that is written as `[heading]`.
fn with_heading(item: &Item) -> Option<&Table> {
    let table = item.as_table()?;
    (!table.is_implicit() && !table.is_dotted()).then_some(table)
}

/// Removes the table with the tables below it, and an empty line before it. The text stays if
/// there is no table of ours.
///
/// # Errors
/// If the text is not TOML, or something else would change.
pub fn remove(text: &str, wanted: &TomlTable) -> Result<String, EditError> {
    if our_table(&parsed(text)?, wanted).is_none() {
        return Ok(text.to_owned());
    }
    Ok(remove_named(text, wanted.heading)?.unwrap_or_else(|| text.to_owned()))
}

/// Removes a table as [`remove`] does, whatever it starts. Returns `None` if there is none.
///
/// # Errors
/// If the text is not TOML, or something else would change.
pub fn remove_named(text: &str, heading: [&str; 2]) -> Result<Option<String>, EditError> {
    let document = parsed(text)?;
    let [above, name] = heading;
    let Some(table) = document.get(above).and_then(|item| item.get(name)) else {
        return Ok(None);
    };
    let Some(table) = with_heading(table) else {
        return remove_in_place(&document, heading).map(Some);
    };
    let mut ranges = Vec::new();
    collect_ranges(text, table, &mut ranges);
    ranges.sort_by_key(|range| range.start);
    let mut rest = text.to_owned();
    for range in ranges.into_iter().rev() {
        let before = &rest[..range.start];
        let line = before
            .strip_suffix('\n')
            .map(|rest| rest.strip_suffix('\r').unwrap_or(rest));
        let before = line
            .filter(|rest| rest.is_empty() || rest.ends_with('\n'))
            .unwrap_or(before);
        rest = format!("{before}{}", &rest[range.end..]);
    }
    let mut expected = plain(document.as_table());
    put(&mut expected, &document, heading, None);
    checked(rest, &expected).map(Some)
}

/// Adds a table with these values at the end of a file.
///
/// # Errors
/// If the text is not TOML, or the table above is written inline.
pub fn add_named(
    text: &str,
    heading: [&str; 2],
    values: &serde_json::Value,
) -> Result<String, EditError> {
    let mut table = Table::new();
    for (key, value) in values.as_object().into_iter().flatten() {
        table.insert(key, Item::Value(as_toml(value)));
    }
    let mut above = Table::new();
    above.set_implicit(true);
    above.insert(heading[1], Item::Table(table));
    let mut added = DocumentMut::new();
    added.insert(heading[0], Item::Table(above));
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        newline(text)
    };
    let text = format!("{text}{end}{}{added}", newline(text));
    parsed(&text)?;
    Ok(text)
}

/// Returns a value of [`value`] as TOML.
fn as_toml(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Bool(flag) => (*flag).into(),
        serde_json::Value::Array(values) => Value::Array(values.iter().map(as_toml).collect()),
        serde_json::Value::Object(members) => Value::InlineTable(
            members
                .iter()
                .map(|(key, value)| (key.as_str(), as_toml(value)))
                .collect(),
        ),
        other => {
            let text = other
                .as_str()
                .map_or_else(|| other.to_string(), str::to_owned);
            if other.is_number() {
                text.parse().unwrap_or(text.into())
            } else {
                text.into()
            }
        }
    }
}

/// Returns whether the table is present with our keys and command; `None` if there is none of ours.
///
/// # Errors
/// If the text is not TOML.
pub fn find(text: &str, wanted: &TomlTable) -> Result<Option<bool>, EditError> {
    let document = parsed(text)?;
    let table = our_table(&document, wanted);
    Ok(table.map(|table| {
        let mut keys = wanted.table.iter();
        keys.all(|(key, item)| {
            table
                .get(key)
                .is_some_and(|found| key != "command" || plain_item(found) == plain_item(item))
        })
    }))
}

/// Returns how a text names the program of the table. `None` if it has none of ours.
pub(super) fn spelling(text: &str, wanted: &TomlTable) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let table = our_table(&document, wanted)?;
    table.get("command")?.as_str().map(str::to_owned)
}

/// Returns the table, however it is written, if it starts this program.
fn our_table<'a>(document: &'a Document<&str>, wanted: &TomlTable) -> Option<&'a Item> {
    let [above, name] = wanted.heading;
    let table = document.get(above)?.get(name)?;
    let first = |item: &'a Item| item.as_array()?.get(0)?.as_str();
    let is_ours = wanted.program.is_named(table.get("command")?.as_str()?)
        && table.get("args").and_then(first) == Some("mcp");
    is_ours.then_some(table)
}

/// Collects the lines of a table and of the tables below it, without comments after them.
fn collect_ranges(text: &str, table: &Table, ranges: &mut Vec<Range<usize>>) {
    ranges.extend(own_lines(text, table));
    for (_, item) in table.iter() {
        match item {
            Item::Table(below) => collect_ranges(text, below, ranges),
            Item::ArrayOfTables(tables) => {
                for below in tables {
                    collect_ranges(text, below, ranges);
                }
            }
            _ => {}
        }
    }
}

/// Returns the lines from the heading of a table to its last value. `None` without a heading.
fn own_lines(text: &str, table: &Table) -> Option<Range<usize>> {
    if table.is_implicit() || table.is_dotted() {
        return None;
    }
    let heading = table.span()?;
    let mut end = heading.end;
    values_end(table, &mut end);
    let rest = text[end..]
        .find('\n')
        .map_or(text.len() - end, |newline| newline + 1);
    Some(heading.start..end + rest)
}

/// Moves `end` behind the last value below the heading of a table.
fn values_end(table: &Table, end: &mut usize) {
    for (_, item) in table.iter() {
        match item {
            Item::Value(value) => {
                *end = value.span().map_or(*end, |span| span.end.max(*end));
            }
            // `a.b = 1`
            Item::Table(below) if below.is_dotted() => values_end(below, end),
            _ => {}
        }
    }
}

/// Sets a value. Missing tables are added.
///
/// # Errors
/// If the text is not TOML, or something above the value is no table.
pub(crate) fn set_value(
    text: &str,
    path: &[impl AsRef<str>],
    value: &str,
) -> Result<String, EditError> {
    let mut document = mutable(&parsed(text)?)?;
    let Some((name, parents)) = path.split_last() else {
        return Ok(text.to_owned());
    };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for (depth, parent) in parents.iter().enumerate() {
        table = table
            .entry(parent.as_ref())
            .or_insert(Item::Table(Table::new()))
            .as_table_like_mut()
            .ok_or_else(|| {
                let names = path[..=depth].iter();
                EditError::NotAnObject(names.map(|name| name.as_ref().to_owned()).collect())
            })?;
    }
    match table.get_mut(name.as_ref()).and_then(Item::as_value_mut) {
        Some(found) if found.as_str() == Some(value) => return Ok(text.to_owned()),
        Some(found) => {
            let decor = found.decor().clone();
            *found = Value::from(value);
            *found.decor_mut() = decor;
        }
        None => drop(table.insert(name.as_ref(), toml_edit::value(value))),
    }
    Ok(document.to_string())
}

/// Removes a value, and the table above it if nothing else is in it.
///
/// # Errors
/// If the text is not TOML.
pub(crate) fn remove_value(text: &str, path: &[impl AsRef<str>]) -> Result<String, EditError> {
    let mut document = mutable(&parsed(text)?)?;
    let Some((name, parents)) = path.split_last() else {
        return Ok(text.to_owned());
    };
    let above = parents.iter().try_fold(
        document.as_table_mut() as &mut dyn TableLike,
        |table, parent| table.get_mut(parent.as_ref())?.as_table_like_mut(),
    );
    let is_empty =
        above.is_some_and(|table| table.remove(name.as_ref()).is_some() && table.is_empty());
    if let [table] = parents
        && is_empty
    {
        document.remove(table.as_ref());
    }
    Ok(document.to_string())
}

/// Returns a text value; `None` if the file has none there.
///
/// # Errors
/// If the text is not TOML.
pub(crate) fn get_value(text: &str, path: &[&str]) -> Result<Option<String>, EditError> {
    let document = parsed(text)?;
    let found = path
        .iter()
        .try_fold(document.as_item(), |item, name| item.get(name));
    Ok(found.map(|found| found.as_str().unwrap_or_default().to_owned()))
}

/// Returns the value of a text. `None` if it is not TOML.
pub(crate) fn value(text: &str) -> Option<serde_json::Value> {
    Some(plain(Document::parse(text).ok()?.as_table()))
}

/// Returns the text if it has the expected values.
fn checked(text: String, expected: &serde_json::Value) -> Result<String, EditError> {
    let document = parsed(&text)?;
    if plain(document.as_table()) == *expected {
        Ok(text)
    } else {
        Err(EditError::OtherChange)
    }
}

/// Sets or removes the table `heading` in the values of a document.
fn put(
    values: &mut serde_json::Value,
    document: &Document<&str>,
    heading: [&str; 2],
    table: Option<serde_json::Value>,
) {
    let [above, name] = heading;
    match table {
        Some(table) => values[above][name] = table,
        None => {
            let tables = values
                .get_mut(above)
                .and_then(serde_json::Value::as_object_mut);
            if let Some(tables) = tables {
                tables.remove(name);
                // A heading without keys stays.
                if tables.is_empty()
                    && !has_heading(document, above)
                    && let Some(values) = values.as_object_mut()
                {
                    values.remove(above);
                }
            }
        }
    }
}

/// Returns the values of a table, without empty tables above others.
fn plain(table: &dyn TableLike) -> serde_json::Value {
    let values = table
        .iter()
        .filter(|(_, item)| {
            item.as_table()
                .is_none_or(|table| !table.is_implicit() || !table.is_empty())
        })
        .map(|(key, item)| (key.to_owned(), plain_item(item)));
    serde_json::Value::Object(values.collect())
}

fn plain_item(item: &Item) -> serde_json::Value {
    match item {
        Item::None => serde_json::Value::Null,
        Item::Value(value) => plain_value(value),
        Item::Table(table) => plain(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| plain(table)).collect(),
    }
}

fn plain_value(value: &Value) -> serde_json::Value {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Array(values) => values.iter().map(plain_value).collect(),
        Value::InlineTable(table) => plain(table),
        Value::Boolean(flag) => (*flag.value()).into(),
        Value::Integer(number) => (*number.value()).into(),
        Value::Float(number) => (*number.value()).into(),
        // Times, as written.
        other => {
            let mut other = other.clone();
            other.decor_mut().clear();
            serde_json::json!({ "value": other.to_string() })
        }
    }
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn parsed(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text).map_err(|error: TomlError| {
        let before = error.span().and_then(|span| text.get(..span.start));
        EditError::Syntax {
            format: "TOML",
            line: 1 + before.unwrap_or_default().matches('\n').count(),
            message: error.message().to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: [&str; 2] = ["access", "commands"];

    #[test]
    fn a_value_is_set_and_removed() {
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
            assert_eq!(set_value(before, &PATH, "hide").unwrap(), after);
            assert_eq!(set_value(after, &PATH, "hide").unwrap(), after);
            assert_eq!(
                get_value(&remove_value(after, &PATH).unwrap(), &PATH).unwrap(),
                None
            );
        }
        assert!(
            set_value("access = 1\n", &PATH, "hide").is_err()
                && set_value("[", &PATH, "hide").is_err()
        );
        let changed = set_value("[access]\ncommands = \"check\" # x\n", &PATH, "hide").unwrap();
        assert_eq!(changed, "[access]\ncommands = \"hide\" # x\n");
        let text = "# top\n\n[a]\nb = 1\n";
        let added = set_value(text, &["c"], "d").unwrap();
        assert_eq!(added, "c = \"d\"\n# top\n\n[a]\nb = 1\n");
        assert_eq!(remove_value(&added, &["c"]).unwrap(), text);
    }
}
