//! Known programs, as data, and how their words are split into options and operands.
//!
//! `programs.table` says which words of a program are not read: patterns, messages, exclusions, code,
//! or paths of which only names, sizes and counts are printed. A program that is not listed reads all
//! of its operands and option values.

use std::{iter::Peekable, ops::Range, sync::LazyLock};

use super::expand::{Field, Unit};

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

/// A program that is not listed.
static PLAIN: Program = Program {
    names: "",
    fields: Vec::new(),
};

impl Program {
    /// Returns a field of the row; empty if it has none.
    pub(super) fn get(&self, key: &str) -> NameList {
        let field = self.fields.iter().find(|(known, _)| *known == key);
        field.map_or("", |(_, value)| value)
    }

    pub(super) fn has_field(&self, key: &str) -> bool {
        self.fields.iter().any(|(known, _)| *known == key)
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
                              --exclude-dir --exclude-pattern --exclude-glob";
/// Options of any program that name a file to write.
const OUTPUTS: NameList = "--output --out --outfile --output-file -o --target-directory";

/// Shells: run the operand of `-c`, or their input, as a script.
pub(super) const SHELLS: NameList =
    "sh bash zsh dash ash ksh mksh fish rbash csh tcsh at batch pwsh powershell cmd";
/// Programs that run their words, joined, as a script.
pub(super) const SCRIPT_TAKERS: NameList = "eval watch iex invoke-expression";
/// Programs whose code may name files without quotes: commands of editors and databases.
pub(super) const COMMAND_LANGUAGES: NameList = "sqlite3 psql mysql vim vi nvim view ex ed gdb lldb duckdb gnuplot m4 cpp gcc cc clang \
                                     make gmake bmake ninja just less more ftp sftp emacs";
/// Programs that run the recipes of a file.
pub(super) const MAKES: NameList = "make gmake bmake";
/// Programs that run their input as code.
const LANGUAGES: NameList = "python pypy node nodejs deno bun perl ruby php lua luajit awk gawk mawk sed tclsh rscript \
                             julia octave elixir groovy scala osascript ts-node tsx irb jshell";
/// Interpreters that only print, except to files that they name.
pub(super) const VIEWERS: NameList = "awk gawk mawk nawk sed gsed less more";
/// Programs that print their words.
pub(super) const PRINTERS: NameList = "echo printf print write-output write-host";
/// Programs that print what they decode from their input.
pub(super) const DECODERS: NameList =
    "base64 base32 basenc xxd uudecode openssl rev tr gunzip zcat gzip";
/// Programs that run the command after them.
const WRAPPERS: NameList = "command builtin exec sudo doas env nohup time timeout nice ionice stdbuf setsid chroot unshare \
     nsenter taskset chrt caffeinate strace ltrace busybox toybox docker podman nerdctl kubectl bwrap firejail flock entr \
     hyperfine noglob nocorrect xargs parallel su runuser sg script unbuffer systemd-run npx pnpx bunx uvx uv poetry \
     pipenv pdm bundle mise asdf direnv dotenv nix nix-shell devbox ssh valgrind perf gosu su-exec fakeroot proxychains \
     start-process coproc then winpty rtk wsl watchexec git-annex";
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

fn is_known(name: &str) -> bool {
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
    name.strip_suffix(".exe").unwrap_or(name).to_owned()
}

fn without_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Returns the row of a program.
fn row(name: &str, subcommand: Option<&str>) -> Option<&'static Program> {
    let plain = without_version(name);
    PROGRAMS.iter().find(|program| {
        (has(program.names, name) || has(program.names, plain))
            && (!program.has_field("subcommands")
                || subcommand.is_none_or(|sub| has(program.get("subcommands"), sub)))
    })
}

/// Returns the index of the command that a wrapper such as `sudo` runs.
pub(super) fn wrapped_command(words: &[Field]) -> Option<usize> {
    let name = program_name(&words.first()?.text());
    if !has(WRAPPERS, &name) {
        return None;
    }
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
        if is_known(&program_name(&text)) && !text.contains(char::is_whitespace) {
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

/// The words of a command, split by the row of its program.
pub(super) struct Arguments {
    pub(super) program: Option<&'static Program>,
    /// Operands without the first one if that is not a path.
    pub(super) operands: Vec<Field>,
    pub(super) options: Vec<(String, Option<String>)>,
    /// All words after the program that are paths, code or texts.
    pub(super) uses: Vec<(Field, Use)>,
    /// Places of words that may be empty, and then do not exist.
    vanishing: Vec<Range<usize>>,
    /// Whether the operand that the program needs first is missing.
    pub(super) lacks_first: bool,
    /// Where options may begin in the command line, if not after the program.
    pub(super) options_at: Option<usize>,
}

impl Arguments {
    /// Splits the words of a command. The first word is the program.
    pub(super) fn new(words: &[Field]) -> Self {
        let name = words.first().map(|word| program_name(&word.text()));
        let name = name.unwrap_or_default();
        let subcommand = words.get(1).map(Field::text);
        let program = row(&name, subcommand.as_deref());
        let mut arguments = Self {
            program,
            operands: Vec::new(),
            options: Vec::new(),
            uses: Vec::new(),
            vanishing: Vec::new(),
            lacks_first: false,
            options_at: None,
        };
        let has_subcommand = program.is_some_and(|program| program.has_field("subcommands"));
        let rest = words
            .get(if has_subcommand { 2 } else { 1 }..)
            .unwrap_or_default();
        arguments.read(program.unwrap_or(&PLAIN), rest);
        arguments
    }

    /// Returns whether one of these options is given.
    pub(super) fn is_set(&self, names: &str) -> bool {
        self.options.iter().any(|(name, _)| has(names, name))
    }

    /// Returns the values of these options.
    pub(super) fn values<'s>(&'s self, names: &'s str) -> impl Iterator<Item = &'s str> {
        let set = self
            .options
            .iter()
            .filter(move |(name, _)| has(names, name));
        set.filter_map(|(_, value)| value.as_deref())
    }

    /// Returns the row of the program if these arguments make it read folders.
    pub(super) fn tree(&self) -> Option<&'static Program> {
        let program = self.program.filter(|program| program.has_field("tree"))?;
        let when = program.get("tree");
        let recurses = self
            .values("-d --directories")
            .any(|value| value == "recurse");
        let is_on = when.is_empty() || self.is_set(when) || recurses;
        (is_on && !self.is_set(program.get("never")) && !self.lacks_first).then_some(program)
    }

    /// Returns whether the program writes files whose names the command does not show.
    pub(super) fn extracts(&self) -> bool {
        self.program.is_some_and(|program| {
            let options = program.get("extracts");
            program.has_field("extracts") && (options.is_empty() || self.is_set(options))
        })
    }

    /// Returns whether there may be no operands: each is one value of a word that may be empty.
    pub(super) fn may_lack_operands(&self) -> bool {
        let is_possible = |word: &Field| self.vanishing.contains(&word.span);
        self.operands.iter().all(is_possible)
    }

    /// Returns whether only names and counts are printed.
    pub(super) fn prints_names_only(&self) -> bool {
        let names_only = |program: &Program| self.is_set(program.get("names_only"));
        self.has_field("lists_names") || self.program.is_some_and(names_only)
    }

    /// Returns whether the row of the program has a field.
    pub(super) fn has_field(&self, key: &str) -> bool {
        self.program.is_some_and(|program| program.has_field(key))
    }

    fn read(&mut self, program: &'static Program, words: &[Field]) {
        let mut words = words.iter().peekable();
        if has(program.names, "tar")
            && let Some(bundle) = words.next_if(|word| !word.text().starts_with('-'))
        {
            // `tar czf FILE`: the values of all letters follow in order.
            let mut end = bundle.span.end;
            for letter in bundle.text().chars() {
                let name = format!("-{letter}");
                let kind = value_use(program, &name);
                let value = kind.and_then(|kind| words.next().map(|word| (word, kind)));
                end = value.map_or(end, |(word, _)| word.span.end);
                self.options
                    .push((name, value.map(|(word, _)| word.text())));
                self.uses
                    .extend(value.map(|(word, kind)| (word.clone(), kind)));
            }
            self.options_at = Some(end);
        }
        let mut ended = false;
        let mut operands = Vec::new();
        // After an unknown word, the meaning of the following words is uncertain.
        let mut is_sure = true;
        while let Some(word) = words.next() {
            let text = word.text();
            let is_option = matches!(
                word.units.first(),
                Some(Unit::Plain('-') | Unit::Quoted('-'))
            );
            if ended || !is_option || text == "-" {
                if operands.is_empty() && has(program.get("verbs"), &text) {
                    continue;
                }
                is_sure &= !word.has_unknown() || word.known().is_some();
                if !word.can_vanish() || !word.names.is_empty() || word.file.is_some() {
                    operands.push((word.clone(), is_sure));
                } else {
                    is_sure = false;
                    self.vanishing.push(word.span.clone());
                }
            } else if text == "--" {
                ended = true;
            } else {
                let before = self.options.len();
                self.option(program, word, &text, &mut words);
                if program.has_field("options_first") && !operands.is_empty() {
                    self.options.truncate(before);
                }
            }
        }
        self.place_operands(program, operands);
    }

    fn place_operands(&mut self, program: &'static Program, operands: Vec<(Field, bool)>) {
        let first = program
            .use_in("first")
            .filter(|_| !self.is_set(program.get("replaces_first")));
        self.lacks_first =
            first == Some(Use::Text) && operands.is_empty() && !has(program.names, "fd");
        let is_written = self.is_set(program.get("in_place"));
        let names_only = self.is_set(program.get("names_only"));
        let count = operands.len();
        let has_target = self.is_set("-t --target-directory");
        for (at, (word, is_sure)) in operands.into_iter().enumerate() {
            let kind = match (first, program.use_in("last")) {
                (Some(first), _) if at == 0 => first,
                (_, Some(last)) if at > 0 && at + 1 == count && !has_target => last,
                _ if is_written => Use::Write,
                _ if names_only && program.operands() == Use::Read => Use::Stat,
                _ => program.operands(),
            };
            // The first operand may not be what it seems.
            if at == 0 && kind == Use::Text && (!is_sure || word.has_glob()) && !names_only {
                self.uses.push((word.clone(), Use::Read));
            }
            self.uses.push((word.clone(), kind));
            let is_path = !(at == 0 && first.is_some_and(|first| first != Use::Read));
            if is_path && !matches!(kind, Use::Write | Use::Create) {
                self.operands.push(word);
            }
        }
    }

    /// Reads an option and its value.
    fn option<'a>(
        &mut self,
        program: &'static Program,
        word: &Field,
        text: &str,
        words: &mut Peekable<impl Iterator<Item = &'a Field>>,
    ) {
        if text.starts_with("--") || (text.len() > 2 && is_whole_option(program, text)) {
            let (given, has_value) = match text.find('=') {
                Some(at) => (&text[..at], true),
                None => (text, false),
            };
            let name = full_name(program, given);
            let kind = value_use(program, &name);
            if has_value {
                let value = word.skip(given.chars().count() + 1);
                self.options.push((name, Some(value.text())));
                let left_out = leaves_out(given).then_some(Use::Text);
                self.uses
                    .push((value, kind.or(left_out).unwrap_or(Use::Read)));
            } else if has(program.get("pairs"), &name) {
                words.next();
                words.next();
            } else if has(program.get("lists"), &name) {
                self.options.push((name.clone(), None));
                while let Some(value) = words.next_if(|word| !word.text().starts_with('-')) {
                    self.options.push((name.clone(), Some(value.text())));
                }
            } else if let Some(kind) = kind.filter(|_| !has(program.get("numbers"), &name)) {
                self.take_value(name, kind, words);
            } else {
                self.options.push((name, None));
            }
            return;
        }
        for (at, letter) in text.char_indices().skip(1) {
            let name = format!("-{letter}");
            let rest = word.skip(at + 1);
            if has(program.get("lists"), &name) {
                while let Some(value) = words.next_if(|word| !word.text().starts_with('-')) {
                    self.options.push((name.clone(), Some(value.text())));
                }
            }
            if has(program.get("numbers"), &name) {
                let next_is_number = |word: &&Field| word.text().parse::<i64>().is_ok();
                if rest.units.is_empty() && words.next_if(next_is_number).is_none() {
                    self.options.push((name, None));
                    return;
                }
                self.options.push((name, None));
                if rest.text().starts_with(|c: char| c.is_ascii_digit()) || rest.units.is_empty() {
                    return;
                }
                continue;
            }
            if let Some(kind) = value_use(program, &name) {
                if rest.units.is_empty() {
                    self.take_value(name, kind, words);
                } else {
                    let value = rest.text();
                    let value = value.strip_prefix('=').unwrap_or(&value).to_owned();
                    self.options.push((name, Some(value)));
                    self.uses.push((rest, kind));
                }
                return;
            }
            let twice = self.options.iter().any(|(known, _)| *known == name);
            if twice {
                self.options.push((format!("-{letter}{letter}"), None));
            }
            self.options.push((name, None));
        }
        // An option with a value that is not in the table: `-f.env`.
        self.uses.push((word.skip(2), Use::Read));
    }

    fn take_value<'a>(
        &mut self,
        name: String,
        kind: Use,
        words: &mut Peekable<impl Iterator<Item = &'a Field>>,
    ) {
        let value = words.next();
        self.options.push((name, value.map(Field::text)));
        self.uses.extend(value.map(|value| (value.clone(), kind)));
    }
}

