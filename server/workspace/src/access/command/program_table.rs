//! Table of known programs.
//!
//! Every word of a program is checked as a path by default. The table lists the words that are not
//! paths (patterns, exclusions, messages), and the programs that read directories. All words of a
//! program that is not in the table are checked.

/// Names, separated by blanks.
pub(super) type NameList = &'static str;

/// Returns whether `names` contains `name`.
pub(super) fn has(names: NameList, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}

/// A program, or one of its subcommands.
pub(super) struct Program {
    pub(super) names: NameList,
    /// Subcommands that the row applies to, such as `grep` of `git`. If empty, the row applies to
    /// all.
    pub(super) subcommands: NameList,
    /// Whether operands are only looked up, not read.
    pub(super) only_stats: bool,
    /// Number of leading operands that are not paths, such as the pattern of `grep`.
    pub(super) leading: usize,
    /// Options that replace the leading operands.
    pub(super) replaces_leading: NameList,
    /// Decides whether a leading operand is certainly not a path. If absent, it always is not.
    pub(super) is_text: Option<fn(&str) -> bool>,
    /// Options whose value is not a path.
    pub(super) texts: NameList,
    /// Options with an optional numeric value.
    pub(super) numbers: NameList,
    /// Options with any other value.
    pub(super) values: NameList,
    /// Options that take all words up to the next option, which are not paths.
    pub(super) lists: NameList,
    pub(super) reader: Option<FolderReader>,
}

/// How a program reads directories.
pub(super) struct FolderReader {
    /// Options that enable reading directories. If empty, it is always enabled.
    pub(super) when: NameList,
    /// Options that disable reading.
    pub(super) never: NameList,
    /// Options that override `never`.
    pub(super) reenabled_by: NameList,
    /// Options that print file names, which other programs may read.
    pub(super) lists: NameList,
    /// Whether the program prints file names unless `when` applies.
    pub(super) is_list: bool,
    /// What it reads without operands.
    pub(super) default: DefaultOperand,
    /// Which operand it writes.
    pub(super) writes: WrittenOperand,
    /// Options that name the output, so that no operand does.
    pub(super) target: NameList,
    pub(super) exclude: NameList,
    pub(super) exclude_files: NameList,
    pub(super) exclude_folders: NameList,
    pub(super) include_files: NameList,
    /// Options with a pattern that excludes if it starts with `!`.
    pub(super) globs: NameList,
    /// Options with which patterns match in any case.
    pub(super) ignores_case: NameList,
    pub(super) precedence: Precedence,
    pub(super) style: PatternStyle,
    pub(super) visibility: Visibility,
    /// Options that include hidden entries.
    pub(super) shows_hidden: NameList,
    /// Options that include entries ignored by `.gitignore`.
    pub(super) shows_ignored: NameList,
    /// How to exclude something, for the error message.
    pub(super) hint: &'static str,
}

/// What a program reads without operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DefaultOperand {
    Nothing,
    CurrentFolder,
    /// The current directory, unless the input is a pipe or file.
    InputOrFolder,
}

/// Operand that is written instead of read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WrittenOperand {
    Nothing,
    First,
    Last,
}

/// Which of several matching patterns decides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Precedence {
    First,
    Last,
    /// Any excluding pattern.
    Exclusion,
}

/// What a pattern is matched against.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternStyle {
    /// The entry's name.
    Name,
    /// The name, or trailing components of the path; the whole path if the pattern starts with `/`.
    Suffix,
    /// Like `.gitignore`.
    Gitignore,
    /// The whole path; `*` also matches separators.
    Whole,
    /// Like `Whole`, with a leading `./` as written.
    Exact,
}

/// Entries of a directory that a program sees.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    Everything,
    /// All but hidden entries and those ignored by `.gitignore`.
    Visible,
    /// Entries in the index of the git repository.
    Tracked,
}

const PLAIN: Program = Program {
    names: "",
    subcommands: "",
    only_stats: false,
    leading: 0,
    replaces_leading: "",
    is_text: None,
    texts: "",
    numbers: "",
    values: "",
    lists: "",
    reader: None,
};

const READER: FolderReader = FolderReader {
    when: "",
    never: "",
    reenabled_by: "",
    lists: "",
    is_list: false,
    default: DefaultOperand::Nothing,
    writes: WrittenOperand::Nothing,
    target: "",
    exclude: "",
    exclude_files: "",
    exclude_folders: "",
    include_files: "",
    globs: "",
    ignores_case: "",
    precedence: Precedence::Exclusion,
    style: PatternStyle::Name,
    visibility: Visibility::Everything,
    shows_hidden: "",
    shows_ignored: "",
    hint: "",
};

