//! What is chosen and shown. Draws nothing, and sends nothing: a key or an answer returns the
//! request that is needed next.

use std::collections::HashMap;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sightline_engine::{error::Error, render::timeline::Row};
use sightline_protocol::{
    checkpoint::{
        DiffCheckpointsResult, PreviewRestoreResult, RestoreCheckpointResult, RestoreOutcome,
    },
    error::ErrorKind,
};

use super::{
    super::difference::Difference,
    choice::{Choice, Compared},
    preview::Preview,
};

/// Number of differences to keep.
const KEPT_DIFFERENCES: usize = 64;
/// Columns that the difference moves to the side at once.
const SIDE_STEP: usize = 8;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Difference(Compared),
    Preview(Choice),
    Restore(Choice, String),
    Undo { id: String, force: bool },
}

/// The answer to a request.
pub(super) enum Answer {
    Difference(Compared, Result<DiffCheckpointsResult, Error>),
    Preview(Choice, Result<PreviewRestoreResult, Error>),
    Restored(Choice, Result<RestoreCheckpointResult, Error>),
    Undone(Result<RestoreCheckpointResult, Error>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    List,
    Difference,
}

#[derive(Debug)]
pub(super) enum Screen {
    /// The list and the difference.
    Browse,
    /// What a restore would change.
    Preview(Box<Preview>),
    /// A preview is made, from the list or from another preview. Can be left.
    Previewing(Choice, Option<Box<Preview>>),
    /// Files are restored. Cannot be left.
    Restoring,
    /// What was restored.
    Done(Box<Done>),
}

#[derive(Debug)]
pub(super) struct Done {
    pub(super) result: RestoreCheckpointResult,
    pub(super) is_undo: bool,
}

/// How the picker was left.
#[derive(Debug)]
pub(super) enum Exit {
    /// Nothing was restored.
    Cancelled,
    Done(RestoreCheckpointResult),
}

/// Sizes of what was drawn last, which moving by a page needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heights {
    /// Entries of the list.
    pub(super) list: usize,
    /// Lines of the difference.
    pub(super) difference: usize,
}

#[derive(Debug)]
pub(super) struct Picker {
    rows: Vec<Row>,
    /// Indexes of the rows that match the filter.
    pub(super) matching: Vec<usize>,
    /// Index in `matching`.
    pub(super) selected: usize,
    pub(super) filter: String,
    /// Whether keys are added to the filter.
    pub(super) is_filtering: bool,
    pub(super) focus: Pane,
    pub(super) screen: Screen,
    differences: HashMap<Compared, Difference>,
    /// Lines and columns that the difference is moved by.
    pub(super) scroll: (usize, usize),
    /// A sentence at the bottom, until the next key.
    pub(super) message: Option<String>,
    pub(super) heights: Heights,
    pub(super) exit: Option<Exit>,
}

impl Picker {
    pub(super) fn new(rows: Vec<Row>) -> Self {
        Self {
            matching: (0..rows.len()).collect(),
            rows,
            selected: 0,
            filter: String::new(),
            is_filtering: false,
            focus: Pane::List,
            screen: Screen::Browse,
            differences: HashMap::new(),
            scroll: (0, 0),
            message: None,
            heights: Heights::default(),
            exit: None,
        }
    }

