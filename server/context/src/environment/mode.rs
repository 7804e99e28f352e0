//! The mode section: what the agent may do.

use sightline_protocol::environment::Mode;

/// Returns the body of the section.
pub(super) fn text(mode: Mode) -> &'static str {
    match mode {
        Mode::Act => "ACT MODE",
        Mode::Plan => PLAN,
    }
}

const PLAN: &str = "PLAN MODE
Nothing is changed in this mode. Learn what the task needs by reading, searching and asking the user, then work out a \
design together with them. Answer with the plan_mode_respond tool once you know enough to say something of substance; \
until then keep looking.

If the user wants something done that only tools of Act mode can do, ask them to \"toggle to Act mode\". The switch is \
theirs: you have no way to change the mode yourself.";
