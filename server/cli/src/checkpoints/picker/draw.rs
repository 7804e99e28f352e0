//! Draws the state of the picker.

use anstyle::{AnsiColor, Color as NamedColor, Effects};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span, Text},
    widgets::{Block, Borders, List, ListItem, ListState, Paragraph, Wrap},
};
use sightline_base::{escape::one_line, plural::plural};
use sightline_engine::render::{
    BOLD, CHANGED, DIM, REMOVED, target as target_line,
    timeline::{Clock, Row},
};
use sightline_protocol::checkpoint::RestoreAction;

use super::{
    super::difference::TO_REVERT,
    preview::{Chosen, Preview},
    state::{Done, Pane, Picker, Screen},
};

/// Below this width, only the pane with the focus is drawn.
const TWO_PANES: u16 = 60;

/// Whether there are colors. Without, styles are bold, dim and reversed.
#[derive(Clone, Copy)]
pub(super) struct Colors(pub(super) bool);

impl Colors {
    fn of(self, style: anstyle::Style) -> Style {
        let effects = style.get_effects();
        let mut shown = Style::new();
        if effects.contains(Effects::BOLD) {
            shown = shown.add_modifier(Modifier::BOLD);
        }
        if effects.contains(Effects::DIMMED) {
            shown = shown.add_modifier(Modifier::DIM);
        }
        let color = match style.get_fg_color() {
            Some(NamedColor::Ansi(AnsiColor::Green)) => Color::Green,
            Some(NamedColor::Ansi(AnsiColor::Red)) => Color::Red,
            Some(NamedColor::Ansi(AnsiColor::Yellow)) => Color::Yellow,
            Some(NamedColor::Ansi(AnsiColor::Cyan)) => Color::Cyan,
            _ => return shown,
        };
        if self.0 { shown.fg(color) } else { shown }
    }

    fn span<'a>(self, style: anstyle::Style, text: impl Into<String>) -> Span<'a> {
        Span::styled(text.into(), self.of(style))
    }
}

