//! Visible and hidden terminal output.

use super::*;

#[test]
fn long_output_keeps_both_ends() {
    let mut fixture = Fixture::new(&["app"], &[]);
    let output: String = (0..700).map(|n| format!("line {n}\n")).collect();
    fixture.terminals(&[("1", "make", true, &output)]);
    let body = fixture.body(SectionId::RunningTerminals);
    let lines: Vec<&str> = body.lines().collect();
    assert_eq!(lines.len(), 2 + 100 + 1 + 100);
    assert_eq!(lines[101], "line 99");
    assert_eq!(lines[102], "[... 500 lines not shown ...]");
    assert_eq!(lines[103], "line 600");
}

#[test]
fn a_terminal_without_a_command_shows_its_name() {
    let mut fixture = Fixture::new(&["app"], &[]);
    let terminal = |id: &str, name: Option<&str>| Terminal {
        id: id.to_owned(),
        name: name.map(str::to_owned),
        is_busy: true,
        ..Terminal::default()
    };
    fixture
        .editor
        .set_terminals(vec![terminal("7", Some("zsh")), terminal("8", None)]);
    assert_eq!(
        fixture.body(SectionId::RunningTerminals),
        "## Original command: `zsh`\n## Original command: `terminal 8`"
    );
}

#[test]
fn escape_sequences_in_a_command_hide_nothing() {
    let mut fixture = denied_in_every_field();
    fixture.terminals(&[
        ("1", "cat \u{1b}[31mx.secret\u{1b}[0m", true, "a"),
        ("5", "\u{1b}[1mmake\u{1b}[0m", true, ""),
    ]);
    assert_eq!(
        fixture.body(SectionId::RunningTerminals),
        "## Original command: `make`"
    );
}

const RULES: &str = "/f.env\n*.secret\nsecr\u{e9}t.env\nprivate/\n/config/keys.env\nlink.env\n";

/// Returns the output of `make` as the block shows it.
fn shown(output: &str) -> String {
    let mut fixture = Fixture::new(
        &["app"],
        &[
            ("app/.clineignore", RULES),
            ("app/private/x", ""),
            ("app/private/deep/prod/plain.txt", ""),
        ],
    );
    fixture.terminals(&[("1", "make", false, output)]);
    fixture.body(SectionId::InactiveTerminals)
}

