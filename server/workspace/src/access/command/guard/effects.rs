//! What programs do with the files that they are given. A program that is not in these tables may
//! change them.

use super::Invocation;
use crate::access::command::programs::{GLOBAL_VALUES, NameList, has};

/// Programs that run the command after them.
const RUNNERS: NameList = "command builtin exec sudo doas env nohup time busybox timeout nice ionice stdbuf setsid xargs \
     parallel watch chroot unshare nsenter taskset chrt caffeinate strace ltrace docker podman nerdctl bwrap flock entr \
     hyperfine noglob nocorrect then";

/// How far the change of a path reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// It is only read.
    Nothing,
    /// A file.
    File,
    /// A file, or the folder that it is in.
    Folder,
    /// A path with everything below it.
    Tree,
}

/// Programs that change no file that they are given, without the options in [`WRITING_OPTIONS`].
const READERS: NameList = "[ ack ag awk b2sum base32 base64 basename bat batcat cat cd chdir cksum cmp code colordiff column comm \
     cut delta diff dir dirname du echo egrep eza exa expand export false fd fdfind fgrep file find fmt fold gawk ggrep gojq \
     grep head hexdump iconv jaq jq less local ls lsd md5sum mawk mkdir more nawk nl od open paste printf ps pushd pwd readlink \
     realpath rev rg rgrep sed gsed select-string sha1sum sha224sum sha256sum sha384sum sha512sum shasum sightline sort \
     source . stat strings sum tac tail test tr tree true type ug ugrep uniq view wc whereis which xdg-open xxd yq zcat \
     zgrep get-content gc get-childitem gci test-path set declare typeset read mapfile readarray";
/// Options with which readers write files.
const WRITING_OPTIONS: &[(NameList, NameList)] = &[
    ("sed gsed", "-i --in-place"),
    ("yq", "-i --inplace"),
    ("gawk awk", "-i --include"),
    ("sort tree", "-o --output"),
    ("diff colordiff", "--output"),
    ("sightline", "-o --output"),
    ("view", "-c +w +wq"),
];
/// Subcommands of git that change no file that they are given.
const GIT_READERS: NameList = "add annotate archive blame cat-file check-attr check-ignore commit describe diff \
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
/// Programs that run one of a package.
const LAUNCHERS: NameList =
    "bun bunx cargo mise npm npx nix nix-shell pipenv pipx pnpm poetry rye uv uvx yarn";

/// What a program does with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) reach: Reach,
    /// It reads its operands but the last.
    pub(super) copies: bool,
    /// It creates its last operand from the others.
    pub(super) creates: bool,
}

impl Effect {
    /// Returns the effect of the first known program among these words.
    pub(super) fn of(invocation: &Invocation, programs: &[usize]) -> Self {
        let plain = |reach| Self {
            reach,
            copies: false,
            creates: false,
        };
        let known = programs.iter().find_map(|at| {
            let name = invocation.program(*at);
            let texts = invocation.texts(*at + 1);
            if name == "git" {
                return Some(plain(of_git(&texts)));
            }
            if has(COPIERS, &name) {
                return Some(Self {
                    reach: Reach::Tree,
                    copies: true,
                    creates: true,
                });
            }
            if has(REPLACERS, &name) {
                return Some(Self {
                    creates: matches!(
                        name.as_str(),
                        "mv" | "ln" | "move" | "move-item" | "rename-item"
                    ),
                    ..plain(Reach::Tree)
                });
            }
            if has(MODES, &name) {
                return Some(plain(Reach::Folder));
            }
            let checks_json = name.starts_with("python")
                && texts.first().is_some_and(|text| text == "-m")
                && texts.get(1).is_some_and(|text| text == "json.tool")
                && texts.len() < 4;
            if checks_json {
                return Some(plain(Reach::Nothing));
            }
            if has(READERS, &name) {
                let inner: Vec<usize> = programs.iter().copied().filter(|it| it > at).collect();
                return Some(plain(if writes(&name, &texts) {
                    Reach::File
                } else if name != "find" {
                    Reach::Nothing
                } else if texts.iter().any(|text| changes_found(text))
                    || !inner.is_empty() && Self::of(invocation, &inner).reach != Reach::Nothing
                {
                    Reach::Folder
                } else {
                    Reach::Nothing
                }));
            }
            None
        });
        known.unwrap_or(plain(Reach::File))
    }
}

/// Returns the words of a simple command that may be the program that runs: the first one, and what it
/// runs.
pub(super) fn programs(invocation: &Invocation) -> Vec<usize> {
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
    let of_find = (1..invocation.len()).filter(|at| {
        matches!(
            invocation.exact(at - 1),
            Some("-exec" | "-execdir" | "-ok" | "-okdir")
        )
    });
    found.extend(of_find);
    found
}

/// Returns whether the words of a program have an option with which it writes files.
fn writes(name: &str, texts: &[String]) -> bool {
    let rows = WRITING_OPTIONS.iter().filter(|(names, _)| has(names, name));
    let mut options = rows.flat_map(|(_, options)| options.split_ascii_whitespace());
    let is_set = |option: &str| {
        texts.iter().any(|text| {
            if option.len() > 2 {
                return text == option
                    || text
                        .strip_prefix(option)
                        .is_some_and(|rest| rest.starts_with('='));
            }
            // `-ni`, `-i.bak`
            let letters = text.strip_prefix('-').filter(|it| !it.starts_with('-'));
            letters.is_some_and(|letters| {
                let mut letters = letters.chars().take_while(char::is_ascii_alphabetic);
                letters.any(|letter| option.ends_with(letter))
            })
        })
    };
    // `print > "file"`
    let redirects = name.ends_with("awk") && texts.iter().any(|text| text.contains('>'));
    redirects || options.any(is_set)
}

fn changes_found(text: &str) -> bool {
    ["-delete", "-fprint", "-fls"]
        .iter()
        .any(|action| text.starts_with(action))
}

fn of_git(texts: &[String]) -> Reach {
    let mut words = texts.iter();
    let subcommand = loop {
        match words.next() {
            Some(word) if has(GLOBAL_VALUES, word) => {
                words.next();
            }
            Some(word) if word.starts_with('-') => {}
            word => break word,
        }
    };
    match subcommand.map(String::as_str) {
        None => Reach::Nothing,
        Some(name) if has(GIT_READERS, name) => {
            if words.any(|word| word.starts_with("--output")) {
                Reach::File
            } else {
                Reach::Nothing
            }
        }
        Some("rm" | "mv") => Reach::Tree,
        Some("checkout" | "restore" | "clean" | "stash" | "reset") => Reach::Folder,
        Some(_) => Reach::File,
    }
}
