//! Per task: which files, models and environments an agent knows.
//!
//! Two files in the task's directory: `task_metadata.json` holds the records in Cline's format
//! (`metadata`), `tracked_files.json` the content of each tracked file when the agent last saw it.
//! Changes and their authors are determined from file contents (`attribution`), which `file_state`
//! observes. A file watcher only triggers a scan: [`Tracker::scan`] also finds changes made while
//! the server was not running.
//!
//! Changed files are hashed before the task is locked. Under the lock, a file is observed again if
//! it changed in the meantime. `task_metadata.json` is written first, so a process killed between
//! the two writes finds the same change again.
//!
//! Files are opened through [`sightline_access`]. Names are not checked here: the caller checks them
//! before showing them, using the absolute path that comes with each name.

mod attribution;
mod file_state;
mod host_info;
mod task_metadata;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use sightline_protocol::{
    environment::Mode,
    tracker::{
        EnvironmentEntry, FileMetadataEntry, FileOperation, ModelUsageEntry, TaskContextResult,
    },
};

pub use file_state::{ContentHash, SeenContent};
pub use host_info::environment_entry;

use attribution::{EditFindings, TrackedFile};
use file_state::{FileContent, Observation};
use sightline_access::AccessView;
use sightline_base::{
    cancel::Cancel,
    error::Error,
    path::{AbsPath, uri_to_path},
    storage::{Storage, TaskDir, TaskId, TaskLock},
};
use task_metadata::TaskMetadata;

/// Name of the file in the directory of a task, in Cline's format.
pub const METADATA_FILE: &str = "task_metadata.json";
const TRACKED_FILE: &str = "tracked_files.json";

/// Returns whether `text` is a valid `task_metadata.json`.
pub fn is_metadata(text: &[u8]) -> bool {
    TaskMetadata::parse(text).is_some()
}

/// An event on a file.
#[derive(Clone, Debug)]
pub struct FileEvent<'a> {
    /// Path for results, kept from the first event on.
    pub path: &'a str,
    /// Absolute path.
    pub abs: &'a AbsPath,
    /// Kind of event.
    pub operation: FileOperation,
    /// For `ClineEdited`: the content that the agent wrote or is about to write.
    pub content_hash: Option<ContentHash>,
    /// Content that the agent was given, or the editor's unsaved text. `None` for the content on
    /// disk.
    pub content: Option<ContentHash>,
    /// Date of the record, in milliseconds since the Unix epoch.
    pub now: i64,
    /// Time when the event was received, in nanoseconds since the Unix epoch, independent of `now`.
    pub received: i64,
}

/// A tracked file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// Path for results.
    pub path: String,
    /// Absolute path.
    pub abs: AbsPath,
}

/// A change by the user that was not reported to the agent yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndeliveredChange {
    /// The changed file.
    pub file: FileRef,
    /// Whether the file was deleted.
    pub deleted: bool,
    /// Identifies the change, so that a later one is not acknowledged with it.
    change: Option<FileContent>,
}

/// Result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Files whose content differs from what the agent last saw.
    pub changed: Vec<FileRef>,
    /// Files that the agent saw and that were deleted.
    pub deleted: Vec<FileRef>,
    /// Changes by the user that were not delivered yet. Pass them to [`Tracker::acknowledge`] after
    /// delivery.
    pub recently_modified: Vec<UndeliveredChange>,
}

/// Tracker of one task. Cheap to open. Threads and processes may use any number of them
/// concurrently.
#[derive(Clone, Debug)]
pub struct Tracker {
    dir: TaskDir,
    view: AccessView,
}

impl Tracker {
    /// Opens the tracker of `task`. Creates nothing. Files that `view` denies are not read.
    pub fn open(storage: &Storage, task: &TaskId, view: AccessView) -> Self {
        Self {
            dir: storage.task(task),
            view,
        }
    }

