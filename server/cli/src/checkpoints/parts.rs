//! Changes of a preview, to choose from by their numbers.

use std::sync::Arc;

use sightline_base::escape::one_line;
use sightline_engine::{error::Error, render::BOLD};
use sightline_protocol::{
    checkpoint::{PreviewRestoreResult, RestoreAction, RestoreCheckpointResult},
    error::ErrorKind,
};

use super::{
    confirm::answer,
    difference::{Difference, TO_REVERT},
    picker::{
        choice::Choice,
        preview::{Chosen, Preview},
    },
};
use crate::{print_styled as print, requests::Requests};

/// A hunk of a changed file, or a file without hunks.
struct Part {
    /// Index of the change.
    change: usize,
    /// Index and number of the hunks of the file.
    hunk: (usize, usize),
    patch: Arc<str>,
}

/// Lists the hunks of a preview of `of`, asks for their numbers, and restores these. `None` if none are named.
///
/// # Errors
/// `conflict` if files have changed since the preview; those of a restore.
pub(super) fn restore(
    requests: &Requests,
    of: Choice,
    result: PreviewRestoreResult,
) -> Result<Option<RestoreCheckpointResult>, Error> {
    let mut preview = Preview::new(of, result);
    let mut parts: Vec<Part> = Vec::new();
    print(&format!("{BOLD}{TO_REVERT}{BOLD:#}\n"))?;
    for at in 0..preview.chosen.len() {
        preview.chosen[at] = Chosen::Nothing;
        preview.selected = at;
        let Some(compared) = preview.compared() else {
            break;
        };
        let difference = Difference::new(compared.difference(requests));
        let change = &preview.result.changes[at];
        let action = match change.action {
            RestoreAction::Write => "write",
            RestoreAction::Delete => "delete",
        };
        let mut text = format!("{BOLD}{action} {}{BOLD:#}\n", one_line(&change.path));
        let count = difference.hunks.len();
        for hunk in 0..count.max(1) {
            parts.push(Part {
                change: at,
                hunk: (hunk, count),
                patch: difference.patch.clone(),
            });
            let number = parts.len();
            text.push_str(&format!("{number:>3}  "));
            let lines = difference.hunk(hunk);
            match lines {
                [] => text.push_str("the whole file\n"),
                _ => text.extend(lines.iter().enumerate().map(|(line, (style, shown))| {
                    let indent = if line == 0 { "" } else { "     " };
                    format!("{indent}{style}{shown}{style:#}\n")
                })),
            }
        }
        print(&text)?;
    }
    let question = "Numbers of the changes to restore, such as 1,3-5: ";
    let numbers = loop {
        let Some(answer) = answer(question)?.filter(|answer| !matches!(&**answer, "" | "q")) else {
            return Ok(None);
        };
        match numbers(&answer, parts.len()) {
            Some(numbers) => break numbers,
            None => print(&format!("not numbers from 1 to {}\n", parts.len()))?,
        }
    };
    for number in numbers {
        let Part {
            change,
            hunk: (at, count),
            patch,
        } = &parts[number - 1];
        let chosen = &mut preview.chosen[*change];
        if !chosen.has_hunk(*at) {
            *chosen = chosen.toggled(*at, *count, patch.clone());
        }
    }
    let choice = preview.choice();
    let mut token = preview.result.token.clone();
    if choice != preview.of {
        let part = choice.preview(requests, false)?;
        if !preview.has_chosen(&part) {
            let why = "files changed after the preview; nothing was restored";
            return Err(Error::new(ErrorKind::Conflict, why.to_owned()));
        }
        token = part.token;
    }
    choice.restore(requests, token).map(Some)
}

/// Parses numbers up to `most`, and ranges of them.
fn numbers(text: &str, most: usize) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split([',', ' ']).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if first == 0 || first > last || last > most {
            return None;
        }
        all.extend(first..=last);
    }
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_parsed() {
        assert_eq!(numbers("1,3-5", 5), Some(vec![1, 3, 4, 5]));
        assert_eq!(numbers(" 2, 1 ", 5), Some(vec![2, 1]));
        for wrong in ["0", "6", "4-6", "3-2", "x", "1-", ",", "1;2"] {
            assert_eq!(numbers(wrong, 5), None, "{wrong}");
        }
    }
}
