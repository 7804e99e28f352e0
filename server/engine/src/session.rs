//! The session: client, settings, roots, rules and editor state.
//!
//! The main loop owns the [`Session`] and applies notifications to it. It takes a
//! [`Snapshot`] for each request and job, so a request sees exactly the messages sent
//! before it.

pub mod client_info;

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use serde_json::Value;
use sightline_access::{Access, AccessView};
use sightline_base::{
    clock::now_millis,
    path::{AbsPath, Location, Root, Roots, uri_to_path},
};
use sightline_context::{
    editor::EditorState,
    environment::{CliTools, Revisions},
};
use sightline_protocol::settings::{OutsideWorkspace, Secrets};

use crate::{
    error::Error,
    session::client_info::ClientInfo,
    settings::{
        Problem, Settings,
        config_file::ConfigFiles,
        sources::{SettingsSources, Source},
    },
};

/// Phase of LSP's life cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// `initialize` has not been answered.
    #[default]
    Starting,
    /// Initialized.
    Running,
    /// `shutdown` was answered.
    ShutDown,
}

/// The state of a session.
#[derive(Default)]
pub struct Session {
    /// The current phase.
    pub phase: Phase,
    client_info: Arc<ClientInfo>,
    /// The user's configuration file, if it is used.
    user_config: Option<PathBuf>,
    sources: SettingsSources,
    settings: Arc<Settings>,
    roots: Arc<Roots>,
    access: Option<Arc<LazyAccess>>,
    /// The last rules that were read, until `access` is read.
    previous_access: Option<Arc<LazyAccess>>,
    editor: Arc<EditorState>,
    revisions: Arc<Mutex<Revisions>>,
    tools: Arc<OnceLock<CliTools>>,
}

/// The session at the moment a request arrived.
#[derive(Clone)]
pub struct Snapshot {
    /// The phase.
    pub phase: Phase,
    /// The client.
    pub client_info: Arc<ClientInfo>,
    /// The settings.
    pub settings: Arc<Settings>,
    /// The configuration files with settings.
    pub config_files: Arc<ConfigFiles>,
    /// The access rules and roots.
    pub access: Arc<LazyAccess>,
    /// The editor state.
    pub editor: Arc<EditorState>,
    /// Recently rendered context, shared for `sinceRevision`.
    pub revisions: Arc<Mutex<Revisions>>,
    /// Command line tools, detected once.
    pub tools: Arc<OnceLock<CliTools>>,
}

impl Snapshot {
    /// Returns the open roots.
    pub fn roots(&self) -> &[Root] {
        self.access.roots().as_slice()
    }

    /// Returns where a file of the editor is, unless agents may not see it. `outside`: files outside
    /// the workspace are allowed.
    pub fn allowed_location(
        &self,
        view: &AccessView,
        uri: &str,
        outside: bool,
    ) -> Option<Location> {
        let location = view.roots().locate(uri).ok()?;
        match self.editor.document(uri) {
            Some(open) => open.require(view, &location, outside).ok()?,
            None => view.require(&location, outside).ok()?,
        }
        Some(location)
    }

    /// Returns whether files outside the workspace may be read and recorded.
    pub fn outside_allowed(&self) -> bool {
        self.settings.access.outside_workspace == OutsideWorkspace::Allow
    }
}

/// Access rules that are read on first use, outside the main loop.
pub struct LazyAccess {
    roots: Arc<Roots>,
    open_files: Vec<AbsPath>,
    secrets: Secrets,
    /// The previous rules. A rule file that is being saved when the roots change must not
    /// be read as empty.
    previous: Mutex<Option<Arc<LazyAccess>>>,
    access: OnceLock<Access>,
}

