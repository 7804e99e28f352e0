//! The contents of denied files in texts.

use std::{fmt::Write, fs, path::Path, process::Command, sync::Arc, thread, time::Duration};

use base64::{Engine, prelude::*};
use sightline_access::{
    Access, AccessView,
    redact::{HiddenContents, KeptContents, Redactor, contents_notice},
};
use sightline_base::path::{Root, Roots};
use sightline_protocol::{access::AccessRule, settings::Secrets};

use crate::scratch::{abs, workspace, write};

const SECRET: &str = "sk/live+51H8x9JkL=mNoP";
const ENV: &str =
    "NODE_ENV=development\nAPI_KEY=sk/live+51H8x9JkL=mNoP\nDB_PASSWORD=correct-horse-battery\n";
const PLANS: &str =
    "The merger with the other company is in May.\n\nshort\n  let answer = compute_it(41) + 1;\n";

fn view(root: &Path) -> AccessView {
    let roots = Arc::new(Roots::new(vec![Root::new(abs(root), None)]));
    Access::new(roots, Vec::new(), Secrets::Deny).view().0
}

fn redacted(root: &Path, text: &str) -> String {
    let view = view(root);
    let contents = HiddenContents::read(&view);
    let redacted = Redactor::new(&view, &contents, None).redact(text);
    redacted.text.into_owned()
}

fn git(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(root)
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "core.pager=cat",
        ])
        .args(arguments)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn values_are_replaced_in_every_spelling() {
    let (_parent, root) = workspace(&[("app/.env", ENV)]);
    let file = format!("a{ENV}");
    for text in [
        SECRET.to_owned(),
        format!("Authorization: Bearer {SECRET}, next"),
        format!("{SECRET}{SECRET}"),
        "https://host/?key=sk%2Flive%2B51H8x9JkL%3DmNoP&x=1".to_owned(),
        "https://host/?key=sk%2flive%2b51H8x9JkL%3dmNoP".to_owned(),
        "https://host/sk/live%2B51H8x9JkL%3DmNoP".to_owned(),
        r#"{"key": "sk\/live+51H8x9JkL=mNoP"}"#.to_owned(),
        BASE64_STANDARD.encode(SECRET),
        BASE64_STANDARD.encode(ENV),
        BASE64_STANDARD.encode(&file),
        BASE64_STANDARD.encode(&file[1..]),
        BASE64_URL_SAFE_NO_PAD.encode(format!("user:{SECRET}")),
    ] {
        let shown = redacted(&root, &text);
        assert!(shown.contains("[hidden: app/.env]"), "{text}: {shown}");
        for part in ["51H8x9JkL", &BASE64_STANDARD.encode("51H8x9J")[2..8]] {
            assert!(!shown.contains(part), "{text}: {shown}");
        }
    }
    let encoded = BASE64_STANDARD.encode(&file);
    assert_eq!(
        redacted(&root, &format!("token: {encoded} (Opaque)")),
        "token: [hidden: app/.env] (Opaque)"
    );
    assert_eq!(
        redacted(&root, &format!("a {SECRET} b\nand correct-horse-battery\n")),
        "a [hidden: app/.env] b\nand [hidden: app/.env]\n"
    );
}

#[test]
fn values_in_files_of_all_formats_are_replaced() {
    let key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj";
    for (path, content) in [
        (
            "key.pem",
            format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n"),
        ),
        (
            "credentials.json",
            format!("{{\"a\": {{\"private_key\": \"{key}\"}}}}"),
        ),
        ("secrets.yml", format!("prod:\n  token: {key}\n")),
        (".netrc", format!("machine host login me password {key}\n")),
        (".npmrc", format!("//host/:_authToken={key}\n")),
        ("secrets.toml", format!("[a]\nkey = '{key}'\n")),
        (".ssh/config", format!("x {key}")),
    ] {
        let (_parent, root) = workspace(&[(path, &content)]);
        let shown = redacted(&root, &format!("got {key}"));
        assert_eq!(shown, format!("got [hidden: {path}]"));
    }
}

