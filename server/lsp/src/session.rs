//! What a session knows: client_info, settings, roots, rules, editor state.
//!
//! [`Session`] is changed by notifications only, by who reads and
//! behind one lock that is held for memory work alone. A request takes a
//! [`Snapshot`] on that thread, so it sees exactly what was sent before it, and
//! works with it elsewhere.

use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;
use sightline_core::{
    access::Access,
    editor::EditorState,
    environment::{CliTools, Revisions},
    path::{AbsPath, Root, Roots, uri_to_path},
};

use crate::{
    capabilities::{self, ClientInfo},
    settings::{Problem, Settings, SettingsSources, Source},
    sync::lock,
};

/// Where a session stands in LSP's life cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// `initialize` has not been answered.
    #[default]
    Starting,
    /// At work.
    Running,
    /// `shutdown` was answered.
    ShutDown,
}

/// What a session knows.
#[derive(Default)]
pub struct Session {
    /// Where it stands.
    pub phase: Phase,
    client_info: Arc<ClientInfo>,
    sources: SettingsSources,
    settings: Arc<Settings>,
    roots: Arc<Roots>,
    access: Option<Arc<LazyAccess>>,
    /// The last that was read, until `access` is.
    access_before: Option<Arc<LazyAccess>>,
    editor: Arc<EditorState>,
    revision: u64,
    revisions: Arc<Mutex<Revisions>>,
    tools: Arc<OnceLock<CliTools>>,
}

/// What a request may see: the session at the moment it arrived.
#[derive(Clone)]
pub struct Snapshot {
    /// The client_info.
    pub client_info: Arc<ClientInfo>,
    /// The settings.
    pub settings: Arc<Settings>,
    /// The rules, with their roots.
    pub access: Arc<LazyAccess>,
    /// What the editor shows.
    pub editor: Arc<EditorState>,
    /// What was rendered lately; shared, for `sinceRevision`.
    pub revisions: Arc<Mutex<Revisions>>,
    /// Command line tools, looked for once.
    pub tools: Arc<OnceLock<CliTools>>,
}

/// Rules that are read when they are first asked for, which is never under the
/// session's lock: a disk may be slow.
pub struct LazyAccess {
    roots: Arc<Roots>,
    loose: Vec<AbsPath>,
    /// Those for the roots and files before. A rule file that is being saved when
    /// they change must not be taken for an empty one.
    before: Mutex<Option<Arc<LazyAccess>>>,
    access: OnceLock<Access>,
}

impl LazyAccess {
    /// The roots; the rules are not read for this.
    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    /// The rules.
    pub fn get(&self) -> &Access {
        self.access.get_or_init(|| {
            let (roots, loose) = (self.roots.clone(), self.loose.clone());
            let before = lock(&self.before).take();
            match before.as_ref().and_then(|before| before.access.get()) {
                Some(before) => before.renewed(roots, loose),
                None => Access::new(roots, loose),
            }
        })
    }
}

impl Session {
    /// A session without an editor, on one root.
    pub fn offline(root: Root) -> Self {
        let mut session = Self {
            phase: Phase::Running,
            client_info: Arc::new(ClientInfo::new(&Value::Null)),
            ..Self::default()
        };
        session.set_roots(Roots::new(vec![root]));
        session
    }

    /// The open folders.
    pub fn roots(&self) -> &Arc<Roots> {
        &self.roots
    }

    /// `initialize`: client_info, roots and first settings.
    pub fn initialize(&mut self, params: &Value) -> Vec<Problem> {
        self.client_info = Arc::new(ClientInfo::new(params));
        self.set_roots(capabilities::initial_roots(params));
        let options = params.get("initializationOptions").unwrap_or(&Value::Null);
        self.configure(Source::InitializationOptions, options)
    }

    /// New settings from one of their sources; gives what could not be used.
    pub fn configure(&mut self, source: Source, value: &Value) -> Vec<Problem> {
        let (settings, problems) = self.sources.update(source, value);
        self.settings = Arc::new(settings);
        self.touch();
        problems
    }

    /// The client_info.
    pub fn client_info(&self) -> &Arc<ClientInfo> {
        &self.client_info
    }

    /// The settings.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// `workspace/didChangeWorkspaceFolders`.
    pub fn change_roots(&mut self, removed: &[Root], added: Vec<Root>) {
        let kept = self.roots.as_slice().iter();
        let kept = kept.filter(|root| removed.iter().all(|gone| gone.path != root.path));
        let roots = kept.cloned().chain(added).collect();
        self.set_roots(Roots::new(roots));
    }

    /// Changes what the editor shows. Snapshots taken before keep what they have.
    pub fn edit<T>(&mut self, change: impl FnOnce(&mut EditorState) -> T) -> T {
        let outcome = change(Arc::make_mut(&mut self.editor));
        self.touch();
        outcome
    }

    /// Terminal output was shown, up to these byte counts.
    pub fn consume_terminals(&mut self, delivered: &[(String, u64)]) {
        if delivered.is_empty() {
            return;
        }
        let editor = Arc::make_mut(&mut self.editor);
        for (id, received) in delivered {
            editor.consume_terminal(id, *received);
        }
    }

    /// The set of open files changed: without any root it decides what may be
    /// seen.
    pub fn open_files_changed(&mut self) {
        if self.roots.is_empty() {
            self.retire_access();
        }
    }

    /// Something a client_info can see has changed; the new revision.
    pub fn touch(&mut self) -> u64 {
        self.revision = lock(&self.revisions).context_changed();
        self.revision
    }

    /// Revision of what the editor shows.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The session as it is now.
    pub fn snapshot(&mut self) -> Snapshot {
        Snapshot {
            client_info: self.client_info.clone(),
            settings: self.settings.clone(),
            access: self.access(),
            editor: self.editor.clone(),
            revisions: self.revisions.clone(),
            tools: self.tools.clone(),
        }
    }

    fn access(&mut self) -> Arc<LazyAccess> {
        let (roots, editor) = (&self.roots, &self.editor);
        let before = &mut self.access_before;
        let mut fresh = || LazyAccess {
            roots: roots.clone(),
            loose: match roots.is_empty() {
                true => loose_files(editor),
                false => Vec::new(),
            },
            before: Mutex::new(before.take()),
            access: OnceLock::new(),
        };
        self.access.get_or_insert_with(|| Arc::new(fresh())).clone()
    }

    fn retire_access(&mut self) {
        let Some(access) = self.access.take() else {
            return;
        };
        let before = match access.access.get() {
            Some(_) => None,
            None => lock(&access.before).take(),
        };
        self.access_before = Some(before.unwrap_or(access));
    }

    fn set_roots(&mut self, roots: Roots) {
        self.roots = Arc::new(roots);
        self.retire_access();
        self.touch();
    }
}

/// The open files, for a session without any root.
fn loose_files(editor: &EditorState) -> Vec<AbsPath> {
    let documents = editor.documents().into_iter().map(|(uri, _)| uri);
    let shown = editor.tabs().value.into_iter();
    documents
        .chain(shown)
        .chain(editor.visible().value)
        .filter_map(|uri| uri_to_path(uri).ok().flatten())
        .collect()
}

/// URIs that mean the same file are spelt the same: a `file:` URI is decoded
/// and encoded again. Others stay as they are. Neovim's `file://`, a buffer
/// without a name, which some parsers turn into the root folder, names no file.
pub fn normal_uri(uri: &str) -> String {
    match uri_to_path(uri) {
        Ok(Some(path)) if path.as_path().parent().is_none() => "file://".to_owned(),
        Ok(Some(path)) => path.to_uri(),
        _ => uri.to_owned(),
    }
}
