//! The command `git`, for questions about a repository that may belong to someone else.

use std::process::Command;

/// A setting without hooks. `/dev/null` is a folder of the current drive for git for Windows, which any user can
/// make; no folder of Windows has a name with `*`.
pub const NO_HOOKS: &str = "core.hooksPath=/dev/null/*";

/// Returns `git` without variables of the environment that could start a program or write a file, and without
/// access to other machines: a repository names the program that it fetches missing objects with.
pub fn git() -> Command {
    let mut command = Command::new("git");
    command.env_clear();
    for name in "PATH HOME SYSTEMROOT USERPROFILE XDG_CONFIG_HOME GIT_CONFIG_GLOBAL".split(' ') {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    for (name, value) in [
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        // Of versions before 2.45, which do not know the last one.
        ("GIT_ALLOW_PROTOCOL", ""),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("LC_ALL", "C"),
    ] {
        command.env(name, value);
    }
    command
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::NO_HOOKS;

    #[test]
    fn no_folder_has_hooks() {
        let (_, path) = NO_HOOKS.split_once('=').unwrap();
        let name = Path::new(path).file_name().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place = if cfg!(windows) {
            &folder.path().join(name)
        } else {
            Path::new(path)
        };
        assert!(std::fs::create_dir(place).is_err());
    }
}
