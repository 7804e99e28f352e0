//! Why a tool or a prompt is refused, as text for the model and the user.

use sightline_protocol::access::{
    AccessKind, AccessRule, CommandAccess, DeniedOperand, PathAccess,
};

use crate::hook::Search;
use sightline_base::escape::printable;

/// Why something is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A text for the model and the user.
    pub reason: String,
    /// What is refused.
    pub subject: Subject,
    /// The rule that decided, if one did.
    pub rule: Option<AccessRule>,
}

/// What is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A path.
    Path(String),
    /// A command line.
    Command(String),
}

/// Returns the refusal of what could not be checked.
pub fn unchecked(why: &str) -> String {
    format!("Sightline could not check this: {why}. Try a smaller or simpler call.")
}

/// Returns why a tool that uses paths may not run. Paths outside the workspace are left to the agent.
pub(super) fn denied_path(paths: &[PathAccess]) -> Option<Refusal> {
    let path = paths.iter().find(|path| is_denied(path))?;
    Some(Refusal {
        reason: hidden(&path.path, path.rule.as_ref(), path.reason.as_deref()),
        subject: Subject::Path(path.path.clone()),
        rule: path.rule.clone(),
    })
}

/// Returns why the command `line` may not run.
pub(super) fn denied_command(line: &str, command: &CommandAccess) -> Option<Refusal> {
    if command.allowed {
        return None;
    }
    let first = command.denied.first();
    let reason = first.map_or_else(|| unchecked("the command is denied"), reason_of);
    Some(Refusal {
        reason: match &command.instead {
            Some(instead) => {
                let (why, instead) = (reason.trim_end_matches(CONTINUE), without_folder(instead));
                format!("{why}; run instead: {instead}")
            }
            None => with_others(reason, command),
        },
        subject: Subject::Command(without_folder(line).to_owned()),
        rule: first.and_then(|denied| denied.rule.clone()),
    })
}

fn reason_of(denied: &DeniedOperand) -> String {
    match denied.path.as_str() {
        "" => unchecked(&denied.reason),
        path => hidden(path, denied.rule.as_ref(), Some(&denied.reason)),
    }
}

/// Adds the names of other denied files to the reason for the first one.
fn with_others(reason: String, command: &CommandAccess) -> String {
    let paths = command
        .denied
        .iter()
        .map(|denied| denied.path.trim_start_matches("./"));
    let mut others: Vec<_> = paths
        .filter(|path| !path.is_empty())
        .map(printable)
        .collect();
    others.dedup();
    others.drain(..others.len().min(1));
    let end = if others.len() > MAX_OTHERS {
        " and others."
    } else {
        "."
    };
    let named = others[..others.len().min(MAX_OTHERS)].join(", ");
    match reason.strip_suffix(CONTINUE) {
        Some(start) if !others.is_empty() => {
            format!("{start}; continue without it, and without {named}{end}")
        }
        _ => reason,
    }
}

/// Before the cause in the reason for a file whose content decides.
const HIDDEN_BECAUSE: &str = "which is hidden because ";

/// Returns why a search in the content of files may not run, given the check of its command line.
pub(super) fn denied_search(search: &Search, command: &CommandAccess) -> Option<Refusal> {
    let denied = command.denied.first().filter(|_| !command.allowed)?;
    let reason = match denied.path.as_str() {
        "" => reason_of(denied),
        _ => format!(
            "{} {}",
            reason_of(denied),
            search.advice(command.instead.as_deref())
        ),
    };
    Some(Refusal {
        reason,
        subject: Subject::Path(denied.path.clone()),
        rule: denied.rule.clone(),
    })
}

/// Returns a command line without the folder in which it is checked.
pub fn without_folder(command: &str) -> &str {
    let is_folder = |first: &str| {
        let folder = first
            .strip_prefix("cd '")
            .and_then(|it| it.strip_suffix('\''));
        folder.is_some_and(|folder| !folder.replace("'\\''", "").contains('\''))
    };
    match command.split_once('\n') {
        Some((first, rest)) if is_folder(first) => rest,
        _ => command,
    }
}

