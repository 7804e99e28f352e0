//! Tools and prompts as agents get them: `server__tool`.

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use sightline_agents::servers::{
    config::{Pin, Server},
    store::Lists,
};
use sightline_base::escape::hex;
use sightline_protocol::mcp::McpTool;

use crate::message::{Object, reads_only};

/// Maximum length of a name. Agents put up to 16 characters before it, and allow 64.
const MAX_NAME: usize = 48;
/// Bytes of a definition for each token, about.
const BYTES_PER_TOKEN: u64 = 4;
/// Digits of the hash in a name that is cut or changed.
const DIGITS: usize = 8;

/// Returns the name of a tool of a server. Equal names have equal results, in every session.
pub(super) fn exposed(server: &str, tool: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain: String = tool
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    let full = format!("{server}__{plain}");
    if full.len() <= MAX_NAME && plain == tool && !plain.is_empty() {
        return full;
    }
    let start = &full[..full.len().min(MAX_NAME - DIGITS - 1)];
    format!("{start}_{}", &hash(&format!("{server}\0{tool}"))[..DIGITS])
}

/// Returns a hash of a text, in hexadecimal.
pub(super) fn hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// A tool of a server.
pub(super) struct Tool {
    pub(super) name: String,
    /// Its name for agents.
    pub(super) exposed: String,
    /// Its definition for agents.
    pub(super) definition: Box<RawValue>,
    /// Whether agents get it.
    pub(super) offered: bool,
    /// Whether its definition differs from the one that was seen first.
    changed: bool,
    pub(super) reads_only: bool,
    tokens: u64,
}

impl Tool {
    /// Returns it for the user.
    pub(super) fn report(&self) -> McpTool {
        McpTool {
            name: self.name.clone(),
            exposed_as: self.exposed.clone(),
            tokens: self.tokens,
            enabled: self.offered,
            changed: self.changed,
        }
    }
}

/// Returns the tools in the lists of a server.
pub(super) fn tools(server: &Server, lists: &Lists) -> impl Iterator<Item = Tool> {
    lists.tools.iter().filter_map(move |tool| {
        let name = name_of(tool);
        let pin = lists.pins.get(&name);
        let changed = pin.is_some_and(|pin| *pin != hash(tool.get()));
        let blocked = changed && server.entry.pin == Pin::Block;
        Some(Tool {
            exposed: exposed(server.prefix(), &name),
            definition: shown(server, tool)?,
            offered: server.entry.tools.offers(&name) && !blocked,
            changed,
            reads_only: reads_only(tool),
            tokens: (tool.get().len() as u64).div_ceil(BYTES_PER_TOKEN),
            name,
        })
    })
}

/// Returns the name in a definition.
pub(super) fn name_of(item: &RawValue) -> String {
    let definition = Object::parse(item.get()).unwrap_or_default();
    definition.text("name").unwrap_or_default()
}

/// Returns a definition with another value of a member.
pub(super) fn renamed(item: &RawValue, member: &'static str, value: &str) -> Option<Box<RawValue>> {
    let mut definition = Object::parse(item.get()).ok()?;
    definition.set(member, &value).ok()?;
    serde_json::value::to_raw_value(&definition).ok()
}

/// Returns a definition for agents: under another name, and with the server in its title.
pub(super) fn shown(server: &Server, item: &RawValue) -> Option<Box<RawValue>> {
    let named = renamed(item, "name", &exposed(server.prefix(), &name_of(item)))?;
    match Object::parse(item.get()).ok()?.text("title") {
        Some(title) => renamed(&named, "title", &format!("{}: {title}", server.name)),
        None => Some(named),
    }
}

#[cfg(test)]
mod tests {
    use super::exposed;

    #[test]
    fn names_are_short_plain_and_different() {
        assert_eq!(exposed("fs", "read_file"), "fs__read_file");
        let long = "a".repeat(60);
        let names = [
            exposed("fs", &long),
            exposed("fs", &format!("{long}b")),
            exposed("other", &long),
            exposed("fs", "a.b"),
            exposed("fs", "a_b"),
            exposed("fs", "a b"),
            exposed("fs", ""),
            exposed(&"s".repeat(24), &long),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(name.len() <= 48, "{name}");
            assert!(!names[..at].contains(name), "{name}");
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
            );
        }
    }
}
