//! Editor state: tabs, visible editors, terminals, documents, focus.
//!
//! [`EditorState`] is changed only by the client's notifications, in arrival order. A clone is a
//! snapshot; texts are shared. State that a client does not send is derived from its open documents
//! and marked as derived ([`Derived`]).

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use sightline_protocol::editor::{Diagnostic, Range, Tab, Terminal, VisibleEditor};

use crate::{
    document::{Change, Document, PositionEncoding},
    read,
};
use sightline_access::{AccessView, Origin};
use sightline_base::{
    error::Error,
    limits,
    path::{AbsPath, Location, uri_to_path},
};

/// A value, and whether it was derived instead of sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived<T> {
    /// The value.
    pub value: T,
    /// True when the client never sent it.
    pub derived: bool,
}

/// A terminal and its unread output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TerminalState {
    /// Latest state from the client (`new_output` is moved to `unread`).
    pub terminal: Terminal,
    /// Output since the last read. Over the limit, the oldest output is dropped.
    pub unread: String,
    /// Commands that `unread` may come from, oldest first: the terminal may have started another
    /// command since.
    pub sources: Vec<String>,
    /// Total bytes received, so that a reader can mark how far it has read.
    pub received: u64,
    /// The end of the read output of the command that still runs. It identifies the file whose
    /// content continues in `unread`.
    pub earlier: String,
    /// Whether `unread` starts while a program uses the alternate screen.
    pub starts_in_alternate_screen: bool,
}

/// Returns where a text of a terminal enters and leaves the alternate screen: start and end of the escape sequence,
/// and whether it enters.
pub(crate) fn screen_switches(text: &str) -> impl Iterator<Item = (usize, usize, bool)> + '_ {
    const INTRODUCER: &str = "\u{1b}[?";
    text.match_indices(INTRODUCER).filter_map(|(at, _)| {
        let modes = &text[at + INTRODUCER.len()..];
        let length = modes.find(|c: char| !c.is_ascii_digit() && c != ';')?;
        let enters = match modes.as_bytes().get(length)? {
            b'h' => true,
            b'l' => false,
            _ => return None,
        };
        let mut modes = modes[..length].split(';');
        let is_switch = modes.any(|mode| matches!(mode, "47" | "1047" | "1049"));
        is_switch.then_some((at, at + INTRODUCER.len() + length + 1, enters))
    })
}

impl TerminalState {
    /// Appends output of the current command or of `before`, the previous one.
    fn receive(&mut self, output: &str, before: Option<String>) {
        let commands = [before, self.terminal.command.clone()];
        for command in commands.into_iter().flatten() {
            if !self.sources.contains(&command) {
                self.sources.push(command);
            }
        }
        if self.sources.len() > limits::MAX_TERMINAL_SOURCES {
            self.drop_oldest(self.unread.len());
            self.sources.extend(self.terminal.command.clone());
        }
        self.received += output.len() as u64;
        self.unread.push_str(output);
        self.drop_oldest(self.unread.len().saturating_sub(limits::MAX_TERMINAL_BYTES));
    }

    /// Drops at least `bytes` of unread output, up to a character boundary.
    fn drop_oldest(&mut self, bytes: usize) {
        let mut cut = bytes;
        while !self.unread.is_char_boundary(cut) {
            cut += 1;
        }
        if let Some((.., enters)) = screen_switches(&self.unread[..cut]).last() {
            self.starts_in_alternate_screen = enters;
        }
        self.earlier.extend(self.unread.drain(..cut));
        let excess = self.earlier.len().saturating_sub(limits::MAX_EARLIER_BYTES);
        self.earlier
            .drain(..self.earlier.ceil_char_boundary(excess));
        if self.unread.is_empty() {
            self.sources.clear();
        }
    }
}

