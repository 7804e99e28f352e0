//! For random work trees, a checkpoint equals the tree that git would write.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use crate::capture_support::{Bench, git_in, name};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Thing {
    File(Vec<u8>, bool),
    Link(Vec<u8>),
    Folder,
    Rules(String),
}

fn path() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let odd: Vec<&[u8]> = vec![
        b"a",
        b"b",
        b"a.b",
        b"a-",
        b"a0",
        b"ab",
        b"A",
        b"x.log",
        b"out",
        b"\xff\x80",
        b"n\nl",
        b"*",
        b"[a]",
        b"\xc3\xa9",
        b"#a",
        b"!a",
        b" ",
    ];
    let component = prop::sample::select(odd).prop_map(<[u8]>::to_vec);
    prop::collection::vec(component, 1..5)
}

fn thing() -> impl Strategy<Value = Thing> {
    let lines = prop::sample::select(vec![
        "*.log", "out", "out/", "/a", "!a", "a/b", "**/b", "\\#a", "\\!a", "[a]", "a*", "?", "!*/",
        "*", "é",
    ]);
    let rules = prop::collection::vec(lines, 0..4).prop_map(|lines| lines.join("\n"));
    prop_oneof![
        6 => (prop::collection::vec(any::<u8>(), 0..40), any::<bool>())
            .prop_map(|(bytes, executable)| Thing::File(bytes, executable)),
        1 => prop::collection::vec(1..=255_u8, 1..10).prop_map(Thing::Link),
        1 => Just(Thing::Folder),
        2 => rules.prop_map(Thing::Rules),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_checkpoint_equals_the_tree_git_writes(
        things in prop::collection::vec((path(), thing()), 0..25)
    ) {
        let mut bench = Bench::new();
        bench.settings.exclude.clear();
        for (path, thing) in &things {
            let path: PathBuf = path.iter().map(|part| name(part)).collect();
            let path = bench.ws.join(path);
            // Fails where a file is in the way; that path is not created then.
            let _ = fs::create_dir_all(path.parent().unwrap());
            match thing {
                Thing::File(bytes, executable) => {
                    if fs::write(&path, bytes).is_ok() && *executable {
                        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
                    }
                }
                Thing::Link(target) => {
                    let _ = std::os::unix::fs::symlink(name(target), &path);
                }
                Thing::Folder => {
                    let _ = fs::create_dir_all(&path);
                }
                Thing::Rules(text) => {
                    let _ = fs::write(path.with_file_name(".gitignore"), text);
                }
            }
        }
        let checkpoint = bench.create();
        let ours = bench.paths(&checkpoint);

        git_in(&bench.ws, &["init", "-q"]);
        git_in(&bench.ws, &["-c", "core.autocrlf=false", "add", "-A"]);
        let tree = git_in(&bench.ws, &["write-tree"]);
        let theirs = git_in(&bench.ws, &["ls-tree", "-r", "-z", tree.trim()]);
        // Without a map of the names: those that are not UTF-8 can look the same.
        let files = bench.git_store(&["ls-tree", "-r", "-z", &checkpoint.tree.to_string()]);
        let sorted = |text: &str| {
            let lines = text.split('\0').map(str::to_owned);
            let mut lines: Vec<String> = lines.filter(|line| !line.starts_with("040000")).collect();
            lines.sort();
            lines
        };
        prop_assert_eq!(sorted(&files), sorted(&theirs));
        // git does not record empty folders.
        let empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        if !ours.values().any(|what| what.ends_with(empty)) {
            prop_assert_eq!(checkpoint.tree.to_string(), tree.trim());
        }
        bench.fsck();
    }
}
