//! The opened file is the checked file, even if folders, files and symlinks are
//! exchanged concurrently.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod scratch_support;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use scratch_support::*;
use sightline_core::{
    access::{Access, AccessView},
    cancel::Cancel,
    listing::{self, ListOptions},
    path::{Location, RelPath},
    read::{self, ReadOptions},
};
use sightline_protocol::access::{AccessKind, PathAccess};

/// Number of requests per case. Longer runs are manual.
const TRIES: usize = 1_500;

/// Content of the denied files.
const SECRET: &str = "secret";

/// A workspace with a denied folder, and a sibling folder.
struct Ground {
    _parent: tempfile::TempDir,
    root: PathBuf,
    access: Access,
}

/// The exchanged pair, the paths read concurrently, and the listed folders.
type Case = (
    (&'static str, &'static str),
    &'static [&'static str],
    &'static [&'static str],
);

const CASES: &[Case] = &[
    // Folder and link: to a denied folder, to one outside, some levels above.
    (
        ("d", "to-denied"),
        &["d/f", "to-denied/f"],
        &["", "d", "to-denied"],
    ),
    (
        ("o", "to-outside"),
        &["o/f", "to-outside/f"],
        &["", "o", "to-outside"],
    ),
    (
        ("deep/a", "deep/to-denied"),
        &["deep/a/b/c/f"],
        &["deep/a", "deep", ""],
    ),
    // File and link.
    (("plain", "to-env"), &["plain", "to-env"], &[]),
    // Folder and folder, one with links in it.
    (("x", "y"), &["x/f", "y/f", "x/b/f"], &["x/b", "x", ""]),
];

impl Ground {
    fn new() -> Self {
        let (parent, root) = workspace(&[
            (".clineignore", ".env\ndenied/\n"),
            (".env", SECRET),
            ("denied/f", SECRET),
            ("denied/g", SECRET),
            ("denied/b/c/f", SECRET),
            ("denied/secret-name", SECRET),
            ("d/f", "public"),
            ("o/f", "public"),
            ("deep/a/b/c/f", "public"),
            ("plain", "public"),
            ("x/f", "public"),
            ("y/g", "public"),
            ("m/f", "public"),
        ]);
        let outside = parent.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("f"), SECRET).unwrap();
        fs::write(outside.join("secret-name"), SECRET).unwrap();
        link("denied", root.join("to-denied"));
        link("../outside", root.join("to-outside"));
        link("../denied", root.join("deep/to-denied"));
        link(".env", root.join("to-env"));
        link("../denied/f", root.join("y/f"));
        link("../denied", root.join("y/b"));
        link("../denied/g", root.join("m/g"));
        link("denied", root.join("to-denied-too"));
        Self {
            access: access(&[&root]),
            root,
            _parent: parent,
        }
    }

    /// Does this while two are exchanged all the time.
    fn race(&self, (one, other): (&str, &str), mut work: impl FnMut(&AccessView, usize)) {
        struct Done<'a>(&'a AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            // Also when an assertion fails.
            let _done = Done(&done);
            threads.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    exchange(&self.root.join(one), &self.root.join(other));
                }
            });
            for turn in 0..tries() {
                work(&self.access.view().0, turn);
            }
        });
    }
}

/// More by hand: `TRIES=1000000 cargo test --test access_races`.
fn tries() -> usize {
    let given = std::env::var("TRIES").ok();
    given.map_or(TRIES, |given| given.parse().unwrap())
}

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

fn read(view: &AccessView, location: &Location, options: &ReadOptions) -> Option<String> {
    let read = read::read_file(view, location, None, options, &Cancel::default());
    read.ok().map(|content| content.text)
}

#[test]
fn exchanging_folders_files_and_links_shows_no_content() {
    let ground = Ground::new();
    let part = ReadOptions {
        start_line: Some(1),
        end_line: Some(1),
        ..ReadOptions::default()
    };
    let (mut asked, mut seen) = (0, 0);
    for (pair, paths, _) in CASES {
        ground.race(*pair, |view, turn| {
            let path = paths[turn % paths.len()];
            let location = view.roots().locate(path).unwrap();
            for options in [&ReadOptions::default(), &part] {
                let text = read(view, &location, options);
                assert_ne!(text.as_deref(), Some(SECRET), "{path}, {turn}");
                seen += usize::from(text.is_some());
                asked += 1;
            }
        });
    }
    assert!(seen > 0, "nothing was ever read");
    println!("{asked} reads, {seen} with content");
}

#[test]
fn a_list_is_of_the_folder_that_was_judged() {
    let ground = Ground::new();
    let (mut asked, mut seen) = (0, 0);
    for (pair, _, folders) in CASES.iter().filter(|(.., folders)| !folders.is_empty()) {
        ground.race(*pair, |view, turn| {
            let folder = folders[turn % folders.len()];
            let dir = RelPath::new(Path::new(folder)).unwrap();
            let options = ListOptions::default();
            let listed = listing::list(view, 0, &dir, &options, &Cancel::default());
            for entry in listed.into_iter().flat_map(|listed| listed.entries) {
                let name = entry.rel.name().unwrap().to_str().unwrap();
                assert_ne!(name, "secret-name", "{folder:?}, {turn}");
                seen += usize::from(name == "f");
            }
            asked += 1;
        });
    }
    assert!(seen > 0, "nothing was ever listed");
    println!("{asked} lists, {seen} times f");
}

/// Either way it is denied: as a link in a folder, and in a folder behind a link.
#[test]
fn a_path_that_is_always_denied_is_never_allowed() {
    let ground = Ground::new();
    let paths = ["m/g"; 4];
    ground.race(("m", "to-denied-too"), |view, turn| {
        let check = |allowed: &mut bool, verdict: PathAccess| {
            *allowed |= verdict.access == AccessKind::Allowed;
            Ok(())
        };
        let one = view.check_written("m/g").1.access;
        assert_eq!(one, AccessKind::Denied, "{turn}");
        let many: Vec<bool> = view.check_all(&paths, &Cancel::default(), check).unwrap();
        assert!(!many.contains(&true), "{turn}");
    });
}
