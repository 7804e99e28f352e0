//! Programs in a terminal of their size, with keys pressed and the screen read.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// Timeout for text to appear on the screen.
pub const DEADLINE: Duration = Duration::from_secs(30);
/// Polling interval of the screen.
pub const POLL: Duration = Duration::from_millis(50);

/// Returns whether tmux is missing.
pub fn is_missing() -> bool {
    Command::new("tmux").arg("-V").output().is_err()
}

/// A program in a terminal, ended with the test.
pub struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// Starts a program with variables in a folder, in a terminal of this many columns and rows.
    pub fn start(
        socket: &Path,
        variables: &[(&str, &std::ffi::OsStr)],
        (columns, rows): (u16, u16),
        folder: &Path,
        program: &[&std::ffi::OsStr],
    ) -> Self {
        let terminal = Self {
            socket: socket.to_owned(),
        };
        // tmux passes its environment to the programs inside.
        let started = terminal
            .tmux()
            .envs(variables.iter().copied())
            .args(["-f", "/dev/null", "new-session", "-d"])
            .args(["-x", &columns.to_string(), "-y", &rows.to_string(), "-c"])
            .arg(folder)
            .args(program)
            .status()
            .unwrap();
        assert!(started.success(), "tmux does not start");
        terminal
    }

    /// Makes a command of tmux for this terminal.
    pub fn tmux(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.env_remove("TMUX").arg("-S").arg(&self.socket);
        tmux
    }

    /// Presses keys, as tmux names them.
    pub fn press(&self, keys: &[&str]) {
        let pressed = self.tmux().arg("send-keys").args(keys).status().unwrap();
        assert!(pressed.success(), "{keys:?} cannot be pressed");
    }

    /// Returns the text on the screen.
    pub fn screen(&self) -> String {
        let output = self.tmux().args(["capture-pane", "-p"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until a text is on the screen. Returns the screen.
    pub fn wait(&self, text: &str) -> String {
        self.seen(text, DEADLINE)
            .unwrap_or_else(|| panic!("no {text:?} appears:\n{}", self.screen()))
    }

    /// Waits until a text is not on the screen any more.
    pub fn gone(&self, text: &str) {
        let begun = Instant::now();
        while self.screen().contains(text) {
            assert!(
                begun.elapsed() < DEADLINE,
                "{text:?} stays:\n{}",
                self.screen()
            );
            std::thread::sleep(POLL);
        }
    }

    /// Returns the screen once it has a text, or `None` if it does not get it in time.
    pub fn seen(&self, text: &str, within: Duration) -> Option<String> {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return Some(screen);
            }
            if begun.elapsed() > within {
                return None;
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux().arg("kill-server").output();
    }
}
