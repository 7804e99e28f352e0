use std::{collections::BTreeMap, fs, path::Path};

use sightline_base::storage::Storage;

use super::{
    secrets::{masked, secrets},
    store::Store,
    *,
};
use crate::{Agent, install::Locations};

const fn of(agent: Agent) -> Client {
    Client::Agent(agent)
}

/// The file of each agent in the home, with comments and spaces that stay as they are.
const FILES: [(Client, &str, &str); 10] = [
    (
        of(Agent::Claude),
        ".claude.json",
        "{ // mine\n  \"mcpServers\": {\"other\": {\"command\": \"o\"},\n   \"x\":   {\"type\": \"stdio\", \"command\": \"x-mcp\", \"args\": [\"-v\"]} }, \"z\": 1\n}\n",
    ),
    (
        of(Agent::Codex),
        ".codex/config.toml",
        "model = \"m\" # mine\n\n[mcp_servers.x]\ncommand   = \"x-mcp\"  # kept\nargs = [\"-v\"]\nenabled_tools = [\"read_*\"]\nstartup_timeout_sec = 20\n\n[mcp_servers.x.env]\nTOKEN = \"t0k3n\"\n\n[mcp_servers.other]\ncommand = \"o\"\n",
    ),
    (
        of(Agent::Gemini),
        ".gemini/settings.json",
        "{\"mcpServers\": {\"x\": {\"command\": \"x-mcp\", \"args\": [\"-v\"], \"timeout\": 20000, \"trust\": true, \"includeTools\": [\"read_*\"]}}}",
    ),
    (
        of(Agent::Qwen),
        ".qwen/settings.json",
        "{\n\t\"mcpServers\": {\n\t\t\"x\": {\"command\": \"x-mcp\", \"args\": [\"-v\"], \"excludeTools\": [\"rm\"]}\n\t}\n}\n",
    ),
    (
        of(Agent::Copilot),
        ".copilot/mcp-config.json",
        "{\"mcpServers\": {\"x\": {\"type\": \"local\", \"command\": \"x-mcp\", \"args\": [\"-v\"], \"tools\": [\"*\"]}}}\n",
    ),
    (
        of(Agent::Opencode),
        ".config/opencode/opencode.json",
        "{\"mcp\": {\"x\": {\"type\": \"local\", \"command\": [\"x-mcp\", \"-v\"], \"environment\": {\"TOKEN\": \"t0k3n\"}, \"enabled\": true}}}\n",
    ),
    (
        of(Agent::Cline),
        ".cline/data/settings/cline_mcp_settings.json",
        "{\"mcpServers\": {\"x\": {\"transport\": {\"type\": \"stdio\", \"command\": \"x-mcp\", \"args\": [\"-v\"]}, \"autoApprove\": [\"a\"], \"disabled\": false}}}\n",
    ),
    (
        Client::Cursor,
        ".cursor/mcp.json",
        "{\"mcpServers\": {\"x\": {\"command\": \"x-mcp\", \"args\": [\"-v\"], \"env\": {\"TOKEN\": \"${env:TOKEN}\"}}}}\n",
    ),
    (
        Client::Mcphub,
        ".config/mcphub/servers.json",
        "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"x-mcp\",\n      \"args\": [\"-v\"],\n      \"disabled_tools\": [\"rm\"], \"autoApprove\": true\n    },\n  },\n}\n",
    ),
    (
        Client::Zed,
        ".config/zed/settings.json",
        "// Zed settings\n{\n  \"theme\": \"One\",\n  \"context_servers\": {\n    \"x\": {\n      \"source\": \"custom\",\n      \"command\": { \"path\": \"x-mcp\", \"args\": [\"-v\"] },\n    },\n  },\n}\n",
    ),
];

fn manager(folder: &Path) -> (Manager, Locations) {
    let project = folder.join("project");
    let manager = Manager {
        store: Store::new(Storage::open(&folder.join("data")).unwrap()),
        user_file: folder.join("config/mcp.json"),
        roots: vec![project.clone()],
    };
    (manager, Locations::new(folder, &project, |_| None))
}

