//! Known programs, as data, and how their words are split into options and operands.
//!
//! `programs.table` says which words of a program are not read: patterns, messages, exclusions, code,
//! or paths of which only names, sizes and counts are printed. A program that is not listed reads all
//! of its operands and option values.

mod arguments;

use std::sync::LazyLock;

pub(super) use arguments::{Arguments, exec_of_fd, folders_of, option_folders};

use super::{expand::Field, syntax::Exclusion};

/// Names, separated by blanks.
pub(super) type NameList = &'static str;

/// Returns whether `names` contains `name`.
pub(super) fn has(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}

/// What a program does with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    /// Prints its name, size, or a count.
    Stat,
    /// Writes, moves, links or removes it.
    Write,
    /// Creates it, if it does not exist.
    Create,
    /// Changes its mode or owner.
    Alter,
    /// A pattern, message or number.
    Text,
    /// Code that the program runs.
    Code,
}

/// A row of the table: a program, or one of its subcommands.
#[derive(Debug, Default)]
pub(super) struct Program {
    names: NameList,
    fields: Vec<(NameList, NameList)>,
}

/// The table of known programs.
static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| {
    let mut programs: Vec<Program> = Vec::new();
    for line in include_str!("programs.table").lines() {
        if let Some(names) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            programs.push(Program {
                names,
                fields: Vec::new(),
            });
        } else if let (Some((key, value)), Some(program)) =
            (line.split_once('='), programs.last_mut())
        {
            program.fields.push((key.trim(), value.trim()));
        }
    }
    programs
});

impl Program {
    /// Returns a field of the row; empty if it has none.
    pub(super) fn get(&self, key: &str) -> NameList {
        let field = self.fields.iter().find(|(known, _)| *known == key);
        field.map_or("", |(_, value)| value)
    }

    pub(super) fn has_field(&self, key: &str) -> bool {
        self.fields.iter().any(|(known, _)| *known == key)
    }

    /// Returns whether the row says something about an option.
    fn lists_option(&self, name: &str) -> bool {
        self.fields.iter().any(|(_, value)| has(value, name))
    }

    /// Returns how it leaves out files.
    pub(super) fn exclusion(&self) -> Exclusion {
        let forms = |file: &str, folder: &str| {
            let has_folder = self.has_field(folder);
            (
                self.get(file),
                self.get(if has_folder { folder } else { file }),
            )
        };
        Exclusion {
            name: forms("hint_file", "hint_folder"),
            path: forms("hint_path", "hint_path_folder"),
            literal: "",
        }
    }

    fn use_in(&self, key: &str) -> Option<Use> {
        match self.get(key) {
            "read" => Some(Use::Read),
            "stat" => Some(Use::Stat),
            "write" => Some(Use::Write),
            "create" => Some(Use::Create),
            "alter" => Some(Use::Alter),
            "text" => Some(Use::Text),
            "code" => Some(Use::Code),
            _ => None,
        }
    }

    /// Returns what it does with operands.
    pub(super) fn operands(&self) -> Use {
        self.use_in("operands").unwrap_or(Use::Read)
    }
}

/// Options of `git` before the subcommand that take a value.
pub(super) const GLOBAL_VALUES: NameList =
    "-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix";
/// Options of any program whose value is a text.
const MESSAGES: NameList =
    "--message --title --body --description --subject --notes --comment --reason --grep --author";
/// Options of any program whose value is what it leaves out.
const EXCLUSIONS: NameList = "--exclude --ignore --skip --hide --omit --deselect --ignore-pattern --ignore-dir --ignore-glob \
                              --exclude-dir --exclude-pattern --exclude-glob --skip-dirs --skip-files";
/// Options of any program that name a file to write.
const OUTPUTS: NameList = "--output --out --outfile --output-file -o --target-directory";

/// Shells: run the operand of `-c`, or their input, as a script.
pub(super) const SHELLS: NameList =
    "sh bash zsh dash ash ksh mksh fish rbash csh tcsh at batch pwsh powershell cmd";
/// Programs that run their words, joined, as a script.
pub(super) const SCRIPT_TAKERS: NameList = "eval watch iex invoke-expression";
/// Programs whose code may name files without quotes: commands of editors and databases.
pub(super) const COMMAND_LANGUAGES: NameList = "sqlite3 psql mysql vim vi nvim view ex ed gdb lldb duckdb clickhouse gnuplot m4 cpp gcc cc clang tclsh \
                                     make gmake bmake ninja just less more ftp sftp emacs";
/// Programs that run the recipes of a file.
pub(super) const MAKES: NameList = "make gmake bmake";
/// Programs that run their input as code.
const LANGUAGES: NameList = "python pypy node nodejs deno bun perl ruby php lua luajit awk gawk mawk sed tclsh rscript \
                             julia octave elixir groovy scala kotlin osascript ts-node tsx irb jshell guile ghc swift dart \
                             clojure bb racket sbcl crystal raku go java rustc kotlinc ipython timeit cprofile pdb trace";
