//! `sightline checkpoint restore` without an id, in a real terminal.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Read,
    os::unix::fs::OpenOptionsExt,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use sightline_testing::tmux::{self, Terminal};

use super::{ask, edit, stop};
use crate::harness::{Server, Workspace, wait};

/// Prints the exit code and whether the terminal is as before, and stays.
const SCRIPT: &str = "stty -g > before; sh -c 'echo $$ > pid; exec \"$0\" \"$@\"' \"$@\"; code=$?; \
                      stty -g | cmp -s - before && echo code=$code; exec sleep 60";

/// Opens a terminal without making it that of the process group.
const NOCTTY: i32 = rustix::fs::OFlags::NOCTTY.bits().cast_signed();

/// Number of terminals that were opened.
static OPENED: AtomicU32 = AtomicU32::new(0);

/// A project whose third turn broke it.
fn workspace() -> Workspace {
    let workspace = Workspace::new(&[
        (".clineignore", "before\npid\n"),
        ("README.md", "shop\n"),
        ("src/cart.js", "one\n"),
    ]);
    ask(&workspace, "s1", "what is this?");
    stop(&workspace, "s1");
    ask(&workspace, "s1", "add a file");
    edit(&workspace, "s1", "src/new.js");
    workspace.write("src/new.js", "new\n");
    stop(&workspace, "s1");
    ask(&workspace, "s1", "clean\u{1b}[31m up");
    edit(&workspace, "s1", "src/cart.js");
    workspace.write("src/cart.js", "broken\u{1b}[31m\n");
    fs::remove_file(workspace.path("README.md")).unwrap();
    stop(&workspace, "s1");
    workspace
}

/// Runs the picker. `None`: there is no tmux.
fn open(workspace: &Workspace, variables: &[(&str, &str)], size: (u16, u16)) -> Option<Terminal> {
    if tmux::is_missing() {
        assert!(std::env::var_os("CI").is_none(), "tmux is missing");
        eprintln!("skipped: tmux is missing");
        return None;
    }
    let home = workspace.data().into_os_string();
    let mut all: Vec<(&str, &OsStr)> = vec![
        ("HOME", &home),
        ("XDG_CONFIG_HOME", &home),
        ("LANG", "C.UTF-8".as_ref()),
        ("NO_COLOR", "".as_ref()),
        ("TERM", "xterm-256color".as_ref()),
    ];
    all.extend(
        variables
            .iter()
            .map(|(name, value)| (*name, OsStr::new(value))),
    );
    // tmux sets `TERM` itself.
    let term = variables.iter().find(|(name, _)| *name == "TERM");
    let term = format!("TERM={}", term.map_or("tmux-256color", |(_, value)| value));
    let words = [
        "env",
        &term,
        "sh",
        "-c",
        SCRIPT,
        "sh",
        env!("CARGO_BIN_EXE_sightline"),
    ];
    let mut program: Vec<&OsStr> = words.map(OsStr::new).to_vec();
    program.extend(["checkpoint", "restore", "--storage"].map(OsStr::new));
    program.push(&home);
    // A server that ends keeps its socket for a moment.
    let number = OPENED.fetch_add(1, Ordering::Relaxed);
    let socket = workspace.data().with_extension(format!("tmux{number}"));
    Some(Terminal::start(
        &socket,
        &all,
        size,
        &workspace.root(),
        &program,
    ))
}

fn read(workspace: &Workspace, path: &str) -> Option<String> {
    fs::read_to_string(workspace.path(path)).ok()
}

/// Returns whether the alternate screen is shown.
fn is_alternate(terminal: &Terminal) -> bool {
    let shown = ["display-message", "-p", "#{alternate_on}"];
    terminal.tmux().args(shown).output().unwrap().stdout == b"1\n"
}

