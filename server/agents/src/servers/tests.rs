use std::{fs, path::Path};

use sightline_base::storage::Storage;

use super::{store::Store, *};
use crate::{Agent, install::Locations};

/// The file of each agent in the home, with comments and spaces that stay as they are.
const FILES: [(Agent, &str, &str); 7] = [
    (
        Agent::Claude,
        ".claude.json",
        "{ // mine\n  \"mcpServers\": {\"other\": {\"command\": \"o\"},\n   \"x\":   {\"type\": \"stdio\", \"command\": \"x-mcp\", \"args\": [\"-v\"]} }, \"z\": 1\n}\n",
    ),
    (
        Agent::Codex,
        ".codex/config.toml",
        "model = \"m\" # mine\n\n[mcp_servers.x]\ncommand   = \"x-mcp\"  # kept\nargs = [\"-v\"]\nenabled_tools = [\"read_*\"]\nstartup_timeout_sec = 20\n\n[mcp_servers.x.env]\nTOKEN = \"t0k3n\"\n\n[mcp_servers.other]\ncommand = \"o\"\n",
    ),
    (
        Agent::Gemini,
        ".gemini/settings.json",
        "{\"mcpServers\": {\"x\": {\"command\": \"x-mcp\", \"args\": [\"-v\"], \"timeout\": 20000, \"trust\": true, \"includeTools\": [\"read_*\"]}}}",
    ),
    (
        Agent::Qwen,
        ".qwen/settings.json",
        "{\n\t\"mcpServers\": {\n\t\t\"x\": {\"command\": \"x-mcp\", \"args\": [\"-v\"], \"excludeTools\": [\"rm\"]}\n\t}\n}\n",
    ),
    (
        Agent::Copilot,
        ".copilot/mcp-config.json",
        "{\"mcpServers\": {\"x\": {\"type\": \"local\", \"command\": \"x-mcp\", \"args\": [\"-v\"], \"tools\": [\"*\"]}}}\n",
    ),
    (
        Agent::Opencode,
        ".config/opencode/opencode.json",
        "{\"mcp\": {\"x\": {\"type\": \"local\", \"command\": [\"x-mcp\", \"-v\"], \"environment\": {\"TOKEN\": \"t0k3n\"}, \"enabled\": true}}}\n",
    ),
    (
        Agent::Cline,
        ".cline/data/settings/cline_mcp_settings.json",
        "{\"mcpServers\": {\"x\": {\"transport\": {\"type\": \"stdio\", \"command\": \"x-mcp\", \"args\": [\"-v\"]}, \"autoApprove\": [\"a\"], \"disabled\": false}}}\n",
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
        let found = servers_of_agents(&locations);
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
            manager.adopt("x", Some(agent), &locations).as_ref(),
            Ok(&file)
        );
        assert!(
            !fs::read_to_string(&file).unwrap().contains("x-mcp"),
            "{name}"
        );
        let server = &manager.read().unwrap()[0];
        assert_eq!(
            (&*server.entry.command, &*server.entry.args, &server.problem),
            ("x-mcp", &["-v".to_owned()][..], &None),
            "{name}"
        );
        match agent {
            Agent::Codex => {
                assert_eq!(
                    (server.entry.start_timeout, &*server.entry.env["TOKEN"]),
                    (20, "t0k3n")
                );
                assert!(server.entry.tools.offers("read_a") && !server.entry.tools.offers("a"));
            }
            Agent::Gemini => assert_eq!(server.entry.timeout, 20),
            Agent::Qwen => assert!(!server.entry.tools.offers("rm")),
            _ => assert!(server.entry.tools.offers("a")),
        }
        assert_eq!(manager.release("x").as_ref(), Ok(&file));
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "{name}");
        assert_eq!(manager.read(), Ok(Vec::new()));
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
        let before = servers_of_agents(&locations);
        manager.adopt("x", None, &locations).unwrap();
        let space = format!("{}\n", fs::read_to_string(&file).unwrap());
        fs::write(&file, space).unwrap();
        manager.release("x").unwrap();
        let mut after = servers_of_agents(&locations);
        after.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(after, before, "{} {name}", agent.name());
    }
}
