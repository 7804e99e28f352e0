//! Which texts are public within the project: an allowed file that git tracks contains them.
//!
//! An untracked file is no proof: a command may have copied a secret there.

use std::{collections::HashSet, fs, path::Path, time::SystemTime};

use memchr::memmem;
use sightline_base::{fs::dir::lstat, git::git, path::RelPath};

use super::files;
use crate::{AccessView, command::output_of};

/// Returns those of `texts` that an allowed file in the index of git contains. Where git cannot be asked,
/// none.
pub(super) fn in_tracked_files(view: &AccessView, texts: &[&str]) -> HashSet<String> {
    let mut public = HashSet::new();
    for (number, root) in view.roots().as_slice().iter().enumerate() {
        let mut command = git();
        command
            .current_dir(root.canonical.as_path())
            .args("-c safe.directory=* -c core.fsmonitor=false -c grep.fullName=false --no-pager grep".split(' '))
            .args("--cached -F -I -h -o -z --no-color -H -f -".split(' '));
        let Some(output) = output_of(command, texts.join("\n").into_bytes()) else {
            continue;
        };
        // `name NUL text LF`
        for line in output.split(|byte| *byte == b'\n') {
            let Some(end) = line.iter().position(|byte| *byte == 0) else {
                continue;
            };
            let (name, text) = (String::from_utf8_lossy(&line[..end]), &line[end + 1..]);
            let is_allowed = RelPath::new(Path::new(&*name))
                .is_some_and(|rel| view.judge_entry(number, &rel, false).is_none());
            if is_allowed && let Ok(text) = str::from_utf8(text) {
                public.insert(text.to_owned());
            }
        }
    }
    public
}

/// Maximum size of a file in which lines are looked for, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum size of all files in which lines are looked for, in bytes. What others contain counts as
/// secret.
const MAX_BYTES: u64 = 128 << 20;

/// Returns those of `lines` that an allowed file contains which has not changed since `before`. A
/// command that runs later may have copied a secret.
pub(super) fn in_older_files(
    view: &AccessView,
    lines: &[&str],
    before: SystemTime,
) -> HashSet<String> {
    let mut left: Vec<&str> = lines.to_vec();
    let mut public = HashSet::new();
    let mut bytes = 0;
    for (number, root) in view.roots().as_slice().iter().enumerate() {
        let mut folders = vec![RelPath::default()];
        while let Some(folder) = folders.pop() {
            let path = root.canonical.join(&folder).as_path().to_owned();
            for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                let (Ok(kind), rel) = (entry.file_type(), folder.child(&entry.file_name())) else {
                    continue;
                };
                if kind.is_dir() {
                    if !files::is_skipped(&entry.path())
                        && view.judge_entry(number, &rel, true).is_none()
                    {
                        folders.push(rel);
                    }
                    continue;
                }
                // Programs cannot set the time of the last change.
                let size = match lstat(&entry.path()) {
                    Ok(found) if kind.is_file() && found.stamp.changed() < before => {
                        found.stamp.size
                    }
                    _ => continue,
                };
                if size > MAX_FILE_BYTES || view.judge_entry(number, &rel, false).is_some() {
                    continue;
                }
                bytes += size;
                if left.is_empty() || bytes > MAX_BYTES {
                    return public;
                }
                let text = fs::read(entry.path()).unwrap_or_default();
                left.retain(|line| {
                    let is_found = memmem::find(&text, line.as_bytes()).is_some();
                    if is_found {
                        public.insert((*line).to_owned());
                    }
                    !is_found
                });
            }
        }
    }
    public
}
