//! Replays recorded sessions of Cline's trackers with real files. [`DIFFERENCES`] lists
//! intended differences and their reasons.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use sightline_access::AccessView;
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, Root, Roots},
    storage::{Storage, TaskId},
};
use sightline_context::tracker::{ContentHash, FileEvent, Scan, Tracker};
use sightline_testing::fixtures;

/// The case, the step (`"3 metadata"`, `"final"`), and the reason for the difference.
const DIFFERENCES: &[(&str, &[&str], &str)] = &[
    (
        "paths-are-compared-verbatim",
        &["1 metadata", "2 metadata", "final"],
        "two spellings of one file are one file",
    ),
    (
        "restart-clears-memory-not-file",
        &["3 result"],
        "an edit the agent was not told of is still told after a restart",
    ),
    (
        "restart-clears-memory-not-file",
        &["4 metadata", "5 metadata", "final"],
        "edits after a restart are found without reading the file again",
    ),
    (
        "metadata-file-missing-sections",
        &["0 metadata", "1 metadata", "2 metadata", "final"],
        "a missing section is an empty one, and files are recorded all the same",
    ),
    (
        "detect-edited-after",
        &["7 result"],
        "edits named in messages belong to the conversation store",
    ),
    (
        "pending-warning",
        &["0 result", "2 result", "3 result", "4 result"],
        "the warning after a restore belongs to the checkpoints",
    ),
];

/// Converts a time to nanoseconds since the Unix epoch.
fn nanos(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    since.as_nanos().try_into().unwrap()
}

/// Start of the recorded clock, long before the files are really written, so that no two
/// operations are close in time.
fn clock(now: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000) + Duration::from_millis(now as u64)
}

struct Session {
    _scratch: tempfile::TempDir,
    workspace: PathBuf,
    roots: Roots,
    storage: Storage,
    /// Announced content of paths the agent is about to write.
    announced: HashMap<String, String>,
    writes: u32,
}

impl Session {
    fn new(input: &Value) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let workspace = scratch.path().join("ws");
        let root = AbsPath::new(&workspace).unwrap();
        fs::create_dir(&workspace).unwrap();
        let roots = match input["workspaceOpen"].as_bool().unwrap() {
            true => Roots::new(vec![Root::new(root, None)]),
            false => Roots::default(),
        };
        let session = Self {
            workspace,
            roots,
            storage: Storage::open(&scratch.path().join("data")).unwrap(),
            announced: HashMap::new(),
            writes: 0,
            _scratch: scratch,
        };
        for operation in input["operations"].as_array().unwrap() {
            if let Some(path) = operation["path"].as_str() {
                session.write(path, "at first", 0);
            }
        }
        if let Some(text) = input["initialTaskMetadataFile"].as_str() {
            let path = session.metadata_file();
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        session
    }

    fn write(&self, path: &str, text: &str, now: i64) {
        let path = self.workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(clock(now)).unwrap();
    }

    fn metadata_file(&self) -> PathBuf {
        self.storage.dir().join("tasks/task/task_metadata.json")
    }

    fn metadata_text(&self) -> Value {
        fs::read_to_string(self.metadata_file()).map_or(Value::Null, Value::from)
    }

