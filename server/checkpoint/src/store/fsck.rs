//! Verifies checkpoints.
//!
//! Three passes: trees, each once; blobs, in parallel; and, if there are problems, the paths that
//! lead to them. None is recursive, because a fetched tree may nest deeper than the stack.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use parking_lot::Mutex;
use rayon::prelude::*;
use sightline_base::{cancel::Cancel, escape::one_line, limits::MAX_PATH_BYTES, thread_pool};

use super::{
    object::{Commit, Kind, Mode, Oid, RawEntry, Unreadable, name_order, raw_entries},
    odb::Odb,
};
use crate::error::Error;

/// Maximum depth of a tree. A path of 4096 bytes cannot be deeper.
const MAX_DEPTH: usize = 2048;
/// Maximum number of files in a tree. A few small trees that name each other repeatedly can claim
/// more.
const MAX_FILES: u64 = 100_000_000;
/// Size from which blobs are read one at a time, in bytes.
const LARGE_BLOB_BYTES: u64 = 16 << 20;
/// Maximum number of reported problems.
const MAX_PROBLEMS: usize = 1000;
/// Names that the server never writes. They are not quoted, because they may be denied.
const UNSAFE_NAME: &str = "an entry with an unsafe name";
const UNSORTED: &str = "unsorted or duplicate entries";

/// Returns whether a commit has the metadata of a checkpoint.
pub(crate) type IsCheckpoint = fn(&Commit) -> bool;

/// Verifies checkpoints. Returns the problems with the id of the checkpoint. Paths that `denies`
/// rejects (given the path, and whether it is a folder) are not named.
pub(crate) fn check_checkpoints(
    reader: &Odb,
    ids: &[Oid],
    is_checkpoint: IsCheckpoint,
    cancel: &Cancel,
    denies: &mut dyn FnMut(&[u8], bool) -> bool,
) -> Result<Vec<(Oid, String)>, Error> {
    // A checkpoint in a pack that cannot be opened may be intact.
    reader.open_packs()?;
    let mut problems = Vec::new();
    let mut found = FsckState::default();
    let mut trees = Vec::new();
    for id in ids {
        match commit(reader, *id, is_checkpoint)? {
            Ok(tree) => {
                found.descend(reader, tree, cancel)?;
                trees.push((*id, tree));
            }
            Err(what) => problems.push((*id, what)),
        }
    }
    found.read_blobs(reader, cancel)?;
    if found.bad.is_empty() {
        return Ok(problems);
    }
    found.mark_tainted(reader, cancel)?;
    for (id, tree) in trees {
        if problems.len() >= MAX_PROBLEMS {
            break;
        }
        let findings = found.describe_problems(reader, tree, cancel, denies)?;
        problems.extend(findings.into_iter().map(|what| (id, what)));
    }
    Ok(problems)
}

/// Reads the tree of a checkpoint's commit.
fn commit(
    reader: &Odb,
    id: Oid,
    is_checkpoint: IsCheckpoint,
) -> Result<Result<Oid, String>, Error> {
    let bytes = match read(reader, Kind::Commit, id)? {
        Ok(bytes) => bytes,
        Err(what) => return Ok(Err(format!("the commit {what}"))),
    };
    Ok(match Commit::decode(&bytes) {
        None => Err("the commit is malformed".to_owned()),
        Some(commit) if is_checkpoint(&commit) => Ok(commit.tree),
        Some(_) => Err("the commit has no checkpoint metadata".to_owned()),
    })
}

/// Reads an object. Returns why it is damaged.
///
/// # Errors
/// `storage` if it cannot be accessed, which is not damage.
fn read(reader: &Odb, kind: Kind, oid: Oid) -> Result<Result<Vec<u8>, String>, Error> {
    match reader.try_read(kind, oid) {
        Err(why @ Unreadable::Unavailable) => Err(reader.unreadable(kind, oid, why)),
        read => Ok(read.map_err(Unreadable::describe)),
    }
}

#[derive(Default)]
struct FsckState {
    /// Depth and number of files of each tree.
    trees: HashMap<Oid, (usize, u64)>,
    /// The same trees, each after the trees below it.
    order: Vec<Oid>,
    blobs: HashSet<Oid>,
    /// Problems of single objects.
    bad: HashMap<Oid, String>,
    /// Trees with a problem below them.
    tainted: HashSet<Oid>,
}

