//! Context of a checkpoint request: finds checkpoints, resolves paths, and runs work on a
//! root.

use std::{cell::RefCell, collections::HashSet, path::Path, sync::Arc};

use sightline_access::AccessView;
use sightline_base::{
    cancel::Cancel,
    limits,
    path::{Location, RelPath, Root, Roots, uri_to_path},
};
use sightline_checkpoint::{
    Checkpoint, Checkpoints, Filter, Job, Progress as Stage, Turn, TurnName,
    group::{Found, OpenRoots},
};
use sightline_protocol::{error::ErrorKind, files::ProgressToken};

use super::{
    recovery::{report_recovered, try_recover},
    reference::{Reference, TurnSide, unknown_checkpoint},
};
use crate::{
    error::Error, progress::Progress, request_context::RequestContext,
    services::checkpoint_registry::RootCheckpoints, session::named_root,
};

/// What a checkpoint request needs besides its params.
pub(super) struct CheckpointContext<'a> {
    pub(super) request: &'a RequestContext<'a>,
    pub(super) view: AccessView,
    progress: Progress,
    /// Roots without an interrupted restore.
    recovered_roots: RefCell<HashSet<usize>>,
}

impl<'a> CheckpointContext<'a> {
    /// Begins, with a title for progress reports.
    pub(super) fn begin(
        context: &'a RequestContext<'a>,
        token: Option<ProgressToken>,
        title: &str,
    ) -> Result<Self, Error> {
        let view = context.view();
        if view.roots().is_empty() {
            let message = "no folder is open; checkpoints need an open folder";
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        Ok(Self {
            request: context,
            view,
            progress: context.progress(token, title),
            recovered_roots: RefCell::default(),
        })
    }

    pub(super) fn roots(&self) -> &Roots {
        self.view.roots()
    }

    /// Returns the roots, and the store of each.
    pub(super) fn open_roots(&self) -> Result<OpenRoots<'_>, Error> {
        let roots = 0..self.roots().as_slice().len();
        let stores = roots.map(|root| Ok(self.root_checkpoints(root)?.1.store.clone()));
        Ok(OpenRoots {
            stores: stores.collect::<Result<_, Error>>()?,
            roots: self.roots(),
        })
    }