/// Interpreters that only print, except to files that they name.
pub(super) const VIEWERS: NameList = "awk gawk mawk nawk sed gsed less more";
/// Programs of PowerShell that read files.
pub(super) const POWERSHELL: NameList =
    "get-content gc select-string sls import-csv ipcsv format-hex fhx copy-item cpi";
/// Programs that print their words.
pub(super) const PRINTERS: NameList = "echo printf print write-output write-host";
/// Programs that print what they decode from their input.
pub(super) const DECODERS: NameList =
    "base64 base32 basenc xxd uudecode openssl rev tr gunzip zcat gzip";
/// Programs that run the command after them.
const WRAPPERS: NameList = "command builtin exec sudo doas env nohup time timeout nice ionice stdbuf setsid chroot unshare \
     nsenter taskset chrt caffeinate strace ltrace busybox toybox docker podman nerdctl kubectl bwrap firejail flock entr \
     hyperfine noglob nocorrect xargs parallel su runuser sg script unbuffer systemd-run npx pnpx bunx uvx uv poetry \
     pipenv pdm bundle mise asdf direnv dotenv nix nix-shell devbox valgrind perf gosu su-exec fakeroot proxychains \
     start-process coproc then winpty rtk wsl watchexec git-annex conda mamba \
     micromamba xvfb-run chronic gtime corepack";
/// Options of wrappers that take the next word, which may be named like a program.
const WRAPPER_VALUES: &[(NameList, NameList)] = &[
    (
        "xargs parallel",
        "-I -n -P -L -s -E -d -a -j --max-args --max-procs --max-lines --max-chars --delimiter --arg-file --jobs",
    ),
    (
        "sudo doas",
        "-u -g -p -C -D -h -R -r -t -T -U --user --group --prompt --chdir --host --role --type",
    ),
    ("su runuser", "-u -g -G -s --user --group --shell"),
    ("timeout", "-s -k --signal --kill-after"),
    ("env", "-u -C --unset --chdir"),
    ("exec", "-a"),
    (
        "strace ltrace",
        "-e -o -p -s -u -E -P -I -a -O -S --trace --output",
    ),
    (
        "systemd-run",
        "-u -p -H -M -E --unit --property --slice --description --setenv --uid --gid",
    ),
    ("conda mamba micromamba", "-n -p --name --prefix"),
    (
        "uv uvx",
        "-p --with --python --group --extra --package --directory --project",
    ),
];
/// Nouns before a subcommand: `docker compose cp`.
const SUBCOMMAND_GROUPS: NameList = "compose container image alpha beta";
/// Modules of Python with a row.
const MODULES: NameList =
    "http.server SimpleHTTPServer pytest zipfile tarfile timeit cProfile pdb trace";
/// Programs with subcommands, some of which run a program of a package or a container.
pub(super) const LAUNCHERS: NameList = "bun bunx bundle cargo docker kubectl mise nerdctl npm npx nix nix-shell pdm pipenv pipx \
     pnpm pnpx podman poetry rye uv uvx yarn";
/// Programs that are recognized at the start of a command in a word, such as `'cat .env'` for a
/// pager. English words are not listed.
const COMMANDS: NameList = "cat bat tac head tail less nl od xxd hexdump strings base64 base32 cp mv tee dd scp rsync grep egrep \
     fgrep rg awk gawk sed cut paste diff cmp tar zip gzip gunzip zcat openssl gpg curl wget nc ncat git vim vi nano ed . eval \
     exec bash sh zsh dash ksh fish busybox sudo doas nohup xargs python python3 perl ruby node php echo printf : cd [ { (";
/// Ends of the names of variables that contain a command.
const COMMAND_VARIABLES: NameList =
    "COMMAND PAGER EDITOR VISUAL LESSOPEN LESSCLOSE BROWSER ASKPASS _SSH _RSH _CMD EXTERNAL_DIFF";

/// Returns whether a program runs the code that it is given, in a programming language.
pub(super) fn is_language(name: &str) -> bool {
    is_listed(LANGUAGES, name)
}

/// Returns whether a program runs its input and some operands as code.
pub(super) fn is_interpreter(name: &str) -> bool {
    is_language(name) || is_listed(COMMAND_LANGUAGES, name)
}

/// Returns whether a variable contains a command that programs run.
pub(super) fn is_command_variable(name: &str) -> bool {
    COMMAND_VARIABLES
        .split_ascii_whitespace()
        .any(|end| name.ends_with(end))
}

/// Returns whether a text starts with a command of a common program, with operands.
pub fn starts_with_command(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    words.next().is_some() && has(COMMANDS, &program_name(first.trim_end_matches(';')))
}

pub(super) fn is_known(name: &str) -> bool {
    let lists = [
        SHELLS,
        SCRIPT_TAKERS,
        PRINTERS,
        DECODERS,
        WRAPPERS,
        COMMAND_LANGUAGES,
        LANGUAGES,
        "find git source . sqlite3",
    ];
    lists.iter().any(|list| is_listed(list, name)) || row(name, None).is_some()
}

