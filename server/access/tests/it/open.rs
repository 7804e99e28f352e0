//! Opens files through the access checks.

use std::{fs, io::Read};

use crate::scratch::*;
use sightline_protocol::error::ErrorKind;

// Opening.

#[test]
fn only_allowed_files_are_opened() {
    let (parent, root) = workspace(&[
        (".clineignore", ".env\n"),
        (".env", "secret"),
        ("a", "text"),
        ("sub/b", ""),
    ]);
    fs::write(parent.path().join("out"), "outside").unwrap();
    let view = view(&root);
    let open = |path: &str, outside: bool| {
        view.open_for_read(&view.roots().locate(path).unwrap(), outside)
            .map(|mut opened| {
                let mut text = String::new();
                opened.read_to_string(&mut text).unwrap();
                assert_eq!(opened.info().stamp.size, text.len() as u64);
                text
            })
    };
    assert_eq!(open("a", false).unwrap(), "text");
    let denied = open(".env", true).unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::AccessDenied);
    assert_eq!(denied.rule().unwrap().line, 1);
    assert_eq!(
        open("nothing", false).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(open("a/b", false).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        open("sub", false).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    assert_eq!(
        open("../out", false).unwrap_err().kind(),
        ErrorKind::AccessDenied
    );
    assert_eq!(open("../out", true).unwrap(), "outside");
}

#[cfg(unix)]
#[test]
fn opening_never_blocks_or_follows_links_to_denied_files() {
    let (_parent, root) = workspace(&[
        (".clineignore", ".env\nby-name\n"),
        (".env", "secret"),
        ("plain", "public"),
    ]);
    link("plain", root.join("by-name"));
    link("by-name", root.join("by-link"));
    let pipe = root.join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    link(".env", root.join("link"));
    link("/dev/zero", root.join("zero"));
    let view = view(&root);
    let error = |path: &str| {
        view.open_for_read(&view.roots().locate(path).unwrap(), true)
            .unwrap_err()
            .kind()
    };
    assert_eq!(error("pipe"), ErrorKind::Unsupported);
    assert_eq!(error("socket"), ErrorKind::Unsupported);
    assert_eq!(error("zero"), ErrorKind::Unsupported);
    for denied in ["link", "by-name", "by-link"] {
        assert_eq!(error(denied), ErrorKind::AccessDenied, "{denied}");
    }
}

/// A file that is repeatedly swapped with a link to a denied file is never read as the denied
/// file.
#[cfg(unix)]
#[test]
fn swapping_a_file_for_a_link_reads_no_denied_file() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let (_parent, root) = workspace(&[
        (".clineignore", ".env\nprivate/\n"),
        (".env", "secret"),
        ("private/f", "secret"),
        ("plain", "public"),
        ("public/f", "public"),
    ]);
    let access = access(&[&root]);
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
            let mut turn = 0_u32;
            while !done.load(Ordering::Relaxed) {
                turn += 1;
                let (file, folder) = if turn.is_multiple_of(2) {
                    (".env", "private")
                } else {
                    ("plain", "public")
                };
                link(file, root.join("new"));
                fs::rename(root.join("new"), root.join("swapped")).unwrap();
                link(folder, root.join("new"));
                fs::rename(root.join("new"), root.join("folder")).unwrap();
            }
        });
        let mut read = 0;
        for turn in 0..4_000 {
            let path = if turn % 2 == 0 { "swapped" } else { "folder/f" };
            let view = access.view().0;
            let Ok(mut opened) = view.open_for_read(&view.roots().locate(path).unwrap(), false)
            else {
                continue;
            };
            let mut text = String::new();
            opened.read_to_string(&mut text).unwrap();
            assert_eq!(text, "public");
            read += 1;
        }
        assert!(read > 0, "nothing was ever read");
    });
}