    /// Runs `work` on these roots, with a job for the first.
    pub(super) fn with_job<T>(
        &self,
        roots: &[usize],
        cancel: &Cancel,
        work: impl FnOnce(&Job<'_>) -> T,
    ) -> T {
        let reported = &self.progress;
        let progress = |stage: Stage| {
            let amount = stage.total.map(|total| (stage.done, total));
            reported.report(amount, || match stage.total {
                Some(total) => format!("{} {} of {total}", stage.stage, stage.done),
                None => format!("{} {}", stage.stage, stage.done),
            });
        };
        let done = work(&Job {
            view: &self.view,
            root: roots.first().copied().unwrap_or_default(),
            settings: &self.request.snapshot.settings.checkpoints,
            cancel,
            progress: &progress,
        });
        for root in roots {
            if let Some(known) = self.roots().get(*root)
                && let Ok((_, checkpoints)) = self.root_checkpoints(*root)
                && let Some(recovered) = checkpoints.store.take_recovered()
            {
                report_recovered(self.request.services, &self.view, known, &recovered);
            }
        }
        done
    }

    /// Returns root number `root` and its store, after completing an interrupted restore.
    pub(super) fn root_checkpoints(
        &self,
        root: usize,
    ) -> Result<(&Root, Arc<RootCheckpoints>), Error> {
        let known = self
            .roots()
            .get(root)
            .ok_or_else(|| Error::invalid(format!("no workspace folder has the number {root}")))?;
        let checkpoints = self.request.checkpoints(known)?;
        if self.recovered_roots.borrow_mut().insert(root) {
            try_recover(self.request, known);
        }
        Ok((known, checkpoints))
    }

    /// Records a scan of the work tree, so that it is watched from now on. One-shot
    /// processes do not watch.
    pub(super) fn scanned(&self, checkpoints: &RootCheckpoints) {
        if !self.request.services.client.is_closed() {
            checkpoints.scanned();
        }
    }

    /// Lists the checkpoints of a root or of all, newest first.
    pub(super) fn list(
        &self,
        root: Option<&str>,
        filter: &Filter,
    ) -> Result<Vec<(usize, Arc<Checkpoint>)>, Error> {
        let mut listed = Vec::new();
        for root in selected_roots(self.roots(), root)? {
            listed.extend(self.list_root(root, filter)?);
        }
        listed.sort_by_key(|(_, stored)| {
            std::cmp::Reverse((stored.metadata.created, stored.metadata.sequence))
        });
        Ok(listed)
    }

    /// Lists the checkpoints of root number `root`, newest first.
    pub(super) fn list_root(
        &self,
        root: usize,
        filter: &Filter,
    ) -> Result<Vec<(usize, Arc<Checkpoint>)>, Error> {
        let (known, checkpoints) = self.root_checkpoints(root)?;
        let registry = &self.request.services.checkpoints;
        let stored = checkpoints.store.list(filter)?;
        stored
            .iter()
            .for_each(|one| registry.remember(one.id, known));
        Ok(stored.into_iter().map(|one| (root, one)).collect())
    }

    /// Finds a checkpoint. An id is searched in all roots, and may also be that of a Cline
    /// commit, for the checkpoint imported from it. Other references are those of a root or,
    /// without one, of all.
    pub(super) fn find(&self, written: &str, root: Option<&str>) -> Result<Found, Error> {
        let id = match Reference::parse(written)? {
            Reference::Id(id) => id,
            Reference::Turn(name, side) => {
                let state = self.turn(&name, root)?.state(side)?;
                return state.ok_or_else(|| {
                    let why =
                        format!("{name} is still running: {written:?} is the current workspace");
                    Error::invalid(why)
                });
            }
            reference => {
                let listed = self.list(root, &Filter::default())?;
                reference.select(written, listed.iter().map(|(_, stored)| &**stored))?
            }
        };
        let by_id = |checkpoints: &RootCheckpoints| match checkpoints.store.get(id) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => Ok(Some(found?)),
        };
        let (mut found, mut failed) = self.search_roots(by_id)?;
        if found.is_none() {
            let imported =
                self.search_roots(|checkpoints| Ok(checkpoints.store.imported_from(id)?))?;
            found = imported.0;
            failed = failed.or(imported.1);
        }
        if let Some(found) = found {
            return Ok(found);
        }
        Err(failed.unwrap_or_else(|| unknown_checkpoint(written)))
    }

    /// Finds a turn, in a root or in all.
    ///
    /// # Errors
    /// `notFound`, or `invalidParams` if several roots have a turn with this name.
    pub(super) fn turn(&self, name: &TurnName, root: Option<&str>) -> Result<FoundTurn, Error> {
        let mut found: Vec<FoundTurn> = Vec::new();
        for root in selected_roots(self.roots(), root)? {
            let (_, checkpoints) = self.root_checkpoints(root)?;
            if let Some(turn) = checkpoints.store.turn(name)? {
                let store = checkpoints.store.clone();
                found.push(FoundTurn { root, store, turn });
            }
        }
        if found.len() > 1 {
            let why = format!("several workspace folders have a turn {name}; name the folder");
            return Err(Error::invalid(why));
        }
        found
            .pop()
            .ok_or_else(|| unknown_checkpoint(&name.to_string()))
    }

