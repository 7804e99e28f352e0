//! The workspaces whose rules apply: those that the gateway was started for, or that in which the agent
//! runs that asks.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use sightline_access::{
    Access, AccessView,
    redact::{HiddenContents, KeptContents},
    root_above,
};
use sightline_base::path::{AbsPath, Root, Roots};
use sightline_protocol::settings::Secrets;

/// Shortest line that is recognized, in bytes.
pub(super) const MIN_LINE_BYTES: usize = 12;
/// Maximum number of workspaces of agents in memory.
const MAX_WORKSPACES: usize = 16;

/// One or several roots, and the contents of their denied files.
pub(crate) struct Workspace {
    roots: Vec<PathBuf>,
    access: Access,
    contents: KeptContents,
}

impl Workspace {
    fn new(roots: &[PathBuf], secrets: Secrets) -> Result<Self, String> {
        let mut found = Vec::new();
        for root in roots {
            match AbsPath::new(root) {
                Some(path) if root.is_dir() => found.push(Root::new(path, None)),
                _ => return Err(format!("not a directory: {}", root.display())),
            }
        }
        Ok(Self {
            roots: roots.to_vec(),
            access: Access::new(Arc::new(Roots::new(found)), Vec::new(), secrets),
            contents: KeptContents::with_public_lines(MIN_LINE_BYTES),
        })
    }

    /// Returns the current rules, and the contents of denied files.
    pub(super) fn denied(&self) -> Result<(AccessView, Arc<HiddenContents>), String> {
        let (view, _) = self.access.view();
        let mut roots = 0..view.roots().as_slice().len();
        if let Some(why) = roots.find_map(|root| view.unusable(root)) {
            return Err(format!("cannot tell what is denied: {why}"));
        }
        let contents = self.contents.get(&view);
        Ok((view, contents))
    }
}

/// All workspaces.
pub(crate) struct Workspaces {
    /// Those of the options.
    all: Arc<Workspace>,
    secrets: Secrets,
    /// Those of agents, the last used one first. `None` if they are not followed.
    of_agents: Option<Mutex<Vec<Arc<Workspace>>>>,
}

impl Workspaces {
    /// Creates them with known roots. `follows_agents`: the workspace in which an agent runs counts.
    pub(crate) fn new(
        roots: &[PathBuf],
        secrets: Secrets,
        follows_agents: bool,
    ) -> Result<Self, String> {
        let all = Workspace::new(roots, secrets)?;
        // So that the first request waits less.
        let _ = all.denied();
        Ok(Self {
            all: Arc::new(all),
            secrets,
            of_agents: follows_agents.then(Mutex::default),
        })
    }

    /// Returns whether the folder of an agent is needed.
    pub(crate) fn follow_agents(&self) -> bool {
        self.of_agents.is_some()
    }

    /// Returns the workspace of an agent that runs in `folder`, or all known roots if that is unknown.
    ///
    /// # Errors
    /// If none is known.
    pub(crate) fn of(&self, folder: Option<&Path>) -> Result<Arc<Workspace>, String> {
        let Some(known) = &self.of_agents else {
            return Ok(self.all.clone());
        };
        let mut known = known.lock();
        let Some(folder) = folder.and_then(AbsPath::new) else {
            let mut roots: Vec<PathBuf> = known.iter().flat_map(|one| one.roots.clone()).collect();
            roots.extend(self.all.roots.iter().filter(|root| root.is_dir()).cloned());
            roots.sort();
            roots.dedup();
            if roots.is_empty() {
                return Err(
                    "cannot tell in which workspace the agent runs; start it with `sightline run`"
                        .to_owned(),
                );
            }
            return Ok(Arc::new(Workspace::new(&roots, self.secrets)?));
        };
        let root = root_above(&folder).canonical.as_path().to_owned();
        let found = known.iter().position(|one| one.roots == [root.clone()]);
        let workspace = match found {
            Some(at) => known.remove(at),
            None => Arc::new(Workspace::new(&[root], self.secrets)?),
        };
        known.insert(0, workspace.clone());
        known.truncate(MAX_WORKSPACES);
        Ok(workspace)
    }
}
