//! What programs do with the files that they are given. A program that is not in these tables may
//! change them.

use super::{Change, invocation::Invocation};
use crate::command::{
    expand::Field,
    git::Git,
    programs::{Arguments, LAUNCHERS, NameList, Use, has},
};

/// Programs that run the command after them.
const RUNNERS: NameList = "command builtin exec sudo doas env nohup time busybox timeout nice ionice stdbuf setsid xargs \
     parallel watch chroot unshare nsenter taskset chrt caffeinate strace ltrace bwrap flock entr \
     hyperfine noglob nocorrect then";

/// How far the change of a path reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// It is only read.
    #[default]
    Nothing,
    /// A file.
    File,
    /// A file, or files with unknown names in a folder.
    Into,
    /// A file, or the folder that it is in.
    Folder,
    /// A path with everything below it.
    Tree,
}

/// Programs that change no file that they are given and run nothing, without the options in
/// [`WRITING_OPTIONS`].
const READERS: NameList = "[ b2sum basename cat cd chdir cksum cmp code colordiff column comm compgen cut diff dir dirname du echo \
     egrep eza exa expand export false fd fdfind fgrep file find fmt fold ggrep gojq grep head hexdump jq local ls lsd md5sum \
     mkdir nl od open paste printf ps pushd pwd readlink realpath rev rg rgrep select-string sha1sum sha224sum sha256sum \
     sha384sum sha512sum shasum sightline source . stat strings sum tac tail test tr true type wc whereis which xdg-open zcat \
     zgrep get-content gc get-childitem gci test-path set declare typeset read mapfile readarray";
/// Options with which readers write files or run programs.
const WRITING_OPTIONS: &[(NameList, NameList)] = &[
    ("diff colordiff", "--output"),
    ("perl ruby", "-i"),
    ("rg", "--pre --hostname-bin"),
    ("sightline", "-o --output --to"),
];
/// Programs that rewrite their operands with one of these options, or without any. The first row is for
/// every program.
const REWRITERS: &[(NameList, NameList)] = &[
    ("", "--fix --in-place --inplace --write --overwrite"),
    (
        "alejandra black isort nixfmt rustfmt stylua swiftformat",
        "",
    ),
    (
        "autopep8 clang-format gofmt gofumpt goimports shfmt yapf",
        "-i -w",
    ),
    (
        "biome dart deno dprint mix ruff taplo terraform zig",
        "fmt format",
    ),
    ("ktlint rubocop", "-A -F -a"),
    ("prettier", "-w"),
];
/// Options with which a program only checks.
const CHECKS: NameList = "--check --diff --dry-run";
/// Programs that only check or print the files that they are given, unless they rewrite them.
const CHECKERS: NameList = "alejandra autopep8 black clang-format eslint flake8 gofmt gofumpt goimports isort markdownlint \
     mypy nixfmt prettier pylint rustfmt shellcheck shfmt stylelint stylua swiftformat yamllint yapf";
/// Programs that can write files or run programs, and the letters of the options with which they do not.
const CAREFUL: &[(NameList, &str)] = &[
    ("ack ag delta iconv more ug ugrep uniq view xxd", ""),
    ("awk gawk mawk nawk", ""),
    ("base32 base64", "dDiw"),
    ("bat batcat", "Alnpr"),
    ("jaq", "Scejnrs"),
    ("less", "EFNRSXmn"),
    ("sed gsed", "Enrsz"),
    ("sort", "bcdfghikmnrstuzMRV"),
    ("tree", "CDFILPadfghprsu"),
    ("yq", "CMPScejnopry"),
];
/// Programs that do not run the words that they are given.
const PLAIN: NameList = "black curl dd eslint gh glab gzip gunzip hg info jj killall make man mypy pgrep pkill prettier pytest \
     ruff svn tee tldr touch truncate unzip wget whatis zip";
/// Programs that hand on the content of what they read.
pub(super) const CONTENT: NameList = "base32 base64 bsdtar cat column cpio cut expand fmt fold head hexdump nl od paste rev tac tail \
     tar tee tr xxd zcat zip";
