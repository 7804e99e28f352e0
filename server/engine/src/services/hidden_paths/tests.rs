use std::{os::unix::fs::PermissionsExt, process::Command, sync::Arc};

use sightline_base::path::{AbsPath, Roots};
use sightline_exec::hidden_paths;
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
        found.unwrap_or_else(|why| {
            assert!(
                why.contains("cannot be watched") || why.contains("linked"),
                "{why}"
            );
            self.walk()
        })
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
    project.write("main/commondir", "..");
    project.write("sub/.git", "gitdir: ../main\n");
    assert_eq!(project.names(), ["a/.env"]);
    assert!(!project.is_kept());
    project.write("b/.env", "A=1\n");
    assert_eq!(project.names(), ["a/.env", "b/.env"]);
}

#[test]
fn what_no_event_reports_is_judged_each_time() {
    let project = Project::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = |name: &str| elsewhere.path().join(name);
    for name in ["linked", "target", "rules"] {
        fs::write(outside(name), "color=1\n").unwrap();
    }
    fs::hard_link(outside("linked"), project.path(".npmrc")).unwrap();
    let link = |from: &str, to: &str| {
        std::os::unix::fs::symlink(outside(to), project.path(from)).unwrap();
    };
    link("pip.conf", "target");
    project.write("b/secret.txt", "");
    link("b/.clineignore", "rules");
    let before = project.hidden();
    assert_eq!(before, project.walk());
    for (name, text) in [
        ("linked", "//host/:_authToken=abcdefgh12345678\n"),
        (
            "target",
            "[global]\nindex-url = https://u:abcdefgh12345678@host/\n",
        ),
        ("rules", "secret.txt\n"),
    ] {
        std::thread::sleep(Duration::from_millis(30));
        fs::write(outside(name), text).unwrap();
        assert_eq!(project.hidden(), project.walk(), "{name}");
    }
    let names = project.names();
    assert!(names.contains(&".npmrc".to_owned()), "{names:?}");
    assert!(names.contains(&"b/secret.txt".to_owned()), "{names:?}");
}

#[test]
fn a_repository_in_which_git_fails_has_no_tracked_files() {
    let project = Project::new();
    project.write(".env", "A=1\n");
    project.git(&["add", "-f", ".env"]);
    assert!(project.hidden().is_empty());
    for (from, to) in [(".git/HEAD", "aside"), ("aside", ".git/HEAD")] {
        std::thread::sleep(Duration::from_millis(30));
        fs::rename(project.path(from), project.path(to)).unwrap();
        assert_eq!(project.hidden(), project.walk(), "{from}");
    }
    assert!(project.hidden().is_empty());
}
