//! Selects the files whose text is sent with a summary: changed files first, then the most
//! mentioned, then the last read. Drops files that do not fit.

use std::{cmp::Reverse, collections::HashSet};

use sightline_base::{cancel::Cancel, error::Error, escape::one_line};

use sightline_protocol::compaction::{KeyFile, KeyFileReason};

use super::{
    WorkspaceAccess,
    activity::{Activity, FileActivity},
    shorten_text,
};

/// Maximum size of all texts together, in bytes.
pub(super) const MAX_BYTES: usize = 100_000;
/// Maximum number of files, regardless of the request.
const MAX_FILES: u32 = 100;
/// Maximum number of files that are tried without success: deleted files, folders, binary
/// files.
const MAX_TRIES: usize = 500;

/// A selected file and the part of its text that fits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SelectedFile {
    pub(super) file: KeyFile,
    pub(super) text: String,
    pub(super) total_lines: u64,
}

impl SelectedFile {
    /// Describes the part of the file that is included.
    pub(super) fn label(&self) -> String {
        let KeyFile { path, lines, .. } = &self.file;
        format!("{path} ({lines} of {} lines)", self.total_lines)
    }

    /// Formats the file as a block of a summary message.
    pub(super) fn block(&self) -> String {
        let path = self.file.path.replace('"', "&quot;");
        let newline = if self.text.ends_with('\n') { "" } else { "\n" };
        format!(
            "# File {}\n\n<file_content path=\"{path}\">\n{}{newline}</file_content>",
            self.label(),
            self.text
        )
    }
}

/// Selects and reads files. `max` limits the total size of their texts, in bytes.
///
/// # Errors
/// `cancelled`.
pub(super) fn choose(
    activity: &Activity,
    workspace: &WorkspaceAccess<'_>,
    max_files: u32,
    max_lines: u32,
    max: usize,
    cancel: &Cancel,
) -> Result<Vec<SelectedFile>, Error> {
    let max_files = max_files.min(MAX_FILES) as usize;
    let max_lines = u64::from(max_lines);
    let mut left = max;
    let mut tries = 0;
    let mut selected: Vec<SelectedFile> = Vec::new();
    let mut names = HashSet::new();
    for file in by_importance(&activity.files) {
        cancel.check()?;
        if selected.len() == max_files || max_lines == 0 || left == 0 || tries == MAX_TRIES {
            break;
        }
        let Some(read) = (workspace.read)(&file.path, max_lines, left as u64) else {
            tries += 1;
            continue;
        };
        let (text, lines) = shorten_text::first_lines(&read.text, max_lines, left);
        let path = one_line(&read.path).into_owned();
        // Skip duplicates under another name, and empty files.
        if lines == 0 || !names.insert(path.clone()) {
            tries += 1;
            continue;
        }
        left -= text.len();
        selected.push(SelectedFile {
            file: KeyFile {
                path,
                reason: reason(file),
                lines,
            },
            text: text.to_owned(),
            total_lines: read.total_lines.max(lines),
        });
    }
    Ok(selected)
}

/// Returns the files that together cost less than `room`. If a file does not fit, files after
/// it are still tried.
pub(super) fn fitting(
    selected: Vec<SelectedFile>,
    costs: impl Iterator<Item = f64>,
    room: f64,
) -> Vec<SelectedFile> {
    let mut left = room;
    let mut fits = |cost: f64| {
        let fits = cost < left;
        if fits {
            left -= cost;
        }
        fits
    };
    selected
        .into_iter()
        .zip(costs)
        .filter_map(|(file, cost)| fits(cost).then_some(file))
        .collect()
}

fn reason(file: &FileActivity) -> KeyFileReason {
    if file.changed || file.changed_by_user {
        KeyFileReason::Modified
    } else if file.mentions > 1 {
        KeyFileReason::Mentioned
    } else {
        KeyFileReason::Recent
    }
}

fn by_importance(files: &[FileActivity]) -> Vec<&FileActivity> {
    let mut files: Vec<&FileActivity> = files.iter().collect();
    files.sort_by_cached_key(|file| {
        (
            reason(file),
            Reverse((file.mentions, file.position, file.time)),
            file.path.clone(),
        )
    });
    files
}

