//! Commands to run instead of a refused one print everything that is allowed.

use std::{collections::BTreeSet, fs, sync::Arc};

use sightline_access::Access;
use sightline_base::path::{AbsPath, Root, Roots};
use sightline_protocol::settings::Secrets;
use sightline_testing::git;

use super::{
    super::{MARKER, Workspace, write},
    FILES, TAR, clean, is_installed, run,
};

/// Rules with and without a place, for files and folders, with wildcards and exceptions.
const RULES: &str =
    "/private/\n/data/*.csv\n!/data/open.csv\nnotes.md\n*.vault\n!ok.vault\nsrc/build/key.txt\n";
/// Denied and allowed files with the same names.
const SAME_NAMES: &[&str] = &[
    "private/a.txt",
    "private/deep/b.txt",
    "data/x.csv",
    "pkg/notes.md",
    "a.vault",
    "src/it's $x!.vault",
    "src/build/key.txt",
    ".env",
    "pkg/private/ok.txt",
    "pkg/data/x.csv",
    "pkg/build/key.txt",
    "pkg/src/build/key.txt",
    "data/open.csv",
    "data/a.txt",
    "src/ok.vault",
    "src/a.ts",
    "src/it's $x!.txt",
    "README.md",
];

/// The folder, the command, what the command to run instead starts with (empty: there is none), and what
/// prints what it wrote.
const EXACT: &[(&str, &str, &str, &str)] = &[
    (".", "grep -rn KEY .", "", ""),
    (".", "grep -rn KEY", "", ""),
    (".", "grep -rn KEY --exclude-dir={data,.git} .", "", ""),
    (".", "grep -rhoe KEY_.* -- src pkg", "", ""),
    (
        ".",
        "sudo=1 grep -rn KEY data pkg 2>/dev/null | sort",
        "",
        "",
    ),
    ("src", "grep -rn KEY ..", "", ""),
    (
        "src",
        "egrep -r 'KEY_(.*)' --include=*.txt --include=*.csv ../data ../pkg ../src",
        "",
        "",
    ),
    (".", "rg -uu KEY", "rg -g ", ""),
    (".", "rg -uu KEY .", "rg -g ", ""),
    (".", "rg -. KEY src private", "", ""),
    (".", "rg -. KEY ./src pkg/", "rg -g ", ""),
    ("src", "rg -. KEY ..", "", ""),
    ("src", "rg -uu KEY ../data ../pkg", "", ""),
    (".", "rg -. KEY $PWD", "", ""),
    (
        ".",
        "rg -. -g *.csv -g *.vault KEY",
        "rg -. -g *.csv -g *.vault -g ",
        "",
    ),
    (".", "ag --hidden KEY", "", ""),
    (".", "ag --hidden KEY ./src pkg", "", ""),
    ("src", "ag --hidden KEY ..", "", ""),
    (".", "ack KEY", "", ""),
    (".", "ack KEY src", "ack ", ""),
    (".", "ug -r. KEY", "", ""),
    (".", "ug -r. KEY src ./pkg data", "", ""),
    (".", "fdfind -HI -t f . -x cat", "fdfind --exclude ", ""),
    (".", "fdfind -HI -t f . src data pkg -x cat", "", ""),
    (
        "src",
        "fdfind -HI -t f . .. -x cat",
        "fdfind --exclude ",
        "",
    ),
    (".", "find . -type f -exec cat {} +", "find . -not ", ""),
    (
        ".",
        "find src data pkg -type f | xargs -d '\\n' cat",
        "find src data pkg -not ",
        "",
    ),
    (
        "src",
        "find ../ -type f -exec grep KEY {} +",
        "find ../ -not ",
        "",
    ),
    (".", "tar cf out .", "", TAR),
    (".", "tar -cf out src data pkg", "", TAR),
    ("src", "tar -cf ../out ..", "tar ", TAR),
    (".", "tar -C src -cf out .", "tar ", TAR),
    (
        ".",
        "zip -qr out.zip .",
        "zip -qr out.zip . -x ",
        "unzip -p out.zip",
    ),
    (
        ".",
        "zip -qr out.zip ./src data pkg",
        "zip -qr out.zip ./src data pkg -x ",
        "unzip -p out.zip",
    ),
    (".", "7z a out.7z .", "", "7z x -so out.7z"),
    (".", "7z a out.7z src data ./pkg", "", "7z x -so out.7z"),
    (
        ".",
        "rsync -a . ../copy",
        "",
        "find ../copy -type f -exec cat {} +",
    ),
    (".", "rsync -a src data pkg out", "", FILES),
    (".", "rsync -aR pkg/src src/build data out", "", FILES),
    (".", "rsync -a src/ data/ out", "rsync ", FILES),
    (
        ".",
        "cp -r . ../copy",
        "",
        "find ../copy -type f -exec cat {} +",
    ),
    (".", "mkdir out && cp -a src data pkg out", "", FILES),
    (".", "mkdir out && cp -a src/ out/", "", FILES),
    (
        ".",
        "mkdir out && cp -rv data/. pkg out > /dev/null",
        "",
        FILES,
    ),
    (
        ".",
        "git ls-files | xargs -d '\\n' grep KEY",
        "git ls-files -- . ':!",
        "",
    ),
    (
        ".",
        "git ls-files -z | xargs -0 cat",
        "git ls-files -z -- . ':!",
        "",
    ),
    (
        ".",
        "git ls-files '*.txt' '*.vault' -z | xargs -0 cat",
        "git ls-files '*.txt' '*.vault' -z ':!",
        "",
    ),
    (
        ".",
        "IFS=$'\\n'; for f in $(git ls-files); do cat \"$f\"; done",
        "IFS=$'\\n'; for f in $(git ls-files -- . ':!",
        "",
    ),
    (".", "git grep KEY", "git grep KEY -- . ':!", ""),
    (
        ".",
        "git grep KEY '*.txt' '*.vault'",
        "git grep KEY '*.txt' '*.vault' ':!",
        "",
    ),
    (
        "src",
        "git grep KEY ..",
        "git grep KEY .. ':(top,exclude)",
        "",
    ),
    (
        ".",
        "git archive HEAD > out",
        "git archive HEAD -- . ':!",
        TAR,
    ),
    (".", "git show HEAD", "git show HEAD -- . ':!", ""),
    (".", "bash -c \"grep -rn KEY .\"", "", ""),
    (".", "bash -c 'grep -rn KEY src'", "bash -c 'grep ", ""),
    (
        ".",
        "sh -c \"rg -uu 'KEY_.*' | sort\"",
        "sh -c \"rg -g ",
        "",
    ),
    (".", "eval \"tar cf out data pkg\"", "", TAR),
    (
        ".",
        "find . -type f -print0 | while read -r -d '' f; do cat \"$f\"; done",
        "find . -not ",
        "",
    ),
    (".", "rg --files -. -0 | xargs -0 grep KEY", "rg -g ", ""),
    (".", "diff -r data pkg/data", "", ""),
    (
        ".",
        "find . -path ./pkg -prune -o -type f -exec grep KEY {} +",
        "find . -path ./pkg -prune -o -not ",
        "",
    ),
    (
        ".",
        "find . -name '*.txt' -o -name '*.vault' | xargs -d '\n' cat",
        "",
        "",
    ),
    (".", "rg -. --iglob '*.TXT' KEY", "", ""),
    (
        ".",
        "git ls-files -z | xargs -0 grep -l KEY | xargs -d '\n' cat",
        "git ls-files -z -- . ':!",
        "",
    ),
    (
        ".",
        "find src -type f -exec grep -l KEY {} + | xargs -d '\n' cat",
        "find src -not ",
        "",
    ),
];

