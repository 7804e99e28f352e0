//! Built-in rules that deny a file only if its content is secret.

use std::{
    fs,
    io::Read,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sightline_access::{Access, AccessView};
use sightline_base::path::{Root, Roots};
use sightline_protocol::{
    access::{AccessKind, AccessKind::Allowed, AccessKind::Denied, PathAccess},
    error::ErrorKind,
    settings::Secrets,
};
use sightline_testing::git;

use crate::scratch::{abs, ask, kind, rename, workspace, write};

const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIIEvQ==\n-----END PRIVATE KEY-----\n";
const CERTIFICATE: &str =
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIB\n-----END CERTIFICATE-----\n";
pub(super) const TOKEN: &str = "//registry.npmjs.org/:_authToken=npm_abc\n";
pub(super) const PLAIN: &str = "save-exact=true\n";

fn access(root: &Path) -> Access {
    let roots = Roots::new(vec![Root::new(abs(root), None)]);
    Access::new(Arc::new(roots), Vec::new(), Secrets::Deny)
}

pub(super) fn view(root: &Path) -> AccessView {
    access(root).view().0
}

fn read(view: &AccessView, path: &str) -> Result<String, ErrorKind> {
    let location = view.roots().locate(path).unwrap();
    let mut opened = view
        .open_for_read(&location, true)
        .map_err(|error| error.kind())?;
    let mut text = String::new();
    opened.read_to_string(&mut text).unwrap();
    Ok(text)
}

fn reason(access: PathAccess) -> String {
    assert_eq!(access.access, Denied, "{access:?}");
    assert_eq!(access.rule.unwrap().source, "built-in secrets");
    access.reason.unwrap_or_default()
}

#[test]
fn the_content_decides() {
    let large = "a b\n".repeat(16 << 10);
    let files: [(&str, &str, AccessKind); 19] = [
        (".npmrc", TOKEN, Denied),
        ("web/.npmrc", PLAIN, Allowed),
        (".pypirc", "[pypi]\npassword = pypi-abc\n", Denied),
        ("a/.pypirc", "[distutils]\nindex-servers = pypi\n", Allowed),
        (
            ".claude.json",
            "{\"primaryApiKey\": \"sk-ant-api03-a1\"}",
            Denied,
        ),
        ("a/.claude.json", "{\"numStartups\": 3}", Allowed),
        (
            ".copilot/config.json",
            "// Managed.\n{\"copilot_tokens\": {\"https://github.com:a\": \"gho_0123456789abcdefABCD\"}}",
            Denied,
        ),
        (
            "a/.copilot/config.json",
            "{\"last_logged_in_user\": {\"host\": \"https://github.com\", \"login\": \"a\"}}",
            Allowed,
        ),
        (
            ".mcp.json",
            "{\"mcpServers\": {\"a\": {\"env\": {\"API_TOKEN\": \"abc\"}}}}",
            Denied,
        ),
        (
            ".qwen/settings.json",
            "{\"security\": {\"auth\": {\"apiKey\": \"abc\"}}}",
            Denied,
        ),
        ("server.pem", KEY, Denied),
        ("chain.pem", CERTIFICATE, Allowed),
        (
            "both.pem",
            "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n-----BEGIN RSA PRIVATE KEY-----\n",
            Denied,
        ),
        ("tls/server.key", KEY, Denied),
        ("music.key", "title: keys\n", Allowed),
        ("server.pem~", KEY, Denied),
        ("chain.pem.bak", CERTIFICATE, Allowed),
        ("limit.pem", &large, Allowed),
        // Only files.
        ("certs.pem/a", KEY, Allowed),
    ];
    let texts = files.map(|(path, text, _)| (path, text));
    let (_dir, root) = workspace(&texts);
    let view = view(&root);
    for (path, text, access) in files {
        assert_eq!(kind(&view, path), access, "{path}");
        let opened = read(&view, path);
        match access {
            Denied => assert_eq!(opened, Err(ErrorKind::AccessDenied), "{path}"),
            _ => assert_eq!(opened.as_deref(), Ok(text), "{path}"),
        }
    }
    assert_eq!(
        reason(ask(&view, "server.pem")),
        "it contains a private key"
    );
    assert_eq!(reason(ask(&view, ".npmrc")), "it contains a credential");
}

#[test]
fn what_cannot_be_searched_counts_as_secret() {
    let (_dir, root) = workspace(&[("large.pem", &"a b\n".repeat((16 << 10) + 1)), ("a", "")]);
    fs::write(root.join("der.key"), b"\x30\x82\x04\xbd\x02").unwrap();
    fs::write(root.join("utf16.pem"), b"\xff\xfe-\0-\0").unwrap();
    #[cfg(unix)]
    {
        let made = std::process::Command::new("mkfifo")
            .arg(root.join("pipe.key"))
            .status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink("missing", root.join("dangling.pem")).unwrap();
    }
    let view = view(&root);
    for (path, why) in [
        ("large.pem", "it has more than 64 KiB"),
        ("der.key", "it is not text"),
        ("utf16.pem", "it is not text"),
        #[cfg(unix)]
        ("pipe.key", "it cannot be read"),
        #[cfg(unix)]
        ("dangling.pem", "it cannot be read"),
    ] {
        let found = reason(ask(&view, path));
        assert!(found.starts_with(why), "{path}: {found}");
        assert_eq!(read(&view, path), Err(ErrorKind::AccessDenied), "{path}");
    }
}

#[test]
fn lines_of_the_user_deny_and_allow_any_content() {
    let lines = "*.pem\n/own.key\n!lifted.key\n";
    let (_dir, root) = workspace(&[
        (".clineignore", lines),
        ("chain.pem", CERTIFICATE),
        ("own.key", "x y\n"),
        ("lifted.key", KEY),
        ("other.key", "x y\n"),
        ("sub/.clineignore", ".npmrc\n"),
        ("sub/.npmrc", PLAIN),
        ("own.key~", "x y\n"),
    ]);
    let view = view(&root);
    for (path, access) in [
        ("chain.pem", Denied),
        ("own.key", Denied),
        ("own.key~", Denied),
        ("lifted.key", Allowed),
        ("other.key", Allowed),
        ("sub/.npmrc", Denied),
    ] {
        assert_eq!(kind(&view, path), access, "{path}");
    }
    let found = ask(&view, "chain.pem");
    assert_eq!((found.rule.unwrap().line, found.reason), (1, None));
}

/// So that agents can create it.
#[test]
fn a_file_that_does_not_exist_has_no_secret() {
    let (_dir, root) = workspace(&[]);
    let view = view(&root);
    assert_eq!(kind(&view, ".npmrc"), Allowed);
    assert_eq!(read(&view, ".npmrc"), Err(ErrorKind::NotFound));
    assert!(view.check_command("echo save-exact=true > .npmrc").allowed);
}

/// Both names of a link count, and the content of its target.
#[cfg(unix)]
#[test]
fn links_lead_to_contents() {
    let (_dir, root) = workspace(&[
        ("key", KEY),
        ("chain", CERTIFICATE),
        ("server.pem", KEY),
        (".env", "x y\n"),
    ]);
    for (target, link) in [
        ("key", "by-name.pem"),
        ("chain", "chain.pem"),
        ("server.pem", "plain"),
        (".env", "env.pem"),
    ] {
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
    }
    let view = view(&root);
    for (path, access) in [
        ("key", Allowed),
        ("by-name.pem", Denied),
        ("chain.pem", Allowed),
        ("plain", Denied),
        ("env.pem", Denied),
    ] {
        assert_eq!(kind(&view, path), access, "{path}");
        assert_eq!(read(&view, path).is_ok(), access == Allowed, "{path}");
    }
}

/// What is read is what was checked.
#[test]
fn a_content_that_changes_is_not_read() {
    let (_dir, root) = workspace(&[("a.pem", CERTIFICATE)]);
    let path = root.join("a.pem");
    let done = AtomicBool::new(false);
    let access = access(&root);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0_u32;
            while !done.load(Ordering::Relaxed) {
                turn += 1;
                let text = [KEY, CERTIFICATE][turn as usize % 2];
                // In place, and as another file.
                if turn % 4 < 2 {
                    fs::write(&path, text).unwrap();
                } else {
                    fs::write(root.join("new"), text).unwrap();
                    rename(&root.join("new"), &path);
                }
            }
        });
        let mut read_count = 0;
        for _ in 0..4_000 {
            let Ok(text) = read(&access.view().0, "a.pem") else {
                continue;
            };
            assert!(!text.contains("PRIVATE"), "{text}");
            read_count += 1;
        }
        done.store(true, Ordering::Relaxed);
        assert!(read_count > 0, "nothing was ever read");
    });
}

