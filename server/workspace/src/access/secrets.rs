//! The built-in rules for files that usually contain secrets.
//!
//! They come before the lines of the `.clineignore` of a workspace folder, which can allow a file again with `!`.

use std::sync::{Arc, LazyLock};

use super::{
    gitignore::{self, RuleLine},
    rules::{Rules, compile_lines},
};

/// The source of the rules, as reported.
const SOURCE: &str = "built-in secrets";
const TEXT: &[u8] = include_bytes!("built_in_secrets.gitignore");

/// Returns the lines of the rules.
pub(super) fn rule_lines() -> impl Iterator<Item = RuleLine<'static>> {
    let source: Arc<str> = SOURCE.into();
    gitignore::lines(TEXT).map(move |(number, text)| RuleLine {
        source: source.clone(),
        number,
        text,
        is_built_in: true,
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
            is_built_in: true,
        })
}

/// Returns the rules of a folder without rule files. They deny the rule file as well, so that an agent cannot create one
/// that allows secrets.
pub(super) fn rules() -> &'static Rules {
    static RULES: LazyLock<Rules> = LazyLock::new(|| {
        let lines = rule_lines().chain(last_lines()).collect();
        compile_lines(lines, |_| "cannot compile the built-in rules".to_owned())
    });
    &RULES
}