/// Returns whether a word with one dash is one option: `-name`, not `-n -a -m -e`.
fn is_whole_option(program: &Program, text: &str) -> bool {
    let name = text.split('=').next().unwrap_or(text);
    let lists = [
        program.get("texts"),
        program.get("values"),
        program.get("outputs"),
        program.get("code"),
    ];
    name.len() > 2 && lists.iter().any(|list| has(list, name))
}

/// Returns what a program does with the value of an option, or `None` if it is not known to have one.
fn value_use(program: &Program, name: &str) -> Option<Use> {
    let of_program = [
        (program.get("texts"), Use::Text),
        (program.get("code"), Use::Code),
        (program.get("values"), Use::Read),
        (program.get("outputs"), Use::Write),
    ];
    let common = [
        (MESSAGES, Use::Text),
        (EXCLUSIONS, Use::Text),
        (OUTPUTS, Use::Write),
    ];
    let is_short_of_known = !program.names.is_empty() && name.len() == 2;
    let common = common.into_iter().filter(|_| !is_short_of_known);
    let mut lists = of_program.into_iter().chain(common);
    let found = lists
        .find(|(names, _)| has(names, name))
        .map(|(_, kind)| kind);
    found.or_else(|| {
        name.to_lowercase()
            .ends_with("ignorepatterns")
            .then_some(Use::Text)
    })
}

/// Returns whether an option with a value leaves out what it names: `--exclude=x`. Options that end
/// in `from`, `file` or `path` name a file with patterns instead.
fn leaves_out(name: &str) -> bool {
    let starts = ["--exclude", "--ignore", "--hide", "--skip"];
    let is_file = ["from", "file", "files", "path", "revs-file"];
    starts.iter().any(|start| name.starts_with(start))
        && !is_file.iter().any(|end| name.ends_with(end))
}

/// Returns the full name of a long option, which may be abbreviated.
fn full_name(program: &Program, given: &str) -> String {
    let lists = [
        program.get("replaces_first"),
        program.get("texts"),
        program.get("values"),
        program.get("outputs"),
        program.get("code"),
        program.get("numbers"),
        program.get("lists"),
        program.get("names_only"),
        program.get("tree"),
        program.get("never"),
    ];
    let mut names = lists
        .iter()
        .flat_map(|names| names.split_ascii_whitespace());
    let is_full = |name: &&str| *name == given;
    let found = if names.clone().any(|name| is_full(&name)) {
        None
    } else {
        names.find(|name| given.len() >= 5 && name.starts_with(given))
    };
    found.unwrap_or(given).to_owned()
}
