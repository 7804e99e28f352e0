//! Tests with shadow repositories like those of Cline 3.

use std::process::Command;

use sightline_protocol::error::ErrorKind;
use sightline_workspace::cancel::Cancel;

use super::*;
use crate::testing::{Scratch, fsck, git};

#[test]
fn folder_hashes_match_clines() {
    for (path, hash) in [
        ("/srv/demo", "1029641258"),
        ("/srv/demo/", "1854107973"),
        ("/srv/Demo", "1028687946"),
        ("C:\\proj\\app", "1569408775"),
        ("c:\\proj\\app", "4196507431"),
        ("/srv/日本", "2165029358"),
        ("/srv/😀", "2165967210"),
        ("a", "97"),
    ] {
        assert_eq!(cwd_hash(path), hash, "{path}");
    }
}

/// A shadow repository, created with git as Cline does.
struct Cline {
    scratch: Scratch,
    shadow: PathBuf,
}

impl Cline {
    fn new() -> Self {
        let scratch = Scratch::new();
        let work_tree = scratch.checkpoints.root().path.display();
        let storage = scratch.folder.path().join("global");
        let shadow = storage.join("checkpoints").join(cwd_hash(&work_tree));
        let cline = Self { scratch, shadow };
        fs::create_dir_all(&cline.shadow).unwrap();
        cline.git(&["init", "-q"]);
        cline.git(&["config", "core.worktree", &work_tree]);
        cline.git(&["config", "user.name", "Cline Checkpoint"]);
        cline.git(&["config", "user.email", "checkpoint@cline.bot"]);
        fs::write(cline.shadow.join(".git/info/exclude"), "*.lock\n").unwrap();
        cline
    }

    fn git(&self, arguments: &[&str]) -> String {
        let dir = self.shadow.join(".git");
        let mut all = vec!["-C", self.shadow.to_str().unwrap()];
        all.extend(arguments);
        if !dir.exists() {
            let done = Command::new("git")
                .args(all)
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap())
                .env("HOME", self.scratch.folder.path())
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .status();
            assert!(done.unwrap().success());
            return String::new();
        }
        git(&dir, &all)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.scratch.checkpoints.root().path.as_path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self, message: &str) -> Oid {
        self.git(&["add", "."]);
        self.git(&[
            "commit",
            "-q",
            "--allow-empty",
            "--no-verify",
            "-m",
            message,
        ]);
        self.git(&["rev-parse", "HEAD"]).trim().parse().unwrap()
    }

    fn import(&self) -> Result<Imported, Error> {
        let import = |job: &Job<'_>| self.scratch.checkpoints.import(job, &self.shadow);
        self.scratch.job(&Cancel::default(), import)
    }

    /// Returns every file of the shadow repository with its content.
    fn bytes(&self) -> HashMap<PathBuf, Vec<u8>> {
        let mut found = HashMap::new();
        let mut folders = vec![self.shadow.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path())
                } else {
                    found.insert(entry.path(), fs::read(entry.path()).unwrap());
                }
            }
        }
        found
    }
}

#[test]
fn checkpoints_of_cline_are_imported_once() {
    let cline = Cline::new();
    cline.write("src/a.rs", "one");
    cline.write("b é.txt", "b");
    cline.write("Cargo.lock", "not Cline's");
    let first = cline.commit("initial commit");
    cline.write("src/a.rs", "two");
    cline.write("new", "new");
    let task = format!("checkpoint-{}-1700000000000", cwd_hash("x"));
    let second = cline.commit(&task);
    let third = cline.commit("checkpoint-1-../evil");
    cline.commit("something else");
    let before = cline.bytes();
    let scratch = &cline.scratch;
    let global = scratch.folder.path().join("global");
    assert_eq!(
        scratch.checkpoints.shadow_repository(&global),
        Some(cline.shadow.clone())
    );
    let imported = cline.import().unwrap();
    assert_eq!(cline.bytes(), before);
    assert_eq!((imported.known, &imported.problems[..]), (0, &[][..]));
    let originals: Vec<Oid> = imported.checkpoints.iter().map(|(from, _)| *from).collect();
    assert_eq!(originals, [first, second, third]);
    let ours: Vec<Oid> = imported
        .checkpoints
        .iter()
        .rev()
        .map(|(_, id)| *id)
        .collect();
    assert_eq!(scratch.ids(), ours);
    for (from, id) in &imported.checkpoints {
        let tree = cline.git(&["rev-parse", &format!("{from}^{{tree}}")]);
        assert_eq!(scratch.get(*id).tree.to_string(), tree.trim());
    }
    for (from, id) in &imported.checkpoints {
        let found = scratch.checkpoints.imported_from(*from).unwrap();
        assert_eq!(found.unwrap().id, *id);
        assert_eq!(scratch.checkpoints.imported_from(*id).unwrap(), None);
    }
    let metadata = &scratch.get(imported.checkpoints[1].1).metadata;
    assert_eq!(metadata.task.as_deref(), Some("1700000000000"));
    assert_eq!(metadata.purpose, Purpose::Imported);
    assert_eq!(
        metadata.label.as_deref(),
        Some(&*format!("imported from Cline {:.7}", second.to_string()))
    );
    let counts = Counts {
        added: 1,
        modified: 1,
        deleted: 0,
    };
    assert_eq!(
        (metadata.counts, metadata.files, metadata.bytes),
        (counts, 3, 7)
    );
    assert_eq!(scratch.get(ours[0]).metadata.task, None);
    assert_eq!(scratch.verify(), [""; 0]);
    fsck(&scratch.dir());

    cline.write("later", "1");
    let later = cline.commit("checkpoint-1-t");
    let again = cline.import().unwrap();
    assert_eq!(again.known, 3);
    assert_eq!(again.checkpoints.len(), 1);
    assert_eq!(again.checkpoints[0].0, later);
    assert_eq!(scratch.ids().len(), 4);
}

