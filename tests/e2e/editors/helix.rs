//! Two versions of the real Helix in tmux: configured by `helix-config` together with
//! another server, with commands and keys pressed and the screen read.

use std::{
    ffi::OsString,
    fs,
    ops::Deref,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use sightline_testing::tmux::{self, DEADLINE, POLL, Terminal};
use toml_edit::{DocumentMut, Item, Value};

use crate::{
    editors::neovim::sample,
    harness::{Workspace, program},
};

/// Delay before a command is repeated: a server may be starting.
const AGAIN: Duration = Duration::from_secs(2);

/// The versions provided by `tests/provide/helix`.
const VERSIONS: [&str; 2] = ["older", "newer"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the path of Helix: below `SIGHTLINE_HELIX`, else where `tests/run` puts it.
fn helix(version: &str) -> Option<PathBuf> {
    let named = std::env::var_os("SIGHTLINE_HELIX").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| repository().join("target/helix"));
    let found = folder.join(version).join("hx");
    let why = if !found.exists() {
        format!("{} is missing; tests/run provides it", found.display())
    } else if tmux::is_missing() {
        "tmux is missing".to_owned()
    } else {
        return Some(fs::canonicalize(found).unwrap());
    };
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("skipped: {why}");
    None
}

/// A Helix in its own terminal, ended with the test.
struct Editor(Terminal);

impl Deref for Editor {
    type Target = Terminal;

    fn deref(&self) -> &Terminal {
        &self.0
    }
}

impl Editor {
    fn open(helix: &Path, workspace: &Workspace, file: &str) -> Self {
        let place = |name: &str| workspace.data().with_extension(name);
        let [home, config, cache, data] = ["home", "config", "cache", "data"].map(place);
        let editor = Self(Terminal::start(
            &place("tmux"),
            &[
                ("TERM", "xterm-256color".as_ref()),
                ("PATH", &search_path()),
                ("HOME", home.as_ref()),
                ("XDG_CONFIG_HOME", config.as_ref()),
                ("XDG_CACHE_HOME", cache.as_ref()),
                ("XDG_DATA_HOME", data.as_ref()),
            ],
            (150, 40),
            &workspace.root(),
            &[helix.as_ref(), "-v".as_ref(), file.as_ref()],
        ));
        editor.wait(file);
        // Earlier, the command would reach a server without documents.
        let log = cache.join("helix/helix.log");
        let opened = r#"sightline -> {"jsonrpc":"2.0","method":"textDocument/didOpen""#;
        let begun = Instant::now();
        while !fs::read_to_string(&log).is_ok_and(|log| log.contains(opened)) {
            assert!(
                begun.elapsed() < DEADLINE,
                "not started:\n{}",
                editor.screen()
            );
            std::thread::sleep(POLL);
        }
        editor
    }

    fn type_command(&self, command: &str) {
        self.press(&["-l", &format!(":{command}")]);
        self.press(&["Enter"]);
    }

    /// Repeats an action until a text appears. Returns the screen.
    fn until(&self, text: &str, act: impl Fn()) -> String {
        let begun = Instant::now();
        while begun.elapsed() < DEADLINE {
            act();
            if let Some(screen) = self.seen(text, AGAIN) {
                return screen;
            }
        }
        panic!("no {text:?} appears:\n{}", self.screen());
    }
}

/// The server under test first, then the other programs.
fn search_path() -> OsString {
    let server = Path::new(env!("CARGO_BIN_EXE_sightline")).parent().unwrap();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(server.to_owned()).chain(std::env::split_paths(&rest));
    std::env::join_paths(all).unwrap()
}

/// A Helix whose user has another server for Python and has merged this one.
fn configured(workspace: &Workspace) -> PathBuf {
    let folder = workspace.data().with_extension("config").join("helix");
    fs::create_dir_all(&folder).unwrap();
    let log = workspace.data().with_extension("other.log");
    let other = repository().join("tests/helix/other_server.py");
    let languages = format!(
        "[language-server.other]\ncommand = \"python3\"\nargs = [{:?}, {:?}]\n\n\
         [[language]]\nname = \"python\"\nlanguage-servers = [\"other\"]\n",
        other.display().to_string(),
        log.display().to_string(),
    );
    fs::write(folder.join("languages.toml"), languages).unwrap();
    let merged = program()
        .arg("helix-config")
        .arg("--merge")
        .arg(&folder)
        .env("PATH", search_path())
        .output()
        .unwrap();
    assert!(merged.status.success(), "{merged:?}");
    log
}

fn plays_a_session(version: &str) {
    let Some(helix) = helix(version) else {
        return;
    };
    let workspace = sample();
    let other = configured(&workspace);
    let editor = Editor::open(&helix, &workspace, "src/cart.py");

    // The command without arguments, which every version supports.
    let environment = "lsp-workspace-command sightline.showEnvironment";
    editor.type_command(environment);
    let screen = editor.wait("are in the opened document");
    assert!(screen.contains("<environment_details>"), "{screen}");
    assert!(screen.contains("# Helix Visible Files"), "{screen}");
    assert!(screen.contains("src/cart.py"), "{screen}");

    // The other server is still asked, and still answers.
    editor.type_command("buffer-close");
    editor.wait("src/cart.py");
    editor.until("the other server is here", || {
        editor.press(&["Space", "k"]);
    });
    // A terminal combines an Escape and a key right after it.
    editor.press(&["Escape"]);
    editor.gone("the other server is here");
    let text = fs::read_to_string(&other).unwrap();
    assert!(text.contains("textDocument/didOpen"), "{text}");

    // The key passes the file.
    if version == "newer" {
        editor.until("agents may see src/cart.py", || press_ours(&editor, "a"));
        editor.type_command("open .env");
        editor.wait(" .env ");
        editor.until(".env is hidden from agents", || press_ours(&editor, "a"));
    }
    editor.until("are in the opened document", || press_ours(&editor, "e"));

    makes_checkpoints(&editor, version);
    editor.type_command("quit-all!");
}

fn makes_checkpoints(editor: &Editor, version: &str) {
    editor.until("checkpoint ", || press_ours(editor, "c"));
    editor.type_command("open src/cart.py");
    editor.wait(" src/cart.py ");
    editor.press(&["O", "# Sums.", "Escape"]);
    editor.wait("NOR   src/cart.py [+]");
    editor.type_command("write");
    editor.wait("NOR   src/cart.py  ");
    editor.until(", 1 modified, 0 deleted", || press_ours(editor, "c"));
    editor.until("no restore to undo", || press_ours(editor, "u"));
    // The same as a code action: the second one offered here.
    editor.press(&["Space", "a"]);
    editor.wait("Sightline: create checkpoint");
    editor.press(&["Down", "Enter"]);
    editor.wait("0 added, 0 modified, 0 deleted");
    editor.press(&["O", "# More.", "Escape"]);
    editor.wait("NOR   src/cart.py [+]");
    editor.type_command("write");
    editor.wait("NOR   src/cart.py  ");
    editor.until("M        +1 -0  src/cart.py", || press_ours(editor, "d"));
    if version == "newer" {
        editor.type_command("open src/cart.py");
        editor.wait("NOR   src/cart.py  ");
        editor.until("Restore src/cart.py from", || press_ours(editor, "f"));
        editor.press(&["Enter"]);
        editor.gone("# More.");
    }
}

fn press_ours(editor: &Editor, key: &str) {
    editor.press(&["Space", "A", key]);
}

#[test]
fn helix_25_01_shows_what_the_commands_answer() {
    plays_a_session("older");
}

#[test]
fn helix_after_25_07_shows_results_of_commands_and_keys() {
    plays_a_session("newer");
}

fn merge(workspace: &Workspace, arguments: &[&str]) -> (i32, String) {
    let output = program()
        .arg("helix-config")
        .args(arguments)
        .current_dir(workspace.root())
        .env_remove("XDG_CONFIG_HOME")
        .env("HOME", workspace.root())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

#[cfg(unix)]
#[test]
fn helix_config_finds_the_folder_of_the_user_and_adds_nothing_twice() {
    let workspace = Workspace::new(&[(".config/helix/config.toml", "theme = \"onedark\"\n")]);
    let (code, text) = merge(&workspace, &["--merge"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("config.toml.before-sightline"), "{text}");
    let read = |name: &str| fs::read_to_string(workspace.path(name)).unwrap();
    let languages = read(".config/helix/languages.toml");
    assert!(
        languages.contains("[\"rust-analyzer\", \"sightline\"]"),
        "{languages}"
    );
    assert!(read(".config/helix/config.toml").starts_with("theme = \"onedark\"\n"));
    let kept = read(".config/helix/config.toml.before-sightline");
    assert_eq!(kept, "theme = \"onedark\"\n");

    let (code, text) = merge(&workspace, &["--merge"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(text.matches("nothing to add").count(), 2, "{text}");
    assert_eq!(read(".config/helix/languages.toml"), languages);

    let (code, text) = merge(&workspace, &["--remove"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(read(".config/helix/config.toml"), "theme = \"onedark\"\n");
    assert!(!workspace.path(".config/helix/languages.toml").exists());
    let (code, text) = merge(&workspace, &["--remove"]);
    assert_eq!(
        (code, text.matches("nothing to remove").count()),
        (0, 2),
        "{text}"
    );
}

#[test]
fn nothing_is_written_unless_both_files_can_be_merged() {
    let workspace = Workspace::new(&[("helix/config.toml", "theme = \n")]);
    let (code, text) = merge(&workspace, &["--merge", "helix"]);
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("config.toml") && text.contains("nothing was changed"),
        "{text}"
    );
    assert_eq!(fs::read_dir(workspace.path("helix")).unwrap().count(), 1);

    let (code, text) = merge(
        &workspace,
        &["--merge", "helix/languages.toml", "--languages", "go"],
    );
    assert_eq!(code, 0, "{text}");
    let languages = fs::read_to_string(workspace.path("helix/languages.toml")).unwrap();
    assert_eq!(languages.matches("[[language]]").count(), 1, "{languages}");
    assert_eq!(merge(&workspace, &["--languages", "klingon"]).0, 2);
}

/// Extracts the languages.toml that is compiled into a Helix.
fn built_in_languages(helix: &Path) -> DocumentMut {
    let program = helix.parent().unwrap().join("usr/lib/hx/hx");
    let bytes = fs::read(program).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let begin = text.find("\n[[language]]\n").unwrap();
    let end = text.rfind("\n[[language]]\n").unwrap();
    // The last entry runs into unrelated data; its first lines are enough.
    let last: String = text[end..]
        .lines()
        .take(3)
        .fold(String::new(), |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        });
    format!("{}{last}", &text[begin..end]).parse().unwrap()
}

/// Returns the servers of a list, each with its excluded features.
fn servers(language: &dyn toml_edit::TableLike) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = language.get("language-servers").and_then(Item::as_array);
    list.into_iter()
        .flatten()
        .map(|server| match server {
            Value::InlineTable(table) => {
                let withheld = table.get("except-features").and_then(Value::as_array);
                let withheld: Vec<String> = withheld.into_iter().flatten().map(text).collect();
                (text(&table["name"]), withheld.join(" "))
            }
            server => (text(server), String::new()),
        })
        .collect()
}

/// Returns the servers that helix-config writes, by language.
fn written() -> Vec<(String, Vec<(String, String)>)> {
    let printed = program()
        .args(["helix-config", "--languages", "all"])
        .output()
        .unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let document: DocumentMut = printed.parse().unwrap();
    let languages = document["language"].as_array_of_tables().unwrap();
    languages
        .iter()
        .map(|language| {
            let name = language["name"].as_str().unwrap().to_owned();
            (name, servers(language))
        })
        .collect()
}

#[test]
fn no_default_server_of_helix_is_missing() {
    let written = written();
    for version in VERSIONS {
        let Some(helix) = helix(version) else {
            return;
        };
        let built_in = built_in_languages(&helix);
        let built_in = built_in["language"].as_array_of_tables().unwrap();
        for (name, ours) in written.iter().filter(|(name, _)| name != "text") {
            let language = built_in
                .iter()
                .find(|language| language["name"].as_str() == Some(name))
                .unwrap_or_else(|| panic!("{version} has no {name}: it would refuse the file"));
            for (server, withheld) in servers(language) {
                let (_, ours) = ours
                    .iter()
                    .find(|(name, _)| *name == server)
                    .unwrap_or_else(|| panic!("{version}, {name}: {server} is left out"));
                // If the two versions differ, the newer one counts.
                assert!(
                    version == "older" || *ours == withheld,
                    "{version}, {name}: {server} has not {withheld:?}"
                );
            }
        }
    }
}