enum Visit {
    Enter(Oid),
    /// All subtrees are known: the tree, its subtrees, and the number of its files.
    Leave(Oid, Vec<Oid>, u64),
}

impl FsckState {
    fn descend(&mut self, reader: &Odb, tree: Oid, cancel: &Cancel) -> Result<(), Error> {
        let mut steps = vec![Visit::Enter(tree)];
        while let Some(step) = steps.pop() {
            match step {
                Visit::Enter(oid) if self.trees.contains_key(&oid) => {}
                Visit::Enter(oid) => {
                    cancel.check()?;
                    let (below, files) = match read_tree(reader, oid)? {
                        Ok(entries) => self.split_entries(entries),
                        Err(what) => {
                            self.bad.insert(oid, what);
                            (Vec::new(), 0)
                        }
                    };
                    // A tree cannot contain itself, because its id is a hash.
                    steps.push(Visit::Leave(oid, below.clone(), files));
                    steps.extend(below.into_iter().map(Visit::Enter));
                }
                Visit::Leave(oid, below, files) => self.add(oid, &below, files),
            }
        }
        Ok(())
    }

    /// Splits entries into subtrees and a number of files, and records the blobs.
    fn split_entries(&mut self, entries: Vec<(Mode, Oid)>) -> (Vec<Oid>, u64) {
        let (mut below, mut files) = (Vec::new(), 0);
        for (mode, oid) in entries {
            if mode == Mode::Folder {
                below.push(oid);
            } else {
                files += 1;
                self.blobs.insert(oid);
            }
        }
        (below, files)
    }

    fn add(&mut self, oid: Oid, below: &[Oid], files: u64) {
        if self.trees.contains_key(&oid) {
            return;
        }
        let (mut levels, mut total) = (0, files);
        for tree in below {
            let (below, files) = self.trees.get(tree).copied().unwrap_or_default();
            levels = levels.max(below + 1);
            total = total.saturating_add(files);
        }
        if levels > MAX_DEPTH || total > MAX_FILES {
            let what = format!("has {levels} levels and {total} files, more than any work tree");
            self.bad.insert(oid, what);
        }
        self.trees.insert(oid, (levels, total));
        self.order.push(oid);
    }

    fn read_blobs(&mut self, reader: &Odb, cancel: &Cancel) -> Result<(), Error> {
        let blobs: Vec<Oid> = self.blobs.drain().collect();
        let one_large = Mutex::new(());
        thread_pool::start();
        let bad: Vec<Option<(Oid, String)>> = blobs
            .into_par_iter()
            .map(|oid| {
                cancel.check()?;
                let is_large =
                    matches!(reader.header(oid), Ok((_, length)) if length > LARGE_BLOB_BYTES);
                let _alone = is_large.then(|| one_large.lock());
                Ok(read(reader, Kind::Blob, oid)?.err().map(|what| (oid, what)))
            })
            .collect::<Result<_, Error>>()?;
        self.bad.extend(bad.into_iter().flatten());
        Ok(())
    }

    /// Marks every tree with a problem below it.
    fn mark_tainted(&mut self, reader: &Odb, cancel: &Cancel) -> Result<(), Error> {
        for oid in &self.order {
            cancel.check()?;
            let Ok(entries) = read_tree(reader, *oid)? else {
                continue;
            };
            let leads = |oid: &Oid| self.bad.contains_key(oid) || self.tainted.contains(oid);
            if entries.iter().any(|(_, oid)| leads(oid)) {
                self.tainted.insert(*oid);
            }
        }
        Ok(())
    }

