//! Entries for `languages.toml`.

use sightline_engine::error::Error;
use toml_edit::{
    Array, ArrayOfTables, Decor, DocumentMut, InlineTable, Item, RawString, Table, TableLike, Value,
};

use super::{Merged, SERVER};

/// The language servers in Helix's default configuration.
const DEFAULT_SERVERS: &str = include_str!("default_servers.toml");

/// Helix has no language for plain text, so it is defined here.
const TEXT: &str = "text";
const TEXT_SCOPE: &str = "text.plain";
const TEXT_ENDING: &str = "txt";

/// Comment after what was added, which `--remove` looks for: an entry of the user can say the same.
const MARK: &str = " # added by sightline";

/// Languages used by default.
const COMMON: &str = "bash c c-sharp clojure cmake cpp css dart diff dockerfile elixir elm env erlang fish git-commit git-ignore go \
     graphql haskell hcl html ini java javascript json jsx julia just kotlin latex lua make markdown nix ocaml perl \
     php protobuf python r ruby rust scala scss sql svelte swift toml tsx typescript vue xml yaml zig";

/// A language to configure.
#[derive(Debug)]
pub(super) struct Language {
    name: String,
    /// Helix's default servers; `None` for a language defined by the user.
    servers: Option<Array>,
}

/// Resolves language names. `all` selects every known language; an empty list selects the
/// common ones.
///
/// # Errors
/// `invalidParams` for an empty name.
pub(super) fn wanted(names: &[String]) -> Result<Vec<Language>, Error> {
    let known = known()?;
    let mut wanted: Vec<&str> = Vec::new();
    for name in names.iter().map(|name| name.trim()) {
        match name {
            "all" => wanted.extend(known.iter().map(|(name, _)| name).chain([TEXT])),
            "" => return Err(Error::invalid("--languages contains an empty name")),
            name => wanted.push(name),
        }
    }
    if names.is_empty() {
        wanted.extend(COMMON.split(' ').chain([TEXT]));
    }
    let mut seen = std::collections::BTreeSet::new();
    wanted.retain(|name| seen.insert(*name));
    Ok(wanted
        .into_iter()
        .map(|name| Language {
            name: name.to_owned(),
            servers: known.get(name).and_then(Item::as_array).cloned(),
        })
        .collect())
}

fn known() -> Result<Table, Error> {
    let parsed: Result<DocumentMut, _> = DEFAULT_SERVERS.parse();
    parsed
        .map(|document| document.as_table().clone())
        .map_err(super::super::internal)
}

/// Adds the server to a `languages.toml`, for each language.
///
/// # Errors
/// `invalidParams` if the text is not TOML or has an unexpected structure, and for a
/// language that is in neither Helix 25.01 nor the text.
pub(super) fn merge(text: &str, wanted: &[Language], program: &str) -> Result<Merged, Error> {
    let mut document = super::parse(text)?;
    add_server(&mut document, program)?;
    let mut languages = Languages::of(&mut document)?;
    let mut notes = Vec::new();
    for language in wanted {
        if language.name == TEXT && languages.has_other_plain_text() {
            notes.push(format!(
                "language {TEXT:?} was not added: another of your languages handles \
                 .{TEXT_ENDING} files; select it with --languages"
            ));
            continue;
        }
        languages.add(language)?;
    }
    Ok(Merged {
        text: document.to_string(),
        notes,
    })
}

fn add_server(document: &mut DocumentMut, program: &str) -> Result<(), Error> {
    let servers = super::subtable(document.as_table_mut(), "language-server")?;
    if servers.contains_key(SERVER) {
        return Ok(());
    }
    let mut arguments = Array::new();
    arguments.push("--stdio");
    let mut server = Table::new();
    server.insert("command", program.into());
    server.insert("args", arguments.into());
    servers.insert(SERVER, Item::Table(server));
    Ok(())
}

