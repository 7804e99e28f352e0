//! What the name of a tool's argument says about its value.
//!
//! Agents and their MCP servers have hundreds of tools, so arguments are not looked up by tool.

use sightline_base::words::is_one_of;

/// Words of names whose values are paths.
const PATH_WORDS: &str = "path paths pathname pathnames file files filename filenames filepath filepaths dir dirs directory \
     directories folder folders include includes source sources destination uri uris url urls cwd workdir \
     notebook";
/// Last words of names of folders from which commands and relative paths may start.
const FOLDER_WORDS: &str = "cwd workdir dir directory folder";
/// Words that say, with a word for a path, that it is such a folder.
const ROOT_WORDS: &str = "root base workspace repo dir directory folder";
/// Words of names whose values are shell commands, or code that may be.
const COMMAND_WORDS: &str =
    "command commands cmd cmds cmdline commandline shell bash exec execute run program chars";
/// Words of names whose values are code of any language.
const CODE_WORDS: &str =
    "code script scripts python javascript typescript ruby snippet snippets cell cells";
/// Words of names whose values are code if the tool runs code.
const RUN_WORDS: &str = "expression statement statements cmdline line lines input";
/// Names of folders to which other paths are relative, if they are folders.
const BASE_NAMES: &str = "root base project workspace repo repository";
/// Words that say, next to a word for code, that the value is the name of something.
const NAME_WORDS: &str = "id name number path file filename dir url uri type";
/// Words of names whose values are the arguments of a command.
const OPERAND_WORDS: &str = "args arguments argv";
/// Last words of names whose values are text for people or models, or content of files.
const CONTENT_WORDS: &str = "text content contents body string str prompt description message title subject question summary reason \
     thought explanation instruction instructions element label labels comment note header plan step topic \
     topics fact facts observation observations tag tags keyword keywords options choices markdown html";
/// Last words of names whose values are patterns or settings.
const SETTING_WORDS: &str = "pattern patterns q query queries regex regexp search replace replacement type types kind size count \
     limit mode encoding format extension hash depth language model selector selectors xpath filter filters \
     container containers";
/// Words of names whose values are left out by the tool.
const EXCLUDE_WORDS: &str = "exclude excludes excluded ignore ignores ignored skip omit";

/// What an argument is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A path, a list of paths or a glob pattern.
    Path,
    /// A path of a folder, in which the tool may run.
    Folder,
    /// A command line, or a list of them.
    Command,
    /// Code of any language.
    Code,
    /// Code if the tool runs code.
    Input,
    /// A folder to which paths are relative, if it is one.
    Base,
    /// Arguments of the command next to it.
    Operands,
    /// Text for people or models, or content of files. Never a path.
    Content,
    /// A pattern or a setting. Not a path unless it has a `/`.
    Setting,
    /// What the tool does not read.
    Excluded,
    /// Anything else.
    Other,
}

/// Returns what an argument is. `filesToRead`, `file_path_1` and `path_or_url` are paths,
/// `file_text` is not.
pub(super) fn kind(name: &str) -> Kind {
    let words = words(name);
    let has = |list: &str| words.iter().any(|word| is_one_of(word, list));
    let last_is = |list: &str| words.last().is_some_and(|word| is_one_of(word, list));
    if has(EXCLUDE_WORDS) {
        Kind::Excluded
    } else if last_is(CONTENT_WORDS) {
        Kind::Content
    } else if last_is(SETTING_WORDS) {
        Kind::Setting
    } else if words.len() == 1 && has(BASE_NAMES) {
        Kind::Base
    } else if words == ["new", "source"] {
        // The content of a cell of a notebook.
        Kind::Content
    } else if has(CODE_WORDS) && !has(NAME_WORDS) {
        Kind::Code
    } else if last_is(FOLDER_WORDS) || has(PATH_WORDS) && has(ROOT_WORDS) {
        Kind::Folder
    } else if has(PATH_WORDS) {
        Kind::Path
    } else if has(COMMAND_WORDS) {
        Kind::Command
    } else if has(OPERAND_WORDS) {
        Kind::Operands
    } else if last_is(RUN_WORDS) {
        Kind::Input
    } else {
        Kind::Other
    }
}

/// Splits `camelCase`, `snake_case` and other names into words of lowercase letters.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    for c in name.chars() {
        let starts_word = c.is_ascii_uppercase() && !previous.is_ascii_uppercase();
        if !c.is_ascii_alphabetic() || starts_word {
            words.push(String::new());
        }
        if c.is_ascii_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
        previous = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::{Kind, kind};

    #[test]
    fn names_say_what_a_value_is() {
        for (expected, names) in [
            (
                Kind::Path,
                &[
                    "path",
                    "file_path",
                    "filePath",
                    "FilePath",
                    "notebook_path",
                    "files",
                    "targetFile",
                    "fileName",
                    "file_name",
                    "file_path_1",
                    "filesToRead",
                    "path_or_url",
                    "Path to file",
                    "script_path",
                    "uris",
                    "AbsolutePath",
                    "include_pattern_path",
                    "pathS",
                    "PATH",
                ][..],
            ),
            (
                Kind::Folder,
                &[
                    "DIR",
                    "dir_path",
                    "cwd",
                    "workdir",
                    "directory",
                    "repo_path",
                    "workingDirectory",
                ],
            ),
            (
                Kind::Command,
                &[
                    "command",
                    "CMD",
                    "CommandLine",
                    "shell_command",
                    "chars",
                    "cmdline",
                ],
            ),
            (
                Kind::Code,
                &[
                    "code",
                    "script",
                    "cell_source",
                    "python",
                    "snippet",
                    "pythonCode",
                ],
            ),
            (Kind::Input, &["input", "line", "expression", "statement"]),
            (Kind::Base, &["root", "base", "project", "repo"]),
            (Kind::Operands, &["args", "argv"]),
            (
                Kind::Content,
                &[
                    "file_text",
                    "fileText",
                    "content",
                    "old_string",
                    "prompt",
                    "command_description",
                    "new_source",
                    "topic",
                ],
            ),
            (
                Kind::Setting,
                &["pattern", "query", "subagent_type", "cssSelector", "filter"],
            ),
            (Kind::Excluded, &["exclude", "ignore_files"]),
            (
                Kind::Other,
                &["profile", "name", "target", "sourceror", "base_branch"],
            ),
        ] {
            for name in names {
                assert_eq!(kind(name), expected, "{name}");
            }
        }
    }
}
