//! Tests of the record of turns.

use std::{fs, io::Write};

use sightline_base::cancel::Cancel;
use sightline_protocol::checkpoint::{AgentTurn, BlameAuthor, BlameLine};

use super::*;
use sightline_base::path::RelPath;

use crate::{
    Keep, Side,
    restore::{Options, Part, RestoreTarget, Scope},
    testing::Scratch,
};

impl Scratch {
    fn prompt(&self, session: &str, prompt: &str) -> Turn {
        let start = TurnStart {
            agent: "claude".to_owned(),
            session: session.to_owned(),
            prompt: Some(prompt.to_owned()),
            ..TurnStart::default()
        };
        let cancel = Cancel::default();
        self.job(&cancel, |job| self.checkpoints.begin_turn(job.view, start))
            .unwrap()
    }

    fn save(&self, session: &str, turn: &str, turn_end: bool) -> Arc<Checkpoint> {
        let mut request = Request::default();
        request.metadata.turn = Some(AgentTurn {
            agent: "claude".to_owned(),
            session: session.to_owned(),
            turn: turn.to_owned(),
        });
        request.metadata.turn_end = turn_end;
        let cancel = Cancel::default();
        self.job(&cancel, |job| {
            self.checkpoints.create_in_turn(job, &request, None)
        })
        .unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join("ws").join(name), text).unwrap();
    }

    fn turn(&self, name: &str) -> Turn {
        self.checkpoints
            .turn(&name.parse().unwrap())
            .unwrap()
            .unwrap()
    }

    fn log_path(&self) -> std::path::PathBuf {
        self.checkpoints.state_dir().join(log::FILE)
    }

    fn names(&self, before: Option<&str>) -> Vec<String> {
        let before = before.map(|name| name.parse().unwrap());
        let log = Log::read(&self.checkpoints.state_dir()).unwrap();
        log.turns(before.as_ref())
            .map(|turn| turn.name.to_string())
            .collect()
    }
}

#[test]
fn turns_get_names_that_are_never_used_again() {
    let scratch = Scratch::new();
    let names = [
        ("s1", "a"),
        ("s1", "b"),
        ("s2", "c"),
        ("s1", "d"),
        ("s10", "e"),
    ]
    .map(|(session, prompt)| scratch.prompt(session, prompt).name.to_string());
    assert_eq!(
        names,
        [
            "claude-1.1",
            "claude-1.2",
            "claude-2.1",
            "claude-1.3",
            "claude-3.1"
        ]
    );
    scratch.write("a", "1");
    let first = scratch.save("s10", "claude-3.1", false);
    let keep = Keep {
        without: vec![first.id],
        ..Keep::default()
    };
    scratch
        .checkpoints
        .prune(&keep, &Cancel::default())
        .unwrap();
    assert_eq!(scratch.prompt("s10", "f").name.to_string(), "claude-3.2");
    let removed = scratch
        .checkpoints
        .state_before(&scratch.turn("claude-3.1"));
    assert_eq!(
        removed.unwrap_err().to_string(),
        "the checkpoint before claude-3.1 was removed; list the checkpoints to see those that are kept"
    );
    // Names of checkpoints count without the file.
    scratch.save("s10", "claude-3.2", false);
    fs::remove_file(scratch.log_path()).unwrap();
    assert_eq!(scratch.prompt("s11", "g").name.to_string(), "claude-4.1");
}