/// Removes the server from a `languages.toml`, and the entries of languages that only add it.
///
/// # Errors
/// `invalidParams` if the text is not TOML or has an unexpected structure.
pub(super) fn remove(text: &str) -> Result<Merged, Error> {
    let mut document = super::parse(text)?;
    if let Some(servers) = document.get_mut("language-server")
        && let Some(servers) = servers.as_table_like_mut()
        && servers.remove(SERVER).is_some()
        && servers.is_empty()
    {
        document.remove("language-server");
    }
    if document.contains_key("language") {
        let known = known()?;
        let mut languages = Languages::of(&mut document)?;
        let marked = languages.take_marks();
        let entries = languages.entries().into_iter().zip(marked);
        let added: Vec<bool> = entries
            .map(|(entry, is_marked)| remove_server(entry) && is_marked && only_adds(entry, &known))
            .collect();
        languages.retain(|at| !added.get(at).copied().unwrap_or_default());
        if languages.entries().is_empty() {
            document.remove("language");
        }
    }
    Ok(Merged {
        text: document.to_string(),
        notes: Vec::new(),
    })
}

/// Removes the server from the list of a language. Returns whether it was there.
fn remove_server(entry: &mut dyn TableLike) -> bool {
    let servers = entry
        .get_mut("language-servers")
        .and_then(Item::as_array_mut);
    let Some(servers) = servers else {
        return false;
    };
    let Some(at) = servers.iter().position(is_ours) else {
        return false;
    };
    servers.remove(at);
    true
}

/// Returns whether an entry without the server says what Helix does without it.
fn only_adds(entry: &dyn TableLike, known: &Table) -> bool {
    let names = |servers: Option<&Item>| {
        let servers = servers.and_then(Item::as_array);
        servers.map(|servers| {
            servers
                .iter()
                .map(|one| one.to_string().trim().to_owned())
                .collect::<Vec<_>>()
        })
    };
    let name = named(entry).unwrap_or_default();
    let rest = names(entry.get("language-servers")).unwrap_or_default();
    if name == TEXT {
        let scope = entry.get("scope").and_then(Item::as_str);
        return entry.len() == 4 && scope == Some(TEXT_SCOPE) && rest.is_empty();
    }
    entry.len() == 2 && names(known.get(name)).is_some_and(|servers| servers == rest)
}

