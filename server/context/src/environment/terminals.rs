//! The terminal sections: running commands, and output since the last block.
//!
//! They never wait for output. The terminal of the agent that asks is left out, and so are those of other known
//! agents: what they show is their own screen. The same holds for the alternate screen and for programs that use it.
//! A terminal is left out if its command, or a command that its unread
//! output may come from, names a denied file. Otherwise the lines that name a denied file are left out, and the contents
//! of denied files are replaced.

use sightline_access::redact::{HiddenContents, Redactor};
use sightline_protocol::{decision::HiddenFile, editor::Terminal};

use super::{
    Inputs,
    render::{DeliveredItem, Delivery, SectionDraft},
};
use crate::editor::{TerminalState, screen_switches};
use sightline_base::{cancel::Cancel, error::Error, escape, plural::plural, words::is_one_of};

/// Programs of coding agents.
const AGENTS: &str = "aider amp auggie claude claude-code cline codex copilot crush cursor-agent droid gemini gemini-cli goose \
     opencode opencode-ai qwen qwen-code";
/// Programs that show a screen instead of output.
const SCREEN_PROGRAMS: &str = "btop emacs fzf helix htop hx lazygit less man more nano nvim screen tig tmux top vi vim watch zellij";
/// Programs that start the program named after them.
const STARTERS: &[&str] = &[
    "bun", "bunx", "command", "dlx", "env", "exec", "nice", "node", "nohup", "npm", "npx", "pnpm",
    "pnpx", "sudo", "time", "uvx", "yarn",
];
/// Maximum lines of output shown in full. Longer output is shortened to its start and end.
const MAX_LINES: usize = 500;
/// Lines kept at each end.
const END_LINES: usize = 100;
/// Maximum bytes of output shown in full. Longer output is shortened likewise.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum line, in bytes. The rest is cut.
const MAX_LINE_BYTES: usize = 2_000;

/// Drafts the terminals with a running command.
pub(super) fn running(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    let mut draft = SectionDraft {
        state_lines: Some(Vec::new()),
        ..SectionDraft::default()
    };
    for state in of_kind(inputs, true) {
        cancel.check()?;
        let Some(label) = label_to_show(inputs, state, &mut draft) else {
            continue;
        };
        let heading = format!("## Original command: `{label}`");
        draft
            .state_lines
            .get_or_insert_default()
            .push(heading.clone());
        draft.lines.push(heading);
        if let Some(output) = output(inputs, state, cancel)? {
            add_output(&mut draft, state, output);
        }
    }
    Ok(draft)
}

/// Drafts the idle terminals with unread output.
pub(super) fn inactive(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    let mut draft = SectionDraft {
        state_lines: Some(Vec::new()),
        ..SectionDraft::default()
    };
    for state in of_kind(inputs, false) {
        cancel.check()?;
        let Some(label) = label_to_show(inputs, state, &mut draft) else {
            continue;
        };
        if let Some(output) = output(inputs, state, cancel)? {
            draft.lines.push(format!("## {label}"));
            add_output(&mut draft, state, output);
        }
    }
    Ok(draft)
}

fn of_kind<'a>(inputs: &Inputs<'a>, busy: bool) -> impl Iterator<Item = &'a TerminalState> {
    let terminals = inputs.editor.terminals().iter();
    terminals.filter(move |state| state.terminal.is_busy == busy)
}

/// Returns the label of a terminal, or `None` if the terminal must not be shown.
fn label_to_show(
    inputs: &Inputs<'_>,
    state: &TerminalState,
    draft: &mut SectionDraft,
) -> Option<String> {
    let terminal = &state.terminal;
    let is_own = terminal
        .pid
        .is_some_and(|pid| inputs.params.requester_pids.contains(&pid));
    if is_own || terminal.is_busy && runs(terminal, AGENTS) {
        draft.delivered.push(Delivery {
            line: None,
            what: delivered(state),
        });
        return None;
    }
    let label = label(terminal);
    let contents = HiddenContents::default();
    let mut names = Redactor::new(inputs.access, &contents, terminal.cwd.as_deref());
    // Checks the label as shown, and each possible command as sent: neither an escape sequence nor
    // a later command may hide a name.
    let commands = state.sources.iter().chain(&terminal.command);
    let mut allowed =
        |command: &str| inputs.access.may_show_command(command) && !names.names_denied(command);
    if allowed(&label) && commands.into_iter().all(|command| allowed(command)) {
        return Some(cut_line(&escape::one_line(&label)));
    }
    // An idle terminal without output is not shown in any case.
    if terminal.is_busy || !state.unread.is_empty() {
        draft.omit();
    }
    draft.delivered.push(Delivery {
        line: None,
        what: delivered(state),
    });
    None
}

