//! `sightline/checkAccess`.

use sightline_agents::judge::without_folder;
use sightline_base::limits;
use sightline_protocol::{
    access::{AccessKind, CheckAccessParams, CheckAccessResult},
    error::ErrorKind,
    settings::Mentions,
};

use crate::{error::Error, request_context::ReadContext, settings::visible_to::is_line_visible_to};

/// Checks paths and command lines, in order.
pub fn run(
    context: &ReadContext<'_>,
    params: CheckAccessParams,
) -> Result<CheckAccessResult, Error> {
    let CheckAccessParams {
        paths,
        command,
        commands,
        mentioned,
    } = params;
    for (what, count, limit) in [
        ("paths", paths.len(), limits::MAX_CHECKED_PATHS),
        ("commands", commands.len(), limits::MAX_CHECKED_COMMANDS),
    ] {
        if count > limit {
            let why = format!("{count} {what} exceed the limit of {limit}; split the request");
            return Err(Error::new(ErrorKind::TooLarge, why));
        }
    }
    let view = context.view();
    let settings = &context.snapshot.settings;
    let readers = settings.access.recursive_readers;
    let mut paths = view.check_all(paths, &context.cancel)?;
    if mentioned && settings.access.mentions == Mentions::Allow {
        for path in &mut paths {
            path.access = AccessKind::Allowed;
            path.rule = None;
            path.reason = None;
        }
    }
    let check = |command: &String| {
        let mut checked = view.check_command_with(command, readers);
        if is_line_visible_to(&settings.access.visible_to, without_folder(command)) {
            checked.allowed = true;
            checked.denied.clear();
            checked.instead = None;
        }
        checked
    };
    let checked = commands.iter().map(|command| {
        context.cancel.check()?;
        Ok(check(command))
    });
    Ok(CheckAccessResult {
        paths,
        command: command.as_ref().map(check),
        commands: checked.collect::<Result<_, Error>>()?,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use sightline_base::path::{AbsPath, Root};
    use sightline_protocol::method::{CheckAccess, Request};

    use super::*;
    use crate::{
        client::Client, jobs::JobSender, params_compat, request_context::RequestContext,
        services::Services, session::Session,
    };

    fn check_params(params: &Value) -> CheckAccessResult {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".clineignore"), "*7\n").unwrap();
        let root = Root::new(AbsPath::new(folder.path()).unwrap(), None);
        let jobs = JobSender::closed();
        let services = Services::new(Client::default(), jobs);
        let services = Arc::new(services);
        let context = RequestContext::new(&services, Session::offline(root).snapshot());
        let params = params_compat::typed(CheckAccess::NAME, &params.to_string()).unwrap();
        run(&context, params).unwrap()
    }

    #[test]
    fn verdicts_are_in_the_order_of_the_paths() {
        for count in [0, 1, 2, 511, 512, 513, 1023, 1024, 1025, 2500] {
            // Windows has no names with quotes.
            let escaped = if cfg!(windows) { '\\' } else { '"' };
            let path = |at| format!("in {} x/{escaped}{at}", at / 100);
            let paths: Vec<String> = (0..count).map(path).collect();
            for params in [
                json!({ "paths": paths }),
                json!({ "paths": paths, "command": "cat 17" }),
                json!({ "paths": paths, "workDoneToken": null, "command": null }),
            ] {
                let answer = check_params(&params);
                assert_eq!(answer.command.is_some(), params["command"].is_string());
                let found: Vec<&str> = answer.paths.iter().map(|one| &*one.path).collect();
                assert_eq!(found, paths);
                assert!(answer.paths.iter().all(|one| {
                    let denied = one.path.ends_with('7');
                    (one.access == AccessKind::Denied) == denied
                }));
            }
        }
    }
}
