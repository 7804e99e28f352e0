//! `sightline init`: writes a `.clineignore`.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use sightline_access::{
    RULE_FILE,
    lint::{self, Line},
};
use sightline_base::{
    escape::one_line,
    limits::{MAX_PATTERNS, MAX_RULE_FILE_BYTES},
    path::AbsPath,
    plural::plural,
};
use sightline_engine::error::Error;

use super::{
    DONE, NEGATIVE, Workspace,
    checkpoints::{ConfirmArgs, Proceed, ask},
    offline, print, print_message,
};

/// Rule files of other agents, with the same syntax.
const OTHER_FILES: [&str; 5] = [
    ".cursorignore",
    ".geminiignore",
    ".rooignore",
    ".aiexclude",
    ".aiignore",
];

const TEMPLATE: &str = "\
# Files that agents must not see, with the syntax of .gitignore.
#
# Built-in rules already deny .env, private keys and other files that usually contain
# secrets. A line that starts with ! allows such a file:
#
# !.env
#
# These files often contain secrets as well:
#
# .envrc
# secret.yaml
# *.tfstate
# *.tfvars
#
# The lines of another file:
#
# !include .gitignore
";

#[derive(clap::Args)]
pub(super) struct Init {
    /// Workspace folder.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

pub(super) fn run(arguments: &Init) -> Result<i32, Error> {
    let workspace = Workspace::new(arguments.root.clone(), None);
    let folder = offline::root(&workspace)?.path;
    let path = folder.as_path().join(RULE_FILE);
    if fs::symlink_metadata(&path).is_ok() {
        return Ok(exists(&path));
    }
    let mut found = String::new();
    for name in OTHER_FILES {
        let lines = patterns_in(&folder, name);
        if !lines.is_empty() {
            found.push_str(&format!("\n# From {name}\n{}\n", lines.join("\n")));
        }
    }
    let mut text = TEMPLATE.to_owned();
    if !found.is_empty() {
        let proceed = arguments.confirm.proceed();
        if !matches!(proceed, Ok(Proceed::DryRun)) {
            print(&printable(&found))?;
        }
        let takes = match proceed? {
            Proceed::Ask => {
                ask("With y, .clineignore gets these lines, otherwise only comments. ")?
            }
            Proceed::Yes | Proceed::DryRun => true,
        };
        if takes {
            text.push_str(&found);
        }
    }
    if matches!(arguments.confirm.proceed(), Ok(Proceed::DryRun)) {
        print(&format!(
            "would write {}:\n\n{}",
            path.display(),
            printable(&text)
        ))?;
        return Ok(DONE);
    }
    match write(&path, &text) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(exists(&path)),
        Err(error) => {
            let message = format!("cannot write {}: {error}", path.display());
            return Err(Error::storage(message));
        }
    }
    print(&format!(
        "wrote {}\nBuilt-in secrets (.env, private keys, ...) are denied as well. `sightline access FILE` shows the rule for a file.\n",
        path.display()
    ))?;
    Ok(DONE)
}

fn printable(text: &str) -> String {
    let lines = text.trim().lines();
    lines.map(|line| format!("{}\n", one_line(line))).collect()
}

fn exists(path: &Path) -> i32 {
    let path = path.display();
    print_message(&format!("{path} exists; nothing was changed"));
    NEGATIVE
}

/// Writes a new file.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    if written.is_err() {
        // An incomplete file would deny less than it should.
        let _ = fs::remove_file(path);
    }
    written
}

/// Returns the patterns of a rule file of another agent. Lines that mean something else in `.clineignore`, such as
/// `!include`, are left out.
fn patterns_in(folder: &AbsPath, name: &str) -> Vec<String> {
    let text = match read(&folder.as_path().join(name)) {
        Ok(Some(text)) => text,
        Ok(None) => return Vec::new(),
        Err(error) => {
            print_message(&format!("{name} is skipped: {error}"));
            return Vec::new();
        }
    };
    let kinds = lint::lines(folder, text.as_bytes());
    let mut left_out = 0;
    let mut patterns = Vec::new();
    for (line, kind) in text.trim_start_matches('\u{feff}').split('\n').zip(kinds) {
        match kind {
            Line::Pattern { .. } => patterns.push(line.trim_end_matches('\r').to_owned()),
            Line::Nothing => {}
            Line::Unmatchable | Line::TooLarge | Line::Include { .. } => left_out += 1,
        }
    }
    if patterns.len() > MAX_PATTERNS / OTHER_FILES.len() {
        print_message(&format!("{name} is skipped: it has too many lines"));
        return Vec::new();
    }
    if left_out > 0 {
        let lines = plural(left_out, "line");
        print_message(&format!(
            "{name}: {lines} left out, because .clineignore cannot contain them"
        ));
    }
    patterns
}

/// Reads a text file. Returns `None` if there is no regular file.
fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut text = String::new();
    // Leaves space for the lines of the other files.
    let limit = MAX_RULE_FILE_BYTES / (OTHER_FILES.len() as u64 + 1);
    File::open(path)?
        .take(limit + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes")));
    }
    Ok(Some(text))
}