    fn observe(
        &self,
        abs: &AbsPath,
        text: Option<ContentHash>,
        known: Option<&file_state::CachedContent>,
        at_ns: i64,
        cancel: &Cancel,
    ) -> Result<Option<Observation>, Error> {
        match text {
            Some(hash) => Ok(Some(Observation::of_text(hash, at_ns))),
            None => Observation::of_disk(&self.view, abs, known, at_ns, cancel),
        }
    }

    /// Records an event and tracks the file from now on.
    ///
    /// # Errors
    /// `storage`, `busy`, `cancelled`. Nothing is recorded.
    pub fn track(
        &self,
        event: &FileEvent<'_>,
        cancel: &Cancel,
    ) -> Result<FileMetadataEntry, Error> {
        let at_ns = event.received;
        let mut observation = self.observe(event.abs, event.content, None, at_ns, cancel)?;
        let lock = self.dir.lock()?;
        if observation.is_some_and(|observation| !observation.is_current(&self.view, event.abs)) {
            observation = self.observe(event.abs, event.content, None, at_ns, cancel)?;
        }
        let mut state = TaskState::load(&self.dir)?;
        let Some(observation) = observation else {
            // The content cannot be read, so only the record is written.
            let path = state.name_of(event);
            let entry = state
                .metadata
                .record_file(&path, event.operation, event.now);
            state.save(&lock)?;
            return Ok(entry);
        };
        let tracked = state.tracked_mut(event);
        let path = tracked.path.clone();
        tracked.hashed = observation.settled();
        let mut findings = EditFindings::default();
        match event.operation {
            FileOperation::ReadTool | FileOperation::FileMentioned => {
                tracked.read(observation.content)
            }
            FileOperation::UserEdited => tracked.user_edited(observation.content, event.now),
            FileOperation::ClineEdited => {
                findings = tracked.agent_edited(event.content_hash, &observation, event.now);
            }
        }
        if let Some(date) = findings.retracted_edit {
            state.metadata.retract_user_edit(&path, date);
        }
        if findings.user_edit {
            state
                .metadata
                .record_file(&path, FileOperation::UserEdited, event.now);
        }
        let entry = state
            .metadata
            .record_file(&path, event.operation, event.now);
        state.save(&lock)?;
        Ok(entry)
    }

    /// Observes every tracked file and records the user's changes with the date `now`. `unsaved`
    /// contains the editor's unsaved texts; `at_ns` is the actual time.
    ///
    /// # Errors
    /// `storage`, `busy`, `cancelled`. Nothing is recorded.
    pub fn scan(
        &self,
        unsaved: &HashMap<AbsPath, ContentHash>,
        now: i64,
        at_ns: i64,
        cancel: &Cancel,
    ) -> Result<Scan, Error> {
        if !self.dir.exists() {
            return Ok(Scan::default());
        }
        let observation = |abs: &AbsPath, known: &TrackedFile| {
            let text = unsaved.get(abs).copied();
            self.observe(abs, text, known.hashed.as_ref(), at_ns, cancel)
        };
        let mut observations = HashMap::new();
        for tracked in &TaskState::load(&self.dir)?.tracked {
            if let Some(abs) = abs_of(tracked) {
                observations.insert(tracked.uri.clone(), observation(&abs, tracked)?);
            }
        }
        if observations.is_empty() {
            return Ok(Scan::default());
        }

        let lock = self.dir.lock()?;
        let mut state = TaskState::load(&self.dir)?;
        let mut scan = Scan::default();
        for tracked in &mut state.tracked {
            let Some(abs) = abs_of(tracked) else { continue };
            let held = observations.remove(&tracked.uri).flatten();
            let observation =
                match held.filter(|observation| observation.is_current(&self.view, &abs)) {
                    Some(observation) => Some(observation),
                    None => observation(&abs, tracked)?,
                };
            if let Some(observation) = observation {
                if tracked.observe(&observation, now) {
                    state
                        .metadata
                        .record_file(&tracked.path, FileOperation::UserEdited, now);
                }
                if observation.stamp.is_some() || observation.content == FileContent::Absent {
                    tracked.hashed = observation.settled();
                }
            }
            // A file that cannot be read counts as unchanged.
            let last = tracked.noted.map(|noted| noted.content).or(tracked.seen);
            let Some(content) = observation.map(|observation| observation.content).or(last) else {
                continue;
            };
            scan.add(tracked, abs, content);
        }
        state.save(&lock)?;
        Ok(scan)
    }