    /// Describes the problems below a tree, with their paths.
    fn describe_problems(
        &self,
        reader: &Odb,
        tree: Oid,
        cancel: &Cancel,
        denies: &mut dyn FnMut(&[u8], bool) -> bool,
    ) -> Result<Vec<String>, Error> {
        let mut findings = Vec::new();
        let mut unnamed = 0;
        let mut waiting = vec![(tree, Vec::new(), true)];
        while let Some((oid, path, is_tree)) = waiting.pop() {
            cancel.check()?;
            if findings.len() + unnamed >= MAX_PROBLEMS {
                break;
            }
            if let Some(what) = self.bad.get(&oid) {
                if !path.is_empty() && denies(&path, is_tree) {
                    unnamed += 1;
                    continue;
                }
                let shown = String::from_utf8_lossy(&path);
                findings.push(match (is_tree, path.is_empty()) {
                    (true, true) => format!("the tree {what}"),
                    (true, false) => format!("the folder {} {what}", one_line(&shown)),
                    (false, _) => format!("the file {} {what}", one_line(&shown)),
                });
                continue;
            }
            if !self.tainted.contains(&oid) {
                continue;
            }
            let Ok(bytes) = read(reader, Kind::Tree, oid)? else {
                continue;
            };
            for entry in raw_entries(&bytes).unwrap_or_default() {
                if self.bad.contains_key(&entry.oid) || self.tainted.contains(&entry.oid) {
                    let mut path = path.clone();
                    if !path.is_empty() {
                        path.push(b'/');
                    }
                    path.extend_from_slice(entry.name);
                    // No file system has such a path, only a forged tree. Checking the rules of all
                    // its parents would take too much memory.
                    if path.len() > MAX_PATH_BYTES {
                        findings.push(format!(
                            "a path of more than {MAX_PATH_BYTES} bytes is damaged"
                        ));
                        continue;
                    }
                    waiting.push((entry.oid, path, entry.mode() == Some(Mode::Folder)));
                }
            }
        }
        if unnamed > 0 {
            findings.push(format!(
                "access rules deny {unnamed} more damaged {}",
                if unnamed == 1 { "path" } else { "paths" }
            ));
        }
        Ok(findings)
    }
}

/// Reads a tree. Returns a problem if the server could not have written it.
fn read_tree(reader: &Odb, oid: Oid) -> Result<Result<Vec<(Mode, Oid)>, String>, Error> {
    if oid == Oid::EMPTY_TREE {
        return Ok(Ok(Vec::new()));
    }
    Ok(read(reader, Kind::Tree, oid)?.and_then(|bytes| check_tree(&bytes)))
}

fn check_tree(bytes: &[u8]) -> Result<Vec<(Mode, Oid)>, String> {
    let entries = raw_entries(bytes).ok_or("is malformed")?;
    let mut last: Option<RawEntry<'_>> = None;
    let mut plain = Vec::with_capacity(entries.len());
    for entry in entries {
        let Some(mode) = entry.mode() else {
            return Err("has an entry that is not a file, link or folder".to_owned());
        };
        if is_unsafe_name(entry.name) {
            return Err(format!("has {UNSAFE_NAME}"));
        }
        if let Some(last) = last {
            let folder = |entry: &RawEntry<'_>| entry.mode() == Some(Mode::Folder);
            let order = name_order(last.name, folder(&last), entry.name, folder(&entry));
            if order.is_ge() || last.name == entry.name {
                return Err(format!("has {UNSORTED}"));
            }
        }
        last = Some(entry);
        plain.push((mode, entry.oid));
    }
    Ok(plain)
}

