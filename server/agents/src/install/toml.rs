//! Adds a table to a TOML file, updates it and removes it, and sets single values. Everything else keeps its bytes.

use std::ops::Range;

use toml_edit::{Document, DocumentMut, Item, Table, TableLike, TomlError, Value};

use super::{EditError, json::split_mark, program::Program};

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

/// Adds the table at the end of the file, or updates its keys in their place: sets what starts the program where it
/// differs, and adds missing keys. The user's arguments and other keys stay.
///
/// # Errors
/// If the text is not TOML, the table above is written inline, or a table of this name starts
/// another program.
pub fn add(text: &str, wanted: &TomlTable) -> Result<String, EditError> {
    let [above, name] = wanted.heading;
    let document = parsed(text)?;
    match document.get(above) {
        Some(tables) if tables.get(name).is_some() => {
            if our_table(&document, wanted).is_none() {
                return Err(EditError::NotOurs(format!("{above}.{name}")));
            }
            edited(text, |document| {
                let table = document[above][name].as_table_like_mut();
                let table = table.ok_or(EditError::OtherChange)?;
                for (key, item) in wanted.table.iter() {
                    // `args` begin with `mcp`, by which the table was recognized.
                    if let Item::Value(value) = item
                        && (key == "command" || !table.contains_key(key))
                    {
                        put(table, key, value);
                    }
                }
                Ok(())
            })
        }
        Some(tables) if !tables.is_table() => Err(EditError::InlineTable(above)),
        _ => append(text, wanted.heading, wanted.table.clone()),
    }
}

/// Adds a table at the end of a file, where its heading can follow anything, so the rest keeps its bytes.
fn append(text: &str, [above, name]: [&str; 2], table: Table) -> Result<String, EditError> {
    let mut tables = Table::new();
    tables.set_implicit(true);
    tables.insert(name, Item::Table(table));
    let mut added = DocumentMut::new();
    added.insert(above, Item::Table(tables));
    let space = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let added = format!("{space}{added}").replace('\n', newline(text));
    let text = format!("{text}{added}");
    parsed(&text)?;
    Ok(text)
}

/// Edits the values of a file. The rest keeps its bytes: a file in which line ends differ is not changed.
fn edited(
    text: &str,
    edit: impl FnOnce(&mut DocumentMut) -> Result<(), EditError>,
) -> Result<String, EditError> {
    let mut document = parsed(text)?.into_mut();
    let before = document.to_string();
    edit(&mut document)?;
    let after = document.to_string();
    if after == before {
        return Ok(text.to_owned());
    }
    let (mark, _) = split_mark(text);
    let after = after.replace("\r\n", "\n");
    let lines = text.matches('\n').count();
    match text.matches("\r\n").count() {
        0 => Ok(format!("{mark}{after}")),
        ends if ends == lines => Ok(format!("{mark}{}", after.replace('\n', "\r\n"))),
        _ => Err(EditError::OtherChange),
    }
}

/// Sets a value. Comments around an earlier one stay.
fn put(table: &mut dyn TableLike, key: &str, value: &Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(found) if plain_value(found) == plain_value(value) => {}
        Some(found) => {
            let decor = found.decor().clone();
            *found = value.clone();
            *found.decor_mut() = decor;
        }
        None => drop(table.insert(key, Item::Value(value.clone()))),
    }
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
        // It is written inline or with dotted keys.
        return edited(text, |document| {
            cut(document, heading);
            Ok(())
        })
        .map(Some);
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
    let mut expected = document.into_mut();
    cut(&mut expected, heading);
    if plain(parsed(&rest)?.as_table()) != plain(expected.as_table()) {
        return Err(EditError::OtherChange);
    }
    Ok(Some(rest))
}

/// Removes a table from a document, and the one above it if that has neither a heading nor other keys.
fn cut(document: &mut DocumentMut, [above, name]: [&str; 2]) {
    let Some(item) = document.get_mut(above) else {
        return;
    };
    let has_heading = with_heading(item).is_some();
    let is_empty = item
        .as_table_like_mut()
        .is_some_and(|tables| tables.remove(name).is_some() && tables.is_empty());
    if is_empty && !has_heading {
        document.remove(above);
    }
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
    let values = values.as_object().into_iter().flatten();
    let table = values.map(|(key, value)| (key.as_str(), as_toml(value)));
    append(text, heading, table.collect())
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
    edited(text, |document| {
        let mut table: &mut dyn TableLike = document.as_table_mut();
        for (depth, name) in path.iter().enumerate() {
            if depth + 1 == path.len() {
                put(table, name.as_ref(), &value.into());
                break;
            }
            table = table
                .entry(name.as_ref())
                .or_insert(Item::Table(Table::new()))
                .as_table_like_mut()
                .ok_or_else(|| {
                    let names = path[..=depth].iter();
                    EditError::NotAnObject(names.map(|name| name.as_ref().to_owned()).collect())
                })?;
        }
        Ok(())
    })
}

/// Removes a value, and the table above it if nothing else is in it.
///
/// # Errors
/// If the text is not TOML.
pub(crate) fn remove_value(text: &str, path: &[impl AsRef<str>]) -> Result<String, EditError> {
    edited(text, |document| {
        let Some((name, parents)) = path.split_last() else {
            return Ok(());
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
        Ok(())
    })
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

    #[test]
    fn line_ends_and_a_byte_order_mark_stay() {
        let text = "\u{feff}# mine\r\n[access]\r\nsecrets = \"deny\"\r\n";
        let set = set_value(text, &PATH, "hide").unwrap();
        assert_eq!(set, format!("{text}commands = \"hide\"\r\n"));
        assert_eq!(remove_value(&set, &PATH).unwrap(), text);
        assert_eq!(
            set_value("a = 1\r\nb = 2\n", &PATH, "hide"),
            Err(EditError::OtherChange)
        );
    }
}
