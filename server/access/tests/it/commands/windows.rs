//! Words that only shells of Windows read so.

use std::path::Path;

use sightline_testing::git;

use super::{
    command_git::assert_refused,
    command_readers::{assert_all_allowed, tracked, write},
    workspace,
};

/// Git Bash and Cygwin have the drives in folders.
#[test]
fn drives_of_git_bash_are_checked() {
    let workspace = workspace();
    let (drive, below) = workspace.root.split_once(':').unwrap();
    let below = below.replace('\\', "/");
    for folder in ["", "/cygdrive", "/proc/cygdrive", "/mnt", "/usr/.."] {
        let drive = format!("{folder}/{}", drive.to_lowercase());
        let root = format!("{drive}{below}");
        for command in [
            format!("cat {root}/secret.txt"),
            format!("cat < '{root}/secret.txt'"),
            format!("grep --file={root}/secret.txt x"),
            format!("F={root}; cat $F/secret.txt"),
            format!("cat {root}/src/../secret.txt"),
        ] {
            assert!(!workspace.denied(&command).is_empty(), "{command}");
        }
        if folder.ends_with("..") {
            continue;
        }
        for command in [
            format!("cat {root}/sec*.txt"),
            format!("cd {root} && cat secret.txt"),
            format!("cd {drive} && cat .{below}/secret.txt"),
            format!("cd {root}/sub; cat ../sec*.txt"),
            format!("grep -r x {root}"),
            format!("find {root} -name 'sec*' -exec cat {{}} +"),
            format!("tar -C {root} -cf - secret.txt"),
        ] {
            assert!(!workspace.denied(&command).is_empty(), "{command}");
        }
        for command in [
            format!("cat {root}/public.txt"),
            format!("grep -r x {root}/src"),
            format!("cd {root}/src && cat *"),
        ] {
            let denied = workspace.denied(&command);
            assert!(denied.is_empty(), "{command}: {denied:?}");
        }
    }
}

/// PowerShell reads `\` as a separator, and all shells know drives.
#[test]
fn patterns_and_folders_of_windows_are_checked() {
    let workspace = workspace();
    let slashed = workspace.root.replace('\\', "/");
    for command in [
        r"gc .\.e*",
        r"gc .\*",
        r"gc .\*.txt",
        r"gc sub\deep\*",
        r"gc sub\*\.env",
        r"gc ${CWD}\.e*",
        r"rg --hidden x .\sub",
        r"rg --hidden x ${CWD}\sub",
        r"rg x ${CWD}",
        r"cd .\sub; gc .e*",
        &format!("cat {slashed}/.e*"),
        &format!("cat {slashed}/sub/*/.e*"),
        &format!("grep -r x {slashed}/sub"),
    ] {
        assert!(!workspace.denied(command).is_empty(), "{command}");
    }
    for command in [
        r"gc .\public*",
        r"rg x .\src",
        r"gc .\src\*",
        r"gc ${CWD}\p*.txt",
    ] {
        assert!(workspace.denied(command).is_empty(), "{command}");
    }
}

#[test]
fn folders_of_git_are_those_of_any_shell() {
    let workspace = tracked();
    let root = Path::new(&workspace.root);
    let sub = root.join("sub");
    write(&sub, &[(".env", "KEY=1"), ("a.rs", "x")]);
    git::run(&sub, &["init", "-q"]);
    git::run(&sub, &["add", "-f", "."]);
    git::run(&sub, &["commit", "-q", "-m", "first"]);
    write(&sub, &[(".env", "KEY=2")]);
    // As Git Bash writes it.
    let posix = format!("/{}", workspace.root.replacen(':', "", 1));
    assert_refused(
        &workspace,
        &[
            r"tar -C .\secrets -cf - token.txt",
            r"tar --directory=.\secrets -cf - token.txt",
            r"git -C .\sub diff",
            r"cd .\sub; git diff",
            r"cd .\src; git -C ..\sub diff",
            r"git --git-dir=.\sub\.git show",
            r"git clone -q sub .src; git -C .\src show",
            &format!("git -C {posix}/sub diff"),
            &format!("cd {posix}/sub && git diff"),
        ],
    );
    assert_all_allowed(
        &workspace,
        &[
            r"git -C .\src diff",
            r"git -C .\src log --oneline",
            r"git -C .\sub diff -- a.rs",
            r"cd .\src; git diff",
            &format!("git -C {posix}/src diff"),
            &format!("cd {posix}/src && git diff"),
        ],
    );
}