#[test]
fn two_keys_restore_the_project_and_a_third_undoes_it() {
    // The running server of an editor, and none.
    for with_server in [true, false] {
        let workspace = workspace();
        let server = with_server.then(|| Server::initialized(workspace.initialize()));
        let Some(terminal) = open(&workspace, &[], (80, 24)) else {
            return;
        };
        let screen = terminal.wait("D README.md");
        let lines: Vec<&str> = screen.lines().collect();
        assert!(lines[1].contains("claude-1.3 +1 −2 2 files"), "{screen}");
        assert!(lines[2].contains(r"clean\u{1b}[31m up"), "{screen}");
        terminal.wait(r"+broken\u{1b}[31m");
        terminal.press(&["Enter"]);
        let screen = terminal.wait("2 files to restore");
        assert!(
            screen.starts_with("Restore to before turn 3 of claude-1, "),
            "{screen}"
        );
        assert!(screen.contains("[x] write  README.md"), "{screen}");
        terminal.press(&["Enter"]);
        terminal.wait("2 files restored.");
        assert_eq!(read(&workspace, "README.md").as_deref(), Some("shop\n"));
        assert_eq!(read(&workspace, "src/cart.js").as_deref(), Some("one\n"));
        assert_eq!(read(&workspace, "src/new.js").as_deref(), Some("new\n"));
        terminal.press(&["u"]);
        terminal.wait("The restore was undone: 2 files.");
        assert_eq!(read(&workspace, "README.md"), None);
        assert_eq!(
            read(&workspace, "src/cart.js").as_deref(),
            Some("broken\u{1b}[31m\n")
        );
        terminal.press(&["q"]);
        let screen = terminal.wait("code=0");
        assert!(
            screen.contains("2 paths restored; undo with `sightline checkpoint undo "),
            "{screen}"
        );
        assert!(!is_alternate(&terminal));
        drop(server);
    }
}

#[test]
fn single_files_are_restored() {
    let workspace = workspace();
    let Some(terminal) = open(&workspace, &[], (120, 30)) else {
        return;
    };
    terminal.wait("D README.md");
    terminal.press(&["/"]);
    terminal.press(&["-l", "clean"]);
    terminal.wait("/clean_  1 found");
    terminal.press(&["Enter", "Enter"]);
    terminal.wait("2 files to restore");
    terminal.press(&["Down", "Space"]);
    terminal.wait("1 of 2 files to restore");
    terminal.press(&["Enter"]);
    terminal.wait("1 file restored.");
    terminal.press(&["Enter"]);
    terminal.wait("code=0");
    assert_eq!(read(&workspace, "README.md").as_deref(), Some("shop\n"));
    assert_eq!(
        read(&workspace, "src/cart.js").as_deref(),
        Some("broken\u{1b}[31m\n")
    );
}

#[test]
fn every_way_out_leaves_the_terminal_as_it_was() {
    let workspace = workspace();
    let interrupts: [&[&str]; 4] = [&["q"], &["C-c"], &["Enter", "C-c"], &["Escape"]];
    for keys in interrupts {
        let Some(terminal) = open(&workspace, &[], (80, 24)) else {
            return;
        };
        terminal.wait("D README.md");
        assert!(is_alternate(&terminal));
        for key in keys {
            terminal.press(&[key]);
        }
        terminal.wait("code=1");
        assert!(!is_alternate(&terminal), "{keys:?}");
    }
    let Some(terminal) = open(&workspace, &[], (80, 24)) else {
        return;
    };
    terminal.wait("D README.md");
    let pid = fs::read_to_string(workspace.path("pid")).unwrap();
    let killed = Command::new("kill").arg(pid.trim()).status();
    assert!(killed.unwrap().success());
    terminal.wait("code=1");
    assert!(!is_alternate(&terminal));
    assert_eq!(read(&workspace, "README.md"), None);
}