/// Returns whether the name could lead out of the folder or into a repository.
fn is_unsafe_name(name: &[u8]) -> bool {
    let text = std::str::from_utf8(name).unwrap_or_default();
    let leads = name.is_empty() || name.contains(&b'/') || matches!(name, b"." | b"..");
    let is_one = |text: &str| Path::new(text).components().count() == 1;
    leads || name.eq_ignore_ascii_case(b".git") || (!text.is_empty() && !is_one(text))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        metadata::{CheckpointMetadata, commit_of, is_checkpoint},
        store::{
            object::{encode_tree, name_of},
            pack::writer::PackWriter,
        },
        testing::{Scratch, noise},
        tree_diff::DeniedPaths,
        worktree::snapshot::below,
    };

    /// Creates a checkpoint with these raw trees; the last one is the root.
    fn odd(scratch: &Scratch, created: u64, trees: &[Vec<u8>]) -> Oid {
        let repository = scratch.repository();
        let pack = PackWriter::new(repository.dir()).unwrap();
        for tree in trees {
            pack.put(Kind::Tree, name_of(Kind::Tree, tree), tree)
                .unwrap();
        }
        pack.put(Kind::Blob, name_of(Kind::Blob, b""), b"").unwrap();
        let metadata = CheckpointMetadata {
            created,
            ..CheckpointMetadata::default()
        };
        let tree = name_of(Kind::Tree, trees.last().unwrap());
        repository
            .write_checkpoint(pack, &commit_of(tree, &metadata))
            .unwrap()
    }

    #[test]
    fn damage_is_reported_by_checkpoint_and_path() {
        let scratch = Scratch::new();
        assert_eq!(scratch.verify(), [""; 0]);
        let content = noise(1, 9000);
        let file = (&b"d/e/f"[..], &content[..], Mode::File);
        let first = scratch.checkpoint(1, &[file, (b"x", b"1", Mode::File)]);
        let pack = scratch.repository().packs().unwrap().remove(0);
        let second = scratch.checkpoint(2, &[file, (b"y", b"1", Mode::File)]);
        let third = scratch.checkpoint(3, &[(b"y", b"1", Mode::File)]);
        assert_eq!(scratch.verify(), [""; 0]);
        let at = pack.entry_range(name_of(Kind::Blob, &content)).unwrap();
        let path = pack.path().to_owned();
        // Windows does not write to a file that is mapped.
        drop(pack);
        let mut bytes = fs::read(&path).unwrap();
        bytes[at.start as usize + 5000] ^= 1;
        fs::write(&path, bytes).unwrap();
        let findings = scratch.verify();
        assert_eq!(findings.len(), 2, "{findings:?}");
        for id in [first, second] {
            let wanted = format!("checkpoint {id}: the file d/e/f is damaged");
            assert!(findings.contains(&wanted), "{findings:?}");
        }
        assert!(
            !findings
                .iter()
                .any(|line| line.contains(&third.to_string()))
        );

        let name = scratch.dir().join(format!("refs/checkpoints/{third}"));
        fs::write(name, format!("{first}\n")).unwrap();
        let findings = scratch.verify();
        assert!(
            findings
                .iter()
                .any(|line| line.contains(&format!("{third}: the ref"))),
            "{findings:?}"
        );
    }

    #[test]
    fn denied_paths_are_counted_and_not_named() {
        let scratch = Scratch::new();
        let large = noise(1, 2000);
        let paths = ["keys/deep/one", "keys/two", "open/three"];
        let files = paths.map(|path| (path.as_bytes(), &large[..], Mode::File));
        let id = scratch.checkpoint(1, &files);
        let reader = Odb::new(&scratch.dir(), 1000);
        let findings = |rules: &str| -> Vec<String> {
            fs::write(scratch.folder.path().join("ws/.clineignore"), rules).unwrap();
            let cancel = Cancel::default();
            let found = scratch.job(&cancel, |job| {
                let mut denied = DeniedPaths::new(job);
                let mut denies = |path: &[u8], is_dir| denied.denies(&below(path, b""), is_dir);
                check_checkpoints(&reader, &[id], is_checkpoint, &cancel, &mut denies).unwrap()
            });
            let mut findings: Vec<String> = found.into_iter().map(|(_, what)| what).collect();
            findings.sort_unstable();
            findings
        };
        let large = |path| format!("the file {path} is too large (2000 bytes)");
        assert_eq!(findings(""), paths.map(large));
        let counted = "access rules deny 2 more damaged paths".to_owned();
        assert_eq!(findings("keys/\n"), [counted, large("open/three")]);
        let counted = "access rules deny 1 more damaged path".to_owned();
        assert_eq!(
            findings("one\n"),
            [counted, large("keys/two"), large("open/three")]
        );
    }

    #[test]
    fn invalid_trees_are_reported() {
        let blob = name_of(Kind::Blob, b"");
        let file = |name: &'static [u8]| (Mode::File, name, blob);
        let gitlink = [&b"160000 sub\0"[..], &blob.0].concat();
        for (tree, findings) in [
            (encode_tree([file(b"..")].into_iter()), "unsafe name"),
            (encode_tree([file(b"a/b")].into_iter()), "unsafe name"),
            (encode_tree([file(b".GIT")].into_iter()), "unsafe name"),
            (encode_tree([file(b"")].into_iter()), "unsafe name"),
            (
                encode_tree([file(b"b"), file(b"a")].into_iter()),
                "unsorted or duplicate",
            ),
            (
                encode_tree([file(b"a"), file(b"a")].into_iter()),
                "unsorted or duplicate",
            ),
            (
                encode_tree([file(b"a"), (Mode::Folder, b"a", Oid::EMPTY_TREE)].into_iter()),
                "unsorted or duplicate",
            ),
            (gitlink, "not a file, link or folder"),
            (b"100644 a".to_vec(), "is malformed"),
        ] {
            let scratch = Scratch::new();
            scratch.checkpoint(1, &[]);
            let id = odd(&scratch, 2, &[tree]);
            let output = scratch.verify().join("\n");
            assert!(
                output.contains(findings) && output.contains(&id.to_string()),
                "{output} / {findings}"
            );
            assert!(!output.contains('"'), "{output} names an entry");
        }
    }

    #[test]
    fn problems_of_the_store_are_reported() {
        let scratch = Scratch::new();
        let id = scratch.checkpoint(1, &[]);
        scratch.checkpoint(2, &[(b"a", b"1", Mode::File)]);
        let noted = "a test";
        scratch.repository().record_damage(noted).unwrap();
        let findings = scratch.verify();
        assert_eq!(findings, [format!("the store is damaged: {noted}")]);

        let scratch = Scratch::at(scratch.folder.path());
        assert!(scratch.rebuilt().is_some());
        assert_eq!(scratch.verify(), [""; 0]);
        let pack = scratch.repository().packs().unwrap().remove(0);
        fs::write(pack.path().with_extension("idx"), "").unwrap();
        let findings = scratch.verify();
        assert!(
            findings[0].contains("the store is damaged: the pack"),
            "{findings:?}"
        );
        assert!(
            findings.iter().any(|line| line.contains(&id.to_string())),
            "{findings:?}"
        );
    }

    #[test]
    fn a_commit_without_metadata_is_reported() {
        let scratch = Scratch::new();
        let id = scratch.checkpoint(1, &[]);
        let text = format!(
            "tree {}\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nno notes\n",
            scratch.get(id).tree
        );
        let commit = name_of(Kind::Commit, text.as_bytes());
        let repository = scratch.repository();
        let pack = PackWriter::new(repository.dir()).unwrap();
        pack.put(Kind::Commit, commit, text.as_bytes()).unwrap();
        drop(pack.finish().unwrap());
        repository.publish(commit).unwrap();
        let findings = scratch.verify();
        let wanted = format!("checkpoint {commit}: the commit has no checkpoint metadata");
        assert_eq!(findings, [wanted]);
    }

    #[test]
    fn the_number_of_problems_is_limited() {
        let scratch = Scratch::new();
        let missing = name_of(Kind::Blob, b"missing");
        let names: Vec<String> = (1000..2500).map(|at| format!("f{at}")).collect();
        let files = names
            .iter()
            .map(|name| (Mode::File, name.as_bytes(), missing));
        let tree = encode_tree(files);
        odd(&scratch, 1, std::slice::from_ref(&tree));
        odd(&scratch, 2, &[tree]);
        assert_eq!(scratch.verify().len(), MAX_PROBLEMS);
    }

    #[test]
    fn an_overlong_path_is_not_built() {
        let scratch = Scratch::new();
        scratch.checkpoint(1, &[]);
        // Not a valid tree.
        let mut trees = vec![b"100644 f".to_vec()];
        let name = [b'n'; 250];
        for _ in 0..=MAX_PATH_BYTES / name.len() {
            let below = name_of(Kind::Tree, trees.last().unwrap());
            trees.push(encode_tree([(Mode::Folder, &name[..], below)].into_iter()));
        }
        odd(&scratch, 2, &trees);
        let findings = scratch.verify().join("\n");
        let wanted = format!("a path of more than {MAX_PATH_BYTES} bytes is damaged");
        assert!(findings.contains(&wanted), "{findings}");
        assert!(!findings.contains("nnn"), "{findings}");
    }

    #[test]
    fn deep_nesting_and_claimed_sizes_are_reported_quickly() {
        let scratch = Scratch::new();
        scratch.checkpoint(1, &[]);
        let chain = |levels: usize, entries: &[&'static [u8]]| {
            let mut trees = vec![encode_tree(
                [(Mode::File, &b"f"[..], name_of(Kind::Blob, b""))].into_iter(),
            )];
            for _ in 0..levels {
                let below = name_of(Kind::Tree, trees.last().unwrap());
                let entries = entries.iter().map(|name| (Mode::Folder, *name, below));
                trees.push(encode_tree(entries));
            }
            trees
        };
        let deep = odd(&scratch, 2, &chain(200_000, &[b"a"]));
        let wide = odd(&scratch, 3, &chain(60, &[b"a", b"b"]));
        let findings = scratch.verify().join("\n");
        assert!(
            findings.contains(&format!("checkpoint {deep}: the tree has 200000 levels")),
            "{findings}"
        );
        assert!(
            findings.contains(&format!("checkpoint {wide}: the tree has 60 levels")),
            "{findings}"
        );
    }
}
