//! Addresses of the gateway in the configuration of agents.

use std::{collections::BTreeMap, path::Path};

use crate::{
    Agent,
    gateway::{self, Addresses},
    install::{Content, EditError, Locations, Part, Presence, Program, Scope, Target, targets},
};

const URL: &str = "http://127.0.0.1:4100/k/0123456789abcdef0123456789abcdef";

fn locations() -> Locations {
    Locations::new(Path::new("/home/u"), Path::new("/w"), |_| None)
}

/// Returns the files of an agent, with the addresses added to the file that has them.
fn files(agent: Agent, parts: &[Part], addresses: &Addresses) -> Vec<Target> {
    let program = Program::new("/bin/sightline");
    let mut targets = targets(agent, Scope::User, parts, &locations(), &program);
    gateway::add_to(addresses.clone(), &mut targets, &locations());
    targets
}

fn addresses(agent: Agent, chains: bool) -> Addresses {
    Addresses {
        chains,
        ..Addresses::new(agent, URL, BTreeMap::new())
    }
}

fn content(agent: Agent, addresses: &Addresses) -> Content {
    files(agent, &[], addresses).remove(0).content
}

/// A comment in a file that its agent reads without them would switch off the whole file.
#[test]
fn a_file_that_the_agent_cannot_parse_is_refused() {
    for agent in [Agent::Claude, Agent::Codex, Agent::Qwen, Agent::Opencode] {
        let target = files(agent, &[], &addresses(agent, false)).remove(0);
        let reads_comments = agent != Agent::Claude;
        let text = if agent == Agent::Codex {
            "# mine\n"
        } else {
            "{} // mine\n"
        };
        assert_eq!(target.check(text).is_ok(), reads_comments, "{agent:?}");
    }
}

/// Agent, file before, and what is in it after.
const CASES: &[(Agent, &str, &[&str])] = &[
    (
        Agent::Claude,
        "",
        &["\"ANTHROPIC_BASE_URL\": \"@/anthropic\""],
    ),
    (
        Agent::Claude,
        "{\n  \"model\": \"opus\",\n  \"env\": {\"A\": \"1\"}\n}\n",
        &["\"A\": \"1\"", "\"ANTHROPIC_BASE_URL\": \"@/anthropic\""],
    ),
    (
        Agent::Claude,
        "{\"env\":{\"ANTHROPIC_BASE_URL\":\"https://gateway.example/a\"},\"x\":[1 , 2]}",
        &["\"ANTHROPIC_BASE_URL\":\"@/claude\"", "[1 , 2]"],
    ),
    (Agent::Codex, "", &["openai_base_url = \"@/openai/v1\""]),
    (
        Agent::Codex,
        "# mine\nmodel = \"m\" # x\nmodel_provider = \"corp\"\n\n[model_providers.corp]\nname = \"c\"\nbase_url = \"https://corp.example/v1\" # ours\n",
        &[
            "openai_base_url = \"@/openai/v1\"",
            "base_url = \"@/codex-corp\" # ours",
            "model = \"m\" # x",
        ],
    ),
    (Agent::Qwen, "{}", &["\"OPENAI_BASE_URL\": \"@/openai/v1\""]),
    (
        Agent::Qwen,
        "{\n  // mine\n  \"modelProviders\": {\n    \"openai\": [{\"id\": \"a\", \"baseUrl\": \"https://q.example/v1\"}],\n    \"anthropic\": [{\"id\": \"b\"}],\n  },\n}\n",
        &[
            "\"id\": \"a\", \"baseUrl\": \"@/qwen-openai-0\"",
            "\"baseUrl\": \"@/anthropic\"",
            "// mine",
        ],
    ),
    (
        Agent::Opencode,
        "{}\n",
        &[
            "\"baseURL\": \"@/gemini/v1beta\"",
            "\"baseURL\": \"@/openrouter/api/v1\"",
        ],
    ),
    (
        Agent::Opencode,
        "{\n  \"provider\": {\n    // local\n    \"mock\": { \"options\": { \"baseURL\": \"http://127.0.0.1:1/v1\", \"apiKey\": \"k\" } },\n  },\n}\n",
        &[
            "\"baseURL\": \"@/opencode-mock\"",
            "\"apiKey\": \"k\"",
            "// local",
            "\"baseURL\": \"@/anthropic/v1\"",
        ],
    ),
];

