//! `sightline access`.

use sightline_agents::judge::{in_folder, without_folder};
use sightline_base::escape::one_line;
use sightline_engine::{
    error::Error,
    render::{ADDED, REMOVED},
};
use sightline_protocol::{
    access::{AccessKind, AccessRule, CheckAccessParams},
    method::CheckAccess,
};

use super::{DONE, NEGATIVE, offline, print_sorted_json, print_styled, requests::Place};

/// Checks paths and a command.
pub(super) fn run(place: &Place, paths: &[String], command: Option<String>) -> Result<i32, Error> {
    let workspace = &place.workspace;
    let absolute_paths = paths
        .iter()
        .map(|path| offline::absolute(path))
        .collect::<Result<_, _>>()?;
    // Without `--root`, a command runs in the current folder, like paths.
    let command = match command {
        Some(command) if workspace.root.is_none() => {
            Some(in_folder(offline::current()?.as_path(), &command))
        }
        command => command,
    };
    let params = CheckAccessParams {
        paths: absolute_paths,
        command,
        ..CheckAccessParams::default()
    };
    let mut result = place.requests().call::<CheckAccess>(params)?;
    // Output uses the paths as given, in the same order.
    let mut refused = false;
    let mut lines = String::new();
    let denied_word = format!("{REMOVED}denied{REMOVED:#}");
    for (asked, verdict) in paths.iter().zip(&mut result.paths) {
        verdict.path.clone_from(asked);
        refused |= verdict.access != AccessKind::Allowed;
        let access = match verdict.access {
            AccessKind::Allowed => format!("{ADDED}allowed{ADDED:#}"),
            AccessKind::Denied => denied_word.clone(),
            AccessKind::Outside => "outside".to_owned(),
        };
        let reason = format_reason(verdict.reason.as_deref(), verdict.rule.as_ref());
        let lifted = verdict
            .allowed_by
            .as_ref()
            .map_or_else(String::new, |rule| {
                format!("{} allows this secret", format_reason(None, Some(rule)))
            });
        lines.push_str(&format!("{access}\t{}{reason}{lifted}\n", one_line(asked)));
    }
    if let Some(verdict) = &mut result.command {
        if let Some(instead) = &mut verdict.instead {
            *instead = without_folder(instead).to_owned();
        }
        refused |= !verdict.allowed;
        if verdict.allowed {
            lines.push_str(&format!("{ADDED}allowed{ADDED:#}\n"));
        }
        for denied in &verdict.denied {
            let reason = format_reason(Some(&denied.reason), denied.rule.as_ref());
            lines.push_str(&format!(
                "{denied_word}\t{}{reason}\n",
                one_line(&denied.path)
            ));
        }
        if let Some(instead) = &verdict.instead {
            lines.push_str(&format!("instead\t{}\n", one_line(instead)));
        }
    }
    if workspace.json {
        print_sorted_json(&result)?;
    } else {
        print_styled(&lines)?;
    }
    Ok(if refused { NEGATIVE } else { DONE })
}

fn format_reason(reason: Option<&str>, rule: Option<&AccessRule>) -> String {
    let mut formatted = String::new();
    if let Some(reason) = reason {
        formatted.push_str(&format!("\t{}", one_line(reason)));
    }
    if let Some(rule) = rule {
        let (source, pattern) = (one_line(&rule.source), one_line(&rule.pattern));
        formatted.push_str(&format!("\t{source}:{}: {pattern}", rule.line));
    }
    formatted
}
