//! Wire types of the Sightline protocol.
//!
//! The types are plain data: `serde` for the wire, `schemars` for the schemas. Their
//! doc comments become the descriptions in `schemas/`, `docs/` and the generated client
//! types, so they address authors of clients.
//!
//! Start with [`method`], the table of methods, then read one module per subject.
//! `server/xtask` generates JSON Schema, TypeScript, Lua and Markdown from the types.
//!
//! Params use `#[serde(default)]`, so that absent fields, `null` and `[]` are
//! equivalent. Results omit absent fields and never contain `null`.
//!
//! Modules:
//!
//! - `method`: the table of methods: names, params, results, errors
//! - `environment`, `access`, `decision`, `files`, `tracker`, `conversation`, `tokens`, `task`, `compaction`,
//!   `checkpoint`, `editor`, `mcp`, `settings`, `error`: wire types by subject

pub mod access;
pub mod checkpoint;
pub mod compaction;
pub mod conversation;
pub mod decision;
pub mod editor;
pub mod environment;
pub mod error;
pub mod files;
pub mod mcp;
pub mod method;
pub mod settings;
pub mod task;
pub mod tokens;
pub mod tracker;

/// Version of the wire protocol, sent in the `initialize` result as
/// `capabilities.experimental.sightline.protocolVersion`.
pub const PROTOCOL_VERSION: u32 = 1;