#[test]
fn commands_to_run_instead_leave_out_nothing_else() {
    let parent = tempfile::tempdir().unwrap();
    let root = sightline_base::path::canonicalize(parent.path())
        .unwrap()
        .join("ws");
    write(&root, ".clineignore", RULES);
    git::init(&root);
    let (denied, allowed) = SAME_NAMES.split_at(8);
    for path in allowed {
        write(&root, path, &format!("KEY_{}_ok\n", path.len()));
    }
    git::run(&root, &["add", "-f", "."]);
    git::run(&root, &["commit", "-q", "-m", "first"]);
    for path in denied {
        write(&root, path, &format!("KEY_{MARKER}\n"));
    }
    for (at, path) in allowed.iter().enumerate() {
        write(&root, path, &format!("KEY_{at}_ok\n"));
    }
    git::run(&root, &["add", "-f", "."]);
    git::run(&root, &["commit", "-q", "-m", "second"]);
    let roots = Roots::new(vec![Root::new(AbsPath::new(&root).unwrap(), None)]);
    let workspace = Workspace {
        access: Access::new(Arc::new(roots), Vec::new(), Secrets::Deny),
        root: root.clone(),
        _parent: parent,
    };
    // Binary files of git, which end without a line break, may be printed right before.
    let allowed_in = |text: &str| -> BTreeSet<String> {
        let keys = text.split("KEY_").filter_map(|key| key.split_once("_ok"));
        keys.map(|(key, _)| key.to_owned()).collect()
    };
    let mut wrong = Vec::new();
    for (folder, command, start, printer) in EXACT {
        let run = |line: &str| {
            let _ = fs::remove_dir_all(root.join("../copy"));
            run(&root, folder, line, printer)
        };
        let prefix = format!("cd {folder} && ");
        clean(&root);
        let result = workspace.check(&format!("{prefix}{command}"));
        let found = result.instead.unwrap_or_default();
        let found = found.strip_prefix(&prefix).unwrap_or(&found);
        if result.allowed || start.is_empty() != found.is_empty() || !found.starts_with(start) {
            wrong.push(format!("{command}: {found:?} {:?}", result.denied));
            continue;
        }
        if found.is_empty() || !is_installed(command) {
            continue;
        }
        let (_, before) = run(command);
        let (succeeds, after) = run(found);
        let (kept, left) = (allowed_in(&before), allowed_in(&after));
        if !before.contains(MARKER)
            || !succeeds
            || after.contains(MARKER)
            || kept != left
            || kept.is_empty()
        {
            wrong.push(format!(
                "{command}: {found:?} {succeeds}\n{before}\n---\n{after}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