/// Programs that write files with names that the command line does not show.
pub(super) const EXTRACTORS: NameList =
    "7z 7za aria2c bsdtar curl cpio git patch tar unar unzip wget";
/// Programs that put the files of one folder into another, under their names.
pub(super) const MERGERS: NameList = "cpio lndir pax rclone robocopy stow unison xcopy xstow";
/// Subcommands of git that change no file that they are given.
const GIT_READERS: NameList = "add annotate blame cat-file check-attr check-ignore commit describe diff \
     diff-files diff-index diff-tree grep hash-object log ls-files ls-tree reflog rev-list rev-parse shortlog show \
     status tag update-index whatchanged";
/// Programs that remove, replace or link paths with everything below them.
const REPLACERS: NameList = "del erase ln link move move-item mv rd remove-item ren rename rename-item ri rm rmdir \
     shred srm trash trash-put unlink wipe";
/// Programs that change whether a path can be accessed.
const MODES: NameList = "chattr chflags chgrp chmod chown icacls mount setfacl takeown umount";
/// Programs that read all operands but the last, which they write.
const COPIERS: NameList = "copy copy-item cp gcp install ditto rsync scp";
/// Words between a program that runs others and the program that it runs.
const RUN_WORDS: NameList = "dlx exec run tool x --";
/// What a program does with its operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) reach: Reach,
    /// It reads its operands but the last.
    pub(super) copies: bool,
    /// It creates its last operand from the others.
    pub(super) creates: bool,
    /// It removes what it does not copy.
    pub(super) deletes: bool,
    /// It changes only modes, and files can still be read.
    pub(super) keeps_access: bool,
    /// It is known to change the contents or names of files that it is given.
    pub(super) is_certain: bool,
}

impl Effect {
    /// Returns the effect of the first known program among these words.
    pub(super) fn of(invocation: &Invocation, programs: &[usize]) -> Self {
        let plain = |reach| Self {
            reach,
            ..Self::default()
        };
        let certain = |reach| Self {
            is_certain: true,
            ..plain(reach)
        };
        let known = programs.iter().find_map(|at| {
            let name = invocation.program(*at);
            let texts = invocation.texts(*at + 1);
            if name == "git" {
                return Some(certain(of_git(&invocation.words[*at..])));
            }
            // `rsync --remove-source-files`, `tar --remove-files`, `zip -m`
            let moves = |text: &String| {
                let letters = text.strip_prefix('-').filter(|it| !it.starts_with('-'));
                let is_zip = name == "zip" && letters.is_some_and(|it| it.contains('m'));
                is_zip || text.starts_with("--rem") || name == "zip" && text == "--move"
            };
            if has("bsdtar rsync tar zip", &name) && texts.iter().any(moves) {
                return Some(certain(Reach::Tree));
            }
            if has(COPIERS, &name) {
                return Some(Self {
                    copies: true,
                    creates: true,
                    deletes: texts.iter().any(|text| text.starts_with("--del")),
                    ..certain(Reach::Tree)
                });
            }
            if has(REPLACERS, &name) {
                return Some(Self {
                    creates: matches!(
                        name.as_str(),
                        "mv" | "ln" | "move" | "move-item" | "rename-item"
                    ),
                    ..certain(Reach::Tree)
                });
            }
            if has(MODES, &name) {
                return Some(Self {
                    keeps_access: name == "chmod" && keeps_access(&texts),
                    ..plain(Reach::Folder)
                });
            }
            let has_module =
                name.starts_with("python") && texts.first().is_some_and(|it| it == "-m");
            let module = at + if has_module { 2 } else { 0 };
            // With a second operand, it writes that.
            if invocation.exact(module) == Some("json.tool") && invocation.len() < module + 3 {
                return Some(plain(Reach::Nothing));
            }
            if matches!(name.as_str(), "tar" | "bsdtar" | "zip") {
                let extracts = Arguments::new(&invocation.words[*at..]).extracts();
                return Some(plain(if extracts { Reach::Into } else { Reach::File }));
            }
            if has(CHECKERS, &name) && only_checks(&name, &texts) {
                return Some(plain(Reach::Nothing));
            }
            if is_careful(&name) {
                let reads = only_reads(&name, &texts);
                return Some(Self {
                    is_certain: writes_words(invocation, *at),
                    ..plain(if reads { Reach::Nothing } else { Reach::File })
                });
            }
            if has(READERS, &name) {
                let writes = writes(&name, &texts);
                return Some(plain(if writes { Reach::File } else { Reach::Nothing }));
            }
            None
        });
        known.unwrap_or_else(|| Self {
            is_certain: programs.iter().any(|at| writes_words(invocation, *at)),
            ..plain(Reach::Into)
        })
    }

