//! The built-in rules for secrets, compiled: for folders without rule files, for paths outside of the roots, and for
//! folders that variables of the environment move.

use std::{
    path::Path,
    sync::{LazyLock, OnceLock},
};

use super::{Rules, compile_lines};
use crate::{
    gitignore::{Origin, RuleLine},
    secrets::{SOURCE, TEXT, last_lines, rule_lines},
};
use sightline_base::path::{AbsPath, RelPath};

/// Returns the rules of a folder without rule files. They deny the rule file as well, so that an agent cannot create one
/// that allows secrets.
pub(crate) fn rules() -> &'static Rules {
    static RULES: LazyLock<Rules> =
        LazyLock::new(|| compile(rule_lines().chain(last_lines()).collect()));
    &RULES
}

fn compile(lines: Vec<RuleLine<'_>>) -> Rules {
    compile_lines(lines, |_| "cannot compile the built-in rules".to_owned())
}

/// Folders of the operating system's packages, which are public.
const SYSTEM_LINES: [&str; 4] = [
    "!/usr/include/**",
    "!/usr/lib/**",
    "!/usr/share/**",
    "!/nix/store/**",
];

/// Returns [`rules`] for paths outside of the roots, relative to the root of the file system.
pub(crate) fn rules_outside() -> &'static Rules {
    static RULES: LazyLock<Rules> = LazyLock::new(|| {
        let system = SYSTEM_LINES.iter().map(|text| RuleLine {
            source: SOURCE.into(),
            number: 0,
            text: text.as_bytes(),
            origin: Origin::Secret,
        });
        compile(rule_lines().chain(system).chain(last_lines()).collect())
    });
    &RULES
}

/// The first line about tokens of agents.
const AGENT_TOKENS: &str = "# Tokens of coding agents.";
/// Folders with secrets whose place only this process knows, and their rules.
static MOVED: OnceLock<Vec<(AbsPath, Rules)>> = OnceLock::new();

/// Denies files in folders that variables of the environment move, such as `auth.json` in `$CODEX_HOME`, to all views of this
/// process from now on. The first call decides.
pub fn deny_moved_secrets(files: &[(AbsPath, &str)]) {
    let text = str::from_utf8(TEXT).unwrap_or_default();
    let number = text
        .lines()
        .take_while(|line| *line != AGENT_TOKENS)
        .count();
    let rules = |name: &str| {
        let pattern = format!("/{name}");
        let line = RuleLine {
            source: SOURCE.into(),
            number: u32::try_from(number + 1).unwrap_or(1),
            text: pattern.as_bytes(),
            origin: Origin::Secret,
        };
        compile(vec![line])
    };
    let all = files
        .iter()
        .map(|(folder, name)| (folder.clone(), rules(name)));
    let _ = MOVED.set(all.collect());
}

/// Returns the rules of [`deny_moved_secrets`].
pub(crate) fn moved() -> &'static [(AbsPath, Rules)] {
    MOVED.get().map_or(&[], Vec::as_slice)
}

/// What the wildcards of a pattern can stand for, at least.
const PROBES: [&str; 2] = ["", ".x"];
/// Number of wildcards in a pattern that lifts built-in rules.
const MAX_WILDCARDS: u32 = 4;

/// Returns whether a line allows secrets: it begins with `!`, and its pattern matches nothing but secrets. A general
/// exception such as `!*` or `!/tools/**` is meant for other files.
pub(crate) fn lifts(line: &[u8]) -> bool {
    let pattern = line.strip_prefix(b"!").map(str::from_utf8);
    let Some(Ok(pattern)) = pattern else {
        return false;
    };
    let pattern = pattern.trim_end_matches(' ').trim_matches('/');
    // Wildcards of folders stand for any folder.
    let name_start = pattern.rfind('/').map_or(0, |slash| slash + 1);
    let (folders, name) = pattern.split_at(name_start);
    let folders = folders.replace("**/", "").replace(['*', '?'], "x");
    let Some(parts) = literal_parts(name) else {
        return false;
    };
    let wildcards = u32::try_from(parts.len() - 1).unwrap_or(u32::MAX);
    if wildcards > MAX_WILDCARDS {
        return false;
    }
    (0..1_u32 << wildcards).all(|choice| {
        let mut name = folders.clone();
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                name.push_str(PROBES[(choice >> (at - 1)) as usize & 1]);
            }
            name.push_str(part);
        }
        // A wildcard alone matches any name.
        let is_name = !name.is_empty() && !name.ends_with('/');
        let denies = |path: &RelPath, is_dir| rules().denial(path, || is_dir).is_some();
        is_name
            && RelPath::new(Path::new(&name))
                .is_some_and(|path| denies(&path, true) || denies(&path, false))
    })
}

/// Splits a pattern at its wildcards. Returns `None` if it has others than `*`.
fn literal_parts(pattern: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '*' => {
                while chars.next_if_eq(&'*').is_some() {}
                parts.push(String::new());
            }
            '?' | '[' => return None,
            '\\' => parts.last_mut()?.push(chars.next()?),
            c => parts.last_mut()?.push(c),
        }
    }
    Some(parts)
}
