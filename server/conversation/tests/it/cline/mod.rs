//! Comparisons with recordings of Cline.

mod conversation;
mod rules;
