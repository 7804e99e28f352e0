//! Builds the environment block in real directories: whole blocks as snapshots, then tests of
//! single rules.

mod diagnostics;
mod git;
mod properties;
mod revisions;
mod special_names;
mod terminals;

use std::{fs, io, path::Path, sync::Arc};

use sightline_access::{Access, AccessView, Origin, redact::HiddenContents};
use sightline_base::{
    cancel::Cancel,
    error::Error,
    path::{AbsPath, Root, Roots},
};
use sightline_context::{
    editor::EditorState,
    environment::{Block, CliTools, FileList, Inputs, ModifiedFile, Revisions, build},
};
use sightline_protocol::settings::Secrets;
use sightline_protocol::{
    editor::{Tab, Terminal, VisibleEditor},
    environment::{EnvironmentDetailsParams, Mode, ModelRef, Section, SectionId, Usage},
    error::ErrorKind,
    settings::EnvironmentSettings,
};
use tempfile::TempDir;

/// A workspace on disk and its editor state.
struct Fixture {
    folder: TempDir,
    roots: Vec<String>,
    editor: EditorState,
    modified: Vec<(String, bool)>,
    params: EnvironmentDetailsParams,
    settings: EnvironmentSettings,
    host: String,
    files: Box<dyn Fn() -> Result<FileList, Error>>,
    tools: CliTools,
}

impl Fixture {
    /// Takes roots by name and files by path below the common directory.
    fn new(roots: &[&str], files: &[(&str, &str)]) -> Self {
        let fixture = Self {
            folder: tempfile::tempdir().unwrap(),
            roots: roots.iter().map(|root| (*root).to_owned()).collect(),
            editor: EditorState::default(),
            modified: Vec::new(),
            params: EnvironmentDetailsParams {
                // 2025-06-07T13:04:05Z.
                now: Some(1_749_301_445_000),
                time_zone: Some("Europe/Berlin".to_owned()),
                ..EnvironmentDetailsParams::default()
            },
            settings: EnvironmentSettings::default(),
            host: "Neovim".to_owned(),
            files: Box::new(|| {
                Ok(FileList {
                    text: "README.md\nsrc/\nsrc/main.rs".to_owned(),
                    omitted: 0,
                })
            }),
            tools: CliTools::default(),
        };
        for root in roots {
            fs::create_dir_all(fixture.at(root).as_path()).unwrap();
        }
        for (path, content) in files {
            let path = fixture.at(path);
            fs::create_dir_all(path.as_path().parent().unwrap()).unwrap();
            fs::write(path.as_path(), content).unwrap();
        }
        fixture
    }

    fn base(&self) -> std::path::PathBuf {
        sightline_base::path::canonicalize(self.folder.path()).unwrap()
    }

    fn at(&self, path: &str) -> AbsPath {
        AbsPath::new(&self.base().join(path)).unwrap()
    }

    fn uri(&self, path: &str) -> String {
        if path.contains(':') {
            return path.to_owned();
        }
        self.at(path).to_uri()
    }

    fn tabs(&mut self, paths: &[&str]) {
        let tabs = paths.iter().map(|path| Tab {
            uri: self.uri(path),
            ..Tab::default()
        });
        let tabs = tabs.collect();
        self.editor.set_tabs(tabs);
    }

    fn visible(&mut self, paths: &[&str]) {
        let editors = paths.iter().map(|path| VisibleEditor {
            uri: self.uri(path),
            ..VisibleEditor::default()
        });
        let editors = editors.collect();
        self.editor.set_visible(editors);
    }

    fn dirty(&mut self, path: &str) {
        let uri = self.uri(path);
        self.editor.open(
            uri.clone(),
            "text".to_owned(),
            1,
            "saved",
            Origin::default(),
        );
        let change = sightline_context::document::Change {
            range: None,
            text: "changed".to_owned(),
        };
        assert!(self.editor.change(&uri, 2, &[change], Default::default()));
    }

    fn terminals(&mut self, terminals: &[(&str, &str, bool, &str)]) {
        let terminals = terminals
            .iter()
            .map(|(id, command, busy, output)| Terminal {
                id: (*id).to_owned(),
                command: Some((*command).to_owned()),
                is_busy: *busy,
                new_output: Some((*output).to_owned()),
                ..Terminal::default()
            });
        self.editor.set_terminals(terminals.collect());
    }

    fn settings(&mut self, json: &str) {
        let settings: EnvironmentSettings = serde_json::from_str(json).unwrap();
        self.settings = settings;
    }