/// Returns whether one of these programs is the command of a terminal.
fn runs(terminal: &Terminal, programs: &str) -> bool {
    let command = terminal.command.as_deref().unwrap_or_default();
    command
        .split([';', '|', '&', '\n', '(', ')'])
        .filter_map(program)
        .any(|program| is_one_of(&program, programs))
}

/// Returns the name of the program that a simple command starts.
fn program(command: &str) -> Option<String> {
    let names = command.split_whitespace().map(|word| {
        let name = word.trim_matches(['"', '\'']).rsplit(['/', '\\']).next();
        let name = name.unwrap_or_default().to_ascii_lowercase();
        let name = name.split('@').next().unwrap_or_default();
        let endings = [".exe", ".cmd", ".js", ".mjs", ".cjs"];
        let plain = endings.iter().find_map(|end| name.strip_suffix(end));
        plain.unwrap_or(name).to_owned()
    });
    names
        .zip(command.split_whitespace())
        .find(|(name, word)| {
            let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
                name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            });
            !word.starts_with('-') && !is_assignment && !STARTERS.contains(&name.as_str())
        })
        .map(|(name, _)| name)
}

/// Returns the command, or the next best label.
fn label(terminal: &Terminal) -> String {
    [&terminal.command, &terminal.name]
        .into_iter()
        .flatten()
        .map(|label| plain(label).trim().to_owned())
        .find(|label| !label.is_empty())
        .unwrap_or_else(|| format!("terminal {}", terminal.id))
}

/// Unread output, ready to show.
struct TerminalOutput {
    lines: Vec<String>,
    /// Number of lines left out.
    denied: u32,
    /// Files whose contents were left out.
    hidden: Vec<HiddenFile>,
}

fn output(
    inputs: &Inputs<'_>,
    state: &TerminalState,
    cancel: &Cancel,
) -> Result<Option<TerminalOutput>, Error> {
    let terminal = &state.terminal;
    let shows_screen = terminal.alternate_screen == Some(true)
        || terminal.is_busy && runs(terminal, SCREEN_PROGRAMS);
    if shows_screen {
        return Ok(None);
    }
    let text = plain(&without_alternate_screen(
        &state.unread,
        state.starts_in_alternate_screen,
    ));
    let mut lines: Vec<&str> = text
        .trim_start_matches('\n')
        .trim_end()
        .lines()
        .map(str::trim_end)
        .collect();
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    if let Some(last) = lines.pop() {
        let last = last.strip_suffix(['%', '$', '#', '>']).unwrap_or(last);
        if !last.trim().is_empty() {
            lines.push(last.trim_end());
        }
    }
    if lines.is_empty() {
        return Ok(None);
    }
    cancel.check()?;
    let contents = (inputs.hidden_contents)();
    let mut redactor = Redactor::new(inputs.access, &contents, terminal.cwd.as_deref());
    let text = lines.join("\n");
    let redacted = redactor.redact_after(&plain(&state.earlier), &text, true);
    let mut shown = TerminalOutput {
        lines: Vec::new(),
        denied: redacted.left_out,
        hidden: redacted.hidden,
    };
    let lines: Vec<&str> = redacted.text.lines().collect();
    let (head, tail) = shorten(&lines);
    let skipped = lines.len() - head.len() - tail.len();
    shown.lines.extend(head.iter().map(|line| cut_line(line)));
    if skipped > 0 {
        shown
            .lines
            .push(format!("[... {skipped} lines not shown ...]"));
    }
    shown.lines.extend(tail.iter().map(|line| cut_line(line)));
    Ok(Some(shown))
}

/// Returns the text that a program printed outside of the alternate screen.
fn without_alternate_screen(raw: &str, mut is_inside: bool) -> String {
    let mut kept = String::with_capacity(raw.len());
    let mut start = 0;
    for (at, end, enters) in screen_switches(raw) {
        if !is_inside {
            kept.push_str(&raw[start..at]);
        }
        is_inside = enters;
        start = end;
    }
    if !is_inside {
        kept.push_str(&raw[start..]);
    }
    kept
}

fn add_output(draft: &mut SectionDraft, state: &TerminalState, output: TerminalOutput) {
    draft.delivered.push(Delivery {
        line: Some(draft.lines.len()),
        what: delivered(state),
    });
    draft.lines.push("### New Output".to_owned());
    draft.lines.extend(output.lines);
    draft.hidden.extend(output.hidden);
    if output.denied > 0 {
        let lines = plural(output.denied, "line");
        draft
            .lines
            .push(format!("({lines} hidden by access rules)"));
        draft.omitted = draft.omitted.saturating_add(output.denied);
    }
}

fn delivered(state: &TerminalState) -> DeliveredItem {
    DeliveredItem::Terminal {
        id: state.terminal.id.clone(),
        received: state.received,
    }
}