/// The `language` list, as tables or as an array.
enum Languages<'a> {
    Tables(&'a mut ArrayOfTables),
    Values(&'a mut Array),
}

impl<'a> Languages<'a> {
    fn of(document: &'a mut DocumentMut) -> Result<Self, Error> {
        let item = document
            .entry("language")
            .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        match item {
            Item::ArrayOfTables(tables) => Ok(Self::Tables(tables)),
            Item::Value(Value::Array(values)) if values.iter().all(Value::is_inline_table) => {
                Ok(Self::Values(values))
            }
            _ => Err(Error::invalid("`language` is not an array of tables")),
        }
    }

    fn entries(&mut self) -> Vec<&mut dyn TableLike> {
        match self {
            Self::Tables(tables) => tables
                .iter_mut()
                .map(|table| table as &mut dyn TableLike)
                .collect(),
            Self::Values(values) => values
                .iter_mut()
                .filter_map(Value::as_inline_table_mut)
                .map(|table| table as &mut dyn TableLike)
                .collect(),
        }
    }

    /// Returns whether each entry has the mark, and removes it.
    fn take_marks(&mut self) -> Vec<bool> {
        let take = |decor: &mut Decor| {
            let suffix = decor.suffix().and_then(RawString::as_str);
            let is_marked = suffix.is_some_and(|suffix| suffix.starts_with(MARK));
            if is_marked {
                decor.set_suffix("");
            }
            is_marked
        };
        match self {
            Self::Tables(tables) => tables
                .iter_mut()
                .map(|table| {
                    table
                        .get_mut("language-servers")
                        .and_then(Item::as_value_mut)
                        .is_some_and(|servers| take(servers.decor_mut()))
                })
                .collect(),
            Self::Values(values) => values
                .iter_mut()
                .map(|value| take(value.decor_mut()))
                .collect(),
        }
    }

    /// Keeps the entries with these numbers.
    fn retain(&mut self, keeps: impl Fn(usize) -> bool) {
        let mut at = 0;
        let mut next = || {
            at += 1;
            keeps(at - 1)
        };
        match self {
            Self::Tables(tables) => tables.retain(|_| next()),
            Self::Values(values) => values.retain(|_| next()),
        }
    }

    fn has_other_plain_text(&mut self) -> bool {
        self.entries().into_iter().any(|entry| {
            let types = entry.get("file-types").and_then(Item::as_array);
            named(entry) != Some(TEXT)
                && types.is_some_and(|types| {
                    types.iter().any(|kind| kind.as_str() == Some(TEXT_ENDING))
                })
        })
    }

    fn add(&mut self, language: &Language) -> Result<(), Error> {
        let mut entries = self.entries();
        entries.retain(|entry| named(*entry) == Some(&language.name));
        // Helix merges entries of the same language; the last list wins.
        let mut listed = false;
        for entry in &mut entries {
            if let Some(servers) = entry.get_mut("language-servers") {
                let servers = servers.as_array_mut().ok_or_else(|| {
                    Error::invalid(format!(
                        "`language-servers` of {:?} is not an array",
                        language.name
                    ))
                })?;
                append(servers);
                listed = true;
            }
        }
        if listed {
            return Ok(());
        }
        if let Some(entry) = entries.last_mut() {
            let own = entry.contains_key("scope");
            let mut servers = match &language.servers {
                Some(servers) => servers.clone(),
                None if own => Array::new(),
                None => return Err(unknown(&language.name)),
            };
            append(&mut servers);
            entry.insert("language-servers", servers.into());
            return Ok(());
        }
        self.push(language)
    }

    fn push(&mut self, language: &Language) -> Result<(), Error> {
        let mut servers = match &language.servers {
            Some(servers) => servers.clone(),
            None if language.name == TEXT => Array::new(),
            None => return Err(unknown(&language.name)),
        };
        append(&mut servers);
        let mut entry = InlineTable::new();
        entry.insert("name", language.name.as_str().into());
        if language.name == TEXT {
            entry.insert("scope", TEXT_SCOPE.into());
            entry.insert("file-types", Value::Array(Array::from_iter([TEXT_ENDING])));
        }
        entry.insert("language-servers", servers.into());
        match self {
            Self::Tables(tables) => {
                let mut table = entry.into_table();
                let servers = table
                    .get_mut("language-servers")
                    .and_then(Item::as_value_mut);
                if let Some(servers) = servers {
                    servers.decor_mut().set_suffix(MARK);
                }
                tables.push(table);
            }
            Self::Values(values) => {
                let before = if values.is_empty() { "" } else { " " };
                let entry = Value::from(entry).decorated(before, format!("{MARK}\n"));
                values.push_formatted(entry);
            }
        }
        Ok(())
    }
}

fn named(entry: &dyn TableLike) -> Option<&str> {
    entry.get("name").and_then(Item::as_str)
}

fn unknown(name: &str) -> Error {
    Error::invalid(format!(
        "not every Helix version since 25.01 has the language {name:?}, so its default servers are unknown; \
         add its `language-servers` to languages.toml first (`hx --health {name}` lists them)"
    ))
}

/// Returns whether an element of a list of servers is this server.
fn is_ours(server: &Value) -> bool {
    match server {
        Value::InlineTable(table) => table.get("name").and_then(Value::as_str) == Some(SERVER),
        server => server.as_str() == Some(SERVER),
    }
}

/// Appends the server to a list, unless it is present.
fn append(servers: &mut Array) {
    if servers.iter().any(is_ours) {
        return;
    }
    let Some(indent) = element_indent(servers) else {
        servers.push(SERVER);
        return;
    };
    // Keeps a comment after the last element in place.
    let after = servers.trailing().as_str().unwrap_or_default().to_owned();
    let comment = if servers.trailing_comma() {
        after.trim_end()
    } else {
        ""
    };
    let ours = Value::from(SERVER).decorated(format!("{comment}\n{indent}"), "");
    servers.push_formatted(ours);
    if !comment.is_empty() {
        servers.set_trailing("\n");
    }
}

/// Returns the indentation of a list with one element per line.
fn element_indent(servers: &Array) -> Option<String> {
    let last = servers.iter().last()?;
    let before = last.decor().prefix().and_then(RawString::as_str)?;
    let (_, indent) = before.rsplit_once('\n')?;
    Some(indent.to_owned())
}