impl LazyAccess {
    /// Returns the roots without reading the rules.
    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    /// Returns the rules, reading them on first use.
    pub fn get(&self) -> &Access {
        self.access.get_or_init(|| {
            let (roots, open_files) = (self.roots.clone(), self.open_files.clone());
            let previous = self.previous.lock().take();
            match previous.as_ref().and_then(|previous| previous.access.get()) {
                Some(previous) => previous.updated(roots, open_files, self.secrets),
                None => Access::new(roots, open_files, self.secrets),
            }
        })
    }
}

impl Session {
    /// Creates a session that has received nothing. `user_config` is the user's configuration file.
    pub fn new(user_config: Option<PathBuf>) -> Self {
        Self {
            user_config,
            ..Self::default()
        }
    }

    /// Creates a session without a client, on one root.
    pub fn offline(root: Root) -> Self {
        let mut session = Self {
            phase: Phase::Running,
            client_info: Arc::new(ClientInfo::new(&Value::Null)),
            ..Self::default()
        };
        session.set_roots(Roots::new(vec![root]));
        session
    }

    /// Returns the workspace roots.
    pub fn roots(&self) -> &Arc<Roots> {
        &self.roots
    }

    /// Applies `initialize`: client, roots and initial settings.
    pub fn initialize(&mut self, params: &Value) -> Vec<Problem> {
        self.client_info = Arc::new(ClientInfo::new(params));
        self.set_roots(client_info::initial_roots(params));
        let (_, mut problems) = self.sources.set_files(self.read_config_files());
        let options = params.get("initializationOptions").unwrap_or(&Value::Null);
        problems.extend(self.configure(Source::InitializationOptions, options));
        problems
    }

    /// Reads the configuration files of the user and the workspace folders.
    pub fn read_config_files(&self) -> Arc<ConfigFiles> {
        let user = self.user_config.clone();
        Arc::new(ConfigFiles::read(user, self.roots.as_slice()))
    }

    /// Returns the configuration files in use.
    pub fn config_files(&self) -> &Arc<ConfigFiles> {
        self.sources.files()
    }

    /// Applies the settings of configuration files. Returns the invalid ones.
    pub fn set_config_files(&mut self, files: Arc<ConfigFiles>) -> Vec<Problem> {
        let (settings, problems) = self.sources.set_files(files);
        self.apply(settings);
        problems
    }

    /// Applies settings from one source. Returns the invalid ones.
    pub fn configure(&mut self, source: Source, value: &Value) -> Vec<Problem> {
        let (settings, problems) = self.sources.update(source, value);
        self.apply(settings);
        problems
    }

    fn apply(&mut self, settings: Settings) {
        let changes_rules = settings.access.secrets != self.settings.access.secrets;
        self.settings = Arc::new(settings);
        if changes_rules {
            self.invalidate_access();
        }
        self.touch();
    }

