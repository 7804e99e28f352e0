//! Walks real directories, and compares `.gitignore` handling with git.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use proptest::prelude::*;
use sightline_access::Access;
use sightline_base::{
    cancel::Cancel,
    error::Error,
    path::{AbsPath, RelPath, Root, Roots},
};
use sightline_context::listing::{self, ListOptions, Listing, format};
use sightline_protocol::settings::Secrets;
use sightline_protocol::{
    error::ErrorKind,
    files::{FileEntry, FileKind},
    settings::IgnoredFiles,
};
use tempfile::TempDir;

const ALL: ListOptions = ListOptions {
    recursive: true,
    limit: u32::MAX,
    ignored: IgnoredFiles::Hide,
    only_denied: false,
    budget: Duration::from_secs(600),
};

fn workspace(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let at = home.path().join("ws");
    fs::create_dir(&at).unwrap();
    for (path, text) in files {
        put(&at, path, text);
    }
    (home, at)
}

fn put(at: &Path, path: &str, text: &str) {
    let path = at.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn roots(folders: &[&Path]) -> Arc<Roots> {
    let roots = folders
        .iter()
        .map(|folder| Root::new(AbsPath::new(folder).unwrap(), None))
        .collect();
    Arc::new(Roots::new(roots))
}

fn list(root: &Path, dir: &str, options: &ListOptions) -> Result<Listing, Error> {
    let (view, _) = Access::new(roots(&[root]), Vec::new(), Secrets::Allow).view();
    let dir = RelPath::new(Path::new(dir)).unwrap();
    listing::list(&view, 0, &dir, options, &Cancel::default())
}

fn names(listing: &Listing) -> Vec<String> {
    let name = |entry: &listing::Entry| {
        let slash = match entry.kind {
            FileKind::Directory => "/",
            FileKind::Symlink => "@",
            FileKind::File => "",
        };
        format!("{}{slash}", entry.rel)
    };
    listing.entries.iter().map(name).collect()
}

fn listed(root: &Path, dir: &str) -> Vec<String> {
    names(&list(root, dir, &ALL).unwrap())
}

fn refusal(root: &Path, dir: &str) -> ErrorKind {
    list(root, dir, &ALL).unwrap_err().kind()
}

/// Runs git without the user's configuration.
fn git(at: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .current_dir(at)
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("HOME", at)
        .env("XDG_CONFIG_HOME", at)
        .env_remove("GIT_DIR")
        .output()
        .unwrap();
    assert!(
        output.status.success() || arguments[0] == "check-ignore",
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Lists the files git sees below `at`, except for default excludes.
fn git_files(at: &Path) -> BTreeSet<String> {
    let output = git(at, &["ls-files", "-coz", "--exclude-standard"]);
    String::from_utf8(output)
        .unwrap()
        .split_terminator('\0')
        .filter(|path| {
            let parts: Vec<&str> = path.split('/').collect();
            let (folders, _) = parts.split_at(parts.len() - 1);
            !parts.contains(&"dist") && !folders.iter().any(|name| name.starts_with('.'))
        })
        .map(str::to_owned)
        .collect()
}

fn our_files(root: &Path, dir: &str) -> BTreeSet<String> {
    let found = list(root, dir, &ALL).unwrap();
    found
        .entries
        .iter()
        .filter(|entry| entry.kind != FileKind::Directory)
        .map(|entry| {
            let below = entry.rel.as_path().strip_prefix(dir).unwrap();
            below.to_str().unwrap().to_owned()
        })
        .collect()
}

fn rule_file() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "a",
        "b/",
        "/c",
        "*.log",
        "!keep.log",
        "!a",
        "a/b",
        "a/**",
        "**/c",
        "!a/b/",
        "x?.log",
        "[xy]1.log",
        "\\#x",
        "# remark",
        "",
        "b/*",
        "!b/c",
        "x1.log  ",
        "/*/",
        "!/a/",
        "c\r",
        "**/b/**",
        "dist",
        "!.hid/",
    ]);
    prop::collection::vec(line, 0..5).prop_map(|lines| lines.join("\n"))
}

