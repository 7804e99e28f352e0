//! The store of checkpoints: a bare git repository that git can read.
//!
//! [`repository`] is the place to start. Objects are encoded in [`object`], written as packs by
//! [`pack::writer`], and read by [`odb`] from packs ([`pack`]) and [`loose`] files.
//! [`refs`] names the checkpoints, and [`annotations`] has their later labels and lists the fetched ones. [`lock`] allows one writer at a time. [`fsck`] finds damage, [`repair`] opens a store and rebuilds a damaged one,
//! and [`gc`] removes all objects except the [`reachable`] ones.

pub(crate) mod annotations;
pub(crate) mod fsck;
pub(crate) mod gc;
pub(crate) mod lock;
mod loose;
pub(crate) mod object;
pub(crate) mod odb;
pub(crate) mod pack;
pub(crate) mod reachable;
pub(crate) mod refs;
pub(crate) mod repair;
pub(crate) mod repository;
#[cfg(test)]
mod tests;