    /// Marks these changes as delivered. Later changes stay pending.
    ///
    /// # Errors
    /// `storage`, `busy`.
    pub fn acknowledge(&self, delivered: &[UndeliveredChange]) -> Result<(), Error> {
        if delivered.is_empty() || !self.dir.exists() {
            return Ok(());
        }
        let lock = self.dir.lock()?;
        let mut state = TaskState::load(&self.dir)?;
        for modified in delivered {
            let uri = modified.file.abs.to_uri();
            let tracked = state.tracked.iter_mut().find(|tracked| tracked.uri == uri);
            if let Some(tracked) = tracked
                .filter(|tracked| tracked.noted.map(|noted| noted.content) == modified.change)
            {
                tracked.pending = None;
            }
        }
        state.save(&lock)
    }

    /// The editor saved the text with the hash `text` to `abs`. The file may differ from the text
    /// in line endings, a final newline or a byte order mark, which is not a change by the user.
    ///
    /// # Errors
    /// `storage`, `busy`, `cancelled`.
    pub fn saved(&self, abs: &AbsPath, text: ContentHash, cancel: &Cancel) -> Result<(), Error> {
        let uri = abs.to_uri();
        let is_tracked = |state: &TaskState| state.tracked.iter().any(|tracked| tracked.uri == uri);
        if !self.dir.exists() || !is_tracked(&TaskState::load(&self.dir)?) {
            return Ok(());
        }
        let lock = self.dir.lock()?;
        let mut state = TaskState::load(&self.dir)?;
        let Some(observation) = self.observe(abs, None, None, 0, cancel)? else {
            return Ok(());
        };
        for tracked in state
            .tracked
            .iter_mut()
            .filter(|tracked| tracked.uri == uri)
        {
            tracked.saved(text, observation.content);
        }
        state.save(&lock)
    }

    /// Records the model in use. Returns false if it equals the last one.
    ///
    /// # Errors
    /// `storage`, `busy`.
    pub fn record_model(
        &self,
        model_id: &str,
        provider_id: &str,
        mode: Mode,
        now: i64,
    ) -> Result<bool, Error> {
        let mode = match mode {
            Mode::Act => "act",
            Mode::Plan => "plan",
        };
        self.record(|metadata| {
            metadata.record_model(ModelUsageEntry {
                ts: now,
                model_id: model_id.to_owned(),
                model_provider_id: provider_id.to_owned(),
                mode: mode.to_owned(),
            })
        })
    }

    /// Records an environment, usually [`environment_entry`]. Empty fields become `Unknown`.
    /// Returns false if it equals the last one.
    ///
    /// # Errors
    /// `storage`, `busy`.
    pub fn record_environment(&self, mut entry: EnvironmentEntry) -> Result<bool, Error> {
        for field in [
            &mut entry.os_name,
            &mut entry.os_version,
            &mut entry.os_arch,
            &mut entry.host_name,
            &mut entry.host_version,
            &mut entry.cline_version,
        ] {
            if field.is_empty() {
                host_info::UNKNOWN.clone_into(field);
            }
        }
        self.record(|metadata| metadata.record_environment(entry))
    }

    fn record(&self, change: impl FnOnce(&mut TaskMetadata) -> bool) -> Result<bool, Error> {
        let lock = self.dir.lock()?;
        let mut state = TaskState::load(&self.dir)?;
        let recorded = change(&mut state.metadata);
        if recorded {
            state.save(&lock)?;
        }
        Ok(recorded)
    }