#[test]
fn commands_are_checked_by_contents() {
    let (_dir, root) = workspace(&[
        ("a.js", "x\n"),
        (".npmrc", PLAIN),
        ("certs/chain.pem", CERTIFICATE),
    ]);
    git::run(&root, &["init", "-q"]);
    git::run(&root, &["add", "."]);
    git::run(&root, &["commit", "-q", "-m", "first"]);
    write(&root, &[("a.js", "y\n"), (".npmrc", "save-exact=false\n")]);
    let check = |command: &str| view(&root).check_command(command);
    let commands = [
        "cat .npmrc certs/*.pem",
        "python3 -c \"print(open('.npmrc').read())\"",
        "python3 - <<'E'\nopen('a.js', 'w').write(open('.npmrc').read())\nE",
        "rg x",
        "grep -r x .",
        "git diff",
        "git diff HEAD",
        "git log -p",
        "git show",
        "git show HEAD:.npmrc",
        "git show :.npmrc",
        "git cat-file -p HEAD:certs/chain.pem",
        "git grep x",
        "git grep save HEAD",
        "git archive HEAD",
        "git blame .npmrc",
        "git commit -v",
        "cd certs && git show HEAD:./chain.pem",
    ];
    for command in commands {
        let result = check(command);
        assert!(result.allowed, "{command}: {result:?}");
    }
    // The disk alone.
    write(&root, &[(".npmrc", TOKEN)]);
    for (command, allowed) in [
        ("cat .npmrc", false),
        ("grep -r x .", false),
        ("git diff", false),
        ("git show HEAD:.npmrc", true),
        ("git show :.npmrc", true),
    ] {
        assert_eq!(check(command).allowed, allowed, "{command}");
    }
    let denied = check("cat .npmrc").denied.remove(0);
    assert_eq!(
        denied.reason,
        "`cat` would read `.npmrc`, which is hidden because it contains a credential"
    );
    // The index alone.
    git::run(&root, &["add", ".npmrc"]);
    write(&root, &[(".npmrc", PLAIN)]);
    for (command, allowed) in [
        ("cat .npmrc", true),
        ("git diff", false),
        ("git diff --cached", false),
        ("git show :.npmrc", false),
        ("git show HEAD:.npmrc", true),
        ("git commit -v", false),
    ] {
        assert_eq!(check(command).allowed, allowed, "{command}");
    }
    assert!(!check("git blame HEAD~9 .npmrc").allowed);
    // A commit of yesterday.
    git::run(&root, &["commit", "-q", "-m", "second"]);
    git::run(&root, &["add", "."]);
    git::run(&root, &["commit", "-q", "-m", "third"]);
    for (command, allowed) in [
        ("cat .npmrc", true),
        ("grep -r x .", true),
        ("git diff", true),
        ("git show HEAD:.npmrc", true),
        ("git show HEAD~1:.npmrc", false),
        ("git show HEAD~1:./.npmrc", false),
        ("git cat-file blob HEAD~1:.npmrc", false),
        ("git show HEAD^1:.npmrc HEAD:a.js", false),
        ("git show $REV:.npmrc", false),
        ("git show missing:.npmrc", false),
        ("git log -p", false),
        ("git show HEAD", false),
        ("git diff HEAD~1", false),
        ("git checkout HEAD~1 -- .npmrc && cat .npmrc", false),
        ("git restore --source=HEAD~1 .npmrc; cat .npmrc", false),
        ("git blame HEAD~1 -- .npmrc", false),
        ("git blame HEAD~1 .npmrc", false),
        ("git blame --reverse HEAD~1 .npmrc", false),
        ("git blame .npmrc", true),
        ("git annotate .npmrc", true),
        ("git blame -w -L 1,1 .npmrc", true),
        ("git blame -L1,1 HEAD~1 .npmrc", false),
        ("git blame HEAD~1..HEAD .npmrc", false),
        ("git log -p --no-patch", true),
        ("git log -p -s", true),
        ("git log -s -p", false),
        ("git show --no-patch HEAD", true),
        ("git show -s --patch HEAD", false),
        ("git archive HEAD~1", false),
        ("git grep auth HEAD~1", false),
        ("git format-patch -2 --stdout", false),
    ] {
        assert_eq!(check(command).allowed, allowed, "{command}");
    }
}