fn file_path() -> impl Strategy<Value = String> {
    let folder = prop::sample::select(vec!["a", "b", "c", "dist", ".hid"]);
    let name = prop::sample::select(vec![
        "a", "b", "c", "x1.log", "y1.log", "keep.log", "#x", ".dot", "dist",
    ]);
    (prop::collection::vec(folder, 0..4), name)
        .prop_map(|(folders, name)| format!("{}/f/{name}", folders.join("/")).replace("/f/", "/"))
        .prop_map(|path| path.trim_start_matches('/').to_owned())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn files_match_git(
        files in prop::collection::vec(file_path(), 1..24),
        rules in prop::collection::vec(
            (prop::sample::select(vec!["", "a", "b", "a/b", "c"]), rule_file()), 0..4),
        exclude in rule_file(),
        // The opened directory, and the listed directory in it.
        (opened, dir) in prop::sample::select(vec![
            ("", ""), ("", "a"), ("", "a/b"), ("a", ""), ("a", "b"), ("a/b", ""),
        ]),
    ) {
        let (_home, top) = workspace(&[]);
        git(&top, &["init", "-q"]);
        fs::write(top.join(".git/info/exclude"), exclude).unwrap();
        // The same rules apply if a subdirectory of the repository is opened.
        let root = top.join(opened);
        let at = root.join(dir);
        fs::create_dir_all(&at).unwrap();
        for path in files {
            // Skip a path that needs a directory in place of a file.
            let path = top.join(path);
            if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.exists() {
                fs::write(path, "").unwrap();
            }
        }
        for (at, text) in rules {
            if top.join(at).is_dir() {
                fs::write(top.join(at).join(".gitignore"), text).unwrap();
            }
        }
        // An explicitly listed path is not ignored; git has no equivalent.
        let mut above = at.ancestors().take_while(|path| *path != top);
        let is_ignored = above.any(|path| {
            !git(&top, &["check-ignore", "--", path.to_str().unwrap()]).is_empty()
        });
        prop_assume!(!is_ignored);
        prop_assert_eq!(our_files(&root, dir), git_files(&at));
    }
}

#[test]
fn rules_stop_at_the_top_of_a_nested_repository() {
    let (_home, top) = workspace(&[
        (".gitignore", "*.log\n/inner/made\n"),
        ("inner/x.log", ""),
        ("inner/made", ""),
        ("inner/y.tmp", ""),
        ("x.log", ""),
    ]);
    git(&top, &["init", "-q"]);
    git(&top.join("inner"), &["init", "-q"]);
    fs::write(top.join("inner/.git/info/exclude"), "*.tmp\n").unwrap();
    assert_eq!(
        listed(&top, ""),
        [".gitignore", "inner/", "inner/made", "inner/x.log"]
    );
    assert_eq!(listed(&top.join("inner"), ""), ["made", "x.log"]);
}

#[test]
fn a_worktree_has_the_excludes_of_its_repository() {
    let (home, top) = workspace(&[("kept", "")]);
    git(&top, &["init", "-q"]);
    git(&top, &["add", "kept"]);
    let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let commit = ["commit", "-qm", "first", "--no-gpg-sign"];
    git(&top, &[&author[..], &commit[..]].concat());
    git(&top, &["worktree", "add", "-q", "../tree"]);
    fs::write(top.join(".git/info/exclude"), "*.secret\n").unwrap();
    let tree = home.path().join("tree");
    fs::write(tree.join("a.secret"), "").unwrap();
    assert_eq!(listed(&tree, ""), ["kept"]);
    // A subdirectory of the worktree finds them, too.
    put(&tree, "sub/b.secret", "");
    put(&tree, "sub/c", "");
    assert_eq!(listed(&tree.join("sub"), ""), ["c"]);
}

#[test]
fn an_ignored_directory_can_be_listed_explicitly() {
    let (_home, top) = workspace(&[
        (".gitignore", "logs/\n*.txt\n"),
        ("logs/a.txt", ""),
        ("logs/old/b.txt", ""),
    ]);
    assert_eq!(listed(&top, ""), [".gitignore"]);
    assert_eq!(
        listed(&top, "logs"),
        ["logs/a.txt", "logs/old/", "logs/old/b.txt"]
    );
    assert_eq!(listed(&top, "logs/old"), ["logs/old/b.txt"]);
}

