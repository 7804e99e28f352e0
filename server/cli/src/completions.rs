//! `sightline completions`: clap's scripts, extended by the names of turns and the ids of checkpoints. What clap offers
//! for that needs a feature that is called unstable.

use clap_complete::Shell;
use sightline_engine::error::Error;

use super::{DONE, print};

/// Commands of `sightline checkpoint` with the id of a checkpoint as argument.
const COMMANDS_WITH_ID: [&str; 8] = [
    "diff", "show", "label", "preview", "restore", "undo", "delete", "commit",
];

/// Prints the script of a shell.
pub(super) fn run(shell: Shell, mut program: clap::Command) -> Result<i32, Error> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "sightline", &mut script);
    let script = String::from_utf8_lossy(&script);
    print(&match shell {
        Shell::Bash => format!("{script}{}", bash()),
        Shell::Fish => format!("{script}{}", fish()),
        Shell::Zsh => zsh(&script),
        _ => script.into_owned(),
    })?;
    Ok(DONE)
}

/// Wraps clap's function: adds the ids to its words.
fn bash() -> String {
    let commands = COMMANDS_WITH_ID.join("|");
    format!(
        r#"
_sightline_with_ids() {{
    _sightline "$@"
    local word="${{COMP_WORDS[COMP_CWORD]}}"
    if [[ "${{COMP_WORDS[1]}}" == checkpoint && $COMP_CWORD -gt 2 && "$word" != -* ]]; then
        case "${{COMP_WORDS[2]}}" in
            {commands})
                local ids
                ids="$(sightline checkpoint list --ids 2>/dev/null | cut -f1)"
                COMPREPLY+=($(compgen -W "last $ids" -- "$word"))
                ;;
        esac
    fi
}}
complete -F _sightline_with_ids -o bashdefault -o default sightline
"#
    )
}

fn fish() -> String {
    let commands = COMMANDS_WITH_ID.join(" ");
    format!(
        "complete -c sightline -n \"__fish_sightline_using_subcommand checkpoint; and \
         __fish_seen_subcommand_from {commands}\" -k -f -a \"last (sightline checkpoint list --ids 2>/dev/null)\"\n"
    )
}

/// Replaces the completion of arguments that are ids.
fn zsh(script: &str) -> String {
    let mut lines = String::new();
    for line in script.split_inclusive('\n') {
        let is_id = ["id", "ids", "from", "to"].iter().any(|name| {
            let argument = line.trim_start().trim_start_matches(['\'', '*', ':']);
            argument.starts_with(&format!("{name} -- "))
                && ["heckpoint", "Undo point"]
                    .iter()
                    .any(|word| line.contains(word))
        });
        if is_id {
            lines.push_str(&line.replace(":_default'", ":_sightline_checkpoints'"));
        } else {
            lines.push_str(line);
        }
    }
    let function = r#"
_sightline_checkpoints() {
    local -a ids
    ids=(last ${${(f)"$(sightline checkpoint list --ids 2>/dev/null)"}/$'\t'/:})
    _describe -V checkpoint ids
}

"#;
    // Before the call at the end of the script.
    match lines.rfind("if [ \"$funcstack[1]\"") {
        Some(at) => lines.insert_str(at, function),
        None => lines.push_str(function),
    }
    lines
}
