//! Hides the content of denied files in terminal output.
//!
//! Many programs print a line that names a file, followed by its content. After a line that names a
//! denied file, everything is hidden until the same program starts another file. A blank line or
//! another program's heading does not end it, because it may be part of the content.

/// Output format of a program, which determines where the content of a file ends.
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
    /// `more`: from a name between two rulers to the next one. `rulers` counts the rulers passed.
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
    /// Processes the next line, which names a denied file if `denied`. Returns whether it is part
    /// of a denied file's content.
    pub(super) fn is_hidden(&mut self, line: &str, denied: bool) -> bool {
        let alone = !line.is_empty() && !line.contains(char::is_whitespace);
        let line = without_graph(line);
        let next = match self.hidden {
            None if denied => self.format_of_heading(line, alone),
            None => None,
            Some(OutputFormat::Block) if denied => {
                // Another kind of heading hides more lines.
                Some(
                    self.format_of_heading(line, alone)
                        .unwrap_or(OutputFormat::Block),
                )
            }
            Some(hidden) => self.next_hidden(hidden, line, denied),
        };
        self.after_ruler = is_ruler(line);
        self.after_gap = line.trim().is_empty() || line.starts_with('\u{2500}');
        // The last line of a frame is hidden with it.
        let was_bat = self.hidden == Some(OutputFormat::Bat) && is_frame_end(line);
        self.hidden = next;
        next.is_some() || was_bat
    }

    /// Ends hiding at a prompt, where the output of another command starts.
    pub(super) fn end(&mut self) {
        self.hidden = None;
    }

    /// Returns the format of a heading, or `None` for any other line.
    fn format_of_heading(&self, line: &str, alone: bool) -> Option<OutputFormat> {
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

    /// Returns the hidden format after `line`, given the one before it.
    fn next_hidden(&self, hidden: OutputFormat, line: &str, denied: bool) -> Option<OutputFormat> {
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

/// Removes the graph that `git log --graph` prints before `line`.
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

/// Last line of a frame: `───────┴─────────`.
fn is_frame_end(line: &str) -> bool {
    line.starts_with('\u{2500}')
        && line.contains('\u{2534}')
        && line.chars().all(|c| matches!(c, '\u{2500}' | '\u{2534}'))
}

/// `more` prints a ruler above and below a name.
fn is_ruler(line: &str) -> bool {
    line.len() >= 8 && line.bytes().all(|byte| byte == b':')
}