/// What git, archives, copies, downloads and programs write counts for the rest of the line.
#[test]
fn contents_that_a_line_changes_are_not_read() {
    let (_dir, root) = workspace(&[
        ("a.js", "x\n"),
        (".npmrc", TOKEN),
        ("certs/chain.pem", KEY),
        ("old/npmrc", TOKEN),
    ]);
    git::run(&root, &["init", "-q"]);
    git::run(&root, &["add", "."]);
    git::run(&root, &["commit", "-q", "-m", "first"]);
    git::run(&root, &["branch", "old"]);
    let public = [(".npmrc", PLAIN), ("certs/chain.pem", CERTIFICATE)];
    write(&root, &public);
    git::run(&root, &["commit", "-q", "-a", "-m", "second"]);
    let view = view(&root);
    for line in [
        "git switch old; cat .npmrc",
        "git switch old && cat certs/*.pem",
        "git restore --source=old . && cat .npmrc",
        "git checkout HEAD~1 -- certs; cat certs/chain.pem",
        "git revert -n HEAD; cat .npmrc",
        "git stash pop; cat .npmrc",
        "git cherry-pick -n old; cat .npmrc",
        "git reset --hard HEAD~1; grep -r x .",
        "git apply x.patch; cat .npmrc",
        "git switch old; cd certs; cat chain.pem",
        "git switch old; find . -name '*.pem' -exec cat {} +",
        "git switch old; python3 -c \"print(open('.npmrc').read())\"",
        "python3 -c \"import os; os.system('git switch old'); print(open('.npmrc').read())\"",
        "git switch old | cat .npmrc",
        "sh -c 'git switch old'; cat .npmrc",
        "hg update old; cat .npmrc",
        "tar xf x.tar; cat .npmrc",
        "tar -xf x.tar && grep -r x certs",
        "unzip x.zip; cat .npmrc",
        "cp old/npmrc .npmrc; cat .npmrc",
        "cp -r old/. .; cat .npmrc",
        "mv old/npmrc .npmrc; cat .npmrc",
        "rsync -a old/ .; rg -uu x",
        "cat old/npmrc > .npmrc; cat .npmrc",
        "tee .npmrc < old/npmrc; cat .npmrc",
        "dd if=old/npmrc of=.npmrc; cat .npmrc",
        "curl -o .npmrc http://x; cat .npmrc",
        "curl -O http://x/.npmrc; cat .npmrc",
        "wget http://x/.npmrc; cat .npmrc",
        "sed -i s/a/b/ .npmrc; cat .npmrc",
        "npm config set x y; cat .npmrc",
        "make certs; cat certs/chain.pem",
        "./restore.sh; cat .npmrc",
    ] {
        let result = view.check_command(line);
        assert!(!result.allowed, "{line}");
    }
    let reason = &view.check_command("git pull; cat .npmrc").denied[0].reason;
    assert_eq!(
        reason,
        "`cat` would read `.npmrc`, whose content an earlier part of the line may change; \
         read it in a separate command"
    );
    for line in [
        "cat .npmrc; git switch old",
        "git switch old; cat a.js",
        "git switch old; grep -rn x a.js",
        "git switch old; echo x > .npmrc",
        "git fetch; git add -A; git commit -m x; cat .npmrc",
        "git log -3; git status; git diff --stat; cat .npmrc",
        "mkdir -p certs && cat certs/chain.pem",
        "chmod 644 certs/chain.pem; cat certs/chain.pem",
        "cd certs && ls && cat chain.pem",
        "echo x > a.js; cat .npmrc",
        "cp a.js b.js && grep -rn x .",
        "npm test && grep -rn x .",
        "cargo build 2>&1 | tail -3; rg -uu x",
        "curl -s http://x | jq .; cat .npmrc",
        "sed -n 1p a.js; awk '{print $1}' a.js; cat .npmrc",
        "make; echo x >> .npmrc",
    ] {
        let result = view.check_command(line);
        assert!(result.allowed, "{line}: {result:?}");
    }
}
