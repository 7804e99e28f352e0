//! Splits the words of a command into options and operands.

use std::{iter::Peekable, ops::Range, path::PathBuf};

use super::{
    super::expand::{Field, Unit},
    EXCLUSIONS, MESSAGES, OUTPUTS, Program, Use, has, plain_row, program_name, row, row_of,
};

/// Fields of a row with options that may be longer than a letter after one dash.
const WITH_VALUES: &str = "texts values tree_values outputs code recursive shows_hidden";
/// Fields of a row with options that may be abbreviated.
const OPTIONS: &str = "flags replaces_first texts values tree_values outputs code numbers lists names_only tree recursive \
                       shows_hidden extracts never";

/// Options that set the working directory.
const FOLDER_OPTIONS: &str =
    "-C --directory --cwd --chdir -chdir --work-tree --git-dir --prefix -WorkingDirectory";

/// Operands among which a subcommand may be: `az storage blob upload-batch`.
const MAX_VERBS: usize = 3;

/// The words of a command, split by the row of its program.
pub(in crate::command) struct Arguments {
    pub(in crate::command) program: Option<&'static Program>,
    /// Operands without the first one if that is not a path.
    pub(in crate::command) operands: Vec<Field>,
    pub(in crate::command) options: Vec<(String, Option<String>)>,
    /// All words after the program that are paths, code or texts.
    pub(in crate::command) uses: Vec<(Field, Use)>,
    /// Places of words that may be empty, and then do not exist.
    vanishing: Vec<Range<usize>>,
    /// Whether the operand that the program needs first is missing.
    pub(in crate::command) lacks_first: bool,
    /// Whether the first operand may be the value of an option that is not in the table.
    pub(in crate::command) may_shift: bool,
    /// Where options may begin in the command line, if not after the program.
    pub(in crate::command) options_at: Option<usize>,
}

impl Arguments {
    /// Splits the words of a command. The first word is the program.
    pub(in crate::command) fn new(words: &[Field]) -> Self {
        let first = words.first().map(Field::text).unwrap_or_default();
        let name = program_name(&first);
        let (program, subcommand) = row_of(&name, words);
        let mut arguments = Self {
            program,
            operands: Vec::new(),
            options: Vec::new(),
            uses: Vec::new(),
            vanishing: Vec::new(),
            lacks_first: false,
            may_shift: false,
            options_at: None,
        };
        let is_read = |(at, _): &(usize, &Field)| *at > 0 && Some(*at) != subcommand;
        let rest = words.iter().enumerate().filter(is_read);
        arguments.read(program.unwrap_or(plain_row()), rest.map(|(_, word)| word));
        arguments
    }

    /// Returns whether one of these options is given.
    pub(in crate::command) fn is_set(&self, names: &str) -> bool {
        self.options.iter().any(|(name, _)| has(names, name))
    }