#[test]
fn an_empty_git_directory_is_not_a_repository() {
    let (_home, top) = workspace(&[(".gitignore", "*.log\n"), ("sub/x.log", ""), ("sub/y", "")]);
    fs::create_dir(top.join("sub/.git")).unwrap();
    assert_eq!(listed(&top, ""), [".gitignore", "sub/", "sub/y"]);
    fs::write(top.join("sub/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    assert_eq!(
        listed(&top, ""),
        [".gitignore", "sub/", "sub/x.log", "sub/y"]
    );
}

#[test]
fn a_special_rule_file_is_skipped() {
    let (_home, top) = workspace(&[
        ("rules", "*\n"),
        ("link/x", ""),
        ("folder/.gitignore/x", ""),
        ("huge/x", ""),
        ("marked/x", ""),
        ("marked/y", ""),
    ]);
    fs::write(top.join("huge/.gitignore"), "x\n".repeat(1 << 20)).unwrap();
    fs::write(top.join("marked/.gitignore"), b"\xEF\xBB\xBFx\r\n\xFFy\n").unwrap();
    let mut expected = vec![
        "folder/",
        "huge/",
        "link/",
        "marked/",
        "rules",
        "huge/.gitignore",
        "huge/x",
        "link/x",
        "marked/.gitignore",
        "marked/y",
    ];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../rules", top.join("link/.gitignore")).unwrap();
        expected.insert(7, "link/.gitignore@");
        fs::create_dir(top.join("pipe")).unwrap();
        let made = Command::new("mkfifo")
            .arg(top.join("pipe/.gitignore"))
            .status();
        assert!(made.unwrap().success());
        expected.insert(4, "pipe/");
        expected.push("pipe/.gitignore");
        // Also when searched from a subdirectory.
        fs::create_dir(top.join("pipe/sub")).unwrap();
        expected.push("pipe/sub/");
        assert!(listed(&top, "pipe/sub").is_empty());
    }
    assert_eq!(listed(&top, ""), expected);
}

#[test]
fn denied_entries_are_counted_or_marked_and_never_entered() {
    let (_home, top) = workspace(&[
        (".clineignore", "secret/\n*.key\n"),
        ("a.key", ""),
        ("secret/inside", ""),
        ("src/b.key", ""),
        ("src/c", ""),
    ]);
    let hidden = list(&top, "", &ALL).unwrap();
    let shown: Vec<String> = names(&hidden)
        .into_iter()
        .filter(|name| name != ".clineignore")
        .collect();
    assert_eq!(shown, ["src/", "src/c"]);
    assert!(hidden.omitted >= 3, "{hidden:?}");
    let text = listing::format(&hidden, &RelPath::default());
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        format!("({} entries hidden by access rules)", hidden.omitted)
    );

    let lock = ListOptions {
        ignored: IgnoredFiles::Lock,
        ..ALL
    };
    let marked = list(&top, "", &lock).unwrap();
    assert_eq!(marked.omitted, 0);
    let text = listing::format(&marked, &RelPath::default());
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("cline"))
        .collect();
    assert_eq!(
        lines,
        [
            "\u{1F512} a.key",
            "\u{1F512} secret/",
            "src/",
            "\u{1F512} src/b.key",
            "src/c"
        ]
    );
    assert_eq!(refusal(&top, "secret"), ErrorKind::AccessDenied);
    let flat = ListOptions {
        recursive: false,
        ..ALL
    };
    assert_eq!(names(&list(&top, "src", &flat).unwrap()), ["src/c"]);
}

#[cfg(unix)]
#[test]
fn links_to_the_outside_are_not_counted_as_denied() {
    use std::os::unix::fs::symlink;

    let (home, top) = workspace(&[("a", "")]);
    put(home.path(), "elsewhere/x", "");
    symlink("../elsewhere", top.join("folder")).unwrap();
    symlink("../elsewhere/x", top.join("file")).unwrap();
    let text = |top: &Path| listing::format(&list(top, "", &ALL).unwrap(), &RelPath::default());
    assert_eq!(
        text(&top),
        "a\n\n(2 entries left out: outside the workspace)"
    );

    put(&top, ".clineignore", "/file\n");
    assert_eq!(
        text(&top),
        "a\n\n(2 entries hidden by access rules)\n\n(1 entry left out: outside the workspace)"
    );
}