/// Returns the start and the end of the output to show. Short output is returned in full.
fn shorten<'a, 'b>(lines: &'a [&'b str]) -> (&'a [&'b str], &'a [&'b str]) {
    let bytes: usize = lines
        .iter()
        .map(|line| line.len().min(MAX_LINE_BYTES))
        .sum();
    if lines.len() <= MAX_LINES && bytes <= MAX_BYTES {
        return (lines, &[]);
    }
    let fitting = |lines: &mut dyn Iterator<Item = &&str>| {
        lines
            .take(END_LINES)
            .scan(MAX_BYTES / 2, |left, line| {
                *left = left.checked_sub(line.len().min(MAX_LINE_BYTES))?;
                Some(())
            })
            .count()
    };
    let head = fitting(&mut lines.iter());
    let rest = &lines[head..];
    let tail = fitting(&mut rest.iter().rev());
    (&lines[..head], &rest[rest.len() - tail..])
}

/// Truncates a long line.
fn cut_line(line: &str) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line.to_owned();
    }
    let mut end = MAX_LINE_BYTES;
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    let kept = &line[..end];
    format!("{kept} [... {} bytes not shown]", line.len() - kept.len())
}

/// Renders `raw` as a terminal does: removes escape sequences and control characters, and applies
/// carriage returns and backspaces.
fn plain(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut line_start = 0;
    let mut returned = false;
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' | '\u{9b}' => match skip_escape(c, &mut chars) {
                // Text after a movement of the cursor does not continue the word before it.
                Some('C' | 'G' | '`') => out.push(' '),
                Some('A' | 'B' | 'E' | 'F' | 'H' | 'd' | 'f') if !out.is_empty() => {
                    out.push('\n');
                    line_start = out.len();
                    returned = false;
                }
                _ => {}
            },
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            '\n' => {
                out.push('\n');
                line_start = out.len();
                returned = false;
            }
            '\r' => returned = true,
            '\u{8}' => {
                if out.len() > line_start {
                    out.pop();
                }
            }
            c if c.is_control() && c != '\t' => {}
            c => {
                if returned {
                    out.truncate(line_start);
                    returned = false;
                }
                out.push(c);
            }
        }
    }
    out
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips an escape sequence that starts with `start`. Returns the final character of a control sequence.
fn skip_escape(start: char, chars: &mut Chars<'_>) -> Option<char> {
    match chars.peek() {
        _ if start == '\u{9b}' => return skip_control_sequence(chars),
        Some('[') => {
            chars.next();
            return skip_control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        _ => {
            while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            chars.next_if(|c| matches!(c, '0'..='~'));
        }
    }
    None
}

/// Skips a control sequence after `ESC [`: parameters and one final character, which is returned.
fn skip_control_sequence(chars: &mut Chars<'_>) -> Option<char> {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'))
}

/// Skips a string, such as a title, up to BEL or ST. An unterminated string ends at a line break.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        if matches!(c, '\u{7}' | '\u{9c}') {
            return;
        }
        if c == '\u{1b}' {
            chars.next_if_eq(&'\\');
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_removed() {
        for (raw, shown) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pdata\u{1b}\\x", "x"),
            ("\u{9b}1mx\u{9d}t\u{9c}y", "xy"),
            ("\u{1b}(Bx\u{1b}=y\u{1b}7z", "xyz"),
            ("a\u{0}\u{7}b\tc", "ab\tc"),
            ("10%\r20%\r\u{1b}[K30%\r\n", "30%\n"),
            ("kept\r", "kept"),
            ("s\u{8}se\u{8}ec\u{8}c", "sec"),
            ("a\n\u{8}\u{8}b", "a\nb"),
            ("\u{1b}]never ends\nnext", "\nnext"),
            ("a\u{1b}[2Cb\u{1b}[9Gc", "a b c"),
            ("a\u{1b}[2Kb\u{1b}[3;1Hc", "ab\nc"),
            ("\u{1b}[12", ""),
            ("\u{1b}", ""),
            ("\u{1b}[3\nx", "\nx"),
        ] {
            assert_eq!(plain(raw), shown, "{raw:?}");
        }
    }

    #[test]
    fn many_lines_keep_both_ends() {
        let lines: Vec<String> = (0..501).map(|n| n.to_string()).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (head, tail) = shorten(&lines[..500]);
        assert_eq!((head.len(), tail.len()), (500, 0));
        let (head, tail) = shorten(&lines);
        assert_eq!((head.len(), tail.len()), (100, 100));
        assert_eq!((head[99], tail[0], tail[99]), ("99", "401", "500"));
    }

    #[test]
    fn many_bytes_keep_both_ends() {
        let long = "x".repeat(10_000);
        let lines = vec![long.as_str(); 40];
        let (head, tail) = shorten(&lines);
        assert_eq!((head.len(), tail.len()), (16, 16));
        assert!(cut_line(&long).len() < MAX_LINE_BYTES + 40);
    }
}
