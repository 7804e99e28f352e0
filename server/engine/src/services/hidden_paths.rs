//! What `sightline exec` hides, kept current by inotify (Linux).
//!
//! All folders that are not denied are watched. The kernel queues an event before the system call that caused it
//! returns, so a request that drains the queue knows the folders to read again. Whatever could change more than
//! one folder (access rules, a moved root, a mounted file system, an overflow) starts a new walk.
//!
//! Without inotify, and in linked worktrees, whose rules are also elsewhere, each request walks the folders.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsStr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags},
    io::Errno,
};
use sightline_access::{Access, AccessView, EntryRules, RULE_FILE};
use sightline_base::{
    clock::now_nanos,
    fs::dir::{FileInfo, lstat},
    path::{RelPath, Root},
};
use sightline_exec::{CannotHide, DeniedEntries, HiddenPath, Tracked, hidden_in, hidden_paths};

use crate::dirty_tracker::inotify::{
    mounts::Mounts,
    watches::{FileId, WATCHED_EVENTS, check_reliable, drain, file_id},
};

/// Lists what is hidden.
#[derive(Default)]
pub(super) struct HiddenPaths(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    watched: Option<Watched>,
    /// Roots that cannot be watched.
    unwatchable: Vec<Root>,
}

impl HiddenPaths {
    /// Lists the denied files and folders of a view that git does not track.
    ///
    /// # Errors
    /// Those of [`hidden_paths`].
    pub(super) fn get(
        &self,
        view: &AccessView,
        rules: &Access,
    ) -> Result<Vec<HiddenPath>, CannotHide> {
        let mut kept = self.0.lock();
        let roots = view.roots().as_slice();
        if kept.unwatchable == roots {
            return hidden_paths(view);
        }
        rules.refresh_nested();
        let basis = Basis::new(view, rules);
        let is_current = |it: &Watched| it.basis == basis && !it.is_holding;
        let watched = kept.watched.take().filter(is_current);
        let updated = watched.and_then(|mut it| it.update(view).ok().map(|()| it));
        let started = match updated {
            Some(watched) => Ok(watched),
            None => Watched::start(view, basis),
        };
        match started {
            Ok(mut watched) => {
                let found = hidden_in(view, &watched.folders, &mut watched.tracked);
                watched.is_holding = rules.is_holding();
                kept.watched = Some(watched);
                found
            }
            Err(why) => {
                tracing::info!(why, "denied files are looked for by each `sightline exec`");
                kept.unwatchable = roots.to_vec();
                hidden_paths(view)
            }
        }
    }
}

/// What decides about all folders.
#[derive(PartialEq)]
struct Basis {
    roots: Vec<(Root, Vec<EntryRules>)>,
    files: Vec<(PathBuf, Version)>,
}

/// A version of a rule file. `None` if there is no file.
struct Version {
    found: Option<FileInfo>,
    /// It could not have changed again without other metadata.
    is_settled: bool,
}

impl Version {
    fn of(path: &Path) -> Self {
        let found = lstat(path).ok();
        let is_settled = found.is_none_or(|it| it.stamp.is_settled(now_nanos()));
        Self { found, is_settled }
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.is_settled && other.is_settled && self.found == other.found
    }
}

impl Basis {
    fn new(view: &AccessView, rules: &Access) -> Self {
        let roots = view.roots().as_slice().iter().cloned().enumerate();
        let mut files: Vec<PathBuf> = rules.watched_files();
        files.sort();
        files.dedup();
        Self {
            roots: roots
                .map(|(at, root)| (root, view.entry_rules(at)))
                .collect(),
            files: files
                .into_iter()
                .map(|path| {
                    let version = Version::of(&path);
                    (path, version)
                })
                .collect(),
        }
    }
}

/// Why folders cannot be watched.
type Unwatchable = String;
/// A new walk is necessary.
struct Outdated;

struct Watched {
    basis: Basis,
    inotify: OwnedFd,
    roots: Vec<(PathBuf, FileId, Mounts)>,
    /// Number of the root, and the folder, by watch.
    watches: HashMap<i32, (usize, RelPath)>,
    folders: BTreeMap<PathBuf, DeniedEntries>,
    tracked: Tracked,
    /// Whether removed rules still applied, which end without an event.
    is_holding: bool,
}

