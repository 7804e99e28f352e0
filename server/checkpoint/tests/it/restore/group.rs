//! Restores of two roots.

use std::{fs, path::PathBuf, sync::Arc};

use crate::restore_support::all;
use sightline_access::Access;
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, Root, Roots},
    storage::Storage,
};
use sightline_checkpoint::{
    Checkpoints, Job, Request,
    error::Error,
    group::{Found, GroupRestore, OpenRoots, RootRestore, group_root_uris},
    restore::{Options, RestoreTarget, Restored, Scope, UnsavedTexts},
};
use sightline_protocol::settings::{CheckpointSettings, Secrets};

struct Two {
    folder: tempfile::TempDir,
    roots: Roots,
    stores: Vec<Arc<Checkpoints>>,
}

impl Two {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = sightline_base::path::canonicalize(folder.path()).unwrap();
        let storage = Storage::open(&base.join("data")).unwrap();
        let roots = ["one", "two"].map(|name| {
            fs::create_dir(base.join(name)).unwrap();
            Root::new(AbsPath::new(&base.join(name)).unwrap(), None)
        });
        let store = |root| Arc::new(Checkpoints::new(&storage, root));
        let two = Self {
            folder,
            stores: roots.iter().map(store).collect(),
            roots: Roots::new(roots.into()),
        };
        two.write("1");
        two
    }

    fn path(&self, root: &str) -> PathBuf {
        self.folder.path().join(root).join("file")
    }

    fn write(&self, text: &str) {
        for root in ["one", "two"] {
            fs::write(self.path(root), text).unwrap();
        }
    }

    fn read(&self) -> [String; 2] {
        ["one", "two"].map(|root| fs::read_to_string(self.path(root)).unwrap())
    }

    fn job<R>(&self, act: impl FnOnce(&Job<'_>) -> R) -> R {
        let roots = Roots::new(self.roots.as_slice().to_vec());
        let view = Access::new(roots.into(), Vec::new(), Secrets::Allow)
            .view()
            .0;
        act(&Job {
            view: &view,
            root: 0,
            settings: &CheckpointSettings::default(),
            cancel: &Cancel::default(),
            progress: &|_| {},
        })
    }

    fn open(&self) -> OpenRoots<'_> {
        OpenRoots {
            roots: &self.roots,
            stores: self.stores.clone(),
        }
    }

    /// Creates a checkpoint of both roots, and returns that of the second.
    fn create(&self) -> Found {
        let mut request = Request::default();
        request.metadata.group = Some("g".to_owned());
        request.metadata.group_roots = group_root_uris(&self.roots, 0..2);
        let mut last = None;
        for (root, store) in self.stores.iter().enumerate() {
            let create = |job: &Job<'_>| store.create(&Job { root, ..*job }, &request, None);
            last = Some(Found {
                root,
                store: store.clone(),
                checkpoint: self.job(create).unwrap(),
            });
        }
        last.unwrap()
    }

    fn restore(&self, named: Found, between: impl FnOnce()) -> Result<Vec<Restored>, Error> {
        let scope = if named.is_undo() {
            Scope::Undo
        } else {
            Scope::All
        };
        let parts = self.open().group_of(named)?.into_iter();
        let mut group = GroupRestore {
            roots: &self.roots,
            parts: parts
                .map(|found| RootRestore {
                    target: RestoreTarget {
                        scope: scope.clone(),
                        ..all(found.checkpoint.id)
                    },
                    found,
                    unsaved: UnsavedTexts::new(),
                })
                .collect(),
        };
        group.remove_nested()?;
        assert_eq!(group.parts.len(), 2);
        let prepared = self.job(|job| group.prepare(job, &Options::default()))?;
        between();
        self.job(|job| group.run(job, prepared, Some("rewind".to_owned())))
    }
}

#[test]
fn two_roots_are_restored_and_undone_together() {
    let two = Two::new();
    let named = two.create();
    two.write("2");
    assert_eq!(two.restore(named, || ()).unwrap().len(), 2);
    assert_eq!(two.read(), ["1", "1"]);
    let undo = two.open().last_undo(&[0]).unwrap();
    let group = two.open().group_of(undo.clone()).unwrap();
    let rewinds: Vec<_> = group
        .iter()
        .map(|one| one.checkpoint.metadata.rewind.as_deref())
        .collect();
    assert_eq!(rewinds, [Some("rewind"), None]);
    two.restore(undo, || ()).unwrap();
    assert_eq!(two.read(), ["2", "2"]);
}

#[test]
fn if_the_second_root_fails_the_first_is_rolled_back() {
    let two = Two::new();
    let named = two.create();
    two.write("2");
    let change = || fs::write(two.path("two"), "3").unwrap();
    let error = two.restore(named, change).unwrap_err().to_string();
    assert!(
        error.starts_with("two: ") && !error.contains("roll back"),
        "{error}"
    );
    assert_eq!(two.read(), ["2", "3"]);
}

#[test]
fn a_group_with_a_closed_folder_is_not_restored() {
    let two = Two::new();
    let named = two.create();
    let roots = Roots::new(two.roots.as_slice()[1..].to_vec());
    let open = OpenRoots {
        roots: &roots,
        stores: two.stores[1..].to_vec(),
    };
    let error = open.group_of(named).unwrap_err().to_string();
    let closed = two.roots.as_slice()[0].path.to_uri();
    assert!(error.contains(&closed), "{error}");
}