/// Draws the state, and notes the heights that moving by a page needs.
pub(super) fn draw(picker: &mut Picker, colors: Colors, frame: &mut Frame<'_>) {
    let [body, bottom] =
        Layout::vertical([Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
    match &picker.screen {
        Screen::Browse | Screen::Previewing(_, None) => draw_browse(picker, colors, frame, body),
        Screen::Preview(_) | Screen::Previewing(_, Some(_)) => {
            draw_preview(picker, colors, frame, body);
        }
        Screen::Restoring => frame.render_widget(Paragraph::new("Restoring…"), body),
        Screen::Done(done) => {
            let lines = Paragraph::new(done_lines(done, colors)).wrap(Wrap { trim: false });
            frame.render_widget(lines, body);
        }
    }
    frame.render_widget(bottom_line(picker, colors), bottom);
}

/// Splits an area into the list and the difference. An area that is not drawn is empty.
fn panes(area: Rect, focus: Pane) -> (Rect, Rect) {
    if area.width < TWO_PANES {
        return match focus {
            Pane::List => (area, Rect::default()),
            Pane::Difference => (Rect::default(), area),
        };
    }
    let list = (area.width * 9 / 20).min(60);
    let [left, right] =
        Layout::horizontal([Constraint::Length(list), Constraint::Min(1)]).areas(area);
    (left, right)
}

fn draw_browse(picker: &mut Picker, colors: Colors, frame: &mut Frame<'_>, area: Rect) {
    let (left, right) = panes(area, picker.focus);
    let clock = Clock::now();
    let items: Vec<ListItem<'_>> = picker
        .shown()
        .map(|row| ListItem::new(row_text(row, &clock, colors, left.width)))
        .collect();
    let count = picker.matching.len();
    let title = match (picker.is_filtering, &*picker.filter) {
        (false, "") => format!("{} to restore", plural(count, "state")),
        (is_filtering, filter) => {
            let cursor = if is_filtering { "_" } else { "" };
            format!("/{}{cursor}  {count} found", one_line(filter))
        }
    };
    let is_focused = picker.focus == Pane::List;
    let heights = items.iter().map(ListItem::height).sum::<usize>() / count.max(1);
    picker.heights.list = usize::from(left.height.saturating_sub(1)) / heights.max(1);
    draw_list(frame, left, &title, items, picker.selected, is_focused);
    let title = picker.row().map_or_else(String::new, |row| {
        let name = &row.name;
        if row.is_turn {
            format!("changed by {name}")
        } else {
            format!("changed since {name}")
        }
    });
    draw_difference(picker, colors, frame, right, &title);
}

fn draw_list(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    items: Vec<ListItem<'_>>,
    selected: usize,
    is_focused: bool,
) {
    let highlight = if is_focused {
        // Of one color, so that it reads as one.
        let plain = Style::new().fg(Color::Reset).remove_modifier(Modifier::DIM);
        plain.add_modifier(Modifier::REVERSED)
    } else {
        Style::from(Modifier::BOLD)
    };
    let list = List::new(items)
        .block(
            Block::new()
                .title(title.to_owned())
                .title_style(Modifier::BOLD),
        )
        .highlight_symbol("> ")
        .highlight_style(highlight);
    let mut state = ListState::default().with_selected(Some(selected));
    frame.render_stateful_widget(list, area, &mut state);
}

/// Returns the lines of a row. Notes that do not fit into the width are on the next line.
fn row_text(row: &Row, clock: &Clock, colors: Colors, width: u16) -> Text<'static> {
    let mut first = vec![
        Span::raw(format!("{} ", clock.time(row.at))),
        colors.span(CHANGED, row.name.clone()),
    ];
    for (style, count) in &row.counts {
        first.extend([Span::raw(" "), colors.span(*style, count.clone())]);
    }
    first.extend(row.files.iter().map(|files| Span::raw(format!(" {files}"))));
    let notes = row
        .notes
        .iter()
        .map(|note| colors.span(DIM, format!(" {note}")));
    let mut lines = vec![Line::from_iter(first.iter().cloned().chain(notes.clone()))];
    // The mark of the selected row is in front.
    if lines[0].width() + 2 > width.into() {
        let indent = Span::raw(" ");
        lines = vec![
            Line::from(first),
            Line::from_iter([indent].into_iter().chain(notes)),
        ];
    }
    let texts = row.prompt.iter().chain(&row.labels);
    lines.extend(texts.map(|text| Line::raw(format!("  {text}"))));
    let outside = row.outside.iter();
    lines.extend(outside.map(|text| Line::from(colors.span(DIM, format!("  {text}")))));
    Text::from(lines)
}

fn draw_difference(
    picker: &mut Picker,
    colors: Colors,
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
) {
    let block = Block::new()
        .borders(Borders::LEFT)
        .title(format!(" {title}"))
        .title_style(match picker.focus {
            Pane::Difference => Modifier::BOLD | Modifier::REVERSED,
            Pane::List => Modifier::BOLD,
        });
    let inner = block.inner(area);
    picker.heights.difference = inner.height.into();
    frame.render_widget(block, area);
    let (line, column) = picker.scroll;
    let lines: Vec<Line<'_>> = match picker.difference() {
        Some(difference) => {
            let shown = difference.lines.iter().enumerate().skip(line);
            shown
                .take(inner.height.into())
                .map(|(at, (style, text))| {
                    let moved = text.chars().skip(column);
                    let hunk = difference.hunks.binary_search(&at).ok();
                    let (mark, is_current) = hunk
                        .and_then(|hunk| hunk_mark(picker, hunk))
                        .unwrap_or((" ", false));
                    let text = format!("{mark}{}", moved.collect::<String>());
                    let line = Line::from(colors.span(*style, text));
                    if is_current {
                        line.style(Modifier::REVERSED)
                    } else {
                        line
                    }
                })
                .collect()
        }
        None if picker.compared().is_some() => vec![Line::raw(" …")],
        None => Vec::new(),
    };
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Returns the mark of a hunk of a previewed file: whether it is restored, and whether the cursor is on it.
fn hunk_mark(picker: &Picker, hunk: usize) -> Option<(&'static str, bool)> {
    let Screen::Preview(preview) = &picker.screen else {
        return None;
    };
    let chosen = preview.chosen.get(preview.selected)?;
    let is_current = picker.focus == Pane::Difference && hunk == preview.hunk;
    let mark = match (is_current, chosen.has_hunk(hunk)) {
        (false, true) => " [x] ",
        (false, false) => " [ ] ",
        (true, true) => ">[x] ",
        (true, false) => ">[ ] ",
    };
    Some((mark, is_current))
}

fn draw_preview(picker: &mut Picker, colors: Colors, frame: &mut Frame<'_>, area: Rect) {
    let (Screen::Preview(preview) | Screen::Previewing(_, Some(preview))) = &picker.screen else {
        return;
    };
    let head = preview_head(preview, colors);
    let width = usize::from(area.width.max(1));
    // Words that do not fit are moved to the next line, which may need one more.
    let heights = head.iter().map(|line| match line.width().div_ceil(width) {
        lines @ (0 | 1) => lines,
        lines => lines + 1,
    });
    let height = u16::try_from(heights.sum::<usize>()).unwrap_or(u16::MAX);
    let [top, body] = Layout::vertical([
        Constraint::Length(height.min(area.height / 2)),
        Constraint::Min(1),
    ])
    .areas(area);
    let (left, right) = panes(body, picker.focus);
    let items = preview_items(preview, colors);
    let (selected, is_focused) = (preview.selected, picker.focus == Pane::List);
    let title = format!("{} to restore", preview.counts());
    frame.render_widget(Paragraph::new(head).wrap(Wrap { trim: false }), top);
    picker.heights.list = left.height.saturating_sub(1).into();
    draw_list(frame, left, &title, items, selected, is_focused);
    draw_difference(picker, colors, frame, right, TO_REVERT);
}

fn preview_head(preview: &Preview, colors: Colors) -> Vec<Line<'static>> {
    let target = preview.result.target.iter().map(|target| {
        let line = target_line(target).trim_end().to_owned();
        Line::from(colors.span(BOLD, line))
    });
    let warnings = preview.result.warnings.iter().map(|warning| {
        let text = format!(" {}", one_line(warning));
        Line::from(vec![colors.span(CHANGED, "warning"), Span::raw(text)])
    });
    let only = preview.is_only_turn().then(|| {
        let text = "only what this turn changed; later changes are kept";
        Line::from(colors.span(CHANGED, text))
    });
    target.chain(only).chain(warnings).collect()
}