/// Programs that read the files of a git repository.
const GIT: FolderReader = FolderReader {
    default: DefaultOperand::CurrentFolder,
    style: PatternStyle::Whole,
    visibility: Visibility::Tracked,
    hint: "a pathspec like `':!NAME'`",
    ..READER
};

const NAMES_ONLY: NameList = "--stat --shortstat --numstat --dirstat --summary --name-only --name-status --raw -s --no-patch --quiet";

/// Options with which git prints contents.
const PATCH: NameList = "-p -u -U --patch --unified --patch-with-stat --patch-with-raw --binary";
/// [`PATCH`], and options with which merges are printed.
const MERGE_PATCH: NameList = "-p -u -U --patch --unified --patch-with-stat --patch-with-raw --binary \
                               -c --cc --dd --remerge-diff --diff-merges";

/// The known programs. The first matching row applies.
pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: "[ test",
        only_stats: true,
        ..PLAIN
    },
    Program {
        names: "grep egrep fgrep ggrep zgrep ugrep",
        leading: 1,
        replaces_leading: "-e --regexp -f --file",
        texts: "-e --regexp --exclude --exclude-dir --label",
        numbers: "-m --max-count -A --after-context -B --before-context -C --context",
        values: "-f --file -d --directories -D --devices --binary-files --include --exclude-from",
        reader: Some(FolderReader {
            when: "-r -R --recursive --dereference-recursive",
            default: DefaultOperand::CurrentFolder,
            exclude_files: "--exclude",
            exclude_folders: "--exclude-dir",
            include_files: "--include",
            precedence: Precedence::Last,
            hint: "`--exclude` and `--exclude-dir`",
            ..READER
        }),
        ..PLAIN
    },
    Program {
        names: "rg",
        leading: 1,
        replaces_leading: "-e --regexp -f --file --files --type-list",
        texts: "-e --regexp -r --replace -E --encoding --sort --sortr --colors -t --type -T --type-not --type-add \
                --context-separator --field-match-separator --field-context-separator",
        numbers: "-m --max-count -A --after-context -B --before-context -C --context -M --max-columns \
                  -j --threads -d --max-depth",
        values: "-f --file -g --glob --iglob --ignore-file --pre --pre-glob --max-filesize --engine",
        reader: Some(FolderReader {
            never: "--type-list --version --help",
            lists: "--files",
            default: DefaultOperand::InputOrFolder,
            globs: "-g --glob --iglob",
            ignores_case: "--iglob --glob-case-insensitive",
            precedence: Precedence::Last,
            style: PatternStyle::Gitignore,
            visibility: Visibility::Visible,
            shows_hidden: "-. --hidden",
            shows_ignored: "-u --unrestricted --no-ignore --no-ignore-vcs --no-ignore-dot --no-ignore-parent \
                            --no-ignore-exclude --ignore-file",
            hint: "`--glob '!NAME'`",
            ..READER
        }),
        ..PLAIN
    },
    Program {
        names: "ag",
        leading: 1,
        texts: "--ignore --ignore-dir --color-match -G --file-search-regex",
        numbers: "-m --max-count -A --after -B --before -C --context --depth",
        values: "-p --path-to-ignore",
        reader: Some(FolderReader {
            default: DefaultOperand::InputOrFolder,
            exclude: "--ignore --ignore-dir",
            visibility: Visibility::Visible,
            shows_hidden: "-u --unrestricted --hidden",
            shows_ignored: "-u --unrestricted -U --skip-vcs-ignores -a --all-types",
            hint: "`--ignore`",
            ..READER
        }),
        ..PLAIN
    },
    Program {
        names: "ack ug rgrep",
        leading: 1,
        replaces_leading: "-e --regexp -f --file",
        texts: "-e --regexp --ignore-dir --ignore-directory",
        values: "-f --file",
        numbers: "-m --max-count -A --after-context -B --before-context -C --context",
        reader: Some(FolderReader {
            default: DefaultOperand::InputOrFolder,
            exclude_folders: "--ignore-dir --ignore-directory",
            hint: "`--ignore-dir`",
            ..READER
        }),
        ..PLAIN
    },
    Program {
        names: "fd fdfind",
        leading: 1,
        texts: "-e --extension -E --exclude -t --type -c --color -S --size",
        numbers: "-d --max-depth --min-depth --exact-depth -j --threads --max-results",
        values: "--base-directory --search-path --ignore-file -o --owner --changed-within --changed-before",
        reader: Some(FolderReader {
            when: "-x --exec -X --exec-batch",
            is_list: true,
            default: DefaultOperand::CurrentFolder,
            exclude: "-E --exclude",
            style: PatternStyle::Gitignore,
            visibility: Visibility::Visible,
            shows_hidden: "-u --unrestricted -H --hidden",
            shows_ignored: "-u --unrestricted -I --no-ignore --no-ignore-vcs --ignore-file",
            hint: "`--exclude`",
            ..READER
        }),
        ..PLAIN
    },
    Program {
        names: "tar gtar bsdtar",
        texts: "--exclude --transform --xform -V --label --owner --group --mode --mtime",
        values: "-f --file -C --directory -T --files-from -X --exclude-from -b --blocking-factor -I \
                 --use-compress-program -K --starting-file -N --newer -g --listed-incremental -H --format",
        reader: Some(FolderReader {
            when: "-c -r -u --create --append --update",
            exclude: "--exclude",
            style: PatternStyle::Suffix,
            hint: "`--exclude` in front of the folder",
            ..READER
        }),
        ..PLAIN
    },
    Program {
        names: "zip",
        lists: "-x --exclude",
        values: "-b --temp-path -t -tt -n --suffixes -P --password -O --output-file -i --include",
        reader: Some(FolderReader {
            when: "-r -R --recurse-paths --recurse-patterns",
            writes: WrittenOperand::First,
            exclude: "-x --exclude",
            style: PatternStyle::Whole,
            hint: "`-x`",
            ..READER
        }),
        ..PLAIN
    },
    Program {
        names: "7z 7za 7zz 7zr",
        subcommands: "a u",
        texts: "-x",
        reader: Some(FolderReader {
            writes: WrittenOperand::First,
            exclude: "-x",
            hint: "`-xr!NAME`",
            ..READER
        }),
        ..PLAIN
    },
    Program {
        names: "cp gcp",
        values: "-t --target-directory -S --suffix",
        reader: Some(FolderReader {
            when: "-r -R -a --recursive --archive",
            writes: WrittenOperand::Last,
            target: "-t --target-directory",
            hint: "names of what is to be copied",
            ..READER
        }),
        ..PLAIN
    },
    Program {
        names: "scp",
        values: "-c -D -F -i -J -l -o -P -S -X",
        reader: Some(FolderReader {
            when: "-r",
            writes: WrittenOperand::Last,
            hint: "names of what is to be copied",
            ..READER
        }),
        ..PLAIN
    },
    Program {
        names: "rsync",
        texts: "--exclude --chmod --chown --info --debug --out-format",
        values: "-e --rsh -f --filter --include --exclude-from --include-from --files-from --rsync-path -T \
                 --temp-dir --backup-dir --suffix --log-file --compare-dest --copy-dest --link-dest --bwlimit \
                 --max-size --min-size --timeout --port --password-file -B --block-size -M --remote-option",
        reader: Some(FolderReader {
            when: "-r -a --recursive --archive",
            never: "-n --dry-run --list-only",
            writes: WrittenOperand::Last,
            exclude: "--exclude",
            include_files: "--include",
            precedence: Precedence::First,
            style: PatternStyle::Suffix,
            hint: "`--exclude`",
            ..READER
        }),
        ..PLAIN
    },
    Program {
        names: "diff colordiff",
        texts: "-x --exclude -I --ignore-matching-lines -F --show-function-line -L --label",
        numbers: "-U --unified -C --context -W --width",
        values: "-X --exclude-from -S --starting-file --from-file --to-file",
        reader: Some(FolderReader {
            when: "-r --recursive",
            never: "-q --brief",
            exclude: "-x --exclude",
            hint: "`--exclude`",
            ..READER
        }),
        ..PLAIN
    },
    Program {
        names: "git",
        subcommands: "grep",
        leading: 1,
        replaces_leading: "-e -f",
        texts: "-e",
        numbers: "-m --max-count -A --after-context -B --before-context -C --context --max-depth --threads",
        values: "-f",
        reader: Some(GIT),
        ..PLAIN
    },
    Program {
        names: "git",
        subcommands: "diff difftool show diff-tree diff-index diff-files",
        texts: "-S -G --format --pretty --author --grep --since --until --diff-filter",
        numbers: "-U --unified -n --max-count",
        values: "-O --output",
        reader: Some(FolderReader {
            never: NAMES_ONLY,
            reenabled_by: PATCH,
            ..GIT
        }),
        ..PLAIN
    },
    Program {
        names: "git",
        subcommands: "log whatchanged reflog",
        texts: "-S -G --format --pretty --author --committer --grep --since --until --after --before --date \
                --diff-filter",
        numbers: "-U --unified -n --max-count --skip",
        values: "-O --output -L",
        reader: Some(FolderReader {
            when: MERGE_PATCH,
            ..GIT
        }),
        ..PLAIN
    },
    Program {
        names: "git",
        subcommands: "stash",
        texts: "-m --message",
        reader: Some(FolderReader {
            when: MERGE_PATCH,
            ..GIT
        }),
        ..PLAIN
    },
    Program {
        names: "git",
        subcommands: "add checkout restore reset",
        reader: Some(FolderReader {
            when: "-p --patch",
            ..GIT
        }),
        ..PLAIN
    },
    Program {
        names: "git",
        subcommands: "archive format-patch fast-export",
        values: "-o --output --output-directory --remote --exec --prefix --add-file",
        reader: Some(FolderReader {
            never: "-l --list",
            ..GIT
        }),
        ..PLAIN
    },
    Program {
        names: "git",
        subcommands: "ls-files",
        texts: "-x --exclude",
        reader: Some(FolderReader {
            when: "--never",
            is_list: true,
            ..GIT
        }),
        ..PLAIN
    },
    Program {
        names: "git",
        subcommands: "commit tag merge notes revert cherry-pick",
        texts: "-m --message --author --date --trailer --cleanup",
        values: "-F --file -C -c --reuse-message --reedit-message --fixup --squash -t --template -u -X -s",
        reader: Some(FolderReader {
            when: "-p --patch -v --verbose",
            ..GIT
        }),
        ..PLAIN
    },
    Program {
        names: "git",
        subcommands: "check-ignore",
        only_stats: true,
        ..PLAIN
    },
    Program {
        names: "gh glab",
        texts: "-t --title -b --body -m --message -n --notes -l --label -q --jq --subject --search",
        values: "-F --body-file --notes-file -R --repo",
        ..PLAIN
    },
    Program {
        names: "hg svn jj",
        texts: "-m --message",
        ..PLAIN
    },
    Program {
        names: "ls gls dir exa eza lsd",
        texts: "-I --ignore --ignore-glob --hide",
        ..PLAIN
    },
    Program {
        names: "tree",
        texts: "-I -P",
        numbers: "-L",
        values: "-o",
        ..PLAIN
    },
    Program {
        names: "du gdu ncdu",
        texts: "--exclude",
        numbers: "-d --max-depth",
        values: "-X --exclude-from -B --block-size -t --threshold",
        ..PLAIN
    },
    Program {
        names: "jq gojq jaq",
        leading: 1,
        replaces_leading: "-f --from-file",
        values: "-f --from-file -L",
        ..PLAIN
    },
    Program {
        names: "sed gsed",
        leading: 1,
        replaces_leading: "-e --expression -f --file",
        is_text: Some(super::sed::edits_only_text),
        values: "-e --expression -f --file -l --line-length",
        ..PLAIN
    },
];