#[cfg(test)]
mod tests {
    use super::{super::KeyFileText, *};

    fn file(path: &str, changed: bool, mentions: u64, position: Option<usize>) -> FileActivity {
        FileActivity {
            path: path.to_owned(),
            changed,
            mentions,
            position,
            ..FileActivity::default()
        }
    }

    fn sample_activity() -> Activity {
        let mut files = vec![
            file("once-early", false, 1, Some(2)),
            file("twice", false, 2, Some(3)),
            file("often", false, 7, Some(1)),
            file("changed", true, 1, Some(1)),
            file("once-late", false, 1, Some(9)),
            file("recorded", false, 0, None),
            file("recorded-before", false, 0, None),
        ];
        files[5].time = Some(5);
        files.push(FileActivity {
            changed_by_user: true,
            ..file("by-user", false, 0, None)
        });
        Activity {
            files,
            commands: Vec::new(),
        }
    }

    fn choose_from(
        activity: &Activity,
        read: &dyn Fn(&str) -> Option<String>,
        limits: (u32, u32, usize),
    ) -> Vec<SelectedFile> {
        let workspace = WorkspaceAccess {
            name: &|path| Some(path.to_owned()),
            may_name_command: &|_| true,
            read: &|path, _, _| {
                read(path).map(|text| KeyFileText {
                    path: path.to_owned(),
                    total_lines: 3,
                    text,
                })
            },
        };
        let (files, lines, bytes) = limits;
        choose(
            activity,
            &workspace,
            files,
            lines,
            bytes,
            &Cancel::default(),
        )
        .unwrap()
    }

    #[test]
    fn changed_then_mentioned_then_recent() {
        let all = choose_from(
            &sample_activity(),
            &|_| Some("x".to_owned()),
            (u32::MAX, 9, 1000),
        );
        let all: Vec<_> = all.iter().map(|selected| &*selected.file.path).collect();
        assert_eq!(
            all,
            [
                "changed",
                "by-user",
                "often",
                "twice",
                "once-late",
                "once-early",
                "recorded",
                "recorded-before"
            ]
        );
    }

    #[test]
    fn unreadable_files_are_skipped() {
        let read = |path: &str| match path {
            "changed" => None,
            "often" => Some(String::new()),
            _ => Some("1\n2\n3".to_owned()),
        };
        let selected = choose_from(&sample_activity(), &read, (2, 2, 1000));
        let label: Vec<_> = selected.iter().map(SelectedFile::label).collect();
        assert_eq!(label, ["by-user (2 of 3 lines)", "twice (2 of 3 lines)"]);
        assert_eq!(
            selected[0].block(),
            "# File by-user (2 of 3 lines)\n\n<file_content path=\"by-user\">\n1\n2\n</file_content>"
        );
        assert_eq!(choose_from(&sample_activity(), &read, (0, 2, 1000)), []);
        assert_eq!(choose_from(&sample_activity(), &read, (2, 0, 1000)), []);
    }

    #[test]
    fn smaller_files_are_included_after_one_that_does_not_fit() {
        let fit = |room| {
            let all = choose_from(&sample_activity(), &|_| Some("x".to_owned()), (4, 9, 1000));
            let costs = [50.0, 60.0, 10.0, 5.0].into_iter();
            let fitting = fitting(all, costs, room).into_iter();
            let paths: Vec<String> = fitting.map(|selected| selected.file.path).collect();
            paths.join(" ")
        };
        assert_eq!(fit(126.0), "changed by-user often twice");
        assert_eq!(fit(125.0), "changed by-user often");
        assert_eq!(fit(66.0), "changed often twice");
        assert_eq!(fit(50.0), "often twice");
        assert_eq!(fit(10.0), "twice");
        assert_eq!(fit(5.0), "");
    }

    #[test]
    fn the_total_size_is_bounded() {
        let read = |path: &str| {
            Some(match path {
                "by-user" => "no line break at all".to_owned(),
                _ => "1234\n5678\n".to_owned(),
            })
        };
        let selected = choose_from(&sample_activity(), &read, (9, 9, 17));
        let texts: Vec<_> = selected.iter().map(|selected| &*selected.text).collect();
        assert_eq!(texts, ["1234\n5678\n", "1234\n"]);
    }
}