#[test]
fn nested_repositories_and_denied_files_are_not_imported() {
    let cline = Cline::new();
    cline.write("keep", "1");
    cline.write("secret/key", "private");
    cline.write("lib/.git_disabled/config", "[core]");
    cline.write("lib/code", "2");
    cline.git(&["add", "."]);
    let commit = cline.commit("checkpoint-1-t");
    let link = format!("160000,{commit},sub");
    cline.git(&["update-index", "--add", "--cacheinfo", &link]);
    cline.git(&["commit", "-q", "-m", "checkpoint-1-t"]);
    cline.write(".clineignore", "secret/\n");
    let imported = cline.import().unwrap();
    let last = cline.scratch.get(imported.checkpoints[1].1);
    let reported: Vec<&str> = last
        .metadata
        .skipped
        .iter()
        .map(|skipped| &*skipped.path)
        .collect();
    assert_eq!(reported, ["lib/.git_disabled", "sub"]);
    assert_eq!(imported.denied, 1);
    let tree = last.tree.to_string();
    let files = git(
        &cline.scratch.dir(),
        &["ls-tree", "-r", "--name-only", &tree],
    );
    assert_eq!(files, "keep\nlib/code\n");
    let reader = cline.scratch.repository().odb();
    assert!(!reader.contains(name_of(Kind::Blob, b"private")).unwrap());
    // What Cline excluded is unknown, so a restore keeps what the checkpoint does not hold.
    assert_eq!(last.metadata.exclusions, None);
    fsck(&cline.scratch.dir());
}

#[test]
fn denied_files_are_counted_and_not_named() {
    let cline = Cline::new();
    cline.write("keep", "1");
    cline.write(".env", "TOKEN=hush");
    cline.write("lib/hidden-a/plan", "hush too");
    cline.write("lib/.git_disabled/config", "[core]");
    cline.commit("checkpoint-1-t");
    cline.write("keep", "2");
    cline.write("new", "n");
    cline.write(".env", "TOKEN=changed");
    cline.write("lib/hidden-b", "more");
    let commit = cline.commit("checkpoint-1-t");
    for link in ["hidden-c", "lib/hidden-d/.git_disabled"] {
        let link = format!("160000,{commit},{link}");
        cline.git(&["update-index", "--add", "--cacheinfo", &link]);
    }
    cline.git(&["commit", "-q", "-m", "checkpoint-1-t"]);
    // Invalid trees with denied names.
    let blob = name_of(Kind::Blob, b"1");
    let file = |name| (Mode::File, name, blob);
    let twice = cline.tree(&[file(&b"hidden-e"[..]), file(b"hidden-e")]);
    cline.odd(twice, 1_700_000_000);
    let forbidden = cline.tree(&[file(&b"hidden-f/x"[..])]);
    cline.odd(forbidden, 1_700_000_001);
    cline.write(".clineignore", ".env\nhidden-*\n.git_disabled\n");
    let imported = cline.import().unwrap();
    assert_eq!(imported.problems.len(), 2);
    // `.env`, `hidden-a`, `-b`, `-c`, `-d`, `-e` and `.git_disabled`.
    assert_eq!(imported.denied, 7);
    let counts = |at: usize| {
        cline
            .scratch
            .get(imported.checkpoints[at].1)
            .metadata
            .counts
    };
    let differ = |added, modified| Counts {
        added,
        modified,
        deleted: 0,
    };
    assert_eq!(
        [counts(0), counts(1), counts(2)],
        [differ(1, 0), differ(1, 1), differ(0, 0)]
    );

    let dir = cline.scratch.dir();
    let mut held = format!("{imported:?}");
    let all = git(
        &dir,
        &[
            "cat-file",
            "--batch-check=%(objectname)",
            "--batch-all-objects",
        ],
    );
    for name in all.lines() {
        let kind = git(&dir, &["cat-file", "-t", name]);
        held.push_str(&git(&dir, &["cat-file", kind.trim(), name]));
    }
    assert!(held.contains("keep") && held.contains("imported"), "{held}");
    for word in [".env", "hidden", "git_disabled", "hush", "TOKEN"] {
        assert!(!held.contains(word), "{word} in {held}");
    }
    fsck(&dir);
}