/// An open document.
#[derive(Clone, Debug, Default)]
pub struct OpenDocument {
    /// The text.
    pub document: Document,
    /// LSP language id.
    pub language_id: String,
    /// Location of the file when the document was opened.
    pub origin: Origin,
    /// Position in opening order.
    opened: u64,
    opened_at: Option<SystemTime>,
    /// Whether the document was opened with text that was not on the disk. Computed on first use.
    unsaved_when_opened: Arc<OnceLock<bool>>,
}

impl OpenDocument {
    /// Requires that agents may see this document at `location`.
    ///
    /// # Errors
    /// As [`AccessView::require`].
    pub fn require(
        &self,
        view: &AccessView,
        location: &Location,
        outside_allowed: bool,
    ) -> Result<(), Error> {
        view.require_document(
            location,
            &self.origin,
            self.document.text(),
            outside_allowed,
        )
    }

    /// Returns whether the editor's text differs from the file at `path`. An editor may open a
    /// document with restored unsaved changes, or reload a changed file without a save
    /// notification. Reads the file, so it must not be called on the main loop.
    pub fn is_unsaved(&self, view: &AccessView, path: Option<&AbsPath>) -> bool {
        if self.document.is_dirty() {
            let text = self.document.text();
            return !path.is_some_and(|path| read::is_on_disk(view, text, path));
        }
        *self.unsaved_when_opened.get_or_init(|| {
            let opened = self.opened_at.zip(path);
            opened.is_some_and(|(at, path)| {
                read::differs_from_disk(view, self.document.text(), path, at)
            })
        })
    }

    /// Returns whether the file at `path` was changed by another program since the editor read or saved it.
    pub fn is_changed_on_disk(&self, view: &AccessView, path: &AbsPath) -> bool {
        let saved = self.document.saved();
        self.opened_at
            .is_some_and(|opened| read::changed_since(view, saved, path, opened))
    }
}

/// Editor state of one session.
#[derive(Clone, Debug, Default)]
pub struct EditorState {
    tabs: Option<Vec<Tab>>,
    visible: Option<Vec<VisibleEditor>>,
    terminals: Vec<TerminalState>,
    /// Total bytes of output received. A new terminal starts counting here, so that a reused
    /// terminal id is never confused with the earlier terminal.
    output_received: u64,
    documents: BTreeMap<String, OpenDocument>,
    /// Diagnostics by URI, most severe first.
    diagnostics: BTreeMap<String, Arc<[Diagnostic]>>,
    /// The focused document; `Some(None)` when the client reports none.
    focus: Option<Option<String>>,
    /// The last opened or changed document.
    touched: Option<String>,
    opened: u64,
    /// Time of the last change, in milliseconds since the epoch.
    pub changed_at: Option<i64>,
}

impl EditorState {
    /// `sightline/didChangeTabs`.
    pub fn set_tabs(&mut self, mut tabs: Vec<Tab>) {
        tabs.truncate(limits::MAX_EDITOR_ITEMS);
        self.tabs = Some(tabs);
    }

    /// `sightline/didChangeVisibleEditors`.
    pub fn set_visible(&mut self, mut editors: Vec<VisibleEditor>) {
        editors.truncate(limits::MAX_EDITOR_ITEMS);
        self.visible = Some(editors);
    }

    /// `sightline/didChangeTerminals`. Appends output to the unread output of the terminal with the
    /// same id, and removes terminals that are missing from the list.
    pub fn set_terminals(&mut self, mut terminals: Vec<Terminal>) {
        terminals.truncate(limits::MAX_EDITOR_ITEMS);
        let mut old: BTreeMap<String, TerminalState> = std::mem::take(&mut self.terminals)
            .into_iter()
            .map(|state| (state.terminal.id.clone(), state))
            .collect();
        for mut terminal in terminals {
            let output = terminal.new_output.take().unwrap_or_default();
            let mut state = old.remove(&terminal.id).unwrap_or_else(|| TerminalState {
                received: self.output_received,
                ..TerminalState::default()
            });
            self.output_received += output.len() as u64;
            let before = std::mem::replace(&mut state.terminal, terminal);
            let goes_on = before.is_busy && before.command == state.terminal.command;
            if !goes_on && state.unread.is_empty() {
                state.earlier.clear();
                state.starts_in_alternate_screen = false;
            }
            if !output.is_empty() {
                state.receive(&output, before.command.filter(|_| before.is_busy));
            }
            self.terminals.push(state);
        }
    }