    /// Returns the values of these options.
    pub(in crate::command) fn values<'s>(
        &'s self,
        names: &'s str,
    ) -> impl Iterator<Item = &'s str> {
        let set = self
            .options
            .iter()
            .filter(move |(name, _)| has(names, name));
        set.filter_map(|(_, value)| value.as_deref())
    }

    /// Returns the row of the program if these arguments make it read folders.
    pub(in crate::command) fn tree(&self) -> Option<&'static Program> {
        let program = self.program.unwrap_or(plain_row());
        if !program.has_field("tree") {
            return None;
        }
        let when = program.get("tree");
        let recurses = self
            .values("-d --directories")
            .any(|value| value == "recurse");
        let is_on = when.is_empty() || self.is_set(when) || recurses;
        let helps =
            self.options.len() == 1 && self.operands.is_empty() && self.is_set("--help --version");
        (is_on && !self.is_set(program.get("never")) && !self.lacks_first && !helps)
            .then_some(program)
    }

    /// Returns whether the program writes files whose names the command does not show.
    pub(in crate::command) fn extracts(&self) -> bool {
        let never = self.program.map_or("", |program| program.get("never"));
        self.is_on("extracts") && !self.is_set(never)
    }

    /// Returns whether its input, or the value of an option, names files that it reads.
    pub(in crate::command) fn lists_files(&self) -> bool {
        let options = self.program.map_or("", |program| program.get("file_lists"));
        self.is_set("--files-from --files0-from -@")
            || self.is_set(options)
            || self.has_field("file_lists") && options.is_empty()
    }

    /// Returns whether there may be no operands: each is one value of a word that may be empty.
    pub(in crate::command) fn may_lack_operands(&self) -> bool {
        let is_possible = |word: &Field| self.vanishing.contains(&word.span);
        self.operands.iter().all(is_possible)
    }

    /// Returns whether only names and counts are printed.
    pub(in crate::command) fn prints_names_only(&self) -> bool {
        self.has_field("lists_names") || self.program.is_some_and(|row| self.is_names_only(row))
    }

    fn is_names_only(&self, program: &Program) -> bool {
        self.is_set(program.get("names_only")) && !self.is_set(program.get("not_names"))
    }

    /// Returns whether names of operands, or of files in them, are printed.
    pub(in crate::command) fn prints_names(&self) -> bool {
        // `stat -c %s`
        let mut formats = self.values("-c --format --printf").peekable();
        self.prints_names_only()
            || self.has_field("prints_names")
                && (formats.peek().is_none() || formats.any(|it| it.contains(['n', 'N'])))
    }

    /// Returns whether a field of the row applies: always, or with its options.
    pub(in crate::command) fn is_on(&self, key: &str) -> bool {
        self.program.is_some_and(|program| {
            let options = program.get(key);
            program.has_field(key) && (options.is_empty() || self.is_set(options))
        })
    }

    /// Returns whether the row of the program has a field.
    pub(in crate::command) fn has_field(&self, key: &str) -> bool {
        self.program.is_some_and(|program| program.has_field(key))
    }

    fn read<'a>(&mut self, program: &'static Program, words: impl Iterator<Item = &'a Field>) {
        let mut words = words.peekable();
        if program.has_field("bundle")
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
                if operands.len() < MAX_VERBS && has(program.get("tree"), &text) {
                    self.options.push((text, None));
                    self.uses.push((word.clone(), Use::Read));
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
                let is_of_script = program.has_field("script_first")
                    && (!operands.is_empty() || self.is_set("-m"));
                let row = if is_of_script { plain_row() } else { program };
                self.option(row, word, &text, &mut words);
                self.may_shift |= operands.is_empty()
                    && (self.options.last())
                        .is_some_and(|(name, value)| value.is_none() && !row.lists_option(name));
                if program.has_field("options_first") && !operands.is_empty() {
                    let added = self.options.split_off(before);
                    let extracts = |(name, _): &(String, _)| has(program.get("extracts"), name);
                    self.options.extend(added.into_iter().filter(extracts));
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
        let names_only = self.is_names_only(program);
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
        if program.has_field("attached") {
            let name = text.chars().take(2).collect::<String>();
            let value = word.skip(2);
            let kind = value_use(program, &name).unwrap_or(Use::Read);
            self.options.push((name, Some(value.text())));
            self.uses.push((value, kind));
            return;
        }
        let is_powershell = program.has_field("powershell");
        let lower = is_powershell.then(|| text.to_lowercase());
        let text = lower.as_deref().unwrap_or(text);
        if is_powershell
            || text.starts_with("--")
            || (text.len() > 2 && is_whole_option(program, text))
        {
            let is_end = |c| c == '=' || is_powershell && c == ':';
            let (given, has_value) = match text.find(is_end) {
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
                self.take_list(&name, words);
            } else if has(program.get("numbers"), &name) {
                words.next_if(is_number);
                self.options.push((name, None));
            } else if let Some(kind) = kind {
                self.take_value(name, kind, words);
            } else {
                self.options.push((name, None));
            }
            return;
        }
        let first: String = text.chars().take(2).collect();
        for (at, letter) in text.chars().enumerate().skip(1) {
            let name = format!("-{letter}");
            let rest = word.skip(at + 1);
            if has(program.get("lists"), &name) {
                self.take_list(&name, words);
            }
            if has(program.get("numbers"), &name) {
                if rest.units.is_empty() && words.next_if(is_number).is_none() {
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
                    if at > 1 && !program.lists_option(&first) {
                        // An option with a value that is not in the table: `-d@.env`.
                        self.uses.push((word.skip(2), Use::Read));
                    }
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

    fn take_list<'a>(&mut self, name: &str, words: &mut Peekable<impl Iterator<Item = &'a Field>>) {
        while let Some(value) = words.next_if(|word| !word.text().starts_with('-')) {
            self.options.push((name.to_owned(), Some(value.text())));
        }
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

/// Returns whether a word is a number, or one that is not known.
fn is_number(word: &&Field) -> bool {
    let is_unknown = word.has_unknown() && word.names.is_empty() && word.file.is_none();
    let text = word.text();
    let digits = text.strip_prefix('-').unwrap_or(&text);
    is_unknown || !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a word with one dash is one option: `-name`, not `-n -a -m -e`.
fn is_whole_option(program: &Program, text: &str) -> bool {
    let name = text.split('=').next().unwrap_or(text);
    let is_named = |key| has(program.get(key), name);
    // `-var-file=x` of a program that is not listed
    let is_assigned = program.names.is_empty() && name.len() < text.len();
    name.len() > 2 && (is_assigned || WITH_VALUES.split(' ').any(is_named))
}

/// Returns what a program does with the value of an option, or `None` if it is not known to have one.
fn value_use(program: &Program, name: &str) -> Option<Use> {
    if has(program.get("flags"), name) {
        return None;
    }
    let of_program = [
        (program.get("texts"), Use::Text),
        (program.get("code"), Use::Code),
        (program.get("values"), Use::Read),
        (program.get("tree_values"), Use::Read),
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
    let lists = OPTIONS.split(' ').map(|key| program.get(key));
    let mut names = lists.flat_map(str::split_ascii_whitespace);
    let is_full = |name: &&str| *name == given;
    let is_powershell = program.has_field("powershell");
    let shortest = if is_powershell { 2 } else { 5 };
    let found = if names.clone().any(|name| is_full(&name)) {
        None
    } else {
        names.find(|name| given.len() >= shortest && name.starts_with(given))
    };
    found.unwrap_or(given).to_owned()
}

/// Returns the folders that options of a command change to.
pub(in crate::command) fn option_folders(words: &[Field]) -> Vec<String> {
    let name = words.first().map(|word| program_name(&word.text()));
    let row = row(&name.unwrap_or_default(), None);
    // `grep -C 3`, `rsync -C`
    let is_other = |option| {
        let has_option = |key| row.is_some_and(|row| has(row.get(key), option));
        has_option("numbers") || has_option("flags")
    };
    let mut folders = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let text = word.text();
        let options = FOLDER_OPTIONS.split_ascii_whitespace();
        let named = options
            .filter(|option| !is_other(option))
            .find_map(|option| {
                let rest = text.strip_prefix(option)?;
                match rest.strip_prefix('=') {
                    Some(_) => Some(word.skip(option.len() + 1)),
                    None if rest.is_empty() => words.get(at + 1).cloned(),
                    None => (option == "-C").then(|| word.skip(option.len())),
                }
            });
        let slashed = named.as_ref().and_then(Field::slashed);
        folders.extend(named.iter().chain(&slashed).map(Field::text));
    }
    folders
}

/// Returns the folders in which a program finds its operands: those of its options, and the current ones.
pub(in crate::command) fn folders_of(words: &[Field], dirs: &[PathBuf]) -> Vec<PathBuf> {
    let folders = option_folders(words).into_iter();
    let folders = folders.flat_map(|folder| dirs.iter().map(move |dir| dir.join(&folder)));
    folders.chain(dirs.iter().cloned()).collect()
}

/// Splits the words of `fd` before the command that it runs.
pub(in crate::command) fn exec_of_fd(words: &[Field]) -> Option<(Vec<Field>, Vec<Field>)> {
    let program = row("fd", None)?;
    words.iter().enumerate().find_map(|(at, word)| {
        let text = word.text();
        let long = text
            .strip_prefix("--exec-batch")
            .or(text.strip_prefix("--exec"));
        let (letters, begin) = match long {
            Some(rest) if rest.is_empty() || rest.starts_with('=') => {
                (1, text.len() - rest.len() + 1)
            }
            _ => exec_letter(program, &text).map(|at| (at, at + 1))?,
        };
        // `-HIx`
        let flags = (letters > 1).then(|| Field::quoted(&text[..letters]));
        let attached = Some(word.skip(begin)).filter(|field| !field.units.is_empty());
        let before = words[..at].iter().cloned().chain(flags);
        let command = attached.into_iter().chain(words[at + 1..].iter().cloned());
        Some((before.collect(), command.collect()))
    })
}

/// Returns the place of `x` or `X` among the letters of a word, if it is not in a value: `-HIx`, not `-ex`.
fn exec_letter(program: &Program, text: &str) -> Option<usize> {
    let mut letters = text.strip_prefix('-')?.char_indices();
    let (at, letter) = letters.find(|(_, letter)| {
        matches!(letter, 'x' | 'X' | '-') || value_use(program, &format!("-{letter}")).is_some()
    })?;
    matches!(letter, 'x' | 'X').then_some(at + 1)
}