    /// Returns the rows that match the filter.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Row> {
        self.matching.iter().map(|at| &self.rows[*at])
    }

    pub(super) fn row(&self) -> Option<&Row> {
        self.matching.get(self.selected).map(|at| &self.rows[*at])
    }

    /// Returns what the difference shows.
    pub(super) fn compared(&self) -> Option<Compared> {
        match &self.screen {
            Screen::Browse | Screen::Previewing(_, None) => self.row().map(|row| Compared {
                from: row.id.clone(),
                files: Vec::new(),
            }),
            Screen::Preview(preview) | Screen::Previewing(_, Some(preview)) => preview.compared(),
            Screen::Restoring | Screen::Done(_) => None,
        }
    }

    /// Returns the difference, if it is known yet.
    pub(super) fn difference(&self) -> Option<&Difference> {
        self.differences.get(&self.compared()?)
    }

    /// Returns the request for the difference that is not known yet.
    pub(super) fn missing(&self) -> Option<Ask> {
        let is_known = self.difference().is_some();
        self.compared().filter(|_| !is_known).map(Ask::Difference)
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<Ask> {
        self.message = None;
        let is_interrupt =
            key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
        if matches!(self.screen, Screen::Restoring) {
            if is_interrupt {
                self.message = Some("a restore is completed once it has begun".to_owned());
            }
            return None;
        }
        if is_interrupt {
            self.leave();
            return None;
        }
        if self.is_filtering {
            self.filter_key(key);
            return None;
        }
        match &self.screen {
            Screen::Browse => self.browse_key(key),
            Screen::Preview(_) => self.preview_key(key),
            Screen::Previewing(..) => {
                match key.code {
                    KeyCode::Char('q') => self.leave(),
                    KeyCode::Esc => self.show(Screen::Browse),
                    _ => {}
                }
                None
            }
            Screen::Done(done) => {
                let undo = done.result.undo_id.clone().filter(|_| !done.is_undo);
                match (key.code, undo) {
                    (KeyCode::Char('u'), Some(id)) => {
                        let outcomes = &done.result.outcomes;
                        let force = outcomes.iter().any(|one| one.replaced_unsaved);
                        self.show(Screen::Restoring);
                        return Some(Ask::Undo { id, force });
                    }
                    (KeyCode::Char('q') | KeyCode::Enter | KeyCode::Esc, _) => self.leave(),
                    _ => {}
                }
                None
            }
            Screen::Restoring => None,
        }
    }

    /// Ends the picker.
    pub(super) fn leave(&mut self) {
        self.exit = Some(match &self.screen {
            Screen::Done(done) => Exit::Done(done.result.clone()),
            _ => Exit::Cancelled,
        });
    }

    fn show(&mut self, screen: Screen) {
        self.screen = screen;
        self.focus = Pane::List;
        self.scroll = (0, 0);
    }

    fn browse_key(&mut self, key: KeyEvent) -> Option<Ask> {
        match key.code {
            KeyCode::Char('q') => self.leave(),
            KeyCode::Esc if self.focus == Pane::Difference => self.focus = Pane::List,
            KeyCode::Esc if !self.filter.is_empty() => self.set_filter(String::new()),
            KeyCode::Esc => self.leave(),
            KeyCode::Char('/') => {
                self.focus = Pane::List;
                self.is_filtering = true;
            }
            KeyCode::Enter => {
                let id = self.row()?.id.clone();
                return Some(self.preview(Choice::whole(id)));
            }
            code => self.move_by(code),
        }
        None
    }

    fn filter_key(&mut self, key: KeyEvent) {
        let mut filter = self.filter.clone();
        match key.code {
            KeyCode::Enter => self.is_filtering = false,
            KeyCode::Esc => {
                self.is_filtering = false;
                self.set_filter(String::new());
            }
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.set_filter(String::new());
            }
            KeyCode::Char(c) if !c.is_control() => {
                filter.push(c);
                self.set_filter(filter);
            }
            KeyCode::Backspace => {
                self.is_filtering = filter.pop().is_some();
                self.set_filter(filter);
            }
            KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown => {
                self.move_by(key.code);
            }
            _ => {}
        }
    }

    /// Shows the rows that contain a text, in any case, and keeps the selected one if it does.
    fn set_filter(&mut self, filter: String) {
        let selected = self.matching.get(self.selected).copied();
        let wanted = filter.to_lowercase();
        self.filter = filter;
        self.matching = (0..self.rows.len())
            .filter(|at| self.rows[*at].contains(&wanted))
            .collect();
        let kept = self.matching.iter().position(|at| Some(*at) == selected);
        self.selected = kept.unwrap_or(0);
        self.scroll = (0, 0);
    }

    fn preview_key(&mut self, key: KeyEvent) -> Option<Ask> {
        let Screen::Preview(preview) = &mut self.screen else {
            return None;
        };
        match key.code {
            KeyCode::Char('q') => self.leave(),
            KeyCode::Esc if self.focus == Pane::Difference => self.focus = Pane::List,
            KeyCode::Esc | KeyCode::Backspace => self.show(Screen::Browse),
            KeyCode::Char(' ') if self.focus == Pane::Difference => self.toggle_hunk(),
            KeyCode::Char(' ') => preview.toggle(),
            KeyCode::Char('a') => preview.toggle_all(),
            KeyCode::Char('+') => {
                let id = preview.other_side()?;
                return Some(self.preview(Choice::whole(id)));
            }
            KeyCode::Char('t') if preview.is_of_turn() => {
                let choice = Choice {
                    only_turn: !preview.of.only_turn,
                    ..Choice::whole(preview.of.id.clone())
                };
                return Some(self.preview(choice));
            }
            KeyCode::Enter | KeyCode::Char('y') => return self.confirm(),
            code => self.move_by(code),
        }
        None
    }

    /// Asks for a preview.
    fn preview(&mut self, choice: Choice) -> Ask {
        let before = match std::mem::replace(&mut self.screen, Screen::Browse) {
            Screen::Preview(preview) => Some(preview),
            _ => None,
        };
        self.show(Screen::Previewing(choice.clone(), before));
        Ask::Preview(choice)
    }

    /// Restores the chosen files. Part of a preview needs a preview of that part: a token is for
    /// all changes of its preview.
    fn confirm(&mut self) -> Option<Ask> {
        let Screen::Preview(preview) = &self.screen else {
            return None;
        };
        let choice = preview.choice();
        if choice == preview.of {
            let token = preview.result.token.clone();
            self.show(Screen::Restoring);
            return Some(Ask::Restore(choice, token));
        }
        if choice.files.as_ref().is_some_and(Vec::is_empty) && choice.hunks.is_empty() {
            self.message = Some("no file is chosen; space chooses one".to_owned());
            return None;
        }
        Some(self.preview(choice))
    }

    /// Handles an answer.
    pub(super) fn answer(&mut self, answer: Answer) -> Option<Ask> {
        match answer {
            Answer::Difference(compared, result) => {
                if self.differences.len() >= KEPT_DIFFERENCES {
                    self.differences.clear();
                }
                self.differences.insert(compared, Difference::new(result));
                None
            }
            Answer::Preview(choice, result) => self.previewed(choice, result),
            Answer::Restored(choice, Err(error)) if error.kind == ErrorKind::Conflict => {
                self.differences.clear();
                self.message =
                    Some("files changed after the preview; this is a new one".to_owned());
                Some(self.preview(choice))
            }
            Answer::Restored(_, result) => self.done(result, false),
            Answer::Undone(result) => self.done(result, true),
        }
    }

    fn previewed(
        &mut self,
        choice: Choice,
        result: Result<PreviewRestoreResult, Error>,
    ) -> Option<Ask> {
        let before = match &mut self.screen {
            Screen::Previewing(awaited, before) if *awaited == choice => before.take(),
            // Left while the preview was made.
            _ => return None,
        };
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                self.message = Some(error.message);
                let before = before.map(|mut before| {
                    before.forget_hunks();
                    before
                });
                self.differences.clear();
                self.show(before.map_or(Screen::Browse, Screen::Preview));
                return None;
            }
        };
        if result.changes.is_empty() && result.conflicts.is_empty() {
            self.message = Some(format!(
                "{}: the workspace is in this state already",
                choice.id
            ));
            self.show(before.map_or(Screen::Browse, Screen::Preview));
            return None;
        }
        if before.is_some_and(|before| before.choice() == choice && before.has_chosen(&result)) {
            self.show(Screen::Restoring);
            return Some(Ask::Restore(choice, result.token));
        }
        self.show(Screen::Preview(Box::new(Preview::new(choice, result))));
        None
    }

    fn done(
        &mut self,
        result: Result<RestoreCheckpointResult, Error>,
        is_undo: bool,
    ) -> Option<Ask> {
        self.differences.clear();
        match result {
            Ok(result) => self.show(Screen::Done(Box::new(Done { result, is_undo }))),
            Err(error) => {
                self.message = Some(error.message);
                self.show(Screen::Browse);
            }
        }
        None
    }

    /// Moves in the pane with the focus.
    fn move_by(&mut self, code: KeyCode) {
        match (code, self.focus) {
            (KeyCode::Tab | KeyCode::Right | KeyCode::Char('l'), Pane::List) => {
                self.focus = Pane::Difference;
            }
            (KeyCode::Tab, Pane::Difference) => self.focus = Pane::List,
            (KeyCode::Right | KeyCode::Char('l'), Pane::Difference) => {
                self.scroll.1 = self.scroll.1.saturating_add(SIDE_STEP);
            }
            (KeyCode::Left | KeyCode::Char('h'), Pane::Difference) => match self.scroll.1 {
                0 => self.focus = Pane::List,
                column => self.scroll.1 = column.saturating_sub(SIDE_STEP),
            },
            (KeyCode::Down | KeyCode::Char('j'), Pane::Difference) if self.move_hunk(true) => {}
            (KeyCode::Up | KeyCode::Char('k'), Pane::Difference) if self.move_hunk(false) => {}
            (_, Pane::Difference) => {
                let lines = self.difference().map_or(0, |shown| shown.lines.len());
                let height = self.heights.difference;
                let last = lines.saturating_sub(height);
                self.scroll.0 = moved(code, self.scroll.0, last, height);
                self.find_hunk();
            }
            (_, Pane::List) => {
                let page = self.heights.list;
                let (at, count) = match &mut self.screen {
                    Screen::Preview(preview) => {
                        let count = preview.len();
                        (&mut preview.selected, count)
                    }
                    _ => (&mut self.selected, self.matching.len()),
                };
                let to = moved(code, *at, count.saturating_sub(1), page);
                if to != *at {
                    *at = to;
                    self.scroll = (0, 0);
                    self.find_hunk();
                }
            }
        }
    }

    /// Returns the indexes of the lines at which the hunks of a preview begin.
    fn hunks(&self) -> &[usize] {
        match (&self.screen, self.difference()) {
            (Screen::Preview(_), Some(difference)) => {
                let shown = |at: &&usize| **at < difference.lines.len();
                &difference.hunks[..difference.hunks.iter().take_while(shown).count()]
            }
            _ => &[],
        }
    }

    /// Moves the cursor to the next or the previous hunk, and scrolls to it. A hunk that is not shown whole
    /// is scrolled first. Returns whether there are hunks.
    fn move_hunk(&mut self, down: bool) -> bool {
        let hunks = self.hunks().to_vec();
        let lines = self.difference().map_or(0, |shown| shown.lines.len());
        let height = self.heights.difference.max(1);
        let Screen::Preview(preview) = &mut self.screen else {
            return false;
        };
        let Some(start) = hunks.get(preview.hunk) else {
            return false;
        };
        let end = |at: usize| hunks.get(at + 1).copied().unwrap_or(lines);
        let top = &mut self.scroll.0;
        if down && end(preview.hunk) > *top + height {
            *top += 1;
        } else if down && preview.hunk + 1 < hunks.len() {
            preview.hunk += 1;
            let whole = end(preview.hunk).saturating_sub(height);
            *top = whole.min(hunks[preview.hunk]).max(*top);
        } else if !down && (*start < *top || preview.hunk == 0) {
            *top = top.saturating_sub(1);
        } else if !down {
            preview.hunk -= 1;
            let whole = end(preview.hunk).saturating_sub(height);
            *top = whole.max(hunks[preview.hunk]).min(*top);
        }
        true
    }

    /// Puts the cursor on the first hunk that begins in the lines that are shown.
    fn find_hunk(&mut self) {
        let top = self.scroll.0;
        let hunks = self.hunks();
        let (count, above) = (hunks.len(), hunks.iter().take_while(|at| **at < top));
        let found = above.count().min(count.saturating_sub(1));
        if let Screen::Preview(preview) = &mut self.screen {
            preview.hunk = found;
        }
    }

    /// Chooses the hunk with the cursor, or not. A file without hunks is chosen as a whole.
    fn toggle_hunk(&mut self) {
        let shown = self
            .difference()
            .map(|shown| (shown.hunks.len(), shown.patch.clone()));
        let (Screen::Preview(preview), Some((count, patch))) = (&mut self.screen, shown) else {
            return;
        };
        let at = preview.hunk;
        let Some(chosen) = preview.chosen.get_mut(preview.selected) else {
            return;
        };
        *chosen = chosen.toggled(at, count, patch);
    }
}

/// Returns the position after a key, from 0 to `last`.
fn moved(code: KeyCode, at: usize, last: usize, page: usize) -> usize {
    let page = page.saturating_sub(1).max(1);
    let to = match code {
        KeyCode::Down | KeyCode::Char('j') => at.saturating_add(1),
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::PageDown => at.saturating_add(page),
        KeyCode::PageUp => at.saturating_sub(page),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => last,
        _ => at,
    };
    to.min(last)
}

impl Done {
    /// Returns the outcomes that failed.
    pub(super) fn failed(&self) -> impl Iterator<Item = &RestoreOutcome> {
        self.result.outcomes.iter().filter(|outcome| !outcome.ok)
    }
}
