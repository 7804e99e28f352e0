//! Judges an event with one access check, in the running server or from disk.

use sightline_agents::{
    hook::ToolCall,
    judge::{Judge, Refusal},
};
use sightline_protocol::access::{CheckAccessParams, CheckAccessResult};

use super::{
    super::{Workspace, requests::Requests},
    guard::HookGuard,
};

/// Checks access for a session.
pub(super) struct AccessCheck {
    pub(super) judge: Judge,
    pub(super) workspace: Workspace,
}

impl AccessCheck {
    /// Returns why a prompt may not be sent. `None` if it may.
    ///
    /// # Errors
    /// If the access cannot be checked.
    pub(super) fn denied_mention(&self, mentions: &[String]) -> Result<Option<Refusal>, String> {
        self.judge.mentions(mentions, |params| self.check(params))
    }

    /// Returns why a tool may not run. `None` if it may.
    ///
    /// # Errors
    /// If the access cannot be checked.
    pub(super) fn denied_tool(&self, call: &ToolCall) -> Result<Option<Refusal>, String> {
        let guard = || {
            let guard = HookGuard::new(&self.workspace, &self.judge.folder);
            guard.map_err(|error| error.message)
        };
        self.judge
            .tool_call(call, guard, |params| self.check(params))
    }

    fn check(&self, params: &CheckAccessParams) -> Result<CheckAccessResult, String> {
        Requests::new(&self.workspace)
            .check_access(params)
            .map_err(|error| error.message)
    }
}
