//! What an agent gets when its conversation was made shorter, or continues after a pause: what is known
//! about its session, without asking a model.

use super::{Markup, block::marked_up};

/// Maximum length, in characters. A token of text is at least two characters on average, also in paths,
/// so this is at most 1,500 tokens.
const MAX_CHARS: usize = 3000;
/// Characters that one counts as which is not ASCII: such a character is up to three tokens.
const OTHER_CHARS: usize = 6;
/// Maximum length of one line, in characters.
const MAX_LINE: usize = 300;
/// Length that is kept for the lines that say how many are left out.
const RESERVED: usize = 120;

const INTRODUCTION: &str =
    "The earlier conversation may no longer be complete. This is what is known about this session:";

/// A file that a session used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedFile {
    /// Path relative to the workspace folder, on one line.
    pub path: String,
    /// Whether the session changed it.
    pub is_edited: bool,
    /// Whether others changed it after the session had used it.
    pub is_stale: bool,
}

/// What is known about a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkingContext {
    /// The first prompt, or its beginning.
    pub first_prompt: Option<String>,
    /// Names of the turns, oldest first.
    pub turns: Vec<String>,
    /// Files, the one used last first.
    pub files: Vec<UsedFile>,
    /// Problems that language servers report.
    pub diagnostics: Option<String>,
}

impl WorkingContext {
    /// Returns the text for the model. `None` if nothing is known.
    pub fn render(&self, markup: Markup) -> Option<String> {
        let edited = self.files.iter().filter(|file| file.is_edited);
        let read = self.files.iter().filter(|file| !file.is_edited);
        let diagnostics = self.diagnostics.iter().flat_map(|text| text.lines());
        // Most important first.
        let sections = [
            ("First Prompt", self.first_prompt.iter().cloned().collect()),
            ("Turns", self.turn_lines()),
            ("Files You Changed", edited.map(UsedFile::line).collect()),
            ("Diagnostics", diagnostics.map(str::to_owned).collect()),
            ("Files You Read", read.map(UsedFile::line).collect()),
        ];
        let mut body = format!("# Working Context\n{INTRODUCTION}");
        let mut left = MAX_CHARS - RESERVED - length(&marked_up(body.clone(), markup));
        let mut is_empty = true;
        for (heading, lines) in sections {
            let head = format!("\n\n# {heading}");
            let lines: Vec<String> = lines;
            if lines.is_empty() || length(&head) > left {
                continue;
            }
            is_empty = false;
            left -= length(&head);
            body.push_str(&head);
            for (at, line) in lines.iter().enumerate() {
                let line = format!("\n{}", shortened(line));
                if length(&line) > left {
                    body.push_str(&format!("\n({} more)", lines.len() - at));
                    break;
                }
                left -= length(&line);
                body.push_str(&line);
            }
        }
        (!is_empty).then(|| marked_up(body, markup))
    }

    fn turn_lines(&self) -> Vec<String> {
        let named = match &*self.turns {
            [] => return Vec::new(),
            [one] => one.clone(),
            [first, .., last] => format!("{first} to {last}"),
        };
        vec![format!(
            "{named}. The user can restore the project to the state before one of them by its name."
        )]
    }
}

impl UsedFile {
    fn line(&self) -> String {
        let path = &self.path;
        if self.is_stale {
            format!("{path} (changed by others since; read it again)")
        } else {
            path.clone()
        }
    }
}

/// Returns the length that counts for the limit.
fn length(text: &str) -> usize {
    text.chars()
        .map(|c| if c.is_ascii() { 1 } else { OTHER_CHARS })
        .sum()
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(path: &str, is_edited: bool, is_stale: bool) -> UsedFile {
        UsedFile {
            path: path.to_owned(),
            is_edited,
            is_stale,
        }
    }

    #[test]
    fn what_is_known_is_in_sections() {
        let context = WorkingContext {
            first_prompt: Some("fix the parser".to_owned()),
            turns: ["claude-2.1", "claude-2.2"].map(str::to_owned).to_vec(),
            files: vec![used("a.js", true, true), used("b.js", false, false)],
            diagnostics: Some("a.js\n- [Error] Line 1: no".to_owned()),
        };
        let expected = format!(
            "# Working Context\n{INTRODUCTION}\n\n# First Prompt\nfix the parser\n\n# Turns\n\
             claude-2.1 to claude-2.2. The user can restore the project to the state before one of \
             them by its name.\n\n# Files You Changed\na.js (changed by others since; read it again)\n\n\
             # Diagnostics\na.js\n- [Error] Line 1: no\n\n# Files You Read\nb.js"
        );
        assert_eq!(context.render(Markup::Headings), Some(expected.clone()));
        let tagged = format!("<environment_details>\n{expected}\n</environment_details>");
        assert_eq!(context.render(Markup::Tagged), Some(tagged));
        assert_eq!(WorkingContext::default().render(Markup::Tagged), None);
    }

    #[test]
    fn it_has_a_limit_in_every_script() {
        for name in ["a", "ä", "漢", "\u{1f600}"] {
            let many = |is_edited| {
                (0..500).map(move |at| used(&format!("{}{at}", name.repeat(50)), is_edited, false))
            };
            let context = WorkingContext {
                first_prompt: Some(name.repeat(5000)),
                turns: vec![name.repeat(500); 3],
                files: many(true).chain(many(false)).collect(),
                diagnostics: Some(vec![name.repeat(400); 100].join("\n")),
            };
            let text = context.render(Markup::Tagged).unwrap();
            assert!(length(&text) <= MAX_CHARS, "{}", length(&text));
            assert!(text.contains(" more)"), "{text}");
        }
    }
}