    /// Returns how the program changes its operands.
    pub(super) fn change(self) -> Change {
        if self.is_certain {
            Change::Any
        } else {
            Change::Possible
        }
    }
}

/// Returns whether the program at a word is known to write files that it is given.
fn writes_words(invocation: &Invocation, at: usize) -> bool {
    // `xargs` adds operands.
    let added = Field::quoted("operand");
    let words = invocation.words[at..].iter().cloned().chain([added]);
    let uses = Arguments::new(&words.collect::<Vec<_>>()).uses;
    uses.iter().any(|(_, kind)| *kind == Use::Write)
        || rewrites(&invocation.program(at), &invocation.texts(at + 1))
}

/// Returns whether a program rewrites its operands, like a formatter.
fn rewrites(name: &str, texts: &[String]) -> bool {
    rewriting_options(name).any(|options| options.is_empty() || is_set(options, texts))
        && !is_set(CHECKS, texts)
}

/// Returns whether a formatter or linter has no option with which it writes files.
fn only_checks(name: &str, texts: &[String]) -> bool {
    let is_output = |text: &String| text.starts_with("-o") || text.starts_with("--out");
    rewriting_options(name).all(|options| match options {
        "" => is_set(CHECKS, texts),
        options => !is_set(options, texts),
    }) && !texts.iter().any(is_output)
}

/// Returns the options with which a program rewrites its operands; an empty list if it always does.
fn rewriting_options(name: &str) -> impl Iterator<Item = NameList> {
    let rows = REWRITERS
        .iter()
        .filter(move |(names, _)| names.is_empty() || has(names, name));
    rows.map(|(_, options)| *options)
}

/// Returns the words of a simple command that may be the program that runs: the first one, and what it
/// runs.
pub(super) fn programs(invocation: &Invocation) -> Vec<usize> {
    // `command -v PROGRAM` runs nothing.
    if invocation.program(0) == "command" && matches!(invocation.exact(1), Some("-v" | "-V")) {
        return vec![0];
    }
    let runs_others = |name: &str| [RUNNERS, LAUNCHERS].iter().any(|list| has(list, name));
    let mut found = vec![0];
    if runs_others(&invocation.program(0)) {
        let mut before = String::new();
        for at in 1..invocation.len() {
            found.push(at);
            let text = invocation.texts(at).into_iter().next().unwrap_or_default();
            let is_passed = text.starts_with('-')
                || before.starts_with('-') && before != "--"
                || text.contains('=')
                || text.starts_with(|c: char| c.is_ascii_digit())
                || has(RUN_WORDS, &text)
                || runs_others(&invocation.program(at));
            if !is_passed {
                break;
            }
            before = text;
        }
    }
    found
}

/// Returns whether the words of a program have an option with which it writes files.
pub(super) fn writes(name: &str, texts: &[String]) -> bool {
    let mut rows = WRITING_OPTIONS.iter().filter(|(names, _)| has(names, name));
    rows.any(|(_, options)| is_set(options, texts))
}

