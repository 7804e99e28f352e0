//! Names and definitions of tools, prompts and resources of servers in `sightline mcp`.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    clients::scripted,
    hub::{configure, names, open, run, wait_for_state},
    servers::{FILES, Session, real},
};
use crate::harness::Workspace;

#[test]
fn members_pass_as_they_are_written() {
    let workspace = Workspace::new(FILES);
    let tool = r#"{"x-unknown":{"n":1.50,"big":123456789012345678901234567890},"name":"t","execution":{"taskSupport":"optional"},"inputSchema":{"type":"object"},"outputSchema":{"type":"object","x":1e2},"_meta":{"a/b":[null,"\u00e9"]}}"#;
    let result = r#"{"_meta":{"k":1.0},"content":[{"type":"text","text":"\u0041","x-more":{"b":1,"a":2}},{"type":"x-new","data":"AA=="}],"structuredContent":{"n":2.50},"resultType":"complete","x-unknown":[1e300]}"#;
    let prompt = r#"{"description":"d","messages":[],"x":0.10}"#;
    let answers = json!({
        "tools/list": format!(r#"{{"tools":[{tool}],"x":1}}"#), "t": result,
        "prompts/list": r#"{"prompts":[{"name":"p","x":1.0}]}"#, "prompts/get": prompt,
    });
    let log = workspace.data().with_file_name("got");
    configure(&workspace, &json!({ "s": scripted(&answers, Some(&log)) }));
    let mut hub = open(&workspace, json!({}));
    hub.request("tools/list", &json!({}));
    let listed = tool.replace(r#""name":"t""#, r#""name":"s__t""#);
    assert!(hub.seen.last().unwrap().contains(&listed), "{:?}", hub.seen);
    // Arguments too: numbers keep their digits.
    let arguments = r#"{"n":12345678901234567890123,"f":1.50,"s":"\u00e9"}"#;
    hub.send_text(&format!(
        r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{{"arguments":{arguments},"name":"s__t","x":1.0}}}}"#
    ));
    while hub.next()["id"] != "a" {}
    let line = hub.seen.last().unwrap();
    assert_eq!(
        *line,
        format!(r#"{{"jsonrpc":"2.0","id":"a","result":{result}}}"#)
    );
    let got = std::fs::read_to_string(&log).unwrap();
    assert!(
        got.contains(&format!(
            r#""params":{{"arguments":{arguments},"name":"t","x":1.0,"#
        )),
        "{got}"
    );
    hub.request("prompts/get", &json!({ "name": "s__p" }));
    assert!(hub.seen.last().unwrap().contains(prompt), "{:?}", hub.seen);
    assert_eq!(hub.end(), Some(0));
}

#[test]
fn arguments_with_two_values_for_a_name_are_refused() {
    let workspace = Workspace::new(FILES);
    let answers = json!({ "tools/list": r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#, "t": "{}" });
    configure(&workspace, &json!({ "s": scripted(&answers, None) }));
    let mut hub = open(&workspace, json!({}));
    names(&mut hub);
    for (id, arguments) in [
        (100, r#"{"path":".env","path":"a.txt"}"#),
        (101, r#"{"x":[{"path":".env","p\u0061th":"a.txt"}]}"#),
    ] {
        hub.send_text(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"s__t","arguments":{arguments}}}}}"#
        ));
        let refused = hub.response(id);
        assert_eq!(refused["result"]["isError"], true, "{refused}");
    }
    assert_eq!(hub.end(), Some(0));
}