    /// Returns all records. The lists of changed and deleted files are empty; [`Tracker::scan`]
    /// determines them.
    ///
    /// # Errors
    /// `storage`.
    pub fn records(&self) -> Result<TaskContextResult, Error> {
        let metadata = TaskState::load(&self.dir)?.metadata;
        Ok(TaskContextResult {
            files: metadata.files(),
            models: metadata.models(),
            environments: metadata.environments(),
            changed: Vec::new(),
            deleted: Vec::new(),
            usage: None,
        })
    }
}

impl Scan {
    fn add(&mut self, tracked: &TrackedFile, abs: AbsPath, content: FileContent) {
        let file = FileRef {
            path: tracked.path.clone(),
            abs,
        };
        let deleted = tracked.is_gone(content);
        if tracked.pending.is_some() {
            self.recently_modified.push(UndeliveredChange {
                file: file.clone(),
                deleted,
                change: tracked.noted.map(|noted| noted.content),
            });
        }
        if deleted {
            self.deleted.push(file);
        } else if tracked.is_changed(content) {
            self.changed.push(file);
        }
    }
}

/// Stored state of a task.
#[derive(Default)]
struct TaskState {
    metadata: TaskMetadata,
    tracked: Vec<TrackedFile>,
    /// State as loaded, to skip unchanged files when saving.
    loaded: (TaskMetadata, Vec<TrackedFile>),
    /// Names of corrupt files.
    corrupt: Vec<&'static str>,
}

/// `tracked_files.json`.
#[derive(Serialize, Deserialize)]
struct TrackedFiles {
    files: Vec<TrackedFile>,
}

impl TaskState {
    fn load(dir: &TaskDir) -> Result<Self, Error> {
        let mut state = Self::default();
        if let Some(text) = dir.read(METADATA_FILE)? {
            match TaskMetadata::parse(&text) {
                Some(metadata) => state.metadata = metadata,
                None => state.corrupt.push(METADATA_FILE),
            }
        }
        if let Some(text) = dir.read(TRACKED_FILE)? {
            match serde_json::from_slice::<TrackedFiles>(&text) {
                Ok(stored) => state.tracked = stored.files,
                Err(_) => state.corrupt.push(TRACKED_FILE),
            }
        }
        state.loaded = (state.metadata.clone(), state.tracked.clone());
        Ok(state)
    }

    fn save(self, lock: &TaskLock) -> Result<(), Error> {
        let mut files = Vec::new();
        if self.metadata != self.loaded.0 {
            let text = self.metadata.text().map_err(Error::Encode)?;
            files.push((METADATA_FILE, text.into_bytes()));
        }
        if self.tracked != self.loaded.1 {
            let files_now = TrackedFiles {
                files: self.tracked,
            };
            files.push((
                TRACKED_FILE,
                serde_json::to_vec(&files_now).map_err(Error::Encode)?,
            ));
        }
        for (name, text) in files {
            if self.corrupt.contains(&name) {
                lock.set_aside(name)?;
            }
            lock.write(name, &text)?;
        }
        Ok(())
    }

    /// Returns the name of the event's file: the known one, else the event's.
    fn name_of(&self, event: &FileEvent<'_>) -> String {
        let uri = event.abs.to_uri();
        let known = self.tracked.iter().find(|tracked| tracked.uri == uri);
        known.map_or_else(|| event.path.to_owned(), |tracked| tracked.path.clone())
    }

    fn tracked_mut(&mut self, event: &FileEvent<'_>) -> &mut TrackedFile {
        let uri = event.abs.to_uri();
        let at = self.tracked.iter().position(|tracked| tracked.uri == uri);
        let at = at.unwrap_or_else(|| {
            self.tracked
                .push(TrackedFile::new(uri, event.path.to_owned()));
            self.tracked.len() - 1
        });
        &mut self.tracked[at]
    }
}

fn abs_of(tracked: &TrackedFile) -> Option<AbsPath> {
    uri_to_path(&tracked.uri).ok().flatten()
}