#[test]
fn servers_of_every_agent_move_and_return_byte_for_byte() {
    for (agent, name, text) in FILES {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let (manager, locations) = manager(folder.path());
        let found = servers_of_clients(&locations);
        let one = found.iter().find(|one| one.name == "x").unwrap();
        assert_eq!(
            (one.agent.as_deref(), &one.command, &one.reason),
            (
                Some(agent.name()),
                &vec!["x-mcp".to_owned(), "-v".to_owned()],
                &None
            ),
        );
        assert_eq!(
            manager.adopt("x", Some(agent), &locations),
            Ok((agent, file.clone()))
        );
        assert!(
            !fs::read_to_string(&file).unwrap().contains("x-mcp"),
            "{name}"
        );
        let server = &manager.read()[0];
        assert_eq!(
            (&*server.entry.command, &*server.entry.args, &server.problem),
            ("x-mcp", &["-v".to_owned()][..], &None),
            "{name}"
        );
        match agent {
            Client::Agent(Agent::Codex) => {
                assert_eq!(
                    (server.entry.start_timeout, &*server.entry.env["TOKEN"]),
                    (20, "t0k3n")
                );
                assert!(server.entry.tools.offers("read_a") && !server.entry.tools.offers("a"));
            }
            Client::Agent(Agent::Gemini) => assert_eq!(server.entry.timeout, 20),
            Client::Agent(Agent::Qwen) | Client::Mcphub => {
                assert!(!server.entry.tools.offers("rm"));
            }
            _ => assert!(server.entry.tools.offers("a")),
        }
        assert_eq!(manager.release("x").as_ref(), Ok(&file));
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "{name}");
        assert_eq!(manager.read(), Vec::new());
    }
}

#[test]
fn a_server_returns_to_a_file_that_has_changed() {
    for (agent, name, text) in FILES {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let (manager, locations) = manager(folder.path());
        let before = servers_of_clients(&locations);
        manager.adopt("x", None, &locations).unwrap();
        let space = format!("{}\n", fs::read_to_string(&file).unwrap());
        fs::write(&file, space).unwrap();
        manager.release("x").unwrap();
        let mut after = servers_of_clients(&locations);
        after.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(after, before, "{} {name}", agent.name());
    }
}

#[test]
fn a_server_that_could_not_be_used_stays_with_its_client() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".cursor/mcp.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let text = r#"{"mcpServers": {"far": {"url": "https://a.example/"}, "run": {"command": "${cmd: id}"}, "a__b": {"command": "x"}}}"#;
    fs::write(&file, text).unwrap();
    let (manager, locations) = manager(folder.path());
    for name in ["far", "run", "a__b"] {
        let refused = manager.adopt(name, None, &locations).unwrap_err();
        assert!(
            refused
                .to_string()
                .starts_with(&format!("cannot move {name}: ")),
            "{refused}"
        );
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(manager.read(), Vec::new());
}

#[test]
fn values_of_variables_are_masked() {
    let variables = [("A", "s3cret"), ("B", "s3cret-and-more"), ("SHORT", "abc")];
    let variables: BTreeMap<String, String> = variables
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let text = masked("s3cret-and-more s3cret abc", &secrets(&variables));
    assert_eq!(text, "${B} ${A} abc");
}

#[test]
fn a_changed_configuration_has_another_version() {
    let folder = tempfile::tempdir().unwrap();
    let (manager, _) = manager(folder.path());
    let before = manager.configuration_versions();
    fs::create_dir_all(manager.user_file.parent().unwrap()).unwrap();
    fs::write(&manager.user_file, "{").unwrap();
    assert_ne!(manager.configuration_versions(), before);
    // A file that cannot be read is in place of its servers.
    let servers = manager.read();
    assert!(servers.len() == 1 && servers[0].is_file(), "{servers:?}");
}

#[cfg(unix)]
#[test]
fn files_are_replaced_atomically_behind_links_with_their_mode() {
    use std::{
        io::Read,
        os::unix::fs::{PermissionsExt, symlink},
    };
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for (agent, name, text) in FILES {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("dotfiles/settings");
        let file = folder.path().join(name);
        for path in [&real, &file] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(&real, text).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&real, &file).unwrap();
        let (manager, locations) = manager(folder.path());
        let moves: [&dyn Fn(); 2] = [
            &|| {
                manager.adopt("x", Some(agent), &locations).unwrap();
                assert_eq!(mode(&manager.user_file), 0o600);
            },
            &|| {
                manager.release("x").unwrap();
            },
        ];
        for change in moves {
            let files: Vec<_> = [&real, &manager.user_file]
                .into_iter()
                .filter(|path| path.exists())
                .map(|path| (fs::File::open(path).unwrap(), fs::read(path).unwrap()))
                .collect();
            change();
            for (mut open, before) in files {
                let mut kept = Vec::new();
                open.read_to_end(&mut kept).unwrap();
                assert!(kept == before, "{name} is written in place");
            }
            assert!(fs::symlink_metadata(&file).unwrap().is_symlink(), "{name}");
            assert_eq!(mode(&real), 0o640, "{name}");
        }
        assert_eq!(fs::read_to_string(&real).unwrap(), text, "{name}");
    }
}