#[test]
fn the_repository_of_another_folder_is_refused() {
    let cline = Cline::new();
    assert_eq!(cline.import().unwrap(), Imported::default());
    cline.write("a", "1");
    cline.commit("checkpoint-1-t");
    cline.git(&["config", "core.worktree", "/srv/other"]);
    let error = cline.import().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("/srv/other"), "{error}");
    cline.git(&["config", "--unset", "core.worktree"]);
    assert_eq!(cline.import().unwrap_err().kind(), ErrorKind::Conflict);
    assert!(!cline.scratch.dir().exists());
    fs::remove_dir_all(cline.shadow.join(".git")).unwrap();
    assert_eq!(cline.import().unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_damaged_commit_is_skipped_and_reported() {
    let cline = Cline::new();
    cline.write("a", "1");
    cline.commit("checkpoint-1-t");
    cline.write("b", "only in the second");
    let second = cline.commit("checkpoint-1-t");
    let blob = name_of(Kind::Blob, b"only in the second").to_string();
    let file = cline
        .shadow
        .join(".git/objects")
        .join(&blob[..2])
        .join(&blob[2..]);
    fs::remove_file(file).unwrap();
    let imported = cline.import().unwrap();
    assert_eq!(imported.checkpoints.len(), 1);
    assert_eq!(imported.problems.len(), 1);
    assert!(
        imported.problems[0].contains(&second.to_string()),
        "{imported:?}"
    );
    assert_eq!(cline.scratch.verify(), [""; 0]);
}

impl Cline {
    /// Creates a commit of any tree and time.
    fn odd(&self, tree: Oid, seconds: i64) -> Oid {
        let parent = self.git(&["rev-parse", "HEAD"]);
        let text = format!(
            "tree {tree}\nparent {}\nauthor a <a> {seconds} +0000\ncommitter a <a> {seconds} +0000\n\ncheckpoint-1-t\n",
            parent.trim()
        );
        let id = self.store("commit", text.as_bytes());
        self.git(&["update-ref", "HEAD", &id.to_string()]);
        id
    }

    fn tree(&self, entries: &[(Mode, &[u8], Oid)]) -> Oid {
        self.store("tree", &encode_tree(entries.iter().copied()))
    }

    /// Stores an object with any content.
    fn store(&self, kind: &str, bytes: &[u8]) -> Oid {
        let file = self.scratch.folder.path().join("object");
        fs::write(&file, bytes).unwrap();
        let file = file.to_str().unwrap();
        let id = self.git(&["hash-object", "-t", kind, "--literally", "-w", file]);
        id.trim().parse().unwrap()
    }
}

#[test]
fn hostile_commits_are_skipped() {
    let cline = Cline::new();
    cline.write("a", "1");
    let first = cline.commit("checkpoint-1-t");
    let blob = name_of(Kind::Blob, b"1");
    let names: [&[u8]; 8] = [b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h"];
    let mut tree = cline.tree(&names.map(|name| (Mode::File, name, blob)));
    for _ in 0..12 {
        let below = tree;
        tree = cline.tree(&names.map(|name| (Mode::Folder, name, below)));
    }
    let endless = cline.odd(tree, 1_700_000_000);
    let file = |name| (Mode::File, name, blob);
    let twice = cline.tree(&[file(&b"a"[..]), file(b"a")]);
    let twice = cline.odd(twice, 1_700_000_001);
    let unsorted = cline.tree(&[file(&b"b"[..]), file(b"a")]);
    let unsorted = cline.odd(unsorted, 1_700_000_002);
    let plain = cline.tree(&[file(&b"a"[..]), file(b"b")]);
    let late = cline.odd(plain, i64::MAX / 2);
    let imported = cline.import().unwrap();
    let came: Vec<Oid> = imported.checkpoints.iter().map(|(from, _)| *from).collect();
    assert_eq!(came, [first, late], "{imported:?}");
    for (problem, (id, why)) in imported.problems.iter().zip([
        (endless, "more than 1000000 files"),
        (twice, "unsorted or duplicate"),
        (unsorted, "unsorted or duplicate"),
    ]) {
        assert!(problem.contains(&id.to_string()), "{problem}");
        assert!(problem.contains(why), "{problem}");
    }
    assert_eq!(imported.problems.len(), 3);
    let metadata = &cline.scratch.get(imported.checkpoints[1].1).metadata;
    assert!(metadata.created < u64::MAX / 1000, "{metadata:?}");
    assert_eq!((metadata.counts.added, metadata.files), (1, 2));
    fsck(&cline.scratch.dir());
    assert_eq!(cline.import().unwrap().known, 2);
}