fn preview_items(preview: &Preview, colors: Colors) -> Vec<ListItem<'static>> {
    let all = preview.result.changes.iter().zip(&preview.chosen);
    let changes = all.map(|(change, chosen)| {
        let mark = match chosen {
            Chosen::Whole => "[x] ",
            Chosen::Hunks(..) => "[~] ",
            Chosen::Nothing => "[ ] ",
        };
        let action = match change.action {
            RestoreAction::Write => colors.span(CHANGED, "write  "),
            RestoreAction::Delete => colors.span(REMOVED, "delete "),
        };
        let path = one_line(&change.path).into_owned();
        let reason = format!("  {}", one_line(&change.reason));
        Line::from(vec![
            Span::raw(mark),
            action,
            Span::raw(path),
            colors.span(DIM, reason),
        ])
    });
    let conflicts = preview.result.conflicts.iter().map(|conflict| {
        Line::from(vec![
            colors.span(BOLD, "    skip   "),
            Span::raw(one_line(&conflict.path).into_owned()),
            colors.span(DIM, format!("  {}", one_line(&conflict.reason))),
        ])
    });
    changes.chain(conflicts).map(ListItem::new).collect()
}

fn done_lines(done: &Done, colors: Colors) -> Vec<Line<'static>> {
    let result = &done.result;
    let failed = done.failed().count();
    let restored = plural(result.outcomes.len() - failed, "file");
    let what = if done.is_undo {
        format!("The restore was undone: {restored}.")
    } else {
        format!("{restored} restored.")
    };
    let mut lines = vec![Line::from(colors.span(BOLD, what))];
    lines.extend(done.failed().map(|outcome| {
        let (path, error) = (&outcome.path, outcome.error.as_deref().unwrap_or_default());
        let text = format!("{}: {}", one_line(path), one_line(error));
        Line::from(colors.span(REMOVED, text))
    }));
    lines.extend(result.conflicts.iter().map(|conflict| {
        let (path, reason) = (one_line(&conflict.path), one_line(&conflict.reason));
        Line::raw(format!("skipped {path}: {reason}"))
    }));
    lines.push(Line::raw(""));
    lines.extend(result.undo_command().map(|command| {
        let text = format!("It can be undone later: {command}");
        Line::raw(text)
    }));
    lines
}

fn bottom_line(picker: &Picker, colors: Colors) -> Line<'static> {
    if let Some(message) = &picker.message {
        return Line::from(colors.span(BOLD, one_line(message)));
    }
    let keys = match &picker.screen {
        _ if picker.is_filtering => "type to filter  enter keep  esc clear",
        Screen::Previewing(..) => "Comparing…  esc back  q quit",
        Screen::Preview(_) if picker.focus == Pane::Difference => {
            "enter restore  space toggle  ↑↓ hunk  PgUp PgDn scroll  ←→ to the side  esc list"
        }
        _ if picker.focus == Pane::Difference => {
            "↑↓ PgUp PgDn scroll  ←→ to the side  esc list  q quit"
        }
        Screen::Browse => "↑↓ select  → difference  / filter  enter preview  q quit",
        Screen::Preview(preview) => match preview.other_side() {
            Some(side) if side.ends_with('+') => {
                "enter restore  space toggle  → hunks  a all  t revert turn  + after it  esc back"
            }
            Some(_) => "enter restore  space toggle  → hunks  a all  + before the turn  esc back",
            None => "enter restore  space toggle  → hunks  a all  esc back  q quit",
        },
        Screen::Restoring => "",
        Screen::Done(done) if done.is_undo || done.result.undo_id.is_none() => "enter done",
        Screen::Done(_) => "u undo  enter done",
    };
    Line::from(colors.span(DIM, keys))
}
