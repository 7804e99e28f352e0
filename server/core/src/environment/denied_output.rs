//! Whose content a terminal prints.
//!
//! Many programs print a line that names a file and then what is in it. After one that names a
//! denied file all is hidden until the same program begins with another file: a blank line or a
//! heading of another kind may be a part of the content.

/// What was printed last, and how its end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputFormat {
    /// git and `diff -r`: from a line `diff …` to the next one, or to the next commit.
    Diff,
    /// `diff -u`: from `--- name` or `+++ name` to the next pair of them.
    Unified { after_old_name: bool },
    /// `head` and `tail`: from `==> name <==` to the next one.
    Head,
    /// `bat`: from `File: name` to the end of its frame, or to the next file.
    Bat,
    /// `more`: from a name between two rulers to the next one. `rulers` counts those passed.
    More { rulers: u8 },
    /// A search, `ls` and others: from a name alone on its line to a blank line.
    Block,
}

/// Follows the output of a terminal line by line.
#[derive(Debug, Default)]
pub(super) struct DeniedOutput {
    hidden: Option<OutputFormat>,
    after_ruler: bool,
    after_gap: bool,
}

impl DeniedOutput {
    /// Takes the next line. `denied` if it names a denied file. Returns whether the line is part of
    /// a denied file's content.
    pub(super) fn is_hidden(&mut self, line: &str, denied: bool) -> bool {
        let alone = !line.is_empty() && !line.contains(char::is_whitespace);
        let line = without_graph(line);
        let next = match self.hidden {
            None if denied => self.printer(line, alone),
            None => None,
            Some(OutputFormat::Block) if denied => {
                // Another kind of heading hides for longer.
                Some(self.printer(line, alone).unwrap_or(OutputFormat::Block))
            }
            Some(hidden) => self.following(hidden, line, denied),
        };
        self.after_ruler = is_ruler(line);
        self.after_gap = line.trim().is_empty() || line.starts_with('\u{2500}');
        // The line that ends a frame belongs to it.
        let was_bat = self.hidden == Some(OutputFormat::Bat) && is_frame_end(line);
        self.hidden = next;
        next.is_some() || was_bat
    }

    /// A prompt was shown: what follows is of another command.
    pub(super) fn end(&mut self) {
        self.hidden = None;
    }

    /// The printer that a heading is of; `None` for any other line.
    fn printer(&self, line: &str, alone: bool) -> Option<OutputFormat> {
        if line.starts_with("diff ") {
            Some(OutputFormat::Diff)
        } else if line.starts_with("--- ") || line.starts_with("+++ ") {
            Some(OutputFormat::Unified {
                after_old_name: false,
            })
        } else if line.starts_with("==> ") {
            Some(OutputFormat::Head)
        } else if is_bat_heading(line) {
            Some(OutputFormat::Bat)
        } else if self.after_ruler {
            Some(OutputFormat::More { rulers: 0 })
        } else if alone {
            Some(OutputFormat::Block)
        } else {
            None
        }
    }

    /// What is hidden after `line`, when `hidden` was before it.
    fn following(&self, hidden: OutputFormat, line: &str, denied: bool) -> Option<OutputFormat> {
        let ends = match hidden {
            OutputFormat::Diff => line.starts_with("diff ") || is_commit(line),
            OutputFormat::Unified { after_old_name } => {
                if line.starts_with("diff ") {
                    return denied.then_some(OutputFormat::Diff);
                }
                let ends = after_old_name && line.starts_with("+++ ") && !denied;
                let after_old_name = line.starts_with("--- ") && !denied;
                return (!ends).then_some(OutputFormat::Unified { after_old_name });
            }
            OutputFormat::Head => line.starts_with("==> "),
            OutputFormat::Bat => is_frame_end(line) || (self.after_gap && is_bat_heading(line)),
            OutputFormat::More { rulers } => {
                if is_ruler(line) {
                    let rulers = rulers.saturating_add(1);
                    return Some(OutputFormat::More { rulers });
                }
                if !(self.after_ruler && rulers >= 2) {
                    return Some(hidden);
                }
                if denied {
                    return Some(OutputFormat::More { rulers: 0 });
                }
                true
            }
            OutputFormat::Block => line.trim().is_empty() || line.starts_with("==> "),
        };
        if ends && !denied { None } else { Some(hidden) }
    }
}

/// `line` without the lines that `git log --graph` draws before it.
fn without_graph(mut line: &str) -> &str {
    while let Some(rest) = ["| ", "* ", "\\ ", "/ "]
        .iter()
        .find_map(|column| line.strip_prefix(column))
    {
        line = rest;
    }
    line
}

fn is_commit(line: &str) -> bool {
    line.strip_prefix("commit ").is_some_and(|rest| {
        let id = rest.split(' ').next().unwrap_or_default();
        id.len() >= 7 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn is_bat_heading(line: &str) -> bool {
    line.trim_start_matches([' ', '\u{2502}', '|'])
        .starts_with("File: ")
}

/// The last line of a frame: `───────┴─────────`.
fn is_frame_end(line: &str) -> bool {
    line.starts_with('\u{2500}')
        && line.contains('\u{2534}')
        && line.chars().all(|c| matches!(c, '\u{2500}' | '\u{2534}'))
}

/// What `more` prints above and below a name.
fn is_ruler(line: &str) -> bool {
    line.len() >= 8 && line.bytes().all(|byte| byte == b':')
}