/// Go escapes `&`, `<` and `>` in JSON, Python everything but ASCII.
#[test]
fn values_are_replaced_as_other_programs_escape_them() {
    let (_parent, root) = workspace(&[(
        ".env",
        "A_TOKEN=p&ss<w0rd>Xq9\nB_TOKEN=sch\u{fc}ssel-Qx7Lz2\n",
    )]);
    for text in [
        r"p\u0026ss\u003cw0rd\u003eXq9",
        r"p\u0026ss\u003Cw0rd\u003EXq9",
        "p&amp;ss&lt;w0rd&gt;Xq9",
        r"sch\u00fcssel-Qx7Lz2",
        r"sch\u00FCssel-Qx7Lz2",
    ] {
        assert_eq!(redacted(&root, text), "[hidden: .env]", "{text}");
    }
}

/// Settings have keys of several lines in one line. Programs print them as lines.
#[test]
fn parts_of_a_value_with_line_breaks_are_replaced() {
    let parts = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "Bq8Zr2Lm4Kp6TxW9vYcQ1"];
    let key = format!(
        r"-----BEGIN KEY-----\n{}\n{}\n-----END KEY-----\n",
        parts[0], parts[1]
    );
    for (path, content) in [
        (".env", format!("A_KEY=\"{key}\"\n")),
        (".env", format!("A_KEY={}\n", key.replace(r"\n", r"\r\n"))),
        ("credentials.json", format!("{{\"private_key\":\"{key}\"}}")),
    ] {
        let (_parent, root) = workspace(&[(path, &content)]);
        let shown = redacted(&root, &parts.join("\n"));
        assert_eq!(
            shown,
            format!("[hidden: {path}]\n[hidden: {path}]"),
            "{content}"
        );
    }
}

#[test]
fn a_file_with_text_in_another_encoding_is_read() {
    let (_parent, root) = workspace(&[(".env", "")]);
    let content = [b"# caf\xe9\n".as_slice(), ENV.as_bytes()].concat();
    std::fs::write(root.join(".env"), content).unwrap();
    assert_eq!(redacted(&root, SECRET), "[hidden: .env]");
}

#[test]
fn colors_hide_nothing() {
    let (_parent, root) = workspace(&[
        (".clineignore", "private.md\n"),
        (".env", ENV),
        ("private.md", PLANS),
    ]);
    let line = "The merger with the other company is in May.";
    let end = "\u{1b}[m";
    for text in [
        format!("\u{1b}[32m+{end}\u{1b}[32m{line}{end}"),
        format!("\u{1b}[38;5;238m  12{end} \u{1b}[1m{line}{end}\u{1b}[K\n"),
        format!(
            "a.md\u{1b}[36m\u{1b}[K:{end}{}",
            line.replace("merger", "\u{1b}[01;31m\u{1b}[Kmerger\u{1b}[m")
        ),
        format!("\u{1b}]8;;file:///x\u{1b}\\+\u{1b}]8;;\u{7}{line}"),
        "correct-\u{1b}[31mhorse\u{1b}[0m-battery".to_owned(),
        format!(
            "\u{1b}[1mdiff --git a/private.md b/private.md{end}\n\u{1b}[36m@@ -1 +1 @@{end}\n\u{1b}[31m-an old one{end}\n"
        ),
    ] {
        let shown = redacted(&root, &text);
        assert!(shown.contains("hidden"), "{text:?}: {shown:?}");
        for part in ["merger", "horse", "old"] {
            assert!(!shown.contains(part), "{text:?}: {shown:?}");
        }
    }
    // Other texts keep their colors.
    let text = format!("\u{1b}[32mok{end} \u{1b}]0;title\u{7}\u{1b}");
    assert_eq!(redacted(&root, &text), text);
}

#[test]
fn a_notice_names_the_rule_and_its_line() {
    let notice = |line| {
        let rule = AccessRule {
            source: "rules".to_owned(),
            line,
            ..AccessRule::default()
        };
        contents_notice("a", Some(&rule))
    };
    let hidden = "[Sightline: the contents of a are hidden from agents by rules";
    assert_eq!(notice(0), format!("{hidden}.]"));
    assert_eq!(notice(7), format!("{hidden}:7.]"));
}