#[test]
fn names_are_unique_short_and_stable() {
    let workspace = Workspace::new(FILES);
    let long = "a".repeat(60);
    let tools: Vec<Value> = [&*long, &format!("{long}b"), "same", "a.b", "a b", "a_b"]
        .iter()
        .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }))
        .collect();
    let resource = json!({ "uri": "demo://same", "name": "r" });
    let of = |text: &str| {
        json!({
            "tools/list": json!({ "tools": tools }).to_string(),
            "prompts/list": json!({ "prompts": [{ "name": "same" }, { "name": long }] }).to_string(),
            "resources/list": json!({ "resources": [resource] }).to_string(),
            "resources/templates/list": r#"{"resourceTemplates":[]}"#,
            "resources/read": json!({ "contents": [{ "uri": "demo://same", "text": text }] }).to_string(),
            "prompts/get": json!({ "description": text, "messages": [] }).to_string(),
            long.as_str(): json!({ "content": [{ "type": "text", "text": text }] }).to_string(),
        })
    };
    let (one, two) = (of("of one"), of("of two"));
    configure(
        &workspace,
        &json!({
            "one": scripted(&one, None), "two-long-name-of-server": scripted(&two, None),
            "bad__name": scripted(&one, None),
            "one-more-name-that-is-too-long": scripted(&one, None),
        }),
    );
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut hub = open(&workspace, json!({}));
        let mut all = names(&mut hub);
        all.retain(|name| name.contains("__"));
        assert_eq!(all.len(), 12, "{all:?}");
        let prompts = hub.request("prompts/list", &json!({}))["result"]["prompts"].clone();
        let prompts = prompts.as_array().unwrap().iter();
        let prompts: Vec<String> = prompts
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(prompts.len(), 4);
        for names in [&all, &prompts] {
            assert_eq!(
                names.iter().collect::<HashSet<_>>().len(),
                names.len(),
                "{names:?}"
            );
            assert!(names.iter().all(|name| name.len() <= 48), "{names:?}");
        }
        // Each name and URI leads to its server.
        for (server, text) in [("one__", "of one"), ("two-", "of two")] {
            let tool = all.iter().find(|name| name.starts_with(server)).unwrap();
            assert_eq!(
                hub.call(tool, &json!({}))["content"][0]["text"],
                text,
                "{tool}"
            );
            let prompt = prompts
                .iter()
                .find(|name| name.starts_with(server))
                .unwrap();
            let got = hub.request("prompts/get", &json!({ "name": prompt }));
            assert_eq!(got["result"]["description"], text, "{prompt}");
        }
        let resources = hub.request("resources/list", &json!({}))["result"]["resources"].clone();
        let uris: Vec<&str> = resources
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["uri"].as_str().unwrap())
            .collect();
        assert_eq!(
            uris,
            ["demo://same", "mcp+two-long-name-of-server:demo://same"]
        );
        for (uri, text) in uris.into_iter().zip(["of one", "of two"]) {
            let read = hub.request("resources/read", &json!({ "uri": uri }));
            assert_eq!(read["result"]["contents"][0]["text"], text, "{uri}: {read}");
        }
        seen.push((all, prompts));
        for name in ["bad__name", "one-more-name-that-is-too-long"] {
            let reason = wait_for_state(&workspace, name, "failed")["reason"].clone();
            assert!(
                reason
                    .as_str()
                    .unwrap()
                    .contains("mcp.json:1: invalid name"),
                "{reason}"
            );
        }
        assert_eq!(hub.end(), Some(0));
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn a_changed_definition_is_seen_and_can_be_blocked() {
    let workspace = Workspace::new(FILES);
    let define = |description: &str, pin: &str| {
        let tools = json!({ "tools": [
            { "name": "t", "description": description, "inputSchema": { "type": "object" } },
            { "name": "u", "inputSchema": { "type": "object" } },
        ] });
        // The program is the same; what it answers is not.
        let answers = workspace.data().with_file_name("answers.json");
        let all = json!({ "tools/list": tools.to_string(), "t": "{}", "u": "{}" });
        std::fs::write(&answers, all.to_string()).unwrap();
        let script = format!(
            "import sys; sys.argv[1:] = [open({:?}).read()]\n{}",
            answers.to_str().unwrap(),
            super::clients::SCRIPTED
        );
        let entry = json!({ "command": "python3", "args": ["-c", script], "pin": pin });
        configure(&workspace, &json!({ "s": entry }));
    };
    let listed = |session: &mut Session| names(session).contains(&"s__t".to_owned());
    define("reads", "warn");
    let mut hub = open(&workspace, json!({}));
    assert!(listed(&mut hub));
    hub.call("s__u", &json!({}));
    wait_for_state(&workspace, "s", "ready");
    assert_eq!(hub.end(), Some(0));

    define("reads and sends", "warn");
    let mut hub = open(&workspace, json!({}));
    hub.call("s__u", &json!({}));
    let state = wait_for_state(&workspace, "s", "changed");
    assert_eq!(state["tools"][0]["changed"], true, "{state}");
    assert_eq!(state["tools"][1]["changed"], false, "{state}");
    let (log, _) = run(&workspace, &["log", "s"]);
    assert!(
        log.contains("the definition of the tool t has changed"),
        "{log}"
    );
    let (list, _) = run(&workspace, &["list"]);
    assert!(list.contains("changed: t"), "{list}");
    assert!(listed(&mut hub));
    assert_eq!(hub.end(), Some(0));

    define("reads and sends", "block");
    let mut hub = open(&workspace, json!({}));
    assert!(!listed(&mut hub));
    assert!(names(&mut hub).contains(&"s__u".to_owned()));
    let refused = hub.request("tools/call", &json!({ "name": "s__t", "arguments": {} }));
    assert!(refused["error"].is_object(), "{refused}");
    // The user accepts it.
    let (text, done) = run(&workspace, &["trust", "s"]);
    assert!(done, "{text}");
    hub.call("s__u", &json!({}));
    wait_for_state(&workspace, "s", "ready");
    assert!(listed(&mut hub));
    assert_eq!(hub.end(), Some(0));
}

