//! Answers requests without an editor.

use parking_lot::Mutex;
use std::{
    mem::ManuallyDrop,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};
use sightline_access::project_of;
pub(crate) use sightline_access::root_above;
use sightline_base::{
    cancel::Cancel,
    decision_log, escape,
    path::{AbsPath, Root},
    storage::Storage,
};
use sightline_engine::{
    client::Client,
    dispatch::Handler,
    error::Error,
    jobs::JobSender,
    progress::ProgressListener,
    request_context::RequestContext,
    services::{Services, stores::default_storage_dir},
    session::Session,
    settings::{
        config_file::{self, ConfigFiles},
        sources::Source,
    },
};
use sightline_protocol::decision::Decision;

use super::super::{Workspace, print_message};

/// Returns a session of the workspace with the settings of its configuration files. Prints their
/// problems. Starts no threads.
pub(crate) fn session(workspace: &Workspace) -> Result<Session, Error> {
    let mut session = Session::offline(root(workspace)?);
    let files = ConfigFiles::read(config_file::user_file(), session.roots().as_slice());
    for problem in session.set_config_files(Arc::new(files)) {
        print_message(&escape::one_line(&problem.to_string()));
    }
    if let Some(storage) = &workspace.storage {
        let settings = storage_setting(storage)?;
        session.configure(Source::InitializationOptions, &settings);
    }
    Ok(session)
}

/// A server without a client: the services, and the session of one workspace. Configuration files
/// are read again for each request.
pub(crate) struct OfflineServer {
    pub(crate) services: Arc<Services>,
    session: Mutex<Session>,
}

impl OfflineServer {
    /// Starts a server, which is never dropped: the process is about to exit, so the caches
    /// need not be freed.
    pub(crate) fn start(
        workspace: &Workspace,
        progress: Option<ProgressListener>,
    ) -> Result<ManuallyDrop<Self>, Error> {
        // Jobs and delayed work never run: there is no session that would wait for them.
        let mut services = Services::new(Client::default(), JobSender::closed());
        services.progress_listener = progress.map(Arc::new);
        Ok(ManuallyDrop::new(Self {
            services: Arc::new(services),
            session: Mutex::new(session(workspace)?),
        }))
    }

    /// Creates the context of a request.
    pub(crate) fn context(&self) -> RequestContext<'_> {
        self.context_with(Cancel::default())
    }

    /// Creates the context of a request that `cancel` cancels.
    pub(crate) fn context_with(&self, cancel: Cancel) -> RequestContext<'_> {
        let mut session = self.session.lock();
        let files = session
            .config_files()
            .read_again(session.roots().as_slice());
        if files != **session.config_files() {
            // `sightline config` shows the problems.
            session.set_config_files(Arc::new(files));
        }
        RequestContext::with(&self.services, session.snapshot(), cancel, None)
    }

    /// Runs a request.
    ///
    /// # Errors
    /// The request's errors.
    pub(crate) fn call<M: Handler>(&self, params: M::Params) -> Result<M::Result, Error> {
        Ok(M::run(&self.context(), params)?.result)
    }
}

/// Returns the workspace: the given folder, else the project that contains the current folder.
pub(crate) fn root(workspace: &Workspace) -> Result<Root, Error> {
    if let Some(named) = &workspace.root {
        let path = absolute_path(named)?;
        if !path.as_path().is_dir() {
            let message = format!("not a directory: {}", named.display());
            return Err(Error::invalid(message));
        }
        return Ok(Root::new(path, None));
    }
    Ok(root_above(&current()?))
}

/// Returns the project that contains a folder, and those that contain that one, except the home folder or one above it.
pub(crate) fn roots_above(folder: &AbsPath) -> Vec<Root> {
    let mut roots = vec![root_above(folder)];
    let home = sightline_base::path::home_dir().unwrap_or_default();
    while let Some(root) = roots.last().and_then(|root| {
        let above = root.canonical.as_path().parent()?;
        let project = project_of(above).filter(|it| !home.starts_with(it))?;
        Some(Root::new(AbsPath::new(project)?, None))
    }) {
        roots.push(root);
    }
    roots
}

/// Returns the settings of the argument `--storage`.
pub(crate) fn storage_setting(storage: &Path) -> Result<Value, Error> {
    let storage = absolute_path(storage)?;
    Ok(json!({ "storage": { "path": storage.as_path() } }))
}

/// Returns the data directory: the given one, else that of the user's configuration file, else that
/// of the platform.
pub(crate) fn storage_dir(named: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(named) = named {
        return Ok(absolute_path(named)?.as_path().to_owned());
    }
    config_file::user_settings()
        .storage
        .path
        .map_or_else(default_storage_dir, Ok)
}

/// Opens the data directory.
pub(crate) fn storage(named: Option<&Path>) -> Result<Storage, Error> {
    Ok(Storage::open(&storage_dir(named)?)?)
}

/// Adds decisions to the log in the data directory.
pub(crate) fn record(storage: Option<&Path>, decisions: &[Decision]) {
    if decisions.is_empty() {
        return;
    }
    if let Ok(storage) = self::storage(storage) {
        decision_log::record(&storage, &config_file::user_settings().log, decisions);
    }
}

/// Makes a path argument absolute. URIs are unchanged. A trailing slash, which marks a path as a
/// folder, is kept.
///
/// # Errors
/// `invalidParams` for an empty path, which would be the current folder.
pub(crate) fn absolute(path: &str) -> Result<String, Error> {
    if path.is_empty() {
        return Err(Error::invalid("a path is empty; `.` is the current folder"));
    }
    if path.to_ascii_lowercase().starts_with("file:") {
        return Ok(path.to_owned());
    }
    Ok(text_of(&absolute_path(Path::new(path))?, path))
}

/// Returns the text of a path, with the trailing slash that it was written with.
pub(crate) fn text_of(full: &AbsPath, written: &str) -> String {
    let mut text = full.as_path().to_string_lossy().into_owned();
    if written.ends_with('/') && !text.ends_with('/') {
        text.push('/');
    }
    text
}

pub(crate) fn absolute_path(path: &Path) -> Result<AbsPath, Error> {
    // The current folder may have been removed.
    if let Some(path) = AbsPath::new(path) {
        return Ok(path);
    }
    let full: PathBuf = current()?.as_path().join(path);
    AbsPath::new(&full).ok_or_else(|| Error::invalid(format!("invalid path: {}", path.display())))
}

pub(crate) fn current() -> Result<AbsPath, Error> {
    let current = std::env::current_dir()
        .map_err(|error| Error::storage(format!("cannot read the current directory: {error}")))?;
    AbsPath::new(&current).ok_or_else(|| Error::storage("the current directory is not absolute"))
}