    /// Marks the output of a terminal as read, up to the value that [`TerminalState::received`] had
    /// when the output was shown.
    pub fn consume_terminal(&mut self, id: &str, received: u64) {
        for state in &mut self.terminals {
            if state.terminal.id == id {
                let newer = state.received.saturating_sub(received);
                let keep = usize::try_from(newer).unwrap_or(usize::MAX);
                state.drop_oldest(state.unread.len().saturating_sub(keep));
            }
        }
    }

    /// `sightline/didChangeDiagnostics`. Keeps the most severe ones.
    pub fn set_diagnostics(&mut self, uri: String, mut diagnostics: Vec<Diagnostic>) {
        if diagnostics.is_empty() {
            self.diagnostics.remove(&uri);
            return;
        }
        let is_known = self.diagnostics.contains_key(&uri);
        if !is_known && self.diagnostics.len() >= limits::MAX_DIAGNOSED_FILES {
            return;
        }
        diagnostics.sort_by_key(|found| (found.severity.unwrap_or(1), found.range.start));
        diagnostics.truncate(limits::MAX_FILE_DIAGNOSTICS);
        for found in &mut diagnostics {
            let end = found
                .message
                .floor_char_boundary(limits::MAX_DIAGNOSTIC_BYTES);
            found.message.truncate(end);
        }
        self.diagnostics.insert(uri, diagnostics.into());
    }

    /// Returns the diagnostics of a document, most severe first.
    pub fn diagnostics(&self, uri: &str) -> &[Diagnostic] {
        self.diagnostics.get(uri).map_or(&[], |found| found)
    }

    /// Returns the URIs of the documents with diagnostics.
    pub fn diagnosed(&self) -> impl Iterator<Item = &str> {
        self.diagnostics.keys().map(String::as_str)
    }

    /// `textDocument/didFocus`.
    pub fn set_focus(&mut self, uri: Option<String>) {
        self.focus = Some(uri);
    }

    /// `textDocument/didOpen`. Opening an open document replaces it. `origin` is where the URI led
    /// at that moment.
    pub fn open(
        &mut self,
        uri: String,
        language_id: String,
        version: i32,
        text: &str,
        origin: Origin,
    ) {
        self.opened += 1;
        self.touched = Some(uri.clone());
        let opened = self.opened;
        let document = OpenDocument {
            document: Document::new(text, version),
            language_id,
            origin,
            opened,
            opened_at: Some(SystemTime::now()),
            unsaved_when_opened: Arc::default(),
        };
        self.documents.insert(uri, document);
    }

    /// `textDocument/didChange`. Returns false when the document is not open.
    pub fn change(
        &mut self,
        uri: &str,
        version: i32,
        changes: &[Change],
        encoding: PositionEncoding,
    ) -> bool {
        let Some(open) = self.documents.get_mut(uri) else {
            return false;
        };
        open.document.change(changes, version, encoding);
        self.touched = Some(uri.to_owned());
        true
    }

    /// `textDocument/didSave`. Returns false when the document is not open.
    pub fn save(&mut self, uri: &str) -> bool {
        let Some(open) = self.documents.get_mut(uri) else {
            return false;
        };
        open.document.save();
        open.unsaved_when_opened = Arc::new(OnceLock::from(false));
        true
    }

    /// `textDocument/didClose`. Returns false when the document was not open.
    pub fn close(&mut self, uri: &str) -> bool {
        if self.touched.as_deref() == Some(uri) {
            self.touched = None;
        }
        self.documents.remove(uri).is_some()
    }

