//! Property tests of the environment block with arbitrary client input.

use std::{fs, sync::Arc};

use proptest::{collection::vec, prelude::*, sample::select};
use sightline_access::{Access, AccessView, Origin, redact::HiddenContents};
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, Root, Roots},
};
use sightline_context::{
    document::Change,
    editor::EditorState,
    environment::{CliTools, FileList, Inputs, ModifiedFile, build, display_name},
};
use sightline_protocol::settings::Secrets;
use sightline_protocol::{
    editor::{Tab, Terminal, VisibleEditor},
    environment::EnvironmentDetailsParams,
    settings::EnvironmentSettings,
};
use tempfile::TempDir;

const RULES: &str = "*.secret\nhidden/\n/config/keys.env\n";
const FILES: &[&str] = &[
    "ok.txt",
    "src/main.rs",
    "x.secret",
    "src/Y.Secret",
    "hidden/inner.txt",
    "config/keys.env",
];
/// What may never be read in a block, in lower case.
const DENIED: &[&str] = &["x.secret", "y.secret", "hidden/inner", "config/keys.env"];

struct Workspace {
    _folder: TempDir,
    root: AbsPath,
}

fn workspace() -> Workspace {
    let folder = tempfile::tempdir().unwrap();
    let root = AbsPath::new(&sightline_base::path::canonicalize(folder.path()).unwrap()).unwrap();
    for file in FILES {
        let path = root.as_path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    fs::write(root.as_path().join(".clineignore"), RULES).unwrap();
    Workspace {
        _folder: folder,
        root,
    }
}

fn view(root: &AbsPath, name: &str) -> AccessView {
    let root = Root::new(root.clone(), Some(name.to_owned()));
    let other = Root::new(AbsPath::new(std::path::Path::new("/other")).unwrap(), None);
    Access::new(
        Arc::new(Roots::new(vec![root, other])),
        Vec::new(),
        Secrets::Allow,
    )
    .view()
    .0
}

#[derive(Clone, Debug)]
struct Shell {
    command: String,
    cwd: Option<String>,
    busy: bool,
    output: String,
}

fn shown(
    view: &AccessView,
    host: &str,
    uris: &[String],
    shells: &[Shell],
    list: &str,
    settings: &EnvironmentSettings,
) -> String {
    let mut editor = EditorState::default();
    editor.set_tabs(
        uris.iter()
            .map(|uri| Tab {
                uri: uri.clone(),
                is_dirty: Some(true),
                ..Tab::default()
            })
            .collect(),
    );
    editor.set_visible(
        uris.iter()
            .map(|uri| VisibleEditor {
                uri: uri.clone(),
                ..VisibleEditor::default()
            })
            .collect(),
    );
    for uri in uris {
        editor.open(uri.clone(), "text".to_owned(), 1, "", Origin::default());
        let change = Change {
            range: None,
            text: "changed".to_owned(),
        };
        editor.change(uri, 2, &[change], Default::default());
    }
    editor.set_terminals(
        shells
            .iter()
            .enumerate()
            .map(|(id, shell)| Terminal {
                id: id.to_string(),
                command: Some(shell.command.clone()),
                cwd: shell.cwd.clone(),
                is_busy: shell.busy,
                new_output: Some(shell.output.clone()),
                ..Terminal::default()
            })
            .collect(),
    );
    let modified: Vec<ModifiedFile> = uris
        .iter()
        .filter_map(|uri| {
            Some(ModifiedFile {
                path: uri.clone(),
                deleted: uri.len() % 2 == 0,
                location: view.roots().locate(uri).ok()?,
            })
        })
        .collect();
    let inputs = Inputs {
        params: &EnvironmentDetailsParams {
            include_files: true,
            ..EnvironmentDetailsParams::default()
        },
        settings,
        host: &display_name(host),
        editor: &editor,
        access: view,
        hidden_contents: &|| Arc::new(HiddenContents::read(view)),
        recently_modified: &modified,
        files: &|_| {
            Ok(FileList {
                text: list.to_owned(),
                omitted: 0,
            })
        },
        cli_tools: &CliTools::default(),
    };
    build(&inputs, &Cancel::default()).unwrap().result.text
}

/// A path as some program might print it.
fn written() -> impl Strategy<Value = String> {
    let file = select(FILES.to_vec());
    let before = select(vec![
        "",
        "./",
        "a/",
        "b/",
        "src/../",
        "\"",
        "'",
        "(",
        "[",
        "<",
        "--file=",
        "error:",
        "@",
        "+",
        "{root}/",
        "file://{root}/",
        "\u{1b}[31m",
        ">",
        "-",
    ]);
    let after = select(vec![
        "",
        ":12:3",
        ",",
        ".",
        "!",
        "\"",
        "'",
        ")",
        "]",
        ">",
        ";",
        "*",
        "|",
        "\u{1b}[0m",
        "?",
        "\r",
    ]);
    (before, file, after).prop_map(|(before, file, after)| format!("{before}{file}{after}"))
}

fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        written(),
        select(vec![
            "cat", "sudo", "ls -l", "done", "|", "&&", "\n", "\t", "\u{8}", "=", "\r\n"
        ])
        .prop_map(str::to_owned),
    ];
    vec(word, 0..8).prop_map(|words| words.join(" "))
}

