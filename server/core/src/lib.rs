//! Everything Sightline knows, without LSP and without async.
//!
//! Plain data in, plain data out. Side effects are reads of the workspace and
//! writes below the data directory; the caller decides on which thread.
//!
//! Reading order: [`path`] (where is that, and is it inside), [`access`] (may
//! it be seen), then what is built on the two: [`listing`], [`read`],
//! [`tracker`], [`editor`] and [`environment`]. [`conversation`] needs none of
//! them: it decides which messages are sent; [`compaction`] puts a summary in
//! place of the older ones; [`task`] keeps conversations, in the data directory
//! of [`storage`]. [`git`] is the only door to libgit2, [`model`] what is known
//! about models, [`tokens`] what counts their tokens, [`surrogates`] what
//! JavaScript clients leave in JSON.
//!
//! Invariants:
//! - A path from outside becomes a [`path::Location`] before anything is done
//!   with it, and nothing with a name or a byte of the workspace leaves this
//!   crate without a verdict of [`access`].
//! - Every loop over files, lines or messages looks at its [`cancel::Cancel`].
//! - Nothing panics on input.

pub mod access;
pub mod cancel;
pub mod checkpoint;
pub mod compaction;
pub mod conversation;
pub mod document;
pub mod editor;
pub mod environment;
pub mod error;
mod fs;
pub mod git;
mod ignore_files;
pub mod limits;
pub mod line;
pub mod listing;
pub mod model;
pub mod path;
pub mod read;
pub mod storage;
pub mod surrogates;
pub mod task;
mod threads;
pub mod tokens;
pub mod tracker;