    /// Returns an open document.
    pub fn document(&self, uri: &str) -> Option<&OpenDocument> {
        self.documents.get(uri)
    }

    /// Returns URIs and documents in opening order.
    pub fn documents(&self) -> Vec<(&str, &OpenDocument)> {
        let mut open: Vec<_> = self
            .documents
            .iter()
            .map(|(uri, open)| (uri.as_str(), open))
            .collect();
        open.sort_by_key(|(_, open)| open.opened);
        open
    }

    /// Returns whether the client reports the focus.
    pub fn reports_focus(&self) -> bool {
        self.focus.is_some()
    }

    /// Returns the active document: the focused one, else the active editor or tab, else the last
    /// changed, else the last opened.
    pub fn active(&self) -> Option<&str> {
        if let Some(focus) = &self.focus {
            return focus.as_deref();
        }
        let of_editors = self.visible.iter().flatten();
        let of_tabs = self.tabs.iter().flatten();
        of_editors
            .filter(|editor| editor.is_active == Some(true))
            .map(|editor| editor.uri.as_str())
            .chain(
                of_tabs
                    .filter(|tab| tab.is_active == Some(true))
                    .map(|tab| tab.uri.as_str()),
            )
            .next()
            .or(self.touched.as_deref())
            .or_else(|| self.documents().last().map(|(uri, _)| *uri))
    }

    /// Returns the URIs of the visible editors, or the active document when the client sends none.
    pub fn visible(&self) -> Derived<Vec<&str>> {
        match &self.visible {
            Some(editors) => Derived {
                value: editors.iter().map(|editor| editor.uri.as_str()).collect(),
                derived: false,
            },
            None => Derived {
                value: self.active().into_iter().collect(),
                derived: true,
            },
        }
    }

    /// Returns the URIs of the tabs, or the open documents when the client sends none.
    pub fn tabs(&self) -> Derived<Vec<&str>> {
        match &self.tabs {
            Some(tabs) => Derived {
                value: tabs.iter().map(|tab| tab.uri.as_str()).collect(),
                derived: false,
            },
            None => Derived {
                value: self.documents().into_iter().map(|(uri, _)| uri).collect(),
                derived: true,
            },
        }
    }

    /// Returns the visible editors as the client sent them, with ranges and selections.
    pub fn visible_editors(&self) -> &[VisibleEditor] {
        self.visible.as_deref().unwrap_or_default()
    }

    /// Returns the primary selection in a document, in its active editor if several show it. Its
    /// start is not after its end.
    pub fn selection(&self, uri: &str) -> Option<Range> {
        let shown = self
            .visible_editors()
            .iter()
            .filter(|shown| shown.uri == uri);
        let shown = shown.max_by_key(|shown| shown.is_active == Some(true))?;
        let selection = shown.selections.first()?;
        Some(Range {
            start: selection.start.min(selection.end),
            end: selection.start.max(selection.end),
        })
    }

    /// Returns whether the client reports the tab of this document as dirty.
    pub fn has_dirty_tab(&self, uri: &str) -> bool {
        let mut tabs = self.tabs.iter().flatten();
        tabs.any(|tab| tab.uri == uri && tab.is_dirty == Some(true))
    }

    /// Returns the URIs with unsaved changes: open documents that differ from the saved text, then
    /// tabs reported as dirty. May read files.
    pub fn unsaved(&self, view: &AccessView) -> Vec<&str> {
        let mut unsaved: Vec<&str> = self
            .documents()
            .into_iter()
            .filter(|(uri, open)| open.is_unsaved(view, uri_to_path(uri).ok().flatten().as_ref()))
            .map(|(uri, _)| uri)
            .collect();
        for tab in self.tabs.iter().flatten() {
            let known = unsaved.contains(&tab.uri.as_str());
            if tab.is_dirty == Some(true) && !known {
                unsaved.push(&tab.uri);
            }
        }
        unsaved
    }