/// Returns whether one of these options is among the words of a program.
fn is_set(options: NameList, texts: &[String]) -> bool {
    options.split_ascii_whitespace().any(|option| {
        texts.iter().any(|text| {
            if option.len() > 2 {
                let rest = text.strip_prefix(option);
                return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['=', '-']));
            }
            // `-ni`, `-i.bak`
            let letters = text.strip_prefix('-').filter(|it| !it.starts_with('-'));
            letters.is_some_and(|letters| {
                let mut letters = letters.chars().take_while(char::is_ascii_alphabetic);
                letters.any(|letter| option.ends_with(letter))
            })
        })
    })
}

/// Returns whether the owner can still read a file with the mode of `chmod`: `+x`, `644`.
fn keeps_access(texts: &[String]) -> bool {
    let mut operands = texts.iter().filter(|text| !text.starts_with('-'));
    operands.next().is_some_and(|mode| {
        let digits = mode.bytes().all(|byte| byte.is_ascii_digit());
        let owner = mode.bytes().rev().nth(2);
        digits && owner.is_some_and(|owner| owner >= b'4')
            || mode.contains('+') && !mode.contains(['-', '='])
    })
}

fn of_git(words: &[Field]) -> Reach {
    let git = Git::new(words, |_| None);
    match git.subcommand.as_str() {
        "" => Reach::Nothing,
        name if has(GIT_READERS, name) => {
            // `--outp` is `--output`, and `grep -O` runs a program.
            let writes = |word: &Field| {
                let text = word.text();
                let runs = text.starts_with("-O") || text.starts_with("--op");
                text.starts_with("--out") || name == "grep" && runs
            };
            if git.rest().any(writes) {
                Reach::File
            } else {
                Reach::Nothing
            }
        }
        "rm" | "mv" => Reach::Tree,
        "checkout" | "restore" | "clean" | "stash" | "reset" => Reach::Folder,
        _ => Reach::Into,
    }
}

fn is_careful(name: &str) -> bool {
    CAREFUL.iter().any(|(names, _)| has(names, name))
}

/// Returns whether a program that can write files runs with options that only read.
fn only_reads(name: &str, texts: &[String]) -> bool {
    let is_option = |text: &&String| text.len() > 1 && text.starts_with(['-', '+']);
    if name.ends_with("awk") {
        let runs = |text: &String| {
            text.contains(['>', '|', '@']) || text.contains("system") || text.contains('\\')
        };
        let mut options = texts.iter().filter(is_option);
        return !texts.iter().any(runs)
            && options.all(|text| text.starts_with("-F") || text == "-v");
    }
    let rows = CAREFUL.iter().filter(|(names, _)| has(names, name));
    let letters: String = rows.map(|(_, letters)| *letters).collect();
    let is_safe = |text: &String| {
        !letters.is_empty()
            && text.starts_with('-')
            && text[1..]
                .chars()
                .all(|c| letters.contains(c) || c.is_ascii_digit() || ".,:;=".contains(c))
    };
    let mut operands = texts.iter().filter(|text| !is_option(text));
    texts.iter().filter(is_option).all(is_safe)
        && !letters.is_empty()
        && (!name.ends_with("sed") || operands.next().is_some_and(|script| prints_lines(script)))
}

/// Returns whether a script of sed only prints and deletes lines, such as `1,5p` and `/a/,$d`.
fn prints_lines(script: &str) -> bool {
    let mut outside = script.split('/').step_by(2);
    let is_plain = |c: char| c.is_ascii_digit() || " ,;$!~+pdq=".contains(c);
    !script.contains(['\\', '\n']) && outside.all(|part| part.chars().all(is_plain))
}

/// Returns whether words of a program can be a script, or a command that it runs.
pub(super) fn takes_script(name: &str) -> bool {
    is_careful(name) || has("git rg tar", name)
}

/// Returns whether a program may run the words that it is given as a command.
pub(super) fn may_run_words(name: &str) -> bool {
    let known = [
        READERS, REPLACERS, MODES, COPIERS, PLAIN, RUNNERS, LAUNCHERS,
    ];
    !(is_careful(name) || name == "git" || known.iter().any(|list| has(list, name)))
}