/// Returns why a prompt that mentions files may not be sent. `None` if it may.
pub(super) fn denied_mention(paths: &[PathAccess]) -> Option<Refusal> {
    let path = paths.iter().find(|path| is_denied(path))?;
    let why = hidden(&path.path, path.rule.as_ref(), path.reason.as_deref());
    Some(Refusal {
        reason: format!(
            "{}, and the agent would add its content to the prompt. \
             Remove the @ to send only the name, or allow the file in .clineignore.",
            why.trim_end_matches(CONTINUE).trim_end_matches('.')
        ),
        subject: Subject::Path(path.path.clone()),
        rule: path.rule.clone(),
    })
}

fn is_denied(path: &PathAccess) -> bool {
    path.access == AccessKind::Denied
}

/// Maximum other files that a refusal names.
const MAX_OTHERS: usize = 4;
/// Advice of a refusal without a command to run instead.
const CONTINUE: &str = "; continue without it.";

/// Returns that a path is hidden, by which rule, and what to do.
fn hidden(path: &str, rule: Option<&AccessRule>, reason: Option<&str>) -> String {
    // Of a file whose content decides, the reason names the version.
    let content = reason.and_then(|reason| reason.split_once(HIDDEN_BECAUSE));
    let why = match (rule, content, reason) {
        (Some(rule), content, _) if rule.line > 0 => {
            let rule = format!("{}:{}: {}", rule.source, rule.line, rule.pattern);
            content.map_or(format!(": {rule}"), |(_, why)| {
                format!(" because {why} ({rule})")
            })
        }
        (Some(rule), ..) => format!(": a {} rule", rule.source),
        // A reason with two parts says what to do.
        (None, _, Some(reason)) if reason.contains("; ") => {
            return format!("{path} is hidden from agents: {reason}.");
        }
        (None, _, Some(reason)) => format!(": {reason}"),
        (None, ..) => String::new(),
    };
    format!("{} is hidden from agents{why}{CONTINUE}", printable(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_file_and_the_rule() {
        let mut paths = vec![PathAccess {
            path: "a.key".to_owned(),
            access: AccessKind::Denied,
            rule: Some(AccessRule {
                source: ".clineignore".to_owned(),
                line: 3,
                pattern: "*.key".to_owned(),
            }),
            ..PathAccess::default()
        }];
        let expected = "a.key is hidden from agents: .clineignore:3: *.key; continue without it.";
        let refusal = denied_path(&paths).unwrap();
        assert_eq!(refusal.reason, expected);
        assert_eq!(refusal.subject, Subject::Path("a.key".to_owned()));
        let refusal = denied_mention(&paths).unwrap();
        assert!(refusal.reason.contains(".clineignore:3"));
        let why = "`git log` would print `a.key`, which is hidden because the version of commit abc contains a private key";
        assert_eq!(
            hidden("a.key", paths[0].rule.as_ref(), Some(why)),
            "a.key is hidden from agents because the version of commit abc contains a private key \
             (.clineignore:3: *.key); continue without it."
        );
        let command = CommandAccess {
            denied: vec![DeniedOperand {
                path: "a.key".to_owned(),
                reason: String::new(),
                rule: paths[0].rule.clone(),
            }],
            instead: Some("grep --exclude=a.key -r x .".to_owned()),
            ..CommandAccess::default()
        };
        assert_eq!(
            denied_command("grep -r x .", &command).unwrap().reason,
            "a.key is hidden from agents: .clineignore:3: *.key; run instead: grep --exclude=a.key -r x ."
        );
        let all = |count: usize| CommandAccess {
            denied: (0..count)
                .map(|at| DeniedOperand {
                    path: format!("{at}.key"),
                    reason: String::new(),
                    rule: paths[0].rule.clone(),
                })
                .collect(),
            ..CommandAccess::default()
        };
        let reason = |count| denied_command("cat *", &all(count)).unwrap().reason;
        let start = "0.key is hidden from agents: .clineignore:3: *.key; continue without it, and without 1.key";
        assert_eq!(reason(2), format!("{start}."));
        assert_eq!(
            reason(8),
            format!("{start}, 2.key, 3.key, 4.key and others.")
        );
        let why = "whose content may change; read it in a separate command";
        let expected = format!("a.key is hidden from agents: {why}.");
        assert_eq!(hidden("a.key", None, Some(why)), expected);
        paths[0].access = AccessKind::Outside;
        assert_eq!(denied_path(&paths), None);
    }
}