fn shell(text: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = Shell> {
    let cwd = prop::option::of(select(vec!["{root}", "{root}/config", "/nowhere", ""]));
    (text.clone(), cwd, any::<bool>(), text).prop_map(|(command, cwd, busy, output)| Shell {
        command,
        cwd: cwd.map(str::to_owned),
        busy,
        output,
    })
}

/// Pieces from which the block's own tags could be put together.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => select(vec![
            "<", "/", ">", "environment_details", "ENVIRONMENT_DETAILS", " ", "\n", "\u{1b}[0m",
            "</environment_details>", "<environment_details>", "\0", "\u{8}", "\r", "# ", "\u{2028}",
        ])
        .prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn with_root(text: &str, root: &AbsPath) -> String {
    text.replace("{root}", &root.display())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_denied_name_is_ever_shown(
        tabs in vec(select(FILES.to_vec()), 0..8),
        shells in vec(shell(words().boxed()), 0..4),
        max_tokens in prop::option::of(0u32..60),
    ) {
        let workspace = workspace();
        let root = &workspace.root;
        let settings: EnvironmentSettings = match max_tokens {
            Some(max) => serde_json::from_value(serde_json::json!({
                "outsideFiles": "show",
                "sections": {"openTabs": {"maxTokens": max}, "inactiveTerminals": {"maxTokens": max}},
            })).unwrap(),
            None => EnvironmentSettings::default(),
        };
        let uris: Vec<String> = tabs
            .iter()
            .map(|tab| format!("file://{}/{tab}", root.display()))
            .collect();
        let shells: Vec<Shell> = shells
            .into_iter()
            .map(|shell| Shell {
                command: with_root(&shell.command, root),
                cwd: shell.cwd.map(|cwd| with_root(&cwd, root)),
                output: with_root(&shell.output, root),
                ..shell
            })
            .collect();
        let text = shown(&view(root, "app"), "nvim", &uris, &shells, "", &settings).to_lowercase();
        for denied in DENIED {
            prop_assert!(!text.contains(denied), "{denied} in {text}");
        }
        if tabs.contains(&"ok.txt") && max_tokens.is_none() {
            prop_assert!(text.contains("ok.txt"));
        }
    }

    #[test]
    fn every_block_opens_once_and_closes_once(
        host in hostile(),
        name in hostile(),
        list in hostile(),
        names in vec(hostile(), 0..4),
        shells in vec(shell(hostile().boxed()), 0..3),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let uris: Vec<String> = names
            .iter()
            .map(|name| {
                let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
                format!("file:///x{encoded}")
            })
            .chain(names.clone())
            .collect();
        let settings: EnvironmentSettings =
            serde_json::from_str(r#"{"outsideFiles": "show"}"#).unwrap();
        let list: String = list.chars().filter(|c| !c.is_control()).collect();
        let text = shown(&view(&root, &name), &host, &uris, &shells, &list, &settings);
        prop_assert!(text.starts_with("<environment_details>\n# "));
        prop_assert!(text.ends_with("\n</environment_details>"));
        let lower = text.to_lowercase();
        prop_assert_eq!(lower.matches("<environment_details>").count(), 1);
        prop_assert_eq!(lower.matches("</environment_details>").count(), 1);
        prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
    }
}