#[test]
fn every_spelling_of_a_denied_name_is_found() {
    let lines = [
        "see f.env#L3 for it",
        "see f.env#3 for it",
        "modified: \"secr\\303\\251t.env\"",
        "\"a/secr\\303\\251t.env\" changed",
        "'secr'$'\\303\\251''t.env' changed",
        "secr\\303\\251t.env changed",
        "https://example.org/a%2Fb f%2Eenv read",
        "open %66%2E%65nv now",
        "file config%2Fkeys.env now",
        "the _f.env_ file",
        "the __f.env__ file",
        "the **_f.env_** file",
        "the ~~f.env~~ file",
        "the $f.env file",
        "the ${f.env} file",
        "scp user@f.env done",
        "the f\u{200b}.env file",
        "the f.e\u{200d}n\u{2060}v file",
        "the \u{202e}f.env\u{202c} file",
        "the f.\u{e0041}env file",
        "the f\u{ad}.env file",
        " .../sub/x.secret   |  2 +-",
        " .../keys.env       |  2 +-",
        " ...eys.env         |  2 +-",
        " ...very_long.secret | Bin 0 -> 12 bytes",
        " .../prod/plain.txt |  12 ++++--",
        " config/{keys.txt => keys.env} | 0",
        " {public => private}/x | 0",
        " rename config/{old => }/keys.env (100%)",
        "f.env-CONTEXT=1 of a search",
        "f.env-12-CONTEXT=1 of a search",
        "at 100%f.env",
        "at 100%config/keys.env",
        "at 100\u{1b}[20Gf.env",
        "\u{1b}[3;1Hdone\u{1b}[4;1Hsee f.env\u{1b}[5;1Hdone",
        " .../{old => prod}/plain.txt | 0",
        " ...old => prod}/plain.txt | 2 +-",
    ];
    let missed: Vec<_> = lines
        .into_iter()
        .filter(|line| !shown(&format!("one\n{line}\ntwo\n")).contains("(1 line hidden"))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn other_lines_are_kept() {
    let lines = [
        "compiling, please wait...",
        "...and so on",
        "100% done at 12:30",
        "user@example.org: $HOME is set, 50%25",
        "my_f.env_example is another file",
        "a | b",
        "{a => b}",
        "#1 a-b-c --d-e",
        "C:\\303\\251",
        "%zz %",
        "100%done",
        " .../other.txt      |  2 +-",
        " ...ther.txt        |  2 +-",
        " .../src/plain.txt  | 12 ++++--",
        " .../src/keys.env   | Bin 0 -> 12 bytes",
        " .../{old => new}/other.txt | 0",
    ];
    for line in lines {
        let shown = shown(&format!("one\n{line}\ntwo\n"));
        assert_eq!(
            shown,
            format!("## make\n### New Output\none\n{line}\ntwo"),
            "{line}"
        );
    }
}

#[test]
fn a_shortened_name_is_shown_without_denied_files() {
    let mut fixture = Fixture::new(&["app"], &[]);
    fixture.terminals(&[("1", "make", false, " .../src/main.rs | 2 +-\nend\n")]);
    let shown = fixture.body(SectionId::InactiveTerminals);
    assert!(shown.contains(".../src/main.rs | 2 +-"), "{shown}");
}

/// A denied file with a secret, other lines, and one that looks like the heading of a diff.
const HIDDEN: &str =
    "TOKEN=hidden-a8Kd9Lq2Zx7W\n\n# HIDDEN comment of some length\n-- HIDDEN line of a list\n";

#[test]
fn contents_of_denied_files_are_hidden_below_any_heading() {
    let mut fixture = Fixture::new(
        &["app"],
        &[("app/.clineignore", RULES), ("app/f.env", HIDDEN)],
    );
    let numbered: String = (HIDDEN.lines().enumerate())
        .map(|(n, line)| format!("   {}   \u{2502} {line}\n", n + 1))
        .collect();
    let found: String = (HIDDEN.lines().enumerate())
        .map(|(n, line)| format!("{}:{line}\n", n + 1))
        .collect();
    let removed: String = HIDDEN.lines().map(|line| format!("-{line}\n")).collect();
    let lines = HIDDEN.lines().count();
    let headers = "deleted file mode 100644\n--- a/f.env\n+++ /dev/null\n";
    let diff = format!("diff --git a/f.env b/f.env\n{headers}@@ -1,{lines} +0,0 @@\n{removed}");
    let old = "diff --git a/f.env b/f.env\n--- a/f.env\n+++ b/f.env\n@@ -1 +1 @@\n-HIDDEN old\n+HIDDEN new\n";
    let open = "diff --git a/o b/o\n--- a/o\n+++ b/o\n@@ -1 +1 @@\n-a\n+SHOWN\n";
    for (name, output) in [
        ("cat", format!("{HIDDEN}SHOWN\n")),
        (
            "head",
            format!("==> f.env <==\n{HIDDEN}\n==> open.txt <==\nSHOWN\n"),
        ),
        (
            "bat",
            format!(
                "\u{2500}\u{2500}\u{252c}\u{2500}\n    \u{2502} File: f.env\n{numbered}SHOWN\n"
            ),
        ),
        (
            "more",
            format!("::::::::::::::\nf.env\n::::::::::::::\n{HIDDEN}SHOWN\n"),
        ),
        ("a search", format!("f.env\n{found}\nopen.txt\n1:SHOWN\n")),
        ("a search without names", format!("{found}SHOWN\n")),
        ("diff", format!("{diff}{open}")),
        ("a version that is not on the disk", format!("{old}{open}")),
        ("a word", "using hidden-a8Kd9Lq2Zx7W, SHOWN\n".to_owned()),
    ] {
        fixture.terminals(&[("1", "make", false, &output)]);
        let shown = fixture.body(SectionId::InactiveTerminals);
        let text = shown.replace("[hidden: f.env]", "");
        assert!(
            !text.contains("HIDDEN") && !text.contains("hidden-") && text.contains("SHOWN"),
            "{name}: {shown}"
        );
    }
}

#[test]
fn a_diff_that_continues_after_a_block_stays_hidden() {
    let mut fixture = Fixture::new(&["app"], &[("app/.clineignore", RULES)]);
    let mut show = |output: &str| {
        fixture.terminals(&[("1", "make", true, output)]);
        let block = fixture.build();
        for (id, received) in &block.delivered_terminals {
            fixture.editor.consume_terminal(id, *received);
        }
        block.result.text
    };
    let first = show(
        "SHOWN\ndiff --git a/f.env b/f.env\n--- a/f.env\n+++ b/f.env\n@@ -1,3 +1 @@\n-HIDDEN\n",
    );
    assert!(
        first.contains("SHOWN") && !first.contains("HIDDEN"),
        "{first}"
    );
    let later = show("-HIDDEN\n-HIDDEN\n+HIDDEN\nSHOWN\n");
    assert!(
        later.contains("SHOWN") && !later.contains("HIDDEN"),
        "{later}"
    );
}