    fn view(&self) -> AccessView {
        let roots = self.roots.iter();
        let roots = roots.map(|root| Root::new(self.at(root), None)).collect();
        Access::new(Arc::new(Roots::new(roots)), Vec::new(), Secrets::Allow)
            .view()
            .0
    }

    fn try_build(&self) -> Result<Block, Error> {
        let view = self.view();
        let modified: Vec<ModifiedFile> = self
            .modified
            .iter()
            .map(|(path, deleted)| ModifiedFile {
                path: path.clone(),
                deleted: *deleted,
                location: view.roots().place(self.at(path)),
            })
            .collect();
        let inputs = Inputs {
            params: &self.params,
            settings: &self.settings,
            host: &self.host,
            editor: &self.editor,
            access: &view,
            hidden_contents: &|| Arc::new(HiddenContents::read(&view)),
            recently_modified: &modified,
            files: &|_| (self.files)(),
            cli_tools: &self.tools,
        };
        build(&inputs, &Cancel::default())
    }

    fn build(&self) -> Block {
        self.try_build().unwrap()
    }

    /// Returns the block without the path of the temporary directory.
    fn text(&self) -> String {
        let base = self.base().display().to_string();
        self.build().result.text.replace(&base, "/ws")
    }

    fn section(&self, id: SectionId) -> Option<Section> {
        let sections = self.build().result.sections;
        sections.into_iter().find(|section| section.id == id)
    }

    fn body(&self, id: SectionId) -> String {
        self.section(id)
            .map(|section| section.text)
            .unwrap_or_default()
    }
}

/// Creates a repository with one commit, which has the same id on every run.
fn repository(path: &Path, remotes: &[(&str, &str)]) {
    sightline_context::git::isolate();
    let repository = git2::Repository::init(path).unwrap();
    for (name, url) in remotes {
        repository.remote(name, url).unwrap();
    }
    let time = git2::Time::new(1_700_000_000, 0);
    let me = git2::Signature::new("Me", "me@example.org", &time).unwrap();
    let tree = repository.treebuilder(None).unwrap().write().unwrap();
    let tree = repository.find_tree(tree).unwrap();
    repository
        .commit(Some("HEAD"), &me, &me, "first", &tree, &[])
        .unwrap();
}