#[test]
fn lists_and_results_of_all_servers_are_complete() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n")]);
    let root = workspace.root().to_str().unwrap().to_owned();
    sightline_testing::git::init(&workspace.root());
    let mut servers = json!({});
    let mut direct = Vec::new();
    for (name, program, arguments) in super::servers::all(&root) {
        let Some(path) = real(program) else { continue };
        servers[name] = json!({ "command": path, "args": arguments });
        let mut session = Session::start(
            std::process::Command::new(&path)
                .args(&arguments)
                .current_dir(workspace.root()),
        );
        session.capabilities = json!({ "roots": {} });
        session.root = Some(workspace.uri("").trim_end_matches('/').to_owned());
        session.initialize();
        // Some add tools after a moment.
        for _ in 0..3 {
            session.request("tools/list", &json!({}));
        }
        let line: Value = serde_json::from_str(session.seen.last().unwrap()).unwrap();
        let tools = line["result"]["tools"].as_array().unwrap().clone();
        let calls = super::servers::calls(name, &workspace);
        let results: Vec<Value> = calls
            .iter()
            .map(|(tool, arguments)| session.call(tool, arguments))
            .collect();
        direct.push((name, tools, calls.into_iter().zip(results)));
        session.end();
    }
    if direct.is_empty() {
        return;
    }
    configure(&workspace, &servers);
    let mut hub = open(&workspace, json!({}));
    let listed = hub.request("tools/list", &json!({}))["result"]["tools"].clone();
    for (name, tools, calls) in direct {
        for tool in tools {
            let tool = super::hub::as_hosted(name, &tool);
            assert!(listed.as_array().unwrap().contains(&tool), "{tool}");
        }
        for ((tool, arguments), result) in calls {
            let hosted = hub.call(&format!("{name}__{tool}"), &arguments);
            assert_eq!(hosted, result, "{name} {tool}");
        }
    }
    // The next session lists them without a process.
    assert_eq!(hub.end(), Some(0));
    let mut warm = open(&workspace, json!({}));
    assert_eq!(
        warm.request("tools/list", &json!({}))["result"]["tools"],
        listed
    );
    #[cfg(target_os = "linux")]
    assert_eq!(super::ends::children(warm.process.id()), Vec::<u32>::new());
    assert_eq!(warm.end(), Some(0));
}
