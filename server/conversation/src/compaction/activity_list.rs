//! The activity as a list next to the summary. A model may forget facts; this list is carried
//! over from summary to summary.

use sightline_base::escape::one_line;

use super::{activity::Activity, shorten_text};

/// Maximum number of commands listed.
pub(super) const MAX_COMMANDS: usize = 50;
/// Maximum number of files listed per section.
const MAX_FILES: usize = 100;
/// Maximum length of a command, in bytes.
const COMMAND_BYTES: usize = 300;
/// Maximum size of the list in a summary message, in bytes.
pub(super) const MAX_BYTES: usize = 16_000;

const CHANGED: &str = "Files changed:";
const READ: &str = "Files read:";
const COMMANDS: &str = "Commands run:";
const OLDER: &str = "(older ones are not listed)";
const ITEM: &str = "- ";

/// A line of the list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ListItem<'a> {
    Changed(&'a str),
    Read(&'a str),
    Command(&'a str),
}

/// Formats the list, oldest first. Returns `None` if there is no activity. Omits the oldest
/// lines that do not fit into `max` bytes.
pub(super) fn text(activity: &Activity, max: usize) -> Option<String> {
    let mut files: Vec<_> = activity.files.iter().collect();
    files.sort_by(|a, b| (a.position, a.time, &a.path).cmp(&(b.position, b.time, &b.path)));
    let paths = |keep: fn(bool, bool) -> bool| -> Vec<String> {
        let kept = files.iter().filter(|file| keep(file.changed, file.read));
        kept.map(|file| one_line(&file.path).into_owned()).collect()
    };
    let changed = paths(|changed, _| changed);
    let read = paths(|changed, read| read && !changed);
    let commands = activity.commands.iter().map(|command| {
        // Escaping and truncating again must not change the line.
        let line = one_line(command).into_owned();
        shorten_text::with_ellipsis(&line, COMMAND_BYTES).into_owned()
    });
    let lists = [
        section(CHANGED, changed, MAX_FILES, max / 3),
        section(READ, read, MAX_FILES, max / 3),
        section(COMMANDS, commands.collect(), MAX_COMMANDS, max / 3),
    ];
    let lists: Vec<String> = lists.into_iter().flatten().collect();
    (!lists.is_empty()).then(|| lists.join("\n"))
}

fn section(heading: &str, lines: Vec<String>, max_lines: usize, max: usize) -> Option<String> {
    let mut left = max.checked_sub(heading.len() + OLDER.len() + 2)?;
    let fitting = lines.iter().rev().take(max_lines).take_while(|line| {
        let rest = left.checked_sub(ITEM.len() + line.len() + 1);
        left = rest.unwrap_or(0);
        rest.is_some()
    });
    let first = lines.len() - fitting.count();
    if lines.is_empty() {
        return None;
    }
    let mut text = heading.to_owned();
    if first > 0 {
        text.push('\n');
        text.push_str(OLDER);
    }
    for line in lines.iter().skip(first) {
        text.push('\n');
        text.push_str(ITEM);
        text.push_str(line);
    }
    Some(text)
}

/// Parses a list written by [`text`].
pub(super) fn parse<'a>(text: &'a str) -> impl Iterator<Item = ListItem<'a>> {
    let mut listed: Option<fn(&'a str) -> ListItem<'a>> = None;
    text.lines().filter_map(move |line| {
        match line {
            CHANGED => listed = Some(ListItem::Changed),
            READ => listed = Some(ListItem::Read),
            COMMANDS => listed = Some(ListItem::Command),
            _ => {}
        }
        Some(listed?(line.strip_prefix(ITEM)?))
    })
}

#[cfg(test)]
mod tests {
    use super::{super::activity::FileActivity, *};

    fn activity(files: &[(&str, bool, usize)], commands: &[&str]) -> Activity {
        let file = |(path, changed, position): &(&str, bool, usize)| FileActivity {
            path: (*path).to_owned(),
            changed: *changed,
            read: true,
            position: Some(*position),
            ..FileActivity::default()
        };
        Activity {
            files: files.iter().map(file).collect(),
            commands: commands.iter().map(|c| (*c).to_owned()).collect(),
        }
    }

    #[test]
    fn a_list_is_parsed_as_written() {
        let activity = activity(
            &[("b\n- x", true, 5), ("a b", true, 2), ("c", false, 3)],
            &["cargo test", "echo 'a\nFiles read:\n- d'"],
        );
        let text = text(&activity, MAX_BYTES).unwrap();
        assert_eq!(
            text,
            "Files changed:\n- a b\n- b\\n- x\nFiles read:\n- c\n\
            Commands run:\n- cargo test\n- echo 'a\\nFiles read:\\n- d'"
        );
        let listed: Vec<_> = parse(&text).collect();
        assert_eq!(
            listed,
            [
                ListItem::Changed("a b"),
                ListItem::Changed("b\\n- x"),
                ListItem::Read("c"),
                ListItem::Command("cargo test"),
                ListItem::Command("echo 'a\\nFiles read:\\n- d'"),
            ]
        );
        assert_eq!(super::text(&Activity::default(), MAX_BYTES), None);
        assert_eq!(parse("- x\nother").count(), 0);
    }

    #[test]
    fn the_list_is_bounded() {
        let names: Vec<String> = (0..5000).map(|nth| format!("file{nth}")).collect();
        let files: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(at, name)| (name.as_str(), at % 2 == 0, at))
            .collect();
        let long = "x".repeat(10_000);
        let activity = activity(&files, &[long.as_str(); 200]);
        for max in [0, 10, 100, 500, MAX_BYTES] {
            let text = text(&activity, max).unwrap_or_default();
            assert!(text.len() <= max, "{} of {max}", text.len());
            if max >= 500 {
                assert!(text.contains("Files changed:\n(older ones are not listed)\n- file"));
                assert!(text.contains("- file4999\nCommands run:"));
            }
        }
    }
}