#[cfg(unix)]
fn tools(folder: &Path, names: &[&str]) -> CliTools {
    use std::os::unix::fs::PermissionsExt;
    for name in names {
        let path = folder.join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    CliTools::detect(folder.as_os_str())
}

const USAGE: Usage = Usage {
    tokens_in: Some(12_000.0),
    tokens_out: Some(300.0),
    cache_writes: None,
    cache_reads: Some(45.0),
};

#[cfg(unix)]
#[test]
fn one_root_with_everything() {
    let mut fixture = Fixture::new(
        &["app"],
        &[
            ("app/.clineignore", "*.secret\n"),
            ("app/README.md", ""),
            ("app/src/main.rs", ""),
            ("app/db.secret", ""),
        ],
    );
    repository(
        fixture.at("app").as_path(),
        &[
            ("origin", "https://me:token@example.org/o/app.git?x=1"),
            ("fork", "git@example.org:me/app.git"),
        ],
    );
    let bin = tempfile::tempdir().unwrap();
    fixture.tools = tools(bin.path(), &["git", "cargo", "wget"]);
    fixture.tabs(&[
        "app/src/main.rs",
        "app/README.md",
        "app/src/main.rs",
        "app/db.secret",
        "untitled:Untitled-1",
        "app/gone.rs",
    ]);
    fixture.visible(&["app/src/main.rs"]);
    fixture.dirty("app/src/main.rs");
    fixture.dirty("app/src/new.rs");
    fixture.terminals(&[
        (
            "1",
            "cargo watch",
            true,
            "\u{1b}[32mFinished\u{1b}[0m\r\n$ ",
        ),
        ("2", "cargo run\n--release", true, ""),
        ("3", "ls", false, "README.md  src\n"),
        ("4", "true", false, ""),
    ]);
    fixture.modified = vec![
        ("app/README.md".to_owned(), false),
        ("app/old.rs".to_owned(), true),
    ];
    fixture.params.include_files = true;
    fixture.params.usage = Some(USAGE);
    fixture.params.model = Some(ModelRef::Id("claude-3-7-sonnet-20250219".to_owned()));
    insta::assert_snapshot!(fixture.text());

    let block = fixture.build();
    assert_eq!(
        block.delivered_terminals,
        [("1".to_owned(), 21), ("3".to_owned(), 21 + 15)]
    );
    assert_eq!(block.delivered_files, ["app/README.md", "app/old.rs"]);
    assert_eq!(fixture.section(SectionId::OpenTabs).unwrap().omitted, 3);
}

#[test]
fn several_roots_in_plan_mode() {
    let mut fixture = Fixture::new(
        &["web", "api"],
        &[
            ("web/index.html", ""),
            ("api/main.go", ""),
            ("api/prod.env", ""),
            ("api/.clineignore", "prod.env\n"),
            ("elsewhere/notes.txt", ""),
        ],
    );
    repository(fixture.at("api").as_path(), &[]);
    fixture.tabs(&[
        "web/index.html",
        "api/main.go",
        "api/prod.env",
        "elsewhere/notes.txt",
    ]);
    fixture.params.mode = Mode::Plan;
    fixture.params.include_files = true;
    fixture.host = "Visual Studio Code".to_owned();
    insta::assert_snapshot!(fixture.text());
    assert_eq!(fixture.section(SectionId::OpenTabs).unwrap().omitted, 2);

    fixture.settings(r#"{"outsideFiles": "show"}"#);
    assert_eq!(
        fixture.body(SectionId::OpenTabs),
        "index.html\n../api/main.go\n../elsewhere/notes.txt"
    );
}

#[test]
fn a_single_file_without_any_root() {
    let mut fixture = Fixture::new(&[], &[("loose.txt", "")]);
    fixture.dirty("loose.txt");
    fixture.params.include_files = true;
    insta::assert_snapshot!(fixture.text());
    let tabs = fixture.section(SectionId::OpenTabs).unwrap();
    assert!(tabs.derived);
    assert!(fixture.section(SectionId::VisibleFiles).unwrap().derived);
}

#[test]
fn an_editor_that_shows_nothing() {
    let mut fixture = Fixture::new(&["app"], &[]);
    fixture.tabs(&[]);
    fixture.visible(&[]);
    insta::assert_snapshot!(fixture.text());
    let result = fixture.build().result;
    assert_eq!(
        result.sections.iter().map(|s| s.id).collect::<Vec<_>>(),
        [
            SectionId::VisibleFiles,
            SectionId::OpenTabs,
            SectionId::CurrentTime,
            SectionId::Mode
        ]
    );
    assert!(result.sections.iter().all(|section| !section.derived));
    assert_eq!(result.revision, 0);
    assert!(result.tokens >= result.sections.iter().map(|s| s.tokens).max().unwrap());
}

/// Names denied files in every field of the editor state.
fn denied_in_every_field() -> Fixture {
    let mut fixture = Fixture::new(
        &["app"],
        &[
            ("app/.clineignore", "*.secret\nhidden/\n/config/keys.env\n"),
            ("app/ok.txt", ""),
            ("app/x.secret", ""),
            ("app/hidden/inner.txt", ""),
            ("app/config/keys.env", ""),
        ],
    );
    let all = [
        "app/x.secret",
        "app/hidden/inner.txt",
        "app/ok.txt",
        "app/config/keys.env",
    ];
    fixture.tabs(&all);
    fixture.visible(&all);
    for path in all {
        fixture.dirty(path);
        fixture.modified.push((path.to_owned(), false));
    }
    fixture.terminals(&[
        ("1", "tail -f x.secret", true, "from it"),
        ("2", "cat hidden/inner.txt", false, "from it too"),
        (
            "3",
            "git status",
            false,
            " M x.secret\n M ok.txt\nwarning: config/keys.env:3\n\tdeleted: hidden/inner.txt\n",
        ),
    ]);
    fixture
}

#[test]
fn denied_names_never_appear() {
    let fixture = denied_in_every_field();
    insta::assert_snapshot!(fixture.text());
    let result = fixture.build().result;
    for (id, omitted) in [
        (SectionId::VisibleFiles, 3),
        (SectionId::OpenTabs, 3),
        (SectionId::UnsavedFiles, 3),
        (SectionId::RecentlyModified, 3),
        (SectionId::InactiveTerminals, 4),
    ] {
        let section = result.sections.iter().find(|s| s.id == id).unwrap();
        assert_eq!(section.omitted, omitted, "{id:?}");
    }
}

#[test]
fn output_of_a_denied_command_never_shows_under_a_later_one() {
    let mut fixture = denied_in_every_field();
    fixture.terminals(&[
        ("1", "ls", false, "the rest of it\n"),
        ("2", "ls", false, "ok.txt\n"),
    ]);
    assert_eq!(fixture.section(SectionId::InactiveTerminals), None);
    for (id, received) in fixture.build().delivered_terminals {
        fixture.editor.consume_terminal(&id, received);
    }
    fixture.terminals(&[("2", "date", false, "Monday\n")]);
    assert_eq!(
        fixture.body(SectionId::InactiveTerminals),
        "## date\n### New Output\nMonday"
    );
}

#[cfg(unix)]
#[test]
fn a_link_to_a_denied_file_is_denied() {
    let mut fixture = Fixture::new(
        &["app"],
        &[("app/.clineignore", "*.secret\n"), ("app/x.secret", "")],
    );
    let link = fixture.at("app/harmless.txt");
    std::os::unix::fs::symlink("x.secret", link.as_path()).unwrap();
    fixture.tabs(&["app/harmless.txt"]);
    assert_eq!(fixture.body(SectionId::OpenTabs), "(No open tabs)");
    assert_eq!(fixture.section(SectionId::OpenTabs).unwrap().omitted, 1);
}

#[test]
fn settings_and_requests_select_sections() {
    let mut fixture = Fixture::new(&["app"], &[]);
    fixture.params.include_files = true;
    fixture.settings(r#"{"sections": {"openTabs": {"enabled": false}}}"#);
    fixture.params.sections = Some(vec![
        SectionId::Mode,
        SectionId::OpenTabs,
        SectionId::Files,
        SectionId::CurrentTime,
    ]);
    let ids: Vec<_> = fixture
        .build()
        .result
        .sections
        .iter()
        .map(|s| s.id)
        .collect();
    assert_eq!(
        ids,
        [SectionId::CurrentTime, SectionId::Files, SectionId::Mode]
    );
    fixture.params.include_files = false;
    assert_eq!(fixture.section(SectionId::Files), None);
}

#[test]
fn a_budget_counts_cuts_and_delivers_only_shown_changes() {
    let mut fixture = Fixture::new(&["app"], &[]);
    for n in 0..50 {
        fixture.modified.push((format!("app/file{n:02}.rs"), false));
    }
    fixture.settings(r#"{"sections": {"recentlyModified": {"maxTokens": 40}}}"#);
    let block = fixture.build();
    let section = fixture.section(SectionId::RecentlyModified).unwrap();
    let shown = section
        .text
        .lines()
        .filter(|line| line.ends_with(".rs"))
        .count();
    assert!(shown > 0 && shown < 50, "{}", section.text);
    assert_eq!(block.delivered_files.len(), shown);
    assert_eq!(section.omitted as usize, 50 - shown);
    let last = section.text.lines().last().unwrap();
    assert!(
        last.starts_with(&format!("({} more lines", 50 - shown)),
        "{last}"
    );
}

#[test]
fn a_failed_list_omits_only_its_section() {
    let mut fixture = Fixture::new(&["app"], &[]);
    fixture.params.include_files = true;
    fixture.files = Box::new(|| {
        Err(Error::List {
            path: "app".to_owned(),
            source: io::Error::other("the folder is gone"),
        })
    });
    assert_eq!(
        fixture.body(SectionId::Files),
        "(cannot list the files: cannot list app: the folder is gone)"
    );
    fixture.files = Box::new(|| Err(Error::Cancelled));
    assert_eq!(
        fixture.try_build().unwrap_err().kind(),
        ErrorKind::Cancelled
    );
}

#[test]
fn invalid_times_and_zones_are_errors() {
    let mut fixture = Fixture::new(&["app"], &[]);
    fixture.params.time_zone = Some("Nowhere/Land".to_owned());
    let error = fixture.try_build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidParams);
    assert!(error.to_string().contains("Nowhere/Land"), "{error}");
}

#[test]
fn a_cancelled_build_stops() {
    let fixture = Fixture::new(&["app"], &[]);
    let cancel = Cancel::default();
    cancel.cancel();
    let view = fixture.view();
    let inputs = Inputs {
        params: &fixture.params,
        settings: &fixture.settings,
        host: &fixture.host,
        editor: &fixture.editor,
        access: &view,
        hidden_contents: &|| Arc::new(HiddenContents::read(&view)),
        recently_modified: &[],
        files: &|_| (fixture.files)(),
        cli_tools: &fixture.tools,
    };
    let error = build(&inputs, &cancel).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}
