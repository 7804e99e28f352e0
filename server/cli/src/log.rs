//! `sightline log`: what agents were refused, and what was hidden from them.

use jiff::{Timestamp, Zoned, civil, tz::TimeZone};
use sightline_base::{clock::now_millis, escape::one_line};
use sightline_engine::{
    error::Error,
    render::{ADDED, CHANGED, REMOVED},
};
use sightline_protocol::{
    access::AccessRule,
    decision::{Decision, DecisionVerdict, ListDecisionsParams},
    method::ListDecisions,
};

use super::{Workspace, checkpoints::age, print_as, print_message, requests::Requests};

#[derive(clap::Args)]
pub(super) struct Log {
    #[command(flatten)]
    workspace: Workspace,
    /// Only those about this agent.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only those since a time: an age such as 2h or 7d, or a date such as 2026-11-30.
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<i64>,
    /// Also what agents were allowed, if the setting `log.allowed` kept it.
    #[arg(long)]
    all: bool,
}

/// Prints the decisions, newest first.
pub(super) fn run(log: Log) -> Result<i32, Error> {
    let params = ListDecisionsParams {
        agent: log.agent,
        since: log.since,
        all: log.all,
        limit: None,
    };
    let listed = Requests::offline(&log.workspace).call::<ListDecisions>(params)?;
    if listed.decisions.is_empty() && !log.workspace.json {
        print_message("nothing was refused or hidden");
    }
    print_as(&log.workspace, &listed, |listed| {
        listed.decisions.iter().map(line).collect()
    })
}

/// Returns how many reads were refused and texts were redacted since midnight.
pub(super) fn today(workspace: &Workspace) -> Result<(u32, u32), Error> {
    let midnight = Zoned::now().start_of_day();
    let params = ListDecisionsParams {
        since: midnight.ok().map(|time| time.timestamp().as_millisecond()),
        ..ListDecisionsParams::default()
    };
    let listed = Requests::offline(workspace)
        .call::<ListDecisions>(params)?
        .decisions;
    let count = |verdict| {
        listed.iter().fold(0_u32, |count, decision| {
            count + u32::from(decision.verdict == verdict)
        })
    };
    Ok((
        count(DecisionVerdict::Denied),
        count(DecisionVerdict::Redacted),
    ))
}

fn line(decision: &Decision) -> String {
    let at = Timestamp::from_millisecond(decision.at)
        .unwrap_or_default()
        .to_zoned(TimeZone::system())
        .strftime("%Y-%m-%d %H:%M:%S");
    let (style, verdict) = match decision.verdict {
        DecisionVerdict::Denied => (REMOVED, "denied"),
        DecisionVerdict::Redacted => (CHANGED, "redacted"),
        DecisionVerdict::Allowed => (ADDED, "allowed"),
    };
    let agent = decision.agent.as_deref().unwrap_or("-");
    let tool = decision.tool.as_deref().unwrap_or("-");
    let rule = decision.rule.as_ref().map(rule).unwrap_or_default();
    let line = format!(
        "{agent:<8}  {:<4}  {tool}  {}{rule}",
        decision.door, decision.subject
    );
    format!("{at}  {style}{verdict:<8}{style:#}  {}\n", one_line(&line))
}

fn rule(rule: &AccessRule) -> String {
    match rule.line {
        0 => format!("  ({})", rule.source),
        line => format!("  ({}:{line}: {})", rule.source, rule.pattern),
    }
}

/// Parses an age or a date into a time in milliseconds.
pub(super) fn since(text: &str) -> Result<i64, String> {
    if let Ok(date) = text.parse::<civil::Date>() {
        let start = date.to_zoned(TimeZone::system());
        return start
            .map(|start| start.timestamp().as_millisecond())
            .map_err(|error| error.to_string());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_millisecond());
    }
    age(text).map(|age| now_millis() - age).map_err(|_| {
        format!(
            "invalid time {text:?}; use a date such as 2026-11-30, or an age such as 7d, 12h or 30m"
        )
    })
}
