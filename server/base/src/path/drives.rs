//! The drives of Windows in paths of Git Bash, Cygwin and WSL.

use std::path::Path;

use super::AbsPath;

/// The folders that hold the drives.
const FOLDERS: [&str; 4] = ["/", "/cygdrive/", "/proc/cygdrive/", "/mnt/"];

/// Returns the letter of the drive of a path such as `/c/x` or `/cygdrive/c`, and the length of its part
/// before `/x`, in characters. `None` for other paths, and on other systems.
pub fn posix_drive(path: &str) -> Option<(char, usize)> {
    let find = |folder: &&str| {
        let rest = path.get(folder.len()..)?;
        let is_in = path[..folder.len()].eq_ignore_ascii_case(folder);
        let letter = rest.chars().next().filter(char::is_ascii_alphabetic)?;
        let ends = rest.len() == 1 || rest[1..].starts_with('/');
        (is_in && ends).then_some((letter, folder.len() + 1))
    };
    FOLDERS.iter().filter(|_| cfg!(windows)).find_map(find)
}

/// Returns such a path as Windows writes it, without `..`: `c:/x`. `None` for other paths, and on other systems.
pub fn on_drive(path: &str) -> Option<String> {
    // `//x` is another computer.
    if !cfg!(windows) || !path.starts_with('/') || path.starts_with("//") {
        return None;
    }
    let normal = AbsPath::new(Path::new(&format!("C:{path}")))?;
    let path = normal.as_path().to_str()?.get(2..)?.replace('\\', "/");
    let (letter, length) = posix_drive(&path)?;
    let below = path[length..].trim_start_matches('/');
    Some(format!("{letter}:/{below}"))
}

#[cfg(test)]
mod tests {
    use super::on_drive;

    #[test]
    fn drives_of_posix_shells_are_found() {
        let on_windows = |path| cfg!(windows).then_some(path);
        for path in [
            "/c/a/.env",
            "/C/a/.env",
            "/cygdrive/c/a/.env",
            "/proc/cygdrive/c/a/.env",
            "/mnt/c/a/.env",
            "/usr/../c/./a//.env",
        ] {
            let found = on_drive(path).map(|it| it.to_lowercase());
            assert_eq!(found.as_deref(), on_windows("c:/a/.env"), "{path}");
        }
        assert_eq!(on_drive("/c").as_deref(), on_windows("c:/"));
        for path in [
            "c/a",
            "/ca/b",
            "//c/a",
            "/",
            "/mnt/data/x",
            "/usr/c/x",
            r"\c\a",
        ] {
            assert_eq!(on_drive(path), None, "{path}");
        }
    }
}
