//! Opens the file that was checked, even if directories, files and links are exchanged
//! concurrently.

#![cfg(target_os = "linux")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use crate::scratch::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use sightline_access::{Access, AccessView};
use sightline_base::{
    cancel::Cancel,
    path::{Location, RelPath},
};
use sightline_context::{
    listing::{self, ListOptions},
    read::{self, ReadOptions},
};
use sightline_protocol::access::{AccessKind, PathAccess};

/// Number of attempts per case. Use `TRIES` for a long run.
const TRIES: usize = 1_500;

/// Content of denied files.
const SECRET: &str = "secret";

/// A workspace with a denied directory, and a directory next to it.
struct Fixture {
    _parent: tempfile::TempDir,
    root: PathBuf,
    access: Access,
}

/// A pair that is exchanged, the files read concurrently, and the directories listed.
type Case = (
    (&'static str, &'static str),
    &'static [&'static str],
    &'static [&'static str],
);

const CASES: &[Case] = &[
    // Directory and link: to a denied directory, to one outside, several levels up.
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
    // Two directories, one with links in it.
    (("x", "y"), &["x/f", "y/f", "x/b/f"], &["x/b", "x", ""]),
];

impl Fixture {
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

    /// Runs `work` repeatedly while a thread exchanges the two paths.
    fn race(&self, (one, other): (&str, &str), mut work: impl FnMut(&AccessView, usize)) {
        struct Done<'a>(&'a AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            // Stops the thread when an assertion fails, too.
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

/// Long run: `TRIES=1000000 cargo test -p sightline-context --test it access::races`.
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
fn exchanged_paths_reveal_no_denied_content() {
    let fixture = Fixture::new();
    let part = ReadOptions {
        start_line: Some(1),
        end_line: Some(1),
        ..ReadOptions::default()
    };
    let (mut asked, mut seen) = (0, 0);
    for (pair, paths, _) in CASES {
        fixture.race(*pair, |view, turn| {
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
fn the_checked_directory_is_listed() {
    let fixture = Fixture::new();
    let (mut asked, mut seen) = (0, 0);
    for (pair, _, folders) in CASES.iter().filter(|(.., folders)| !folders.is_empty()) {
        fixture.race(*pair, |view, turn| {
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

/// The path is denied in both states: as a link in a directory, and below a linked directory.
#[test]
fn a_path_denied_in_both_states_is_never_allowed() {
    let fixture = Fixture::new();
    fixture.race(("m", "to-denied-too"), |view, turn| {
        let one = view.check_written("m/g").1.access;
        assert_eq!(one, AccessKind::Denied, "{turn}");
        let paths = vec!["m/g".to_owned(); 4];
        let many = view.check_all(paths, &Cancel::default()).unwrap();
        let is_denied = |one: &PathAccess| one.access == AccessKind::Denied;
        assert!(many.iter().all(is_denied), "{turn}");
    });
}
