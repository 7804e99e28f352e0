//! Predicts the output of `echo` and `printf`.

use super::{CommandChecker, shell::ShellState, words::parts};

impl CommandChecker<'_> {
    /// Returns the output of a substitution that is a plain `echo` or `printf`, or the path of a
    /// program.
    pub(super) fn printed(&mut self, body: &str, state: &ShellState) -> Option<String> {
        let words = simple_words(body)?;
        let (name, operands) = words.split_first()?;
        let mut texts = Vec::new();
        for operand in operands {
            let fields = self.expand_parts(parts(operand), operand, state);
            let [field] = fields.as_slice() else {
                return None;
            };
            if field.has_pattern() {
                return None;
            }
            texts.push(field.known()?);
        }
        let text = match name.as_str() {
            "echo" => printed_by_echo(&texts),
            "printf" => printed_by_printf(&texts),
            "which" if texts.len() == 1 => path_of_program(&texts[0])?,
            "command" if texts.len() == 2 && texts[0] == "-v" => path_of_program(&texts[1])?,
            "type" if texts.len() == 2 && matches!(&*texts[0], "-p" | "-P") => {
                path_of_program(&texts[1])?
            }
            "pwd" => state.dirs.first()?.to_str()?.to_owned(),
            "git" if texts == ["rev-parse", "--show-toplevel"] => {
                let mut above = state.dirs.first()?.ancestors();
                let top = above.find(|above| above.join(".git").exists())?;
                top.to_str()?.to_owned()
            }
            _ => return None,
        };
        Some(text.trim_end_matches('\n').to_owned())
    }
}

/// Returns the path of a program that is found by its name.
fn path_of_program(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found
        .find(|file| file.is_file())?
        .to_str()
        .map(str::to_owned)
}

/// Returns the output of `echo`.
pub(super) fn printed_by_echo(operands: &[String]) -> String {
    let skipped = operands
        .iter()
        .take_while(|word| matches!(word.as_str(), "-n" | "-e" | "-E" | "-ne" | "-en"))
        .count();
    operands[skipped..].join(" ")
}

/// Returns the approximate output of `printf`: its operands, or its format if there are none.
pub(super) fn printed_by_printf(operands: &[String]) -> String {
    let clean = |text: &str| text.replace("\\n", "\n").replace("\\t", "\t");
    match operands {
        [] => String::new(),
        [format] => clean(format),
        [format, rest @ ..] if format.matches('%').count() == rest.len() => {
            // Placeholders in order: `printf '%s.%s' a b`.
            let mut text = String::new();
            let mut rest = rest.iter();
            let mut pieces = format.split('%');
            text.push_str(pieces.next().unwrap_or_default());
            for piece in pieces {
                text.push_str(rest.next().map_or("", String::as_str));
                text.push_str(piece.get(1..).unwrap_or_default());
            }
            clean(&text)
        }
        [_, rest @ ..] => rest.join("\n"),
    }
}

/// Splits a command that consists of words only.
fn simple_words(body: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote: Option<char> = None;
    let mut chars = body.trim().chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, ' ' | '\t') => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                continue;
            }
            (None, ';' | '|' | '&' | '<' | '>' | '(' | ')' | '\n' | '#') => return None,
            (None | Some('"'), '`') => return None,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => {
                word.push(c);
                word.extend(chars.next());
                continue;
            }
            _ => {}
        }
        word.push(c);
    }
    if !word.is_empty() {
        words.push(word);
    }
    Some(words)
}
