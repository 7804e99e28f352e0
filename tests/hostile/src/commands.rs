//! Shell commands: every text gets a verdict, and a command that reads a denied file
//! before the text starts is never allowed.

use std::{cell::OnceCell, fs};

use sightline_access::Access;
use sightline_base::{
    limits::MAX_COMMAND_BYTES,
    path::{AbsPath, Root, Roots},
};
use sightline_protocol::settings::Secrets;
use tempfile::TempDir;

use crate::draw::Draw;

/// Shell syntax, and names that exist in the folder.
const PIECES: &[&str] = &[
    "cat ",
    "secret.txt",
    "notes.txt",
    "'",
    "\"",
    "$(",
    ")",
    "`",
    "${",
    "}",
    "{a,",
    "<",
    ">",
    "<<E\n",
    "\nE\n",
    "|",
    "&&",
    ";",
    "\n",
    "\\",
    "*",
    "?",
    "[",
    "]",
    "(",
    "((",
    "))",
    "$((",
    "[[",
    "]]",
    "if ",
    "then ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "case ",
    "esac",
    "eval ",
    "sh -c ",
    "xargs ",
    "cd ..",
    "cd sub",
    "X=",
    "$X",
    "#",
    "~",
    "/",
    "..",
    "=(",
    "$'",
    "\u{0}",
    "\r\n",
    "日本",
    "f(){ ",
    "sudo ",
    "env ",
    "find . -exec ",
    "grep -r . ",
    "-",
    "--",
    "{1..9}",
    "{ ",
    "case x in a) ",
    ";; ",
    "esac ",
    "a",
    "b ",
    "; ",
    "fi ",
    "else ",
    "while ",
    "done ",
    "for ((",
    "f() ",
    "function f ",
    "coproc ",
    "[[ ",
    " ]]",
    "=~ ",
    " && ",
    " || ",
    " | ",
    "<(",
    "< ",
    "> ",
    "<<X ",
    "\nX\n",
    "<<< ",
    "2>&1 ",
    "${a:-",
    "a=",
    "a=(",
    "a[",
    "! ",
    "time ",
    "@(",
    "{1..",
    "&",
    "**/",
    "\\\n",
    "echo ",
    "cd ",
    ".env",
    "private/x",
    "$a",
    "python -c ",
    "9999999999999999999999",
    "rg -uu ",
    "tar cf x . ",
    "--exclude=",
    "-g '!",
    "git show ",
    "find . ",
    "-name x ",
    "\\( ",
    "\\) ",
    "! ",
    "-o ",
    "-exec cat {} + ",
    "-prune ",
    "docker run -v .:/w ",
    "/w/",
    "xargs -I% ",
    "%",
    "printf -v a ",
    "${a/",
    "${a:1:",
    "${!a",
    "declare -n a=a ",
    "IFS=a ",
    "sed s/a/",
    "GIT_PAGER='",
];

thread_local! {
    static GROUND: OnceCell<(TempDir, Access)> = const { OnceCell::new() };
}

fn ground() -> (TempDir, Access) {
    let folder = tempfile::tempdir().unwrap();
    let root = sightline_base::path::canonicalize(folder.path()).unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    for (name, text) in [
        (".clineignore", "secret.txt\n"),
        ("secret.txt", "s"),
        ("notes.txt", "n"),
        ("sub/secret.txt", "s"),
    ] {
        fs::write(root.join(name), text).unwrap();
    }
    let roots = Roots::new(vec![Root::new(AbsPath::new(&root).unwrap(), None)]);
    (
        folder,
        Access::new(roots.into(), Vec::new(), Secrets::Allow),
    )
}

/// Runs one case.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let mut text = String::new();
    while !draw.is_empty() {
        match draw.below(4) {
            0 => text.push_str(&draw.text(4)),
            1 => {
                let piece = draw.pick(PIECES);
                text.push_str(&piece.repeat(draw.below(60)));
            }
            _ => text.push_str(draw.pick(PIECES)),
        }
    }
    GROUND.with(|cell| {
        let view = cell.get_or_init(ground).1.view().0;
        let judged = view.check_command(&text);
        assert_eq!(judged.allowed, judged.denied.is_empty());
        let read = format!("cat secret.txt\n{text}");
        let judged = view.check_command(&read);
        assert!(!judged.allowed, "allowed: {read:?}");
        let long = format!("{text}{}", " ".repeat(MAX_COMMAND_BYTES));
        let judged = view.check_command(&long);
        assert!(text.is_empty() || !judged.allowed);
    });
}