#[test]
fn lines_of_denied_files_are_replaced() {
    let (_parent, root) = workspace(&[
        (".clineignore", "private/\n"),
        ("private/plans.md", PLANS),
        ("open.md", "hello\n"),
    ]);
    let notice =
        "[Sightline: the contents of private/plans.md are hidden from agents by .clineignore:1.]";
    let line = "The merger with the other company is in May.";
    for text in [
        format!("{line}\n"),
        format!("  {line}\n"),
        format!("+{line}\n"),
        format!("12:{line}\n"),
        format!("    12\t{line}\n"),
        format!("    12\u{2192}{line}\n"),
        format!("   1   \u{2502} {line}\n"),
        format!("private/plans.md:1:{line}\n"),
        format!("private/plans.md-1-{line}\n").replace("private/plans.md-1-", "1-"),
    ] {
        let shown = redacted(&root, &format!("one\n{text}two\n"));
        assert_eq!(shown, format!("one\n{notice}\ntwo\n"), "{text}");
    }
    // Lines that follow each other have one notice.
    let shown = redacted(
        &root,
        &format!("{line}\n  let answer = compute_it(41) + 1;\nshort"),
    );
    assert_eq!(shown, format!("{notice}\nshort"));
    assert_eq!(
        redacted(&root, "He said: The merger is off."),
        "He said: The merger is off."
    );
}

