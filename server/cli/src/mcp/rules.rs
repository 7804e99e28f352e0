//! The access rules of the workspace, for servers of other programs.

use std::{path::Path, sync::Arc};

use sightline_access::AccessView;
use sightline_agents::{hook::ToolCall, judge::Judge};
use sightline_hub::judge::Rules;

use super::{super::hook::guard::HookGuard, backend::Backend};

/// Judges as hooks do.
pub(super) struct WorkspaceRules(pub(super) Arc<Backend>);

impl Rules for WorkspaceRules {
    fn refusal(&self, folder: &Path, call: &ToolCall) -> Result<Option<String>, String> {
        let judge = Judge {
            folder: folder.to_owned(),
            home: directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned()),
        };
        let guard = || {
            let guard = HookGuard::new(&self.0.workspace, folder);
            guard.map_err(|error| error.message)
        };
        let refusal = judge.tool_call(call, guard, |params| {
            let checked = self.0.checked_access(params);
            checked.map_err(|error| error.message)
        })?;
        Ok(refusal.map(|refusal| refusal.reason))
    }

    fn view(&self) -> Result<AccessView, String> {
        self.0.view().map_err(|error| error.message)
    }
}