/// Returns whether a list contains a program, with or without a version.
pub(super) fn is_listed(names: &str, program: &str) -> bool {
    has(names, program) || has(names, without_version(program))
}

/// Returns the name of a program, in lower case and without directory and extension.
pub(super) fn program_name(text: &str) -> String {
    let text = text.to_lowercase();
    let name = text.rsplit(['/', '\\']).next().unwrap_or(&text);
    // `python -mzipfile`
    let plain = name.strip_prefix("-m").unwrap_or(name);
    plain.strip_suffix(".exe").unwrap_or(plain).to_owned()
}

fn without_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Returns the row of a program that is not listed.
fn plain_row() -> &'static Program {
    &PROGRAMS[0]
}

/// Returns the index of the subcommand of a program that has a row for it. Global options, their
/// values and groups may be before it.
fn subcommand(name: &str, words: &[Field]) -> Option<usize> {
    let mut may_be_value = false;
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text();
        let lists = |program: &Program| has(program.get("subcommands"), &text);
        if rows(name).any(lists) {
            return Some(at);
        }
        let is_option = text.starts_with('-');
        if !is_option && !may_be_value && !has(SUBCOMMAND_GROUPS, &text) {
            return None;
        }
        may_be_value = is_option && !text.contains('=');
    }
    None
}

/// Returns the row of a command, and the index of its subcommand if the row has some.
fn row_of(name: &str, words: &[Field]) -> (Option<&'static Program>, Option<usize>) {
    let at = subcommand(name, words);
    let text = at.map(|at| words[at].text()).unwrap_or_default();
    let row = row(name, Some(&text));
    let has_subcommand = row.is_some_and(|row| row.has_field("subcommands"));
    (row, at.filter(|_| has_subcommand))
}

/// Returns all rows of a program.
fn rows(name: &str) -> impl Iterator<Item = &'static Program> {
    let plain = without_version(name);
    PROGRAMS
        .iter()
        .filter(move |program| has(program.names, name) || has(program.names, plain))
}

/// Returns the row of a program.
pub(super) fn row(name: &str, subcommand: Option<&str>) -> Option<&'static Program> {
    rows(name).find(|program| {
        !program.has_field("subcommands")
            || subcommand.is_none_or(|sub| has(program.get("subcommands"), sub))
    })
}

/// Returns whether a known program has a name that words often have, and only prints facts: `file`, `test`.
fn is_word(name: &str) -> bool {
    row(name, None).is_some_and(|row| {
        row.operands() == Use::Stat
            && !row.has_field("subcommands")
            && !row.has_field("lists_names")
    })
}

/// Returns whether a word is a program that a wrapper may run.
fn is_command(word: &Field) -> bool {
    let text = word.text();
    is_known(&program_name(&text)) && !text.contains(char::is_whitespace)
}

/// Returns the index of the command that a wrapper such as `sudo` runs.
pub(super) fn wrapped_command(words: &[Field]) -> Option<usize> {
    let name = program_name(&words.first()?.text());
    if is_listed("python pypy py", &name) {
        return python_module(words);
    }
    // `docker cp` does not run `cp`.
    if !has(WRAPPERS, &name) || row_of(&name, words).1.is_some() {
        return None;
    }
    let of_wrapper = WRAPPER_VALUES.iter().find(|(names, _)| has(names, &name));
    let with_values = of_wrapper.map_or("", |(_, options)| options);
    let mut first = None;
    let mut skipped = match name.as_str() {
        "timeout" | "flock" | "chroot" | "taskset" | "chrt" => 1,
        _ => 0,
    };
    let mut is_value = false;
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text();
        let is_option = text.starts_with('-');
        if words[at - 1].text() == "-c" && has("su runuser script", &name) {
            return Some(at);
        }
        let is_assignment = text
            .split_once('=')
            .is_some_and(|(name, _)| !name.contains('/'));
        if is_option || is_assignment || (first.is_none() && word.can_vanish()) {
            is_value = is_option && text.len() == 2;
            continue;
        }
        if has(with_values, &words[at - 1].text()) {
            is_value = false;
            continue;
        }
        // `direnv exec . COMMAND`
        let is_folder = text == "." && !has("command builtin", &name);
        // `flock file cat x`
        let is_other = || is_word(&program_name(&text)) && words[at + 1..].iter().any(is_command);
        if is_command(word) && !is_folder && !is_other() {
            return Some(at);
        }
        // The word after a short option may be its value.
        if first.is_none() && !is_value {
            if skipped == 0 {
                first = Some(at);
            } else {
                skipped -= 1;
            }
        }
        is_value = false;
    }
    first
}

/// Returns the index of a module with a row: `python -m http.server`, `python -mzipfile`.
fn python_module(words: &[Field]) -> Option<usize> {
    let selects_module = |word: &Field| {
        let text = word.text();
        text.starts_with("-m") || text.starts_with('-') && text.ends_with('m')
    };
    let at = words.iter().position(selects_module)?;
    (at..words.len().min(at + 2)).find(|at| {
        let text = words[*at].text();
        has(MODULES, text.strip_prefix("-m").unwrap_or(&text))
    })
}
