//! The help of the program: its commands in groups.

use std::fmt::Write as _;

use clap::Command;

/// The commands by group. Each command is in one.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Start here",
        &[
            "demo",
            "init",
            "agents",
            "ui",
            "doctor",
            "config",
            "helix-config",
            "uninstall",
        ],
    ),
    ("Checkpoints", &["checkpoint"]),
    ("Access", &["access", "list", "read", "exec", "log"]),
    ("Agents", &["environment", "mcp", "run", "gateway", "usage"]),
    ("Conversations", &["tokens", "history", "task", "compact"]),
    (
        "Plumbing",
        &["hook", "request", "schema", "completions", "man"],
    ),
];

/// Lists the commands of the program in groups, instead of in one list.
pub(super) fn grouped(program: Command) -> Command {
    let mut text = String::new();
    let styles = program.get_styles().clone();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{header}{title}:{header:#}");
        for command in names
            .iter()
            .filter_map(|name| program.find_subcommand(name))
        {
            // The first sentence says enough here.
            let about = command
                .get_about()
                .map(|about| first_sentence(&about.to_string()))
                .unwrap_or_default();
            let name = command.get_name();
            let _ = writeln!(text, "  {literal}{name:<13}{literal:#} {about}");
        }
        text.push('\n');
    }
    program.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{header}Commands:{header:#}\n\n{text}{header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

fn first_sentence(text: &str) -> String {
    let end = text.find(". ").unwrap_or(text.len());
    text[..end].trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{super::Arguments, GROUPS};

    #[test]
    fn each_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        grouped.sort_unstable();
        let program = Arguments::command();
        let mut all: Vec<&str> = program
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }
}
