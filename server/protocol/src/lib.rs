//! The wire types of Sightline: what clients send, what the server answers.
//!
//! Plain data only: `serde` for the wire, `schemars` for the schemas. Doc
//! comments here become the descriptions in `schemas/` and in the generated
//! client types, so they are written for the author of a client.
//!
//! Reading order: [`method`] (the table of everything that exists), then one
//! module per subject. [`emit`] turns the types into JSON Schema, TypeScript
//! and Lua; `tests/drift.rs` keeps the written files equal to the types.
//!
//! Rules for every type: params use `#[serde(default)]` so that absent fields,
//! `null` and `[]` mean the same; results leave out what is absent and never
//! carry `null`.

pub mod access;
pub mod checkpoint;
pub mod compaction;
pub mod conversation;
pub mod editor;
pub mod emit;
pub mod environment;
pub mod error;
pub mod files;
pub mod method;
pub mod settings;
pub mod task;
pub mod tokens;
pub mod tracker;

/// Version of the wire protocol, sent in the `initialize` result under
/// `capabilities.experimental.sightline.protocolVersion`.
pub const PROTOCOL_VERSION: u32 = 1;
