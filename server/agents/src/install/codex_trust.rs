//! Whether Codex runs our hooks: it skips a hook until its user has approved it. The approval
//! is the user's and is only read.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sightline_base::escape::hex;
use toml_edit::DocumentMut;

/// Returns whether the user has approved all of our hooks in `hooks.json`. `config` is the text
/// of `config.toml`, and `path` the path of `hooks.json`.
pub fn is_trusted(config: &str, hooks: &Value, path: &str) -> bool {
    let Ok(config) = config.parse::<DocumentMut>() else {
        return false;
    };
    let state = config.get("hooks").and_then(|hooks| hooks.get("state"));
    let Some(events) = hooks["hooks"].as_object() else {
        return false;
    };
    let mut found = 0;
    for (event, groups) in events {
        let groups = groups.as_array().into_iter().flatten().enumerate();
        for (group_index, group) in groups {
            let hooks = group["hooks"].as_array().into_iter().flatten().enumerate();
            for (hook_index, hook) in hooks {
                let command = hook["command"].as_str().unwrap_or_default();
                if !command.contains(&format!("hook {event} --agent codex")) {
                    continue;
                }
                found += 1;
                let event = snake_case(event);
                let key = format!("{path}:{event}:{group_index}:{hook_index}");
                let saved = state
                    .and_then(|state| state.get(&key))
                    .and_then(|entry| entry.get("trusted_hash"))
                    .and_then(|hash| hash.as_str());
                if saved != Some(&trusted_hash(&event, hook, &group["matcher"])) {
                    return false;
                }
            }
        }
    }
    found > 0
}

/// SHA-256 of the hook as JSON with sorted keys, as Codex 0.169 computes it.
fn trusted_hash(event: &str, hook: &Value, matcher: &Value) -> String {
    let mut identity = json!({
        "event_name": event,
        "hooks": [{
            "async": false,
            "command": hook["command"],
            "timeout": hook["timeout"],
            "type": "command",
        }],
    });
    if !matcher.is_null() {
        identity["matcher"] = matcher.clone();
    }
    let digest = Sha256::digest(identity.to_string().as_bytes());
    format!("sha256:{}", hex(&digest))
}

/// `PreToolUse` is `pre_tool_use`.
fn snake_case(event: &str) -> String {
    let mut name = String::new();
    for c in event.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}