impl Watched {
    fn start(view: &AccessView, basis: Basis) -> Result<Self, Unwatchable> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let mut watched = Self {
            basis,
            inotify: inotify.map_err(|error| error.to_string())?,
            roots: Vec::new(),
            watches: HashMap::new(),
            folders: BTreeMap::new(),
            tracked: Tracked::default(),
            is_holding: false,
        };
        for (number, root) in view.roots().as_slice().iter().enumerate() {
            let path = root.canonical.as_path();
            check_reliable(path, 0)?;
            let id = file_id(path).ok_or("the root is gone")?;
            let mounts = Mounts::below(path);
            watched.roots.push((path.to_owned(), id, mounts));
            watched.read(view, number, RelPath::default())?;
            check_reliable(path, watched.watches.len())?;
        }
        Ok(watched)
    }

    /// Reads the folders again that have changed.
    fn update(&mut self, view: &AccessView) -> Result<(), Outdated> {
        for (path, id, mounts) in &mut self.roots {
            if file_id(path) != Some(*id) || mounts.have_changed() {
                return Err(Outdated);
            }
        }
        let mut events = Vec::new();
        let drained = drain(&self.inotify, |watch, what, name| {
            events.push((watch, what, name.map(OsStr::to_owned)));
            true
        });
        drained.map_err(|_| Outdated)?;
        let mut changed = HashSet::new();
        for (watch, what, name) in events {
            changed.extend(self.changed_by(view, watch, what, name.as_deref())?);
        }
        for (number, rel) in changed {
            self.read(view, number, rel).map_err(|_| Outdated)?;
        }
        Ok(())
    }

    /// Returns the folder to read again after an event.
    fn changed_by(
        &mut self,
        view: &AccessView,
        watch: i32,
        what: ReadFlags,
        name: Option<&OsStr>,
    ) -> Result<Option<(usize, RelPath)>, Outdated> {
        if what.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
            return Err(Outdated);
        }
        // Events of a removed watch may still be queued.
        let Some((number, folder)) = self.watches.get(&watch).cloned() else {
            return Ok(None);
        };
        let Some(name) = name else {
            let gone = ReadFlags::IGNORED | ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF;
            if !what.intersects(gone) {
                return Ok(Some((number, folder)));
            }
            if folder.is_root() {
                return Err(Outdated);
            }
            self.forget(number, &folder);
            return Ok(None);
        };
        let entries =
            ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
        let path = folder.child(name);
        if name == RULE_FILE || name == ".git" && what.intersects(entries) {
            return Err(Outdated);
        }
        if what.intersects(entries | ReadFlags::ISDIR) {
            // The watched folder of this name has moved, is gone, or can be read now.
            self.forget(number, &path);
            return Ok(Some((number, folder)));
        }
        // A new content decides about some names only.
        let decides = || view.check_entry(number, &path, false).is_some();
        Ok(decides().then_some((number, folder)))
    }

    /// Watches and reads a folder, and those in it that are not known.
    fn read(&mut self, view: &AccessView, number: usize, rel: RelPath) -> Result<(), Unwatchable> {
        let (root, (device, _), _) = &self.roots[number];
        let (root, device) = (root.clone(), *device);
        let mut left = vec![rel];
        while let Some(rel) = left.pop() {
            let path = root.join(rel.as_path());
            match inotify::add_watch(&self.inotify, &path, WATCHED_EVENTS) {
                Ok(watch) => {
                    let known = self.watches.insert(watch, (number, rel.clone()));
                    // The same folder under another name, or in two roots.
                    if known.is_some_and(|known| known != (number, rel.clone())) {
                        return Err(format!("{} has two paths", path.display()));
                    }
                }
                // Commands cannot read it either. Its folder reports a change of its permissions.
                Err(Errno::ACCESS) => {
                    self.folders.insert(path, DeniedEntries::default());
                    continue;
                }
                // It is gone or was replaced, which is reported by an event.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(error) => return Err(format!("cannot watch {}: {error}", path.display())),
            }
            if file_id(&path).is_some_and(|(other, _)| other != device) {
                return Err("another file system is mounted in the root".to_owned());
            }
            let entries = DeniedEntries::read(view, number, &rel).map_err(|why| why.to_string())?;
            if entries.is_repository() && path.join(".git").is_file() {
                return Err(format!("{} is a linked worktree", path.display()));
            }
            let before = self.folders.get(&path);
            let gone: Vec<RelPath> = before
                .into_iter()
                .flat_map(|before| before.folders(&rel))
                .filter(|folder| !entries.folders(&rel).any(|it| it == *folder))
                .collect();
            for folder in gone {
                self.forget(number, &folder);
            }
            let is_new =
                |folder: &RelPath| !self.folders.contains_key(&root.join(folder.as_path()));
            left.extend(entries.folders(&rel).filter(is_new));
            self.folders.insert(path, entries);
        }
        Ok(())
    }

    /// Forgets a folder and everything below it.
    fn forget(&mut self, number: usize, rel: &RelPath) {
        let path = self.roots[number].0.join(rel.as_path());
        let is_below = |it: &&PathBuf| it.starts_with(&path);
        let below: HashSet<PathBuf> = self
            .folders
            .range(path.clone()..)
            .map(|(it, _)| it)
            .take_while(is_below)
            .cloned()
            .collect();
        if below.is_empty() {
            return;
        }
        self.folders.retain(|it, _| !below.contains(it));
        let root: &Path = &self.roots[number].0;
        self.watches.retain(|watch, (of, rel)| {
            let stays = *of != number || !below.contains(&root.join(rel.as_path()));
            if !stays {
                // The kernel may have removed it already.
                let _ = inotify::remove_watch(&self.inotify, *watch);
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, process::Command, sync::Arc};

    use sightline_base::path::{AbsPath, Roots};
    use sightline_protocol::settings::Secrets;

    use super::*;

    struct Project {
        scratch: tempfile::TempDir,
        access: Access,
        kept: HiddenPaths,
    }

    impl Project {
        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            let path = fs::canonicalize(scratch.path()).unwrap();
            let root = Root::new(AbsPath::new(&path).unwrap(), None);
            let project = Self {
                access: Access::new(Arc::new(Roots::new(vec![root])), Vec::new(), Secrets::Deny),
                scratch,
                kept: HiddenPaths::default(),
            };
            project.git(&["init", "-q"]);
            project
        }

        fn path(&self, name: &str) -> PathBuf {
            self.scratch.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.path(name);
            // In a folder that may not exist now.
            let _ = path.parent().map(fs::create_dir_all);
            let _ = fs::write(path, text);
        }

        fn git(&self, words: &[&str]) {
            let mut git = Command::new("git");
            let output = git.args(words).current_dir(self.scratch.path()).output();
            assert!(output.unwrap().status.success(), "{words:?}");
        }

        fn hidden(&self) -> Vec<HiddenPath> {
            let found = self.kept.get(&self.access.view().0, &self.access);
            found.unwrap()
        }

        fn names(&self) -> Vec<String> {
            let root = fs::canonicalize(self.scratch.path()).unwrap();
            let hidden = self.hidden().into_iter().map(|hidden| {
                let rel = hidden.path.strip_prefix(&root);
                rel.unwrap_or(&hidden.path).display().to_string()
            });
            hidden.collect()
        }

        /// Whether the folders are kept from one request to the next.
        fn is_kept(&self) -> bool {
            self.kept.0.lock().watched.is_some()
        }

        fn walk(&self) -> Vec<HiddenPath> {
            hidden_paths(&self.access.view().0).unwrap()
        }
    }

    #[test]
    fn the_list_is_that_of_a_new_walk_after_any_change() {
        let project = Project::new();
        let folders = ["a", "a/b", "a/b/c", "d", "d/b", "private"];
        let files = [".env", "x.pem", ".npmrc", "plain.txt", "e.key"];
        let mut seed = 7_u64;
        let mut next = |count: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(seed >> 33).unwrap() % count
        };
        project.write(".clineignore", "private/\n*.key\n");
        let mut lengths = HashSet::new();
        for step in 0..300 {
            let folder = folders[next(folders.len())];
            let file = format!("{folder}/{}", files[next(files.len())]);
            let other = folders[next(folders.len())];
            match next(9) {
                0 | 1 => project.write(&file, "//host/:_authToken=abcdefgh12345678\n"),
                2 => project.write(&file, "color=always\n"),
                3 => drop(fs::remove_file(project.path(&file))),
                4 => drop(fs::remove_dir_all(project.path(folder))),
                5 => drop(fs::rename(project.path(folder), project.path(other))),
                6 => drop(fs::rename(
                    project.path(folder),
                    project.path(&format!("d/m{}", next(3))),
                )),
                7 => {
                    let text = format!("{}\n", ["plain.txt", "b/", "nothing"][next(3)]);
                    project.write(&format!("{folder}/.clineignore"), &text);
                }
                _ => {
                    let target = project.path(other).join("plain.txt");
                    let _ = std::os::unix::fs::symlink(target, project.path(&file));
                }
            }
            if step % 10 == 9 {
                project.git(&["add", "-A", "-f"]);
            }
            if step % 25 == 24 {
                project.git(&["read-tree", "--empty"]);
            }
            lengths.insert(project.hidden().len());
            // A removed rule may end between the two.
            let is_same = || project.hidden() == project.walk();
            assert!(is_same() || is_same(), "step {step}: {:?}", project.names());
        }
        assert!(project.is_kept());
        assert!(lengths.len() > 5, "{lengths:?}");
    }

    #[test]
    fn a_change_reads_only_its_folder() {
        let project = Project::new();
        for folder in ["a", "b", "c"] {
            project.write(&format!("{folder}/.env"), "A=1\n");
        }
        assert_eq!(project.names(), ["a/.env", "b/.env", "c/.env"]);
        // What no event reports stays unknown.
        let forged = DeniedEntries::default();
        let path = fs::canonicalize(project.path("c")).unwrap();
        let mut kept = project.kept.0.lock();
        let folders = &mut kept.watched.as_mut().unwrap().folders;
        assert!(folders.insert(path, forged).is_some());
        drop(kept);
        project.write("a/other.pem", "");
        fs::remove_file(project.path("b/.env")).unwrap();
        assert_eq!(project.names(), ["a/.env"]);
    }

    #[test]
    fn rules_decide_at_once() {
        let project = Project::new();
        project.write("a/one.txt", "");
        project.write("shared.txt", "one.txt\n");
        assert!(project.hidden().is_empty());
        for (file, text, expected) in [
            (".clineignore", "one.txt\n", &["a/one.txt"][..]),
            ("a/.clineignore", "two.txt\n", &["a/one.txt"]),
            ("a/two.txt", "", &["a/one.txt", "a/two.txt"]),
            ("a/.clineignore", "!include ../shared.txt\n", &["a/one.txt"]),
        ] {
            project.write(file, text);
            let shown = project.names();
            let own = |name: &&String| name.ends_with(".txt");
            let shown: Vec<&String> = shown.iter().filter(own).collect();
            for name in expected {
                assert!(shown.iter().any(|it| it == name), "{file}: {shown:?}");
            }
            assert_eq!(project.hidden(), project.walk(), "{file}");
        }
        project.write("shared.txt", "three.txt\n");
        project.write("a/three.txt", "");
        assert!(project.names().contains(&"a/three.txt".to_owned()));
        // Removed rules hold for a while.
        fs::remove_file(project.path(".clineignore")).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(700));
        assert_eq!(project.hidden(), project.walk());
        std::thread::sleep(std::time::Duration::from_millis(700));
        assert_eq!(project.hidden(), project.walk());
    }

    #[test]
    fn folders_that_cannot_be_read_are_read_when_they_can() {
        let project = Project::new();
        project.write("a/b/.env", "A=1\n");
        let locked = |mode| {
            fs::set_permissions(project.path("a"), fs::Permissions::from_mode(mode)).unwrap();
        };
        locked(0o000);
        let before = project.hidden();
        assert_eq!(before, project.walk());
        locked(0o755);
        assert_eq!(project.names(), ["a/b/.env"]);
        locked(0o000);
        assert_eq!(project.hidden(), project.walk());
        locked(0o755);
        assert_eq!(project.names(), ["a/b/.env"]);
    }

    #[test]
    fn a_root_that_was_replaced_and_a_full_queue_start_anew() {
        let project = Project::new();
        project.write("a/.env", "A=1\n");
        assert_eq!(project.names(), ["a/.env"]);
        let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let most: usize = most.trim().parse().unwrap();
        for round in 0..=most / 2 {
            project.write(["one", "two"][round % 2], "x");
        }
        project.write("b/.env", "A=1\n");
        assert_eq!(project.names(), ["a/.env", "b/.env"]);
        let (path, aside) = (project.scratch.path(), project.path("../aside"));
        let aside = aside.with_extension(path.file_name().unwrap());
        fs::rename(path, &aside).unwrap();
        fs::create_dir_all(path.join("c")).unwrap();
        fs::write(path.join("c/.env"), "A=1\n").unwrap();
        assert_eq!(project.names(), ["c/.env"]);
        fs::remove_dir_all(aside).unwrap();
    }

    #[test]
    fn linked_worktrees_are_walked() {
        let project = Project::new();
        project.write("a/.env", "A=1\n");
        project.write("sub/.git", "gitdir: elsewhere\n");
        assert_eq!(project.names(), ["a/.env"]);
        assert!(!project.is_kept());
        project.write("b/.env", "A=1\n");
        assert_eq!(project.names(), ["a/.env", "b/.env"]);
    }
}
