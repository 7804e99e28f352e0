//! Whether a tool call may change files. A doubtful one may.

use sightline_base::words::is_one_of;

use super::arguments;

/// Words in the names of tools that change files.
const EDIT_WORDS: &str = "edit write replace patch create insert append update delete remove move rename save put modify upload download \
     copy export format restore revert undo checkout mkdir touch";
/// Words in the names of tools that remove or move files.
const REMOVE_WORDS: &[&str] = &["delete", "remove", "move", "rename"];
/// Words of the names of tools that only read.
const READ_WORDS: &str = "cat check diff fetch find get glob grep head info inspect list log ls open read search show stat status tail \
     tree view";
/// Words in the names of tools that list names, and the words that may be next to them.
const LIST_WORDS: &str = "list ls tree";
const LISTED_WORDS: &str =
    "allowed dir directories directory file files folder folders names sizes with";
/// Programs that change no files, whatever their arguments.
const READERS: &str = "basename cat cd cmp cut date df diff dirname du echo egrep false fgrep file grep head ls md5sum nl od printf \
     ps pwd readlink realpath sha256sum sleep stat tail test tr true type uname wc which whoami";
/// Subcommands of git that change no files without options for a file or a program.
const GIT_READERS: &str = "blame describe diff grep log ls-files rev-parse shortlog show status";
/// Redirections that change no files.
const HARMLESS_REDIRECTIONS: &[&str] = &["2>&1", "2>/dev/null", "&>/dev/null", ">/dev/null"];

/// Returns whether the name of a tool says that it changes files.
pub(super) fn is_edit(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    EDIT_WORDS.split(' ').any(|word| tool.contains(word))
}

/// Returns whether the name of a tool says that it removes or moves files.
pub(super) fn removes(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    REMOVE_WORDS.iter().any(|word| tool.contains(word))
}

/// Returns whether the name of a tool says that it only reads.
pub(super) fn only_reads_files(tool: &str) -> bool {
    let name = tool.rsplit("__").next().unwrap_or(tool);
    let words = arguments::words(name);
    !is_edit(tool) && words.iter().any(|word| is_one_of(word, READ_WORDS))
}

/// Returns whether the name of a tool says that it lists names of files and nothing else.
pub(super) fn lists_names(tool: &str) -> bool {
    let words = arguments::words(tool.rsplit("__").next().unwrap_or(tool));
    let lists = |word: &String| is_one_of(word, LIST_WORDS);
    words.iter().any(lists)
        && words
            .iter()
            .all(|word| lists(word) || is_one_of(word, LISTED_WORDS))
}

/// Returns whether a command line may change files.
pub(super) fn may_change(command: &str) -> bool {
    let words = command.split(' ');
    // The target ends at the space: `>/dev/null/../a` is another file.
    let words = words.filter(|word| !HARMLESS_REDIRECTIONS.contains(word));
    let command = words.collect::<Vec<_>>().join(" ");
    command.contains(['>', '`', '(', '{'])
        || command
            .split(['|', ';', '&', '\n', '\r'])
            .any(|part| !only_reads(part))
}

fn only_reads(part: &str) -> bool {
    let mut words = part.split_whitespace();
    match words.next() {
        None => true,
        Some("git") => {
            words
                .next()
                .is_some_and(|word| is_one_of(word, GIT_READERS))
                && !words.any(|word| {
                    let word = word.trim_start_matches(['"', '\'', '\\']);
                    // `--open-files-in-pager` runs a program. Options can be abbreviated.
                    ["--o", "-O", "--ext"]
                        .iter()
                        .any(|option| word.starts_with(option))
                })
        }
        Some("find") => !words.any(|word| {
            ["-delete", "-exec", "-ok", "-fprint", "-fls"]
                .iter()
                .any(|action| word.starts_with(action))
        }),
        Some("rg") => !words.any(|word| word.starts_with("--pre")),
        Some(program) => is_one_of(program, READERS),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_edit, may_change, only_reads_files};

    #[test]
    fn tools_that_edit_are_known_by_their_names() {
        for tool in [
            "Edit",
            "MultiEdit",
            "write_file",
            "apply_patch",
            "str_replace_editor",
            "put_file",
            "mcp__fs__save",
        ] {
            assert!(is_edit(tool), "{tool}");
            assert!(!only_reads_files(tool), "{tool}");
        }
        for tool in ["Read", "read_file", "Grep", "list_files", "view", "Bash"] {
            assert!(!is_edit(tool), "{tool}");
            assert_eq!(only_reads_files(tool), tool != "Bash", "{tool}");
        }
    }

    #[test]
    fn commands_that_only_read_are_known() {
        for command in [
            "ls -la",
            "cat a | grep b | wc -l",
            "git status && git diff HEAD",
            "cd src; find . -name '*.rs' 2>/dev/null",
            "rg todo 2>&1 | head",
            "",
        ] {
            assert!(!may_change(command), "{command}");
        }
        for command in [
            "rm a",
            "echo a > b",
            "ls; rm a",
            "cat a | tee b",
            "git checkout .",
            "git diff --output=a",
            "git grep -O\"rm a\" x",
            "git grep --open=rm x",
            "cat x >/dev/null/../a",
            "ls\rrm a",
            "find . -delete",
            "cargo test",
            "echo $(rm a)",
            "echo `rm a`",
            "A=1 rm a",
            "sort -o a a",
        ] {
            assert!(may_change(command), "{command}");
        }
    }
}