/// The window is closed, with the terminal as that of the process group, which gets a signal, and
/// without.
#[cfg(target_os = "linux")]
#[test]
fn it_ends_when_its_terminal_is_gone() {
    let workspace = workspace();
    for with_signal in [true, false] {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let terminal = || {
            let mut options = File::options();
            options.read(true).write(true).custom_flags(NOCTTY);
            options.open(&name).unwrap()
        };
        let program = env!("CARGO_BIN_EXE_sightline");
        let mut command = if with_signal {
            let mut command = Command::new("setsid");
            command.args(["--ctty", program]);
            command
        } else {
            Command::new(program)
        };
        let mut child = command
            .args(["checkpoint", "restore", "--storage"])
            .arg(workspace.data())
            .current_dir(workspace.root())
            .env("HOME", workspace.data())
            .env("TERM", "xterm-256color")
            .stdin(terminal())
            .stdout(terminal())
            .stderr(terminal())
            .spawn()
            .unwrap();
        let mut master = File::from(master);
        let mut drawn = Vec::new();
        while !String::from_utf8_lossy(&drawn).contains("claude-1.3") {
            let mut buffer = [0; 4096];
            let count = master.read(&mut buffer).unwrap();
            drawn.extend_from_slice(&buffer[..count]);
        }
        drop(master);
        assert_ne!(wait(&mut child, "the picker"), 0);
    }
}

#[test]
fn the_screen_follows_the_size_of_the_terminal() {
    let workspace = workspace();
    let Some(terminal) = open(&workspace, &[], (80, 24)) else {
        return;
    };
    terminal.wait("D README.md");
    let resize = |columns: &str, rows: &str| {
        let words = ["resize-window", "-x", columns, "-y", rows];
        assert!(terminal.tmux().args(words).status().unwrap().success());
    };
    resize("40", "8");
    terminal.gone("changed by");
    terminal.press(&["Tab"]);
    terminal.wait("changed by claude-1.3");
    terminal.press(&["Tab"]);
    resize("150", "40");
    let screen = terminal.wait("claude-1.1 no changes");
    assert!(screen.contains("changed by claude-1.3"), "{screen}");
}

#[test]
fn a_terminal_without_a_cursor_gets_a_numbered_list() {
    let workspace = workspace();
    let Some(terminal) = open(&workspace, &[("TERM", "dumb")], (100, 40)) else {
        return;
    };
    let screen = terminal.wait("Number of the state to restore");
    assert!(screen.starts_with("1  "), "{screen}");
    assert!(
        screen.contains("\n2  ") && !is_alternate(&terminal),
        "{screen}"
    );
    terminal.press(&["-l", "9"]);
    terminal.press(&["Enter"]);
    terminal.wait("not a number from 1 to");
    terminal.press(&["-l", "/clean"]);
    terminal.press(&["Enter"]);
    assert!(terminal.seen("\n1  ", Duration::from_secs(30)).is_some());
    terminal.press(&["-l", "1"]);
    terminal.press(&["Enter"]);
    let screen = terminal.wait("Proceed? [y/N]");
    assert!(
        screen.contains("Restore to before turn 3 of claude-1"),
        "{screen}"
    );
    terminal.press(&["-l", "y"]);
    terminal.press(&["Enter"]);
    terminal.wait("code=0");
    assert_eq!(read(&workspace, "README.md").as_deref(), Some("shop\n"));
}

#[test]
fn colors_are_left_out_where_they_are_not_wanted() {
    let workspace = workspace();
    for (value, has_colors) in [("", true), ("1", false)] {
        let Some(terminal) = open(&workspace, &[("NO_COLOR", value)], (80, 24)) else {
            return;
        };
        terminal.wait("D README.md");
        let captured = terminal.tmux().args(["capture-pane", "-p", "-e"]).output();
        let screen = String::from_utf8(captured.unwrap().stdout).unwrap();
        let is_red = screen.contains("\u{1b}[38;5;1m");
        assert_eq!(is_red, has_colors, "{screen:?}");
    }
}

/// Lines of a file, two of which are changed.
fn lines(first: &str, last: &str) -> String {
    let middle: String = (2..20).map(|line| format!("{line}\n")).collect();
    format!("{first}\n{middle}{last}\n")
}

/// A project whose turn changed two places of a file, and created another one.
fn two_places() -> Workspace {
    let workspace = Workspace::new(&[(".clineignore", "before\npid\n"), ("f", &lines("1", "20"))]);
    ask(&workspace, "s1", "change it");
    edit(&workspace, "s1", "f");
    workspace.write("f", &lines("one", "twenty"));
    workspace.write("new", "new\n");
    stop(&workspace, "s1");
    workspace
}

