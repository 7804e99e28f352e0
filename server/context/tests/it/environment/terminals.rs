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

#[test]
fn content_below_a_denied_heading_stays_hidden_to_its_end() {
    let frame = |name: &str, content: &str| {
        let content: String = content
            .lines()
            .enumerate()
            .map(|(n, line)| format!("   {}   │ {line}\n", n + 1))
            .collect();
        format!(
            "───────┬─────────\n       │ File: {name}\n───────┼─────────\n{content}───────┴─────────\n"
        )
    };
    let diff = |name: &str, content: &str| {
        format!(
            "diff --git a/{name} b/{name}\nindex 1..2 100644\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n{content}"
        )
    };
    for (name, output) in [
        (
            "bat",
            frame("f.env", "HIDDEN\n\n# HIDDEN\nHIDDEN") + "SHOWN\n",
        ),
        (
            "bat, two files",
            frame("f.env", "HIDDEN\n\nHIDDEN") + &frame("open.txt", "SHOWN"),
        ),
        (
            "bat without a frame",
            "File: f.env\nHIDDEN\n\nHIDDEN\n\nFile: open.txt\nSHOWN\n".to_owned(),
        ),
        (
            "head",
            "==> f.env <==\nHIDDEN\n\nHIDDEN\n\n\n# HIDDEN\n\n==> open.txt <==\nSHOWN\n".to_owned(),
        ),
        (
            "head, with a name in the content",
            "==> f.env <==\nHIDDEN\nx.secret\nHIDDEN\n\nHIDDEN\n\n==> open.txt <==\nSHOWN\n"
                .to_owned(),
        ),
        (
            "head, with a diff in the content",
            "==> f.env <==\ndiff --git a/x b/x\n+++ b/x\nHIDDEN\n\n==> open.txt <==\nSHOWN\n"
                .to_owned(),
        ),
        (
            "head, then a prompt with a known command",
            "==> f.env <==\nHIDDEN\n\nHIDDEN\nme@host:~/app$ make\nSHOWN\n".to_owned(),
        ),
        (
            "more",
            "::::::::::::::\nf.env\n::::::::::::::\nHIDDEN\n\nHIDDEN\n\
             ::::::::::::::\nopen.txt\n::::::::::::::\nSHOWN\n"
                .to_owned(),
        ),
        (
            "a search with headings",
            "f.env\n1:HIDDEN\n\nopen.txt\n1:SHOWN\n".to_owned(),
        ),
        (
            "diff",
            diff("f.env", "-HIDDEN\n+HIDDEN\n") + &diff("open.txt", "+SHOWN\n"),
        ),
        (
            "diff of a deleted file",
            "diff --git a/f.env b/f.env\ndeleted file mode 100644\n--- a/f.env\n+++ /dev/null\n\
             @@ -1,2 +0,0 @@\n-HIDDEN\n-HIDDEN\n"
                .to_owned()
                + &diff("open.txt", "+SHOWN\n"),
        ),
        (
            "diff with lines that look like headings",
            diff(
                "f.env",
                "--- HIDDEN comment\n+HIDDEN\n+++ HIDDEN\n+HIDDEN\n",
            ) + &diff("open.txt", "+SHOWN\n"),
        ),
        (
            "diff without a line of git",
            "--- f.env 2025\n+++ f.env 2026\n@@ -1 +1 @@\n-HIDDEN\n--- HIDDEN\n+HIDDEN\n\
             --- open.txt 2025\n+++ open.txt 2026\n@@ -1 +1 @@\n+SHOWN\n"
                .to_owned(),
        ),
        (
            "log with patches",
            format!(
                "{}commit 1111111111111111111111111111111111111111\nAuthor: SHOWN\n",
                diff("f.env", "-HIDDEN\n+HIDDEN\n")
            ),
        ),
    ] {
        let shown = shown(&output);
        assert!(
            !shown.contains("HIDDEN") && shown.contains("SHOWN"),
            "{name}: {shown}"
        );
    }
}

#[test]
fn content_that_continues_after_a_block_stays_hidden() {
    let mut fixture = Fixture::new(&["app"], &[("app/.clineignore", RULES)]);
    let mut show = |command: &str, output: &str| {
        fixture.terminals(&[("1", command, true, output)]);
        let block = fixture.build();
        for (id, received) in &block.delivered_terminals {
            fixture.editor.consume_terminal(id, *received);
        }
        block.result.text
    };
    let first = show(
        "tail -f logs",
        "==> open.txt <==\nSHOWN\n\n==> f.env <==\nHIDDEN\n",
    );
    assert!(
        first.contains("SHOWN") && !first.contains("HIDDEN"),
        "{first}"
    );
    for output in ["HIDDEN\n\nHIDDEN\n", "HIDDEN\n"] {
        let later = show("tail -f logs", output);
        assert!(!later.contains("HIDDEN"), "{later}");
    }
    let other = show("tail -f logs", "HIDDEN\n==> open.txt <==\nSHOWN\n");
    assert!(
        other.contains("SHOWN") && !other.contains("HIDDEN"),
        "{other}"
    );
    show("tail -f logs", "==> f.env <==\nHIDDEN\n");
    // Another command prints something else.
    let next = show("date", "Monday\n");
    assert!(next.contains("Monday"), "{next}");
}
