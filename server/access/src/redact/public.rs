//! Which texts are public within the project: an allowed file that git tracks contains them.
//!
//! An untracked file is no proof: a command may have copied a secret there.

use std::{collections::HashSet, path::Path};

use sightline_base::path::RelPath;

use crate::{
    AccessView,
    command::{git, output_of},
};

/// Returns those of `texts` that an allowed file in the index of git contains. Where git cannot be asked,
/// none.
pub(super) fn in_tracked_files(view: &AccessView, texts: &[&str]) -> HashSet<String> {
    let mut public = HashSet::new();
    for (number, root) in view.roots().as_slice().iter().enumerate() {
        let mut command = git();
        command
            .current_dir(root.canonical.as_path())
            .args([
                "-c",
                "safe.directory=*",
                "-c",
                "core.fsmonitor=false",
                "--no-pager",
                "grep",
            ])
            .args([
                "--cached",
                "-F",
                "-I",
                "-h",
                "-o",
                "-z",
                "--no-color",
                "--full-name",
                "-H",
                "-f",
                "-",
            ]);
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