/// Returns whether `word` is an option with an attached exclusion. Options that end in `from`,
/// `file` or `path` name a file with patterns instead.
pub(super) fn leaves_out(word: &str) -> bool {
    let Some((option, _)) = word.split_once('=') else {
        return false;
    };
    ["--exclude", "--ignore", "--hide", "--skip"]
        .iter()
        .any(|start| option.starts_with(start))
        && !["from", "file", "files", "path", "revs-file"]
            .iter()
            .any(|end| option.ends_with(end))
}

/// Options of `git` before the subcommand that take a value.
pub(super) const GLOBAL_VALUES: NameList =
    "-C -c --git-dir --work-tree --namespace --exec-path --config-env";

/// Programs that run a command given in their operands.
pub(super) const RUNNERS: NameList = "command builtin exec sudo doas env nohup time busybox timeout nice ionice \
     stdbuf setsid xargs parallel watch chroot unshare nsenter taskset chrt caffeinate strace ltrace docker podman \
     nerdctl bwrap flock entr hyperfine noglob nocorrect then";

/// Programs that run the command in their operands with words from their input.
pub(super) const LIST_RUNNERS: NameList = "xargs parallel";

/// Programs that mount directories at other paths: `-v HOST:INSIDE`.
pub(super) const CONTAINERS: NameList = "docker podman nerdctl";

/// Programs that are recognized at the start of a command in a word, such as `'cat .env'` for a
/// pager.
pub(super) const COMMANDS: NameList = "cat bat tac head tail less more nl od xxd hexdump strings base64 base32 cp mv \
     tee dd install scp rsync grep egrep fgrep rg awk gawk sed cut paste sort uniq wc diff cmp tar zip gzip gunzip \
     zcat openssl gpg curl wget nc ncat git vim vi nano view ed source . eval exec command sh bash zsh dash ksh \
     fish busybox env sudo doas nohup timeout nice xargs find python python3 perl ruby node php echo printf true \
     : cd test [ export set if for while { (";

/// Suffixes of variables whose value is run as a command.
pub(super) const COMMAND_VARIABLES: &[&str] = &[
    "COMMAND",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "ASKPASS",
    "_SSH",
    "_RSH",
    "_CMD",
    "EXTERNAL_DIFF",
];

/// Commands of `find -exec` that read no content.
pub(super) const NON_READING_COMMANDS: NameList = "echo printf ls stat touch chmod chown chgrp rm rmdir mkdir test [ \
     basename dirname true false du";