#[cfg(unix)]
#[test]
fn names_are_printed_without_tags_and_hidden_characters() {
    let odd = [
        "<environment_details>",
        "a\u{202e}b",
        "a\u{200b}b",
        "a\u{2069}b",
        "a\u{e0041}b",
        "a\nb",
        "dir<task>/<file_content>",
    ];
    let files: Vec<(&str, &str)> = odd.iter().map(|name| (*name, "")).collect();
    let (_home, top) = workspace(&files);
    let text = listing::format(&list(&top, "", &ALL).unwrap(), &RelPath::default());
    assert_eq!(text.lines().count(), odd.len() + 1, "{text}");
    assert!(text.is_ascii() && !text.contains('<'), "{text}");
    assert!(text.contains(r"a\u{202e}b"), "{text}");
}

#[cfg(unix)]
#[test]
fn links_are_listed_and_not_followed() {
    use std::os::unix::fs::symlink;

    let (home, top) = workspace(&[("real/x", ""), (".clineignore", "real/x\n"), ("real/y", "")]);
    symlink("real", top.join("link")).unwrap();
    symlink(".", top.join("loop")).unwrap();
    symlink(home.path(), top.join("out_of")).unwrap();
    symlink(".", top.join("node_modules")).unwrap();
    let found = listed(&top, "");
    assert!(found.contains(&"link@".to_owned()) && found.contains(&"loop@".to_owned()));
    assert!(
        !found.iter().any(|name| name.starts_with("link/")),
        "{found:?}"
    );
    assert!(!found.contains(&"node_modules@".to_owned()));
    // An explicitly listed link is entered, and checked by its target.
    assert_eq!(listed(&top, "link"), ["link/y"]);
    assert_eq!(refusal(&top, "out_of"), ErrorKind::AccessDenied);
}

#[test]
fn unlistable_paths_are_errors() {
    let (home, top) = workspace(&[("file", "")]);
    assert_eq!(refusal(&top, "file"), ErrorKind::InvalidParams);
    assert_eq!(refusal(&top, "file/below"), ErrorKind::NotFound);
    assert_eq!(refusal(&top, "none"), ErrorKind::NotFound);
    let user = std::env::home_dir().unwrap();
    assert_eq!(refusal(&user, ""), ErrorKind::Unsupported);
    let top_of_all = top.ancestors().last().unwrap();
    assert_eq!(refusal(top_of_all, ""), ErrorKind::Unsupported);
    #[cfg(unix)]
    {
        let link = home.path().join("link");
        std::os::unix::fs::symlink(user, &link).unwrap();
        assert_eq!(refusal(&link, ""), ErrorKind::Unsupported);
    }
    let (view, _) = Access::new(roots(&[&top]), Vec::new(), Secrets::Allow).view();
    let dir = RelPath::default();
    let gone = listing::list(&view, 7, &dir, &ALL, &Cancel::default());
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::InvalidParams);
}

#[test]
fn limits_stop_the_walk() {
    let (_home, top) = workspace(&[("a/x", ""), ("b", "")]);
    let first = |limit| list(&top, "", &ListOptions { limit, ..ALL }).unwrap();
    assert!(first(0).truncated && first(0).entries.is_empty());
    assert!(first(2).truncated);
    assert_eq!(names(&first(2)), ["a/", "b"]);
    assert!(!first(4).truncated);

    let late = ListOptions {
        budget: Duration::ZERO,
        ..ALL
    };
    let found = list(&top, "", &late).unwrap();
    assert!(found.truncated);
    assert_eq!(names(&found), ["a/", "b"]);

    let cancel = Cancel::default();
    cancel.cancel();
    let (view, _) = Access::new(roots(&[&top]), Vec::new(), Secrets::Allow).view();
    let stopped = listing::list(&view, 0, &RelPath::default(), &ALL, &cancel);
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
}