#[test]
fn sections_of_diffs_are_replaced() {
    let (_parent, root) = workspace(&[
        (".clineignore", "private/\n"),
        ("private/plans.md", "--- old comment\nold\n\ntext\n"),
        ("open.txt", "a\n"),
    ]);
    git(&root, &["init", "-q"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-qm", "first"]);
    write(
        &root,
        &[
            ("private/plans.md", "new\n++ new\ntext\n"),
            ("open.txt", "b\n"),
        ],
    );
    let notice =
        "[Sightline: the contents of private/plans.md are hidden from agents by .clineignore:1.]";
    for arguments in [
        &["diff"][..],
        &["diff", "--no-prefix"],
        &["diff", "-U0"],
        &["diff", "HEAD"],
        &["diff", "--stat", "-p"],
    ] {
        let text = git(&root, arguments);
        assert!(text.contains("+new"), "{text}");
        let shown = redacted(&root, &text);
        assert!(shown.contains(notice) && shown.contains("+b"), "{shown}");
        for hidden in ["+new", "-old", "old comment", "++ new"] {
            assert!(!shown.contains(hidden), "{arguments:?}: {shown}");
        }
    }
    git(&root, &["commit", "-qam", "second"]);
    for arguments in [&["log", "-p"][..], &["log", "-p", "--graph"], &["show"]] {
        let shown = redacted(&root, &git(&root, arguments));
        assert!(
            !shown.contains("old comment") && shown.contains(notice),
            "{shown}"
        );
        assert!(shown.contains("second") && shown.contains("+b"), "{shown}");
    }
    let plain = "--- private/plans.md 2025\n+++ private/plans.md 2026\n@@ -1 +1 @@\n-old\n+new\n--- open.txt 2025\n+++ open.txt 2026\n@@ -1 +1 @@\n-a\n+b\n";
    let shown = redacted(&root, plain);
    assert!(
        !shown.contains("new") && shown.ends_with("@@ -1 +1 @@\n-a\n+b\n"),
        "{shown}"
    );
}

#[test]
fn text_that_looks_like_the_heading_of_a_section_is_kept() {
    let (_parent, root) = workspace(&[(".clineignore", "private/\n"), ("private/plans.md", PLANS)]);
    for text in [
        "--- Hides files with a line in private/plans.md\nlocal M = {}\n",
        "--- private/plans.md\n",
        "text\n--- see private/plans.md\n--- @return boolean\n",
        "diff between README.md and private/plans.md\nnothing\n",
        "diff -u README.md private/plans.md\nprints the changes\n",
        "==> Installing private/plans.md\n==> Done\nnext\n",
    ] {
        assert_eq!(redacted(&root, text), text);
    }
}

#[test]
fn what_tracked_files_contain_is_public() {
    let (_parent, root) = workspace(&[
        (".clineignore", "private/\n"),
        (".env", ENV),
        ("private/plans.md", PLANS),
        ("README.md", &format!("Use correct-horse-battery.\n{PLANS}")),
    ]);
    let text = format!("{SECRET} correct-horse-battery\n{PLANS}");
    let shown = redacted(&root, &text);
    assert!(
        !shown.contains("horse") && !shown.contains("merger"),
        "{shown}"
    );
    git(&root, &["init", "-q"]);
    git(&root, &["add", "README.md"]);
    assert_eq!(
        redacted(&root, &text),
        text.replace(SECRET, "[hidden: .env]")
    );
    // A copy that a command made proves nothing.
    write(&root, &[("copy.txt", SECRET)]);
    assert_eq!(redacted(&root, SECRET), "[hidden: .env]");
    git(&root, &["add", "-f", ".env"]);
    assert_eq!(redacted(&root, SECRET), "[hidden: .env]");
}

/// Paths of git start at the top of the repository, those of rules at the workspace folder.
#[test]
fn tracked_files_below_the_top_of_a_repository_are_judged_by_their_paths() {
    let (_parent, top) = workspace(&[
        ("app/.clineignore", "/keys/prod.txt\n"),
        ("app/keys/prod.txt", "TOKEN=q8Zr2Lm4Kp6TxW9v\n"),
        ("app/keys/dev.txt", "TOKEN=a1Lm4Kp6TxW9vYcQ1\n"),
        ("app/.env", "TOKEN=a1Lm4Kp6TxW9vYcQ1\n"),
    ]);
    git(&top, &["init", "-q"]);
    git(&top, &["add", "."]);
    git(&top, &["config", "grep.fullName", "true"]);
    let shown = redacted(&top.join("app"), "q8Zr2Lm4Kp6TxW9v a1Lm4Kp6TxW9vYcQ1");
    assert_eq!(shown, "[hidden: keys/prod.txt] a1Lm4Kp6TxW9vYcQ1");
}

/// A command can mark any folder.
#[test]
fn caches_are_known_by_their_mark_and_their_name() {
    let (_parent, root) = workspace(&[
        ("target/CACHEDIR.TAG", ""),
        ("target/.env", ENV),
        ("app/CACHEDIR.TAG", ""),
    ]);
    assert_eq!(redacted(&root, SECRET), SECRET);
    write(&root, &[("app/.env", ENV)]);
    assert_eq!(redacted(&root, SECRET), "[hidden: app/.env]");
}

#[test]
fn kept_contents_follow_files_folders_and_rules_at_once() {
    let (_parent, root) = workspace(&[(".env", ENV), (".npmrc", "registry=https://example.com\n")]);
    let roots = Arc::new(Roots::new(vec![Root::new(abs(&root), None)]));
    let access = Access::new(roots, Vec::new(), Secrets::Deny);
    let kept = KeptContents::default();
    let shown = |text: &str| {
        let (view, _) = access.view();
        let contents = kept.get(&view);
        let debug = format!("{contents:?}");
        assert!(!debug.contains("51H8x9"), "{debug}");
        let redacted = Redactor::new(&view, &contents, None).redact(text);
        redacted.text.into_owned()
    };
    assert_eq!(shown(SECRET), "[hidden: .env]");
    // The size stays the same, and so may the time.
    let other = SECRET.replace("51H8", "62I9");
    write(&root, &[(".env", &ENV.replace(SECRET, &other))]);
    assert_eq!(shown(&other), "[hidden: .env]");
    assert_eq!(shown(SECRET), SECRET);

    let token = "npm_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    write(
        &root,
        &[(".npmrc", &format!("//example.com/:_authToken={token}\n"))],
    );
    assert_eq!(shown(token), "[hidden: .npmrc]");

    write(&root, &[("app/new/.env", &format!("KEY={SECRET}\n"))]);
    assert_eq!(shown(SECRET), "[hidden: app/new/.env]");
    fs::rename(root.join("app"), root.join("moved")).unwrap();
    assert_eq!(shown(SECRET), "[hidden: moved/new/.env]");
    fs::remove_dir_all(root.join("moved")).unwrap();
    assert_eq!(shown(SECRET), SECRET);

    let line = "the merger with the other company is in May";
    write(&root, &[("src/plans.md", line)]);
    assert_eq!(shown(line), line);
    write(&root, &[("src/.clineignore", "plans.md\n")]);
    assert!(
        shown(line).contains("src/plans.md are hidden"),
        "{}",
        shown(line)
    );

    let line = "the office moves to another city in autumn";
    write(&root, &[("docs/notes.md", line)]);
    // Of a folder that was just changed, the time does not prove that it is still the same.
    thread::sleep(Duration::from_millis(20));
    assert_eq!(shown(line), line);
    write(&root, &[(".clineignore", "docs/\n")]);
    assert!(
        shown(line).contains("docs/notes.md are hidden"),
        "{}",
        shown(line)
    );

    thread::sleep(Duration::from_millis(20));
    let view = || access.view().0;
    assert!(Arc::ptr_eq(&kept.get(&view()), &kept.get(&view())));
}

#[test]
fn more_than_the_limits_is_read_as_far_as_they_go() {
    let mut large = String::new();
    for number in 0..5_000 {
        let _ = writeln!(
            large,
            "K{number}=v{number}Qx7-{:016x}",
            u64::from(number as u32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        );
    }
    let (_parent, root) = workspace(&[(".env", &large), ("other/.env", ENV)]);
    let first = large.lines().nth(7).unwrap().split_once('=').unwrap().1;
    assert_eq!(redacted(&root, first), "[hidden: .env]");
    assert_eq!(redacted(&root, SECRET), "[hidden: other/.env]");
}

#[test]
fn ordinary_output_is_not_changed() {
    let (_parent, root) = workspace(&[
        (".clineignore", "private/\n*.key\n"),
        (".env", ENV),
        ("private/plans.md", PLANS),
        (
            "server.key",
            "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
        ),
        (
            "config/secrets.yml",
            "prod:\n  token: a8Kd9Lq2Zx7Wm3Rt5Yb1\n  host: db.internal.example.com\n",
        ),
    ]);
    let text = ordinary_output();
    assert!(text.lines().count() >= 10_000);
    let view = view(&root);
    let contents = HiddenContents::read(&view);
    let mut redactor = Redactor::new(&view, &contents, None);
    assert!(redactor.names_denied("cat config/secrets.yml"));
    assert!(!redactor.names_denied("cat src/main.rs"));
    let redacted = redactor.redact(&text);
    assert_eq!(redacted.hidden, []);
    assert!(redacted.text == text);
}

/// Lines of a terminal that name a denied file are left out without a notice, in any color.
#[test]
fn lines_that_name_a_denied_file_are_left_out() {
    let (_parent, root) = workspace(&[(".env", ENV), ("src/main.rs", "x\n")]);
    let view = view(&root);
    let contents = HiddenContents::read(&view);
    for (text, left) in [
        ("src\n.env\nsrc/main.rs\n", "src\nsrc/main.rs\n"),
        (
            "src\n\x1b[31m.env\x1b[0m\nsrc/main.rs\n",
            "src\nsrc/main.rs\n",
        ),
        ("\x1b[31msrc\x1b[0m\n", "\x1b[31msrc\x1b[0m\n"),
    ] {
        let mut redactor = Redactor::new(&view, &contents, None);
        let redacted = redactor.redact_after("", text, true);
        assert_eq!(
            (&*redacted.text, redacted.left_out),
            (left, text.matches(".env").count() as u32),
            "{text:?}"
        );
        assert_eq!(redacted.hidden, []);
    }
}

/// Returns output of tools with many values that look like secrets.
fn ordinary_output() -> String {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut text = String::new();
    for arguments in [
        &["log", "--stat", "-n", "150"][..],
        &["ls-files", "-s"],
        &["log", "-p", "-n", "5", "--", "server/base"],
        &["grep", "-n", "secret", "--", "docs", "server/base"],
    ] {
        text.push_str(&git(&repository, arguments));
    }
    text.push_str(include_str!("../../../../../Cargo.lock"));
    let mut state = 7_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state ^ (state >> 29)
    };
    for number in 0..1_500 {
        let (a, b) = (next(), next());
        let id = BASE64_STANDARD.encode([a, b, next()].map(u64::to_le_bytes).concat());
        let _ = write!(
            text,
            "   Compiling crate-{number} v1.{}.{}\n\
             {a:016x}{b:016x}  target/debug/deps/libx-{b:016x}.rlib\n\
             request {:08x}-{:04x}-4{:03x}-a{:03x}-{:012x} done in {}ms\n\
             https://bucket.s3.amazonaws.com/a/{number}.zip?X-Amz-Credential=AKIA{a:012X}&X-Amz-Signature={a:016x}{b:016x}\n\
             integrity sha512-{id}==\n\
             API_KEY=${{API_KEY}} NODE_ENV=development TOKEN={id}\n",
            a % 90,
            b % 90,
            a >> 32,
            a & 0xffff,
            b & 0xfff,
            b >> 52,
            b >> 16,
            a % 5_000,
        );
    }
    text
}