#[test]
fn addresses_are_set_and_those_of_the_user_come_back() {
    for (agent, before, expected) in CASES {
        let mut addresses = addresses(*agent, true);
        addresses.replaced = addresses.replaces(before);
        let content = content(*agent, &addresses);
        let after = content.add(Some(before)).unwrap();
        for words in *expected {
            assert!(
                after
                    .replace(": ", ":")
                    .contains(&words.replace('@', URL).replace(": ", ":")),
                "{agent:?} {words}: {after}"
            );
        }
        assert_eq!(content.presence(&after), Ok(Presence::Current), "{after}");
        assert_eq!(content.add(Some(&after)).unwrap(), after);
        // Without a record, the values are the same as before.
        let rest = content.remove(&after).unwrap();
        let rest = rest.unwrap_or_else(|| content.empty());
        let value = |text: &str| match agent {
            Agent::Codex => crate::install::toml::value(text),
            _ => crate::install::json::value(text),
        };
        let empty = serde_json::json!({});
        assert_eq!(
            value(&rest),
            value(before).or(Some(empty)),
            "{agent:?}: {rest}"
        );
        for value in addresses.replaced.values() {
            assert!(rest.contains(value), "{rest}");
        }
    }
}

#[test]
fn an_address_of_the_user_is_replaced_only_if_wanted() {
    for (agent, before, _) in CASES {
        let is_foreign = before.contains("example") || before.contains("127.0.0.1:1/");
        let added = content(*agent, &addresses(*agent, false)).add(Some(before));
        match added {
            Err(EditError::Refused(why)) => assert!(is_foreign && why.contains("--chain"), "{why}"),
            added => assert!(!is_foreign && added.is_ok(), "{agent:?} {before}"),
        }
    }
    // What cannot be routed is not connected.
    let bedrock = "model_provider = \"amazon-bedrock\"\n";
    let codex = content(Agent::Codex, &addresses(Agent::Codex, true));
    assert!(codex.add(Some(bedrock)).is_err());
    assert_eq!(codex.remove(bedrock).unwrap().as_deref(), Some(bedrock));
}

#[test]
fn they_share_a_file_with_hooks_and_servers() {
    for agent in [Agent::Claude, Agent::Codex, Agent::Qwen, Agent::Opencode] {
        let with = files(agent, &Part::DEFAULT, &addresses(agent, false));
        let program = Program::new("/bin/sightline");
        let without = targets(agent, Scope::User, &Part::DEFAULT, &locations(), &program);
        assert_eq!(with.len(), without.len());
        for (with, without) in with.iter().zip(&without) {
            let text = with.content.add(None).unwrap();
            assert_eq!(with.content.presence(&text), Ok(Presence::Current));
            assert_eq!(without.content.presence(&text), Ok(Presence::Current));
            assert_eq!(
                with.content.spelling(&text),
                without.content.spelling(&text)
            );
            assert_eq!(with.content.remove(&text).unwrap(), None, "{text}");
        }
    }
}

#[test]
fn a_new_address_of_the_gateway_replaces_the_old_one() {
    let old = addresses(Agent::Claude, false);
    let text = content(Agent::Claude, &old).add(Some("{}")).unwrap();
    let new = Addresses::new(Agent::Claude, URL.replace("4100", "4200"), BTreeMap::new());
    let new = content(Agent::Claude, &new);
    assert_eq!(new.presence(&text), Ok(Presence::Outdated));
    let updated = new.add(Some(&text)).unwrap();
    assert_eq!(updated, text.replace("4100", "4200"));
}