    /// Returns the client's description.
    pub fn client_info(&self) -> &Arc<ClientInfo> {
        &self.client_info
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// Applies `workspace/didChangeWorkspaceFolders`.
    pub fn change_roots(&mut self, removed: &[Root], added: Vec<Root>) {
        let kept = self.roots.as_slice().iter();
        let kept = kept.filter(|root| removed.iter().all(|gone| gone.path != root.path));
        let roots = kept.cloned().chain(added).collect();
        self.set_roots(Roots::new(roots));
    }

    /// Resolves the links of the roots again. Returns whether a root leads to another folder.
    pub fn resolve_roots_again(&mut self) -> bool {
        let roots = self.roots.as_slice().iter();
        let roots = Roots::new(roots.map(Root::resolved_again).collect());
        let has_changed = roots != *self.roots;
        if has_changed {
            self.set_roots(roots);
        }
        has_changed
    }

    /// Changes the editor state. Existing snapshots keep theirs.
    pub fn edit<T>(&mut self, change: impl FnOnce(&mut EditorState) -> T) -> T {
        let editor = Arc::make_mut(&mut self.editor);
        editor.changed_at = Some(now_millis());
        let outcome = change(editor);
        self.touch();
        outcome
    }

    /// Returns whether the client reports the focus.
    pub fn reports_focus(&self) -> bool {
        self.editor.reports_focus()
    }

    /// Marks terminal output as delivered, up to these byte counts.
    pub fn consume_terminals(&mut self, delivered: &[(String, u64)]) {
        if delivered.is_empty() {
            return;
        }
        let editor = Arc::make_mut(&mut self.editor);
        for (id, received) in delivered {
            editor.consume_terminal(id, *received);
        }
    }

    /// Handles a change of the set of open files, which defines what is accessible in a
    /// session without roots.
    pub fn open_files_changed(&mut self) {
        if self.roots.is_empty() {
            self.invalidate_access();
        }
    }

    /// Starts a new revision of the visible context.
    fn touch(&self) {
        self.revisions.lock().context_changed();
    }

    /// Takes a snapshot.
    pub fn snapshot(&mut self) -> Snapshot {
        Snapshot {
            phase: self.phase,
            client_info: self.client_info.clone(),
            settings: self.settings.clone(),
            config_files: self.sources.files().clone(),
            access: self.access(),
            editor: self.editor.clone(),
            revisions: self.revisions.clone(),
            tools: self.tools.clone(),
        }
    }

    fn access(&mut self) -> Arc<LazyAccess> {
        let (roots, editor, secrets) = (&self.roots, &self.editor, self.settings.access.secrets);
        let previous = &mut self.previous_access;
        let mut fresh = || LazyAccess {
            roots: roots.clone(),
            open_files: if roots.is_empty() {
                open_files(editor)
            } else {
                Vec::new()
            },
            secrets,
            previous: Mutex::new(previous.take()),
            access: OnceLock::new(),
        };
        self.access.get_or_insert_with(|| Arc::new(fresh())).clone()
    }

    fn invalidate_access(&mut self) {
        let Some(access) = self.access.take() else {
            return;
        };
        let previous = match access.access.get() {
            Some(_) => None,
            None => access.previous.lock().take(),
        };
        self.previous_access = Some(previous.unwrap_or(access));
    }

    fn set_roots(&mut self, roots: Roots) {
        self.roots = Arc::new(roots);
        self.invalidate_access();
        self.touch();
    }
}

/// Resolves a root given by path, URI or workspace folder name.
///
/// # Errors
/// `invalidParams`, listing the open folders.
pub fn named_root(roots: &Roots, written: &str) -> Result<usize, Error> {
    let all = roots.as_slice();
    let uri = uri_to_path(written).ok().flatten();
    let path = uri.or_else(|| AbsPath::new(written.as_ref()));
    let by_path = path.and_then(|path| {
        all.iter()
            .position(|root| root.path == path || root.canonical == path)
    });
    by_path
        .or_else(|| all.iter().position(|root| root.name == written))
        .ok_or_else(|| {
            let known: Vec<String> = all.iter().map(|root| root.path.display()).collect();
            let shown: String = written.chars().take(200).collect();
            Error::invalid(format!(
                "no workspace folder {shown:?}; open folders: {}",
                known.join(", ")
            ))
        })
}

/// Returns the open files, for a session without roots.
fn open_files(editor: &EditorState) -> Vec<AbsPath> {
    let documents = editor.documents().into_iter().map(|(uri, _)| uri);
    let shown = editor.tabs().value.into_iter();
    documents
        .chain(shown)
        .chain(editor.visible().value)
        .filter_map(|uri| uri_to_path(uri).ok().flatten())
        .collect()
}

/// Normalizes a URI, so that equal files have equal URIs: a `file:` URI is decoded and
/// encoded again, others are unchanged. Neovim uses `file://` for an unnamed buffer,
/// which some parsers turn into the root directory; it stays `file://`.
pub fn normalize_uri(uri: &str) -> String {
    match uri_to_path(uri) {
        Ok(Some(path)) if path.as_path().parent().is_none() => "file://".to_owned(),
        Ok(Some(path)) => path.to_uri(),
        _ => uri.to_owned(),
    }
}