#[test]
fn hunks_are_chosen_next_to_their_difference() {
    for (keys, expected) in [
        // The first hunk is left out; the other file is restored whole.
        (&["Space"][..], lines("one", "20")),
        (&["Down", "Space"], lines("1", "twenty")),
        (&["Space", "Down", "Space", "Space"], lines("one", "20")),
    ] {
        let workspace = two_places();
        let Some(terminal) = open(&workspace, &[], (80, 24)) else {
            return;
        };
        terminal.wait("changed by claude-1.1");
        terminal.press(&["Enter"]);
        terminal.wait(" [x] @@ -1,4 +1,4 @@");
        terminal.press(&["Right"]);
        terminal.wait(">[x] @@ -1,4 +1,4 @@");
        terminal.press(keys);
        let screen = terminal.wait("[~] write  f");
        assert!(screen.contains("[ ] @@"), "{screen}");
        terminal.press(&["Enter"]);
        terminal.wait("2 files restored.");
        assert_eq!(read(&workspace, "f"), Some(expected));
        assert_eq!(read(&workspace, "new"), None);
        terminal.press(&["u"]);
        terminal.wait("The restore was undone: 2 files.");
        assert_eq!(read(&workspace, "f"), Some(lines("one", "twenty")));
        assert_eq!(read(&workspace, "new").as_deref(), Some("new\n"));
    }
}

/// The numbers of hunks may be those of others then.
#[test]
fn a_file_that_changes_after_its_hunks_were_chosen_is_not_restored() {
    let workspace = two_places();
    let Some(terminal) = open(&workspace, &[], (80, 24)) else {
        return;
    };
    terminal.wait("changed by claude-1.1");
    terminal.press(&["Enter"]);
    terminal.wait(" [x] @@ -1,4 +1,4 @@");
    terminal.press(&["Right", "Space"]);
    terminal.wait("[~] write  f");
    let changed = format!("0\n{}", lines("one", "twenty"));
    workspace.write("f", &changed);
    terminal.press(&["Enter"]);
    let screen = terminal.wait("a file changed after its hunks were chosen");
    assert!(screen.contains("[ ] write  f"), "{screen}");
    assert_eq!(read(&workspace, "f"), Some(changed));
    terminal.wait("@@ -1,4 +1,5 @@");
}

#[test]
fn the_question_shows_changes_and_takes_their_numbers() {
    let workspace = two_places();
    let Some(terminal) = open(&workspace, &[("TERM", "dumb")], (80, 60)) else {
        return;
    };
    let type_line = |text: &str| {
        terminal.press(&["-l", text]);
        terminal.press(&["Enter"]);
    };
    terminal.wait("Number of the state to restore");
    type_line("1");
    let screen = terminal.wait("Proceed? [y/N]");
    assert!(!screen.contains("+twenty"), "{screen}");
    type_line("d");
    terminal.wait("+twenty");
    type_line("h");
    let screen = terminal.wait("Numbers of the changes to restore");
    for line in [
        "write f",
        "  1  @@ -1,4 +1,4 @@",
        "     +one",
        "  2  @@ -17,4 +17,4 @@",
        "delete new",
        "  3  @@ -0,0 +1 @@",
    ] {
        assert!(
            screen.lines().any(|shown| shown == line),
            "{line}: {screen}"
        );
    }
    type_line("4");
    terminal.wait("not numbers from 1 to 3");
    type_line("2-3");
    let screen = terminal.wait("code=0");
    assert!(screen.contains("2 paths restored; undo with"), "{screen}");
    assert_eq!(read(&workspace, "f"), Some(lines("one", "20")));
    assert_eq!(read(&workspace, "new"), None);
}

/// Also with an option that the list does not have.
#[test]
fn without_a_terminal_an_id_is_needed() {
    let workspace = workspace();
    for arguments in [
        vec!["checkpoint", "restore"],
        vec!["checkpoint", "restore", "--yes"],
        vec!["checkpoint", "restore", "--json"],
    ] {
        let (code, text, error) = crate::ipc::run(&workspace, &arguments);
        assert_eq!((code, &*text), (2, ""), "{error}");
        assert!(error.contains("the ID of a checkpoint"), "{error}");
    }
    assert_eq!(read(&workspace, "README.md"), None);
}