#[test]
fn a_hidden_directory_shows_its_hidden_directories() {
    let (_home, top) = workspace(&[(".a/b/.c/d", ""), (".a/.git/HEAD", ""), ("x", "")]);
    assert_eq!(listed(&top, ""), ["x"]);
    assert_eq!(listed(&top, ".a"), [".a/b/", ".a/b/.c/", ".a/b/.c/d"]);
    assert_eq!(listed(&top, ".a/b"), [".a/b/.c/", ".a/b/.c/d"]);
    assert_eq!(listed(&top.join(".a"), ""), ["b/", "b/.c/", "b/.c/d"]);
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf8_are_encoded() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let (_home, top) = workspace(&[("d/100%", "")]);
    fs::write(top.join("d").join(OsStr::from_bytes(b"\xFF%\n")), "").unwrap();
    let (view, _) = Access::new(roots(&[&top]), Vec::new(), Secrets::Allow).view();
    let dir = RelPath::new(Path::new("d")).unwrap();
    let found = listing::list(&view, 0, &dir, &ALL, &Cancel::default()).unwrap();
    let result = listing::list_result(view.roots(), 0, &dir, &found);
    let entry = |path: &str, path_encoded| FileEntry {
        path: path.to_owned(),
        path_encoded,
        ..FileEntry::default()
    };
    assert_eq!(
        result.entries,
        [entry("d/100%", false), entry("d/%FF%25%0A", true)]
    );
    assert_eq!(result.text, "%FF%25%0A\n100%");
}

#[test]
fn result_paths_can_be_listed_again() {
    let (_one, first) = workspace(&[("same", "")]);
    let (_two, second) = workspace(&[("same", ""), ("sub/own", "")]);
    let (view, _) = Access::new(roots(&[&first, &second]), Vec::new(), Secrets::Allow).view();
    let found = listing::list(&view, 1, &RelPath::default(), &ALL, &Cancel::default()).unwrap();
    let result = listing::list_result(view.roots(), 1, &RelPath::default(), &found);
    for (entry, listed) in result.entries.iter().zip(&found.entries) {
        let at = view.roots().locate(&entry.path).unwrap();
        let absolute = view.roots().absolute(&at);
        assert_eq!(absolute.as_path(), second.join(listed.rel.as_path()));
    }
    assert_eq!(result.text, "same\nsub/\nsub/own");
    let nothing = listing::list_result(view.roots(), 1, &RelPath::default(), &Listing::default());
    assert_eq!(nothing.text, format::NOTHING_FOUND);
}

#[test]
fn parent_paths_sort_by_component() {
    let texts = ["../other/x", "a", "../../etc/hosts"].map(str::to_owned);
    assert_eq!(format::sorted(&texts), [1, 2, 0]);
}

proptest! {
    /// For every input, each directory is contiguous, and sorting a sorted list does not change
    /// it.
    #[test]
    fn the_order_is_total(
        paths in prop::collection::btree_set(
            (
                prop::collection::vec(
                    prop::sample::select(vec!["a", "A", "á", "a1", "a01", "b", "_", "日"]), 1..4),
                any::<bool>(),
            )
                .prop_map(|(parts, is_dir)| parts.join("/") + if is_dir { "/" } else { "" }),
            0..20),
        seed in any::<u64>(),
    ) {
        let mut texts: Vec<String> = paths.into_iter().collect();
        let turn = seed as usize % texts.len().max(1);
        texts.rotate_left(turn);
        let order = format::sorted(&texts);
        let mut all = order.clone();
        all.sort_unstable();
        prop_assert_eq!(all, (0..texts.len()).collect::<Vec<_>>());
        let sorted: Vec<String> = order.iter().map(|index| texts[*index].clone()).collect();
        prop_assert_eq!(format::sorted(&sorted), (0..sorted.len()).collect::<Vec<_>>());
        let mut left = BTreeSet::new();
        let mut current: Option<&str> = None;
        for text in &sorted {
            let top = text.split_once('/').map(|(top, _)| top);
            if top != current {
                if let Some(done) = current {
                    left.insert(done);
                }
                current = top;
            }
            if let Some(top) = top {
                prop_assert!(!left.contains(top), "{:?}", sorted);
            }
        }
    }
}