    fn metadata(&self) -> Value {
        match self.metadata_text().as_str() {
            None => Value::Null,
            Some(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| json!({"unparsable": true}))
            }
        }
    }

    /// Creates a tracker for each operation, as after a restart.
    fn tracker(&self) -> Tracker {
        Tracker::open(
            &self.storage,
            &TaskId::new("task").unwrap(),
            AccessView::default(),
        )
    }

    fn scan(&self, now: i64) -> Scan {
        self.tracker()
            .scan(&HashMap::new(), now, nanos(clock(now)), &Cancel::default())
            .unwrap()
    }

    /// Performs one operation. Returns its result, if it has one.
    fn perform(&mut self, operation: &Value, now: i64) -> Option<Value> {
        let text = |key: &str| operation[key].as_str().unwrap_or_default().to_owned();
        let path = text("path");
        match text("op").as_str() {
            "trackFileContext" => {
                let location = self.roots.locate(&path).ok()?;
                let announced = self.announced.get(&path);
                let event = FileEvent {
                    path: &self.roots.result_path(&location).0,
                    abs: &self.roots.absolute(&location),
                    operation: serde_json::from_value(operation["operation"].clone()).unwrap(),
                    content_hash: announced.map(|text| ContentHash::of(text.as_bytes())),
                    content: None,
                    now,
                    received: nanos(clock(now)),
                };
                let entry = self.tracker().track(&event, &Cancel::default()).unwrap();
                let mut entry = serde_json::to_value(entry).unwrap();
                for date in ["cline_read_date", "cline_edit_date", "user_edit_date"] {
                    entry
                        .as_object_mut()
                        .unwrap()
                        .entry(date)
                        .or_insert(Value::Null);
                }
                let files = self.metadata()["files_in_context"].clone();
                assert_eq!(files.as_array().unwrap().last(), Some(&entry));
                None
            }
            "markFileAsEditedByCline" => {
                self.writes += 1;
                self.announced
                    .insert(path, format!("write {}", self.writes));
                None
            }
            "fileChangedOnDisk" => {
                self.writes += 1;
                let users = format!("write {}", self.writes);
                let text = self.announced.remove(&path).unwrap_or(users);
                self.write(&path, &text, now);
                self.scan(now);
                None
            }
            "getAndClearRecentlyModifiedFiles" => {
                let modified = self.scan(now).recently_modified;
                self.tracker().acknowledge(&modified).unwrap();
                Some(
                    modified
                        .into_iter()
                        .map(|modified| modified.file.path)
                        .collect(),
                )
            }
            "detectFilesEditedAfterMessage" => {
                let date = operation["messageTs"].as_i64().unwrap();
                let mut names: Vec<String> = Vec::new();
                for entry in self.tracker().records().unwrap().files {
                    let edited = entry.cline_edit_date.max(entry.user_edit_date);
                    if edited > Some(date) && !names.contains(&entry.path) {
                        names.push(entry.path);
                    }
                }
                Some(json!(names))
            }
            "recordModelUsage" => {
                let mode = serde_json::from_value(operation["mode"].clone()).unwrap();
                self.tracker()
                    .record_model(&text("model"), &text("provider"), mode, now)
                    .unwrap();
                None
            }
            "recordEnvironment" => {
                let mut entry = operation["environment"].clone();
                entry["ts"] = json!(now);
                if operation["hostLookupFails"] == true {
                    for unknown in ["host_name", "host_version", "cline_version"] {
                        entry[unknown] = json!("");
                    }
                }
                let entry = serde_json::from_value(entry).unwrap();
                self.tracker().record_environment(entry).unwrap();
                None
            }
            "restart" | "storePendingFileContextWarning" => None,
            "retrievePendingFileContextWarning" | "retrieveAndClearPendingFileContextWarning" => {
                Some(json!("not kept"))
            }
            other => panic!("unknown operation {other}"),
        }
    }
}

/// Replays a case. Returns the differences.
fn play(case: &Value) -> Vec<(String, String)> {
    let mut session = Session::new(&case["input"]);
    let mut differences = Vec::new();
    let mut compare = |place: String, ours: &Value, recorded: &Value| {
        if ours != recorded {
            differences.push((place, format!("ours {ours:#}\nrecorded {recorded:#}")));
        }
    };
    let mut now = 0;
    let mut recorded = session.metadata();
    let operations = case["input"]["operations"].as_array().unwrap();
    let steps = case["expected"]["steps"].as_array().unwrap();
    assert_eq!(operations.len(), steps.len());
    for (index, (operation, step)) in operations.iter().zip(steps).enumerate() {
        now = operation["now"].as_i64().unwrap_or(now);
        let result = session.perform(operation, now);
        if step.get("metadata").is_some() {
            recorded = step["metadata"].clone();
        }
        compare(format!("{index} metadata"), &session.metadata(), &recorded);
        if let Some(result) = result {
            compare(format!("{index} result"), &result, &step["result"]);
        }
    }
    compare(
        "final".to_owned(),
        &session.metadata_text(),
        &case["expected"]["finalTaskMetadataFile"],
    );
    differences
}

#[test]
fn recorded_sessions() {
    let Some(cases) = fixtures::load("cline/file_tracker.json") else {
        return;
    };
    let mut expected: HashSet<(String, String)> = DIFFERENCES
        .iter()
        .flat_map(|(case, places, _)| {
            places
                .iter()
                .map(|place| (case.to_string(), place.to_string()))
        })
        .collect();
    let mut unexpected = Vec::new();
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        for (place, how) in play(case) {
            if !expected.remove(&(name.to_owned(), place.clone())) {
                unexpected.push(format!("{name}, {place}: {how}"));
            }
        }
    }
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n\n"));
    assert!(expected.is_empty(), "no longer different: {expected:?}");
}