    /// Returns the terminals in the client's order.
    pub fn terminals(&self) -> &[TerminalState] {
        &self.terminals
    }
}

#[cfg(test)]
mod tests {
    use sightline_protocol::editor::Position;

    use super::*;

    fn terminal(id: &str, output: &str) -> Terminal {
        Terminal {
            id: id.to_owned(),
            is_busy: true,
            new_output: Some(output.to_owned()),
            ..Terminal::default()
        }
    }

    #[test]
    fn missing_state_is_derived_and_marked() {
        let mut editor = EditorState::default();
        editor.open("file:///b".into(), "x".into(), 0, "", Origin::default());
        editor.open("file:///a".into(), "x".into(), 0, "", Origin::default());
        assert_eq!(editor.tabs().value, ["file:///b", "file:///a"]);
        assert!(editor.tabs().derived);
        assert_eq!(editor.visible().value, ["file:///a"]);
        editor.set_focus(Some("file:///b".into()));
        assert_eq!(editor.visible().value, ["file:///b"]);
        editor.set_visible(Vec::new());
        assert!(editor.visible().value.is_empty());
        assert!(!editor.visible().derived);
    }

    #[test]
    fn the_most_severe_diagnostics_are_kept() {
        let found = |severity, line| Diagnostic {
            severity,
            range: Range {
                start: Position { line, character: 0 },
                ..Range::default()
            },
            message: "é".repeat(limits::MAX_DIAGNOSTIC_BYTES),
            ..Diagnostic::default()
        };
        let mut editor = EditorState::default();
        let mut all = vec![found(Some(3), 0); limits::MAX_FILE_DIAGNOSTICS];
        all.extend([found(Some(2), 7), found(None, 9)]);
        editor.set_diagnostics("file:///a".into(), all);
        let kept = editor.diagnostics("file:///a");
        assert_eq!(kept.len(), limits::MAX_FILE_DIAGNOSTICS);
        assert_eq!((kept[0].range.start.line, kept[1].range.start.line), (9, 7));
        assert!(kept[0].message.len() <= limits::MAX_DIAGNOSTIC_BYTES);
        editor.set_diagnostics("file:///a".into(), Vec::new());
        assert_eq!(editor.diagnosed().count(), 0);
    }

    #[test]
    fn output_that_arrives_during_a_read_is_kept() {
        let mut editor = EditorState::default();
        editor.set_terminals(vec![terminal("1", "one ")]);
        let shown = editor.terminals()[0].received;
        editor.set_terminals(vec![terminal("1", "two")]);
        editor.consume_terminal("1", shown);
        assert_eq!(editor.terminals()[0].unread, "two");
    }

    #[test]
    fn unread_output_records_its_possible_commands() {
        let run = |command: &str, output: &str| Terminal {
            command: Some(command.to_owned()),
            ..terminal("1", output)
        };
        let mut editor = EditorState::default();
        editor.set_terminals(vec![run("make", "a")]);
        editor.set_terminals(vec![run("ls", "")]);
        editor.set_terminals(vec![run("date", "b")]);
        assert_eq!(editor.terminals()[0].sources, ["make", "ls", "date"]);
        editor.consume_terminal("1", 2);
        assert!(editor.terminals()[0].sources.is_empty());
        for n in 0..1_000 {
            editor.set_terminals(vec![run(&n.to_string(), "x")]);
            let state = &editor.terminals()[0];
            assert!(state.sources.len() <= limits::MAX_TERMINAL_SOURCES);
            assert!(state.sources.contains(&n.to_string()));
        }
    }

    #[test]
    fn unread_output_is_bounded_at_character_boundaries() {
        let mut editor = EditorState::default();
        editor.set_terminals(vec![terminal("1", &"é".repeat(limits::MAX_TERMINAL_BYTES))]);
        let unread = &editor.terminals()[0].unread;
        assert!(unread.len() <= limits::MAX_TERMINAL_BYTES);
        assert!(unread.chars().all(|c| c == 'é'));
    }
}