    /// Searches the roots. Returns the first match, and the last error of a root that
    /// could not be searched.
    fn search_roots(
        &self,
        find: impl Fn(&RootCheckpoints) -> Result<Option<Arc<Checkpoint>>, Error>,
    ) -> Result<(Option<Found>, Option<Error>), Error> {
        let mut failed = None;
        for root in 0..self.roots().as_slice().len() {
            self.request.cancel.check()?;
            let (known, checkpoints) = self.root_checkpoints(root)?;
            match find(&checkpoints) {
                Ok(Some(checkpoint)) => {
                    let registry = &self.request.services.checkpoints;
                    registry.remember(checkpoint.id, known);
                    return Ok((
                        Some(Found {
                            root,
                            store: checkpoints.store.clone(),
                            checkpoint,
                        }),
                        failed,
                    ));
                }
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        }
        Ok((None, failed))
    }

    /// Returns how results name a path: its text, whether that is encoded, and its URI.
    pub(super) fn name(&self, root: usize, rel: &RelPath) -> (String, bool, String) {
        let location = Location::Inside {
            root,
            rel: rel.clone(),
        };
        let (path, encoded) = self.roots().result_path(&location);
        (path, encoded, self.roots().absolute(&location).to_uri())
    }

    /// Resolves the paths of a request below root number `root`. A relative path refers
    /// to that root, unless it exists in another one.
    ///
    /// # Errors
    /// `invalidParams` for an invalid path and, if `only_this` is set, for a path outside
    /// the root.
    pub(super) fn paths(
        &self,
        root: usize,
        written: Option<&[String]>,
        only_this: bool,
    ) -> Result<Paths, Error> {
        let Some(written) = written else {
            return Ok(Paths::All);
        };
        if written.is_empty() {
            return Err(Error::invalid(
                "`paths` is empty; omit it to select all paths",
            ));
        }
        if written.iter().any(String::is_empty) {
            return Err(Error::invalid(
                "`paths` contains an empty path; `.` selects a whole folder",
            ));
        }
        if written.len() > limits::MAX_NAMED_PATHS {
            let (count, limit) = (written.len(), limits::MAX_NAMED_PATHS);
            let why = format!(
                "{count} paths exceed the limit of {limit}; name folders, or split the request"
            );
            return Err(Error::new(ErrorKind::TooLarge, why));
        }
        let mut kept = Vec::new();
        for path in written {
            let is_relative =
                uri_to_path(path).is_ok_and(|uri| uri.is_none()) && !Path::new(path).is_absolute();
            let rel = match self.roots().locate(path)? {
                Location::Inside { root: found, rel } if found == root => Some(rel),
                Location::Inside { root: found, rel } => {
                    let there = self
                        .roots()
                        .absolute(&Location::Inside { root: found, rel });
                    let is_there = std::fs::symlink_metadata(there.as_path()).is_ok();
                    let here = RelPath::new(path.as_ref());
                    here.filter(|_| is_relative && (only_this || !is_there))
                }
                Location::Outside(_) => None,
            };
            match rel {
                Some(rel) if rel.is_root() => return Ok(Paths::All),
                Some(rel) => kept.push(rel),
                None if only_this => {
                    let name = self.roots().get(root).map_or("", |root| &root.name);
                    let message = format!("{path} is not in {name}, the folder of the checkpoint");
                    return Err(Error::invalid(message).with_path(path.clone()));
                }
                None => {}
            }
        }
        Ok(if kept.is_empty() {
            Paths::None
        } else {
            Paths::Some(kept)
        })
    }

    /// Requires that each path of a request is in one of the checkpoints or in the
    /// workspace. Denied paths are accepted, so that the error does not tell whether they
    /// exist.
    ///
    /// # Errors
    /// `notFound`, and those of [`Self::paths`].
    pub(super) fn require_known_paths(
        &self,
        written: Option<&[String]>,
        checkpoints: &[Found],
        only_this: bool,
    ) -> Result<(), Error> {
        for path in written.unwrap_or_default() {
            let mut is_known = false;
            for found in checkpoints {
                is_known |=
                    match self.paths(found.root, Some(std::slice::from_ref(path)), only_this)? {
                        Paths::All => true,
                        Paths::Some(rels) => rels
                            .iter()
                            .map(|rel| self.is_known(found, rel, path.ends_with('/')))
                            .try_fold(false, |known, is_known| Ok::<_, Error>(known | is_known?))?,
                        Paths::None => false,
                    };
                if is_known {
                    break;
                }
            }
            if !is_known {
                return Err(unknown_path(path));
            }
        }
        Ok(())
    }

    /// Requires that the access rules allow the paths that a checkpoint does not hold: a restore leaves
    /// them as they are, also if they do not exist.
    ///
    /// # Errors
    /// `accessDenied`, with the rule; `storage`.
    pub(super) fn require_allowed(&self, found: &Found, paths: &[RelPath]) -> Result<(), Error> {
        for rel in paths {
            let (root, rel) = (found.root, rel.clone());
            let store = &found.store;
            if !store.holds_path(found.checkpoint.id, &rel)? {
                self.view.require(&Location::Inside { root, rel }, true)?;
            }
        }
        Ok(())
    }

    /// `is_folder`: the path is written with a trailing slash, so that it names no file.
    fn is_known(&self, found: &Found, rel: &RelPath, is_folder: bool) -> Result<bool, Error> {
        let place = self.roots().absolute(&Location::Inside {
            root: found.root,
            rel: rel.clone(),
        });
        let is_there = if is_folder {
            place.as_path().is_dir()
        } else {
            place.as_path().symlink_metadata().is_ok()
        };
        let (path, encoded) = rel.to_wire();
        let mut skipped = found.checkpoint.metadata.skipped.iter();
        if is_there
            || skipped.any(|one| one.path == path && one.encoded == encoded)
            || self.view.check_entry(found.root, rel, is_folder).is_some()
        {
            return Ok(true);
        }
        let (store, id) = (&found.store, found.checkpoint.id);
        Ok(if is_folder {
            store.holds_folder(id, rel)?
        } else {
            store.holds_path(id, rel)?
        })
    }
}

pub use sightline_checkpoint::group::NO_RESTORE;

/// A turn, and the root that it belongs to.
pub(super) struct FoundTurn {
    pub(super) root: usize,
    pub(super) store: Arc<Checkpoints>,
    pub(super) turn: Turn,
}

impl FoundTurn {
    /// Returns the checkpoint with the state before or after the turn. `None` if that is the current
    /// workspace, because the turn is running.
    pub(super) fn state(&self, side: TurnSide) -> Result<Option<Found>, Error> {
        let id = match side {
            TurnSide::Before => Some(self.store.state_before(&self.turn)?),
            TurnSide::After => self.store.state_after(&self.turn)?,
        };
        let found = |id| {
            Ok::<_, Error>(Found {
                root: self.root,
                store: self.store.clone(),
                checkpoint: self.store.get(id)?,
            })
        };
        id.map(found).transpose()
    }
}

/// Returns the named root, or all.
pub(super) fn selected_roots(roots: &Roots, name: Option<&str>) -> Result<Vec<usize>, Error> {
    match name {
        Some(name) => Ok(vec![named_root(roots, name)?]),
        None => Ok((0..roots.as_slice().len()).collect()),
    }
}

/// Error of a path that is neither in the checkpoint nor in the workspace.
pub fn unknown_path(path: &str) -> Error {
    let why = format!("path {path:?} did not match any file in the checkpoint or in the workspace");
    Error::new(ErrorKind::NotFound, why).with_path(path)
}

/// Selected paths of a root.
pub(super) enum Paths {
    All,
    Some(Vec<RelPath>),
    /// Nothing in this root.
    None,
}

impl Paths {
    /// Converts to core's form, where an empty list means all. Returns `None` if nothing
    /// is selected.
    pub(super) fn wanted(self) -> Option<Vec<RelPath>> {
        match self {
            Self::All => Some(Vec::new()),
            Self::Some(paths) => Some(paths),
            Self::None => None,
        }
    }
}
