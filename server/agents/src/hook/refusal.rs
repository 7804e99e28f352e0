//! Why a tool or a prompt is refused, as text for the model and the user.

use sightline_protocol::access::{AccessKind, AccessRule, CheckAccessResult, PathAccess};

/// Returns the refusal of what could not be checked.
pub fn unchecked(why: &str) -> String {
    format!("Sightline could not check this: {why}. Try a smaller or simpler call.")
}

/// Returns why a tool may not run. `None` if access is allowed. Paths outside the workspace are
/// left to the agent.
pub fn denied_tool(result: &CheckAccessResult) -> Option<String> {
    let path = result.paths.iter().find(|path| is_denied(path));
    if let Some(path) = path {
        return Some(reason(
            &path.path,
            path.rule.as_ref(),
            path.reason.as_deref(),
        ));
    }
    let command = result.command.as_ref().filter(|command| !command.allowed)?;
    Some(match command.denied.first() {
        Some(denied) if denied.path.is_empty() => {
            format!(
                "Sightline denies this command: {}. Ask the user.",
                denied.reason
            )
        }
        Some(denied) => reason(&denied.path, denied.rule.as_ref(), Some(&denied.reason)),
        None => "Sightline denies this command. Ask the user.".to_owned(),
    })
}

/// Returns why a search in the content of files may not run, given the check of its command line.
pub fn denied_search(result: &CheckAccessResult) -> Option<String> {
    let command = result.command.as_ref().filter(|command| !command.allowed)?;
    let denied = command.denied.first()?;
    Some(format!(
        "This search would read {}, which is hidden from agents{}. Search in a folder, or in \
         files by a pattern, without hidden files.",
        denied.path,
        cause(denied.rule.as_ref(), Some(&denied.reason))
    ))
}

/// Returns why a prompt that mentions files may not be sent. `None` if it may.
pub fn denied_mention(result: &CheckAccessResult) -> Option<String> {
    let path = result.paths.iter().find(|path| is_denied(path))?;
    let why = cause(path.rule.as_ref(), path.reason.as_deref());
    Some(format!(
        "{0} is hidden from agents{why}, and the agent would add its content to the prompt. \
         Remove the @ to send only the name, or allow the file in .clineignore.",
        path.path
    ))
}

fn is_denied(path: &PathAccess) -> bool {
    path.access == AccessKind::Denied
}

fn reason(path: &str, rule: Option<&AccessRule>, reason: Option<&str>) -> String {
    format!(
        "{path} is hidden from agents{}. Ask the user.",
        cause(rule, reason)
    )
}

fn cause(rule: Option<&AccessRule>, reason: Option<&str>) -> String {
    match (rule, reason) {
        (Some(rule), _) if rule.line > 0 => {
            format!(" by {}:{} ({})", rule.source, rule.line, rule.pattern)
        }
        (Some(rule), _) => format!(" by a {} rule", rule.source),
        (None, Some(reason)) => format!(": {reason}"),
        (None, None) => String::new(),
    }
}