#[test]
fn a_turn_has_the_states_before_and_after_it() {
    let scratch = Scratch::new();
    scratch.write("a", "0");
    scratch.prompt("s1", &format!("\n  {}é", "x".repeat(80)));
    let before = scratch.save("s1", "claude-1.1", false);
    scratch.write("a", "1");
    let after = scratch.save("s1", "claude-1.1", true);
    let turn = scratch.turn("claude-1.1");
    assert_eq!((turn.before, turn.after), (Some(before.id), Some(after.id)));
    assert!(turn.ended.is_some() && !turn.is_running());
    assert_eq!(turn.prompt.unwrap(), "x".repeat(60) + "…");
    assert!(after.metadata.turn_end && !before.metadata.turn_end);

    // Nothing changed: the end is the state before it.
    scratch.prompt("s1", "no change");
    let before = scratch.save("s1", "claude-1.2", false);
    assert_eq!(scratch.save("s1", "claude-1.2", true).id, before.id);
    let turn = scratch.turn("claude-1.2");
    assert_eq!(
        (turn.before, turn.after),
        (Some(before.id), Some(before.id))
    );

    // A turn that edits nothing is the newest state before it.
    scratch.prompt("s1", "a question");
    let turn = scratch.turn("claude-1.3");
    assert!(turn.is_running());
    assert_eq!(scratch.checkpoints.state_after(&turn).unwrap(), None);
    scratch.checkpoints.end_turn(&turn.name).unwrap();
    let turn = scratch.turn("claude-1.3");
    assert_eq!(scratch.checkpoints.state_before(&turn).unwrap(), before.id);
    assert_eq!(
        scratch.checkpoints.state_after(&turn).unwrap(),
        Some(before.id)
    );
}

/// A client without hooks names its turns as it likes.
#[test]
fn a_turn_that_was_not_announced_begins_with_its_first_edit() {
    let scratch = Scratch::new();
    scratch.write("a", "0");
    for (turn, end) in [("one", false), ("one", true), ("two", false)] {
        scratch.save("s1", turn, end);
        scratch.write("a", turn);
    }
    assert_eq!(scratch.names(None), ["claude-1.2", "claude-1.1"]);
    assert!(scratch.turn("claude-1.1").ended.is_some());
}

#[test]
fn a_killed_process_leaves_a_usable_list() {
    let scratch = Scratch::new();
    scratch.write("a", "0");
    scratch.prompt("s1", "one");
    let before = scratch.save("s1", "claude-1.1", false);
    scratch.write("a", "1");
    let after = scratch.save("s1", "claude-1.1", true);
    let text = fs::read(scratch.log_path()).unwrap();
    let first = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    // Killed after each number of bytes, also between a checkpoint and its record.
    for length in first..=text.len() {
        fs::write(scratch.log_path(), &text[..length]).unwrap();
        let turn = scratch.turn("claude-1.1");
        assert_eq!((turn.before, turn.after), (Some(before.id), Some(after.id)));
    }
    for length in 0..=text.len() {
        fs::write(scratch.log_path(), &text[..length]).unwrap();
        let known = scratch.names(None).len();
        scratch.prompt("s2", "two");
        scratch.prompt("s2", "three");
        let names = scratch.names(None);
        assert_eq!(names.len(), known + 2, "{length}");
        assert_eq!(names[..2], ["claude-2.2", "claude-2.1"], "{length}");
    }
}

#[test]
fn an_unfinished_line_does_not_hide_the_next() {
    let scratch = Scratch::new();
    scratch.prompt("s1", "one");
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(scratch.log_path())
        .unwrap();
    file.write_all(b"{\"event\":\"begin\",\"name\":\"cl\xff")
        .unwrap();
    scratch.prompt("s1", "two");
    assert_eq!(scratch.names(None), ["claude-1.2", "claude-1.1"]);
    assert_eq!(scratch.names(Some("claude-1.2")), ["claude-1.1"]);
    assert!(scratch.names(Some("claude-9.2")).is_empty());
}

