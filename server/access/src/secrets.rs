//! The built-in rules for files that usually contain secrets.
//!
//! `rules::built_in` compiles them, and says which lines of a `.clineignore` lift them.

pub(super) mod content;

use std::sync::Arc;

use super::gitignore::{self, Origin, RuleLine};

/// The source of the rules, as reported.
pub(crate) const SOURCE: &str = "built-in secrets";
/// The text of the rules.
pub(crate) const TEXT: &[u8] = include_bytes!("built_in_secrets.gitignore");

/// Returns the lines of the rules.
pub(super) fn rule_lines() -> impl Iterator<Item = RuleLine<'static>> {
    let source: Arc<str> = SOURCE.into();
    // The lines of the first section deny a file only if its content is secret: their names say little.
    let by_content = TEXT.split(|byte| *byte == b'\n').position(<[u8]>::is_empty);
    gitignore::lines(TEXT).map(move |(number, text)| RuleLine {
        source: source.clone(),
        number,
        text,
        origin: if by_content.is_some_and(|end| number as usize <= end) {
            Origin::SecretContent
        } else {
            Origin::Secret
        },
    })
}

/// The lines that deny the files with rules and settings, so that an agent cannot change them. They
/// come after all other lines.
///
/// The user's configuration file is in a folder of the platform, which can be part of a workspace folder:
/// `~/.config/sightline` on Linux, `%APPDATA%\sightline\config` on Windows.
pub(super) const LAST_LINES: &[u8] = b"\
**/sightline/config.toml
**/sightline/config/config.toml
.sightline.toml
.clineignore";

/// Returns [`LAST_LINES`].
pub(super) fn last_lines<'a>() -> impl Iterator<Item = RuleLine<'a>> {
    LAST_LINES
        .split(|byte| *byte == b'\n')
        .map(|text| RuleLine {
            source: "built-in".into(),
            number: 0,
            text,
            origin: Origin::Fixed,
        })
}