#[test]
fn open_turns_of_the_session_and_of_ended_processes_are_interrupted() {
    let scratch = Scratch::new();
    let names = |session: &str| {
        let turns = scratch
            .checkpoints
            .interrupted_turns("claude", session)
            .unwrap();
        let names = turns.iter().map(|turn| turn.name.to_string());
        names.collect::<Vec<_>>()
    };
    scratch.prompt("s1", "one");
    scratch.prompt("s1", "two");
    assert_eq!(names("s1"), ["claude-1.2"], "the first one has ended");
    assert!(names("s2").is_empty());
    let words: &[&str] = match cfg!(windows) {
        true => &["cmd", "/c", "pause"],
        false => &["sleep", "60"],
    };
    let mut child = std::process::Command::new(words[0])
        .args(&words[1..])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let start = TurnStart {
        agent: "codex".to_owned(),
        session: "c".to_owned(),
        process: AgentProcess::among(&[child.id()]),
        ..TurnStart::default()
    };
    let cancel = Cancel::default();
    scratch
        .job(&cancel, |job| {
            scratch.checkpoints.begin_turn(job.view, start)
        })
        .unwrap();
    assert!(names("s2").is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    if cfg!(target_os = "linux") {
        assert_eq!(names("s2"), ["codex-1.1"]);
    }
}

impl Scratch {
    /// Returns the author of each line, shortened: the turns, `user` or `?`.
    fn blame(&self, name: &str) -> Vec<String> {
        let path = RelPath::new(std::path::Path::new(name)).unwrap();
        let content = fs::read(self.folder.path().join("ws").join(name)).unwrap();
        let cancel = Cancel::default();
        let blamed = self.job(&cancel, |job| self.checkpoints.blame(job, &path, &content));
        let author = |line: BlameLine| match line.by {
            BlameAuthor::Agent => {
                assert_eq!(line.agent.as_deref(), Some("claude"));
                assert_eq!(line.turn.is_none(), line.turns.len() > 1);
                line.turn.unwrap_or_else(|| line.turns.join("+"))
            }
            BlameAuthor::User => "user".to_owned(),
            BlameAuthor::Unknown => {
                assert_eq!(line.at, None);
                "?".to_owned()
            }
        };
        blamed.unwrap().into_iter().map(author).collect()
    }

    fn create(&self) -> Oid {
        let cancel = Cancel::default();
        let created = self.job(&cancel, |job| {
            self.checkpoints.create(job, &Request::default(), None)
        });
        created.unwrap().id
    }

    fn restore(&self, id: Oid, scope: Scope) {
        let wanted = RestoreTarget {
            id,
            paths: Vec::new(),
            scope,
        };
        let cancel = Cancel::default();
        let options = Options::default();
        let restored = self.job(&cancel, |job| {
            self.checkpoints
                .restore(job, &wanted, &Default::default(), &options)
        });
        for outcome in restored.unwrap().outcomes {
            assert_eq!(outcome.error, None);
        }
    }
}

#[test]
fn each_line_is_of_the_turn_that_wrote_it_or_of_the_user() {
    let scratch = Scratch::new();
    scratch.write("f", "old\n");
    scratch.prompt("s1", "one");
    let before = scratch.save("s1", "claude-1.1", false);
    scratch.write("f", "old\nfirst\n");
    scratch.save("s1", "claude-1.1", true);
    assert_eq!(scratch.blame("f"), ["?", "claude-1.1"]);
    // The user, between two turns.
    scratch.write("f", "mine\nold\nfirst\n");
    scratch.prompt("s1", "two");
    scratch.save("s1", "claude-1.2", false);
    scratch.write("f", "mine\nold\nfirst\nsecond\n");
    let running = ["user", "?", "claude-1.1", "claude-1.2"];
    assert_eq!(scratch.blame("f"), running, "it is running");
    scratch.save("s1", "claude-1.2", true);
    let ws = scratch.folder.path().join("ws");
    fs::rename(ws.join("f"), ws.join("g")).unwrap();
    scratch.create();
    scratch.write("g", "mine\nold\nfirst\nsecond\nnow\n");
    let all = ["user", "?", "claude-1.1", "claude-1.2", "user"];
    assert_eq!(scratch.blame("g"), all, "it was renamed");

    // Lines that a restore brings back keep their authors.
    let newest = scratch.create();
    scratch.restore(before.id, Scope::All);
    assert_eq!(scratch.blame("f"), ["?"]);
    scratch.write("f", "old\nlater\n");
    assert_eq!(scratch.blame("f"), ["?", "user"]);
    scratch.restore(newest, Scope::All);
    assert_eq!(scratch.blame("g"), all);
}

#[test]
fn lines_keep_their_authors_when_a_turn_is_reverted() {
    let scratch = Scratch::new();
    let lines = |changed: &[(usize, &str)]| {
        let line = |at: usize| {
            let new = changed.iter().find(|(line, _)| *line == at);
            new.map_or_else(|| format!("{at}\n"), |(_, text)| format!("{text}\n"))
        };
        (1..=9).map(line).collect::<String>()
    };
    scratch.write("f", &lines(&[]));
    scratch.prompt("s1", "one");
    let before = scratch.save("s1", "claude-1.1", false);
    scratch.write("f", &lines(&[(1, "one")]));
    let after = scratch.save("s1", "claude-1.1", true);
    scratch.prompt("s1", "two");
    scratch.save("s1", "claude-1.2", false);
    scratch.write("f", &lines(&[(1, "one"), (5, "two")]));
    scratch.save("s1", "claude-1.2", true);
    scratch.write("f", &lines(&[(1, "one"), (5, "two"), (9, "mine")]));
    let part = Part {
        until: Side::Checkpoint(after.id),
        hunks: Vec::new(),
    };
    scratch.restore(before.id, Scope::Part(part));
    let mut expected = vec!["?"; 9];
    (expected[4], expected[8]) = ("claude-1.2", "user");
    assert_eq!(scratch.blame("f"), expected);
}

#[test]
fn a_line_around_which_a_state_is_missing_is_unknown() {
    let scratch = Scratch::new();
    scratch.write("f", "old\n");
    // Two turns at once.
    for session in ["s1", "s2"] {
        scratch.prompt(session, "at once");
    }
    scratch.save("s1", "claude-1.1", false);
    scratch.write("f", "old\nfirst\n");
    scratch.save("s2", "claude-2.1", false);
    scratch.write("f", "old\nfirst\nboth\n");
    scratch.save("s2", "claude-2.1", true);
    scratch.write("f", "old\nfirst\nboth\nlast\n");
    scratch.save("s1", "claude-1.1", true);
    let shared = ["?", "claude-1.1", "claude-2.1+claude-1.1", "claude-1.1"];
    assert_eq!(scratch.blame("f"), shared);

    // The end of a turn was not saved.
    scratch.prompt("s1", "interrupted");
    scratch.save("s1", "claude-1.2", false);
    scratch.write("f", "old\nfirst\nboth\nlast\nlost\n");
    let turn = scratch.turn("claude-1.2");
    scratch.checkpoints.end_turn(&turn.name).unwrap();
    // So that the next checkpoint is later than the end.
    std::thread::sleep(std::time::Duration::from_millis(3));
    scratch.create();
    scratch.write("f", "old\nfirst\nboth\nlast\nlost\nmine\n");
    let lost = [&shared[..], &["?", "user"]].concat();
    assert_eq!(scratch.blame("f"), lost);

    // The file was not captured for a while.
    scratch.create();
    scratch.write(".gitignore", "f\n");
    scratch.prompt("s1", "ignored");
    scratch.save("s1", "claude-1.3", false);
    scratch.write("f", "old\nfirst\nboth\nlast\nlost\nmine\nignored\n");
    scratch.save("s1", "claude-1.3", true);
    fs::remove_file(scratch.folder.path().join("ws/.gitignore")).unwrap();
    scratch.create();
    let ignored = [&lost[..], &["?"]].concat();
    assert_eq!(scratch.blame("f"), ignored);
}
