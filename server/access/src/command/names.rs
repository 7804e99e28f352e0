//! What is seen of outputs: names of files, which programs print them and how, which of them filters such as `grep`
//! pass on, files that keep them, and outputs that are only counted.

use std::{path::PathBuf, rc::Rc};

use regex::{Regex, RegexBuilder};

use super::{
    Checker, State,
    expand::{Field, Output},
    git::Git,
    programs::{Arguments, Use, has},
    syntax::{Command, DeniedName, Form, Part, Redirect, RedirectKind, Word},
    tree,
};

/// Programs that print lines of their input as they are.
const LINE_FILTERS: &str =
    "cat tac head tail sort uniq shuf tee sponge less more grep egrep fgrep rg";
/// Options with which `cat` and the others add text to a line, or print a part of it.
const CAT_ADDITIONS: &str = "-n -b -A -E -T --number --number-nonblank --show-all --show-ends";
const ADDITIONS: &str = "-n -b -c -H -T --count --line-number --with-filename";
const PARTS: &str = "-o --only-matching -r --replace";
/// Options with which `grep` prints other lines than those that match.
const MORE_LINES: &str = "-A -B -C --after-context --before-context --context --passthru -f --file";
/// Programs that only print what they read, whatever their words are: to the standard output, and to no file.
const ONLY_PRINT: &str = "cat tac nl head tail cut tr grep egrep fgrep";
/// Other programs of a line in which outputs are followed: none changes what a name or a file means.
const AROUND: &str = "echo test [ cd ls true false :";
/// Programs that run the first of their words that is no option and no number.
const RUNNERS: &str = "xargs command nice timeout";
/// Subcommands of git that only print what they read, and others of such a line.
const GIT_ONLY_PRINTS: &str = "diff log show grep";
const GIT_AROUND: &str = "ls-files rev-list rev-parse status";
/// Options with which `sort` and `uniq` only print what they read.
const SORTS: &str = "-u -r -n -h -b -f -d -g -i -V -k -t";
const UNIQUE: &str = "-c -d -u -i";
/// Variables of zsh that change what names mean.
const ZSH_VARIABLES: &str =
    "path cdpath fpath aliases galiases saliases functions commands builtins options modules";
/// Texts of lines that other shells read in another way, or in which the output of a process is seen elsewhere.
const NOT_FOLLOWED: [&str; 7] = ["\\\n", "&>", "$=", "$~", "$^", "coproc", "/proc"];
/// Characters of patterns that match only at some places of a line.
const ANCHORS: [&str; 6] = ["^", "$", "\\b", "\\B", "\\<", "\\>"];

impl Form {
    /// Returns the form in the output of a program that gets the line.
    fn after(self, program: &str, arguments: &Arguments) -> Self {
        let mut texts = arguments.uses.iter().map(|(field, _)| field.text());
        let mut codes = arguments.uses.iter().filter(|(_, kind)| *kind == Use::Code);
        let code = codes
            .next()
            .map_or_else(String::new, |(field, _)| field.text());
        match program {
            _ if has(LINE_FILTERS, program) => {
                let additions = match program {
                    "head" | "tail" | "tac" | "sort" => return self,
                    "cat" => CAT_ADDITIONS,
                    _ => ADDITIONS,
                };
                match arguments.is_set(PARTS) {
                    true => Self::Unknown,
                    false if arguments.is_set(additions) => self.with_more(),
                    false => self,
                }
            }
            "nl" => self.with_more(),
            "tr" if arguments.is_set("-d -s") => self,
            "tr" if texts.next_back().is_some_and(|text| text == "\\n") => self.of_word(),
            _ if texts.any(|text| text == "/") => Self::Unknown,
            "cut" => self.of_word(),
            "awk" | "gawk" | "mawk" if prints_a_field(&code) => self.of_word(),
            "sed" | "gsed" => self.after_sed(&code),
            _ => Self::Unknown,
        }
    }

    /// Returns the form after a command of `sed` that selects lines or deletes a part of them.
    fn after_sed(self, code: &str) -> Self {
        let is_number = |c: char| c.is_ascii_digit() || "$, ".contains(c);
        let ends = |text: &str| has("p d q", text);
        if ends(code.trim_start_matches(is_number)) {
            return self;
        }
        let mut chars = code.chars();
        let (first, second) = (chars.next(), chars.next());
        let separator = if first == Some('s') { second } else { first };
        let parts = code.split(separator.unwrap_or('/')).collect::<Vec<_>>();
        match parts.as_slice() {
            ["s", _, "", _] => self.of_word(),
            ["", _, command] if ends(command) => self,
            _ => Self::Unknown,
        }
    }
}

/// Returns for each stage of a pipeline whether its output is only counted. `is_counted`: that of the last one.
pub(super) fn counted(stages: &[Command], is_counted: bool) -> impl Iterator<Item = bool> {
    let mut counted = vec![is_counted; stages.len()];
    for (at, next) in stages.iter().enumerate().skip(1).rev() {
        let words = plain_words(next).unwrap_or_default();
        counted[at - 1] = counts(&words) || counted[at] && only_prints(&words);
    }
    counted.into_iter()
}

/// Returns whether a redirection leads to nothing.
pub(super) fn is_discarded(redirect: &Redirect) -> bool {
    let target = redirect.target.get().and_then(Word::plain);
    let is_null = target.as_deref() == Some("/dev/null");
    redirect.writes_output() && redirect.kind == RedirectKind::Write && is_null
}

/// Returns the words of a simple command without expansions.
fn plain_words(command: &Command) -> Option<Vec<Field>> {
    let Command::Simple(simple) = command else {
        return None;
    };
    (simple.words.iter())
        .map(|word| Some(Field::quoted(&word.plain()?)))
        .collect()
}

/// Returns whether outputs in a text are followed to programs that count them.
pub(super) fn may_follow_counts(text: &str) -> bool {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n') || !c.is_whitespace();
    text.chars().all(is_blank) && !NOT_FOLLOWED.iter().any(|it| text.contains(it))
}

/// Returns whether commands only print and count: they write no file, and change no meaning of a name.
pub(super) fn only_count(commands: &[Command]) -> bool {
    commands.iter().all(|command| match command {
        Command::And | Command::Or | Command::Branch => true,
        Command::Pipeline(stages) => only_count(stages),
        Command::Test(words) => words.iter().all(has_only_counts),
        Command::Group {
            body,
            redirects,
            is_subshell: false,
        } => only_count(body) && redirects.iter().all(writes_nothing),
        Command::For {
            name,
            words,
            body,
            redirects,
        } => {
            let has_plain_name = is_plain_name(name) && words.iter().all(has_only_counts);
            has_plain_name && only_count(body) && redirects.iter().all(writes_nothing)
        }
        Command::Simple(simple) => {
            // `LC_ALL=C grep`, not `PATH=. wc`
            let is_plain = |name: &str| match simple.words.as_slice() {
                [] => is_plain_name(name),
                _ => name.starts_with("LC_"),
            };
            let values = simple.assignments.iter().flat_map(|it| &it.values);
            let mut names = simple.assignments.iter().map(|it| &it.name);
            names.all(|name| is_plain(name))
                && values.chain(&simple.words).all(has_only_counts)
                && simple.redirects.iter().all(writes_nothing)
                && is_around(command, &simple.words)
        }
        _ => false,
    })
}

/// Returns whether a redirection writes no file, and not to where output is seen.
fn writes_nothing(redirect: &Redirect) -> bool {
    let target = redirect.target.get();
    let to = || target.and_then(Word::plain).unwrap_or_default();
    match redirect.kind {
        RedirectKind::Read | RedirectKind::Text => target.is_some_and(has_only_counts),
        // `2>&1`, `2>/dev/null`
        RedirectKind::Duplicate => !redirect.is_output && to() == "1",
        _ => to() == "/dev/null",
    }
}

/// Returns whether expanding a word does no more than print and count.
fn has_only_counts(word: &Word) -> bool {
    word.parts.iter().all(|part| match part {
        // Some patterns of zsh run code.
        Part::Text { text, is_quoted } => *is_quoted || !text.contains('('),
        Part::Tilde(_) => true,
        Part::Command { body, .. } => only_count(body),
        Part::Variable {
            operator, argument, ..
        } => operator.is_empty() && argument.is_empty(),
        Part::Process(_) => false,
    })
}

/// Returns whether a variable means nothing to a shell or a program.
fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(is_plain) && !has(ZSH_VARIABLES, name)
}

/// Returns whether a line with this command is one in which outputs are followed.
fn is_around(command: &Command, words: &[Word]) -> bool {
    let name = words.first().and_then(Word::plain).unwrap_or_default();
    if words.is_empty() || has(ONLY_PRINT, &name) || has(AROUND, &name) {
        return true;
    }
    let Some(fields) = plain_words(command) else {
        return false;
    };
    let texts: Vec<String> = fields.iter().map(Field::text).collect();
    let is_printer = |text: &String| has(ONLY_PRINT, text) || text == "wc";
    let is_value = |it: &str| it.starts_with(['{', '%', '\\']) || it.parse::<f32>().is_ok();
    let is_option = |it: &&String| it.starts_with('-') || is_value(it);
    match &*name {
        "git" => only_prints(&fields) || texts.get(1).is_some_and(|text| has(GIT_AROUND, text)),
        "find" => {
            let runs = |pair: &[String]| !pair[0].starts_with("-exec") || is_printer(&pair[1]);
            let writes =
                |it: &String| it.starts_with("-f") && it != "-follow" || it.starts_with("-ok");
            texts.windows(2).all(runs) && !texts.iter().any(writes)
        }
        "read" => texts[1..]
            .iter()
            .all(|it| it.starts_with('-') || is_plain_name(it)),
        "awk" => !texts.iter().any(|it| it.contains(['|', '>', '(', '@'])),
        "wc" => counts(&fields),
        _ if has(RUNNERS, &name) => {
            let mut rest = texts[1..].iter().skip_while(is_option);
            let takes_words = name == "xargs";
            rest.next()
                .is_some_and(|it| is_printer(it) || it == "rg" && !takes_words)
        }
        _ => only_prints(&fields),
    }
}

/// Returns whether a command prints only counts of its input.
fn counts(words: &[Field]) -> bool {
    let name = words.first().map(Field::text).unwrap_or_default();
    // The option comes first, where it is no value and no operand.
    let is_option = || {
        let option = &words[..words.len().min(2)];
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        Arguments::new(option).prints_names_only() && option[1].text().chars().all(is_plain)
    };
    match &*name {
        // `--files0-from=-`: its errors print names from the input.
        "wc" => !words.iter().any(|word| word.text().starts_with("--f")),
        "grep" | "egrep" | "fgrep" | "rg" => only_prints(words) && is_option(),
        _ => false,
    }
}

/// Returns whether a command only prints what it reads, and nothing of it in errors.
fn only_prints(words: &[Field]) -> bool {
    let name = words.first().map(Field::text).unwrap_or_default();
    let arguments = Arguments::new(words);
    let has_only = |names: &str| arguments.options.iter().all(|(name, _)| has(names, name));
    // `grep -f`, `rg --pre`
    let reads = arguments.program.map_or("", |row| row.get("values"));
    match &*name {
        "git" => git_only_prints(words),
        "sort" => has_only(SORTS),
        "uniq" => has_only(UNIQUE) && words[1..].iter().all(|it| it.text().starts_with('-')),
        "rg" => !arguments.is_set(reads),
        name => has(ONLY_PRINT, name) && !arguments.is_set(reads),
    }
}

fn git_only_prints(words: &[Field]) -> bool {
    let git = Git::new(words, |_| None);
    // `grep -f`, `grep -O`
    let is_other = |word: &Field| {
        let text = word.text();
        let letters = text.strip_prefix('-').filter(|it| !it.starts_with('-'));
        text.starts_with("--f") || letters.is_some_and(|it| it.contains(['f', 'O']))
    };
    has(GIT_ONLY_PRINTS, &git.subcommand)
        && git.question().is_some()
        && !words.iter().any(|word| word.text().starts_with("--ou"))
        && !(git.subcommand == "grep" && git.rest().any(is_other))
}

impl Checker<'_> {
    /// Returns whether of what a command reads only counts are seen.
    pub(super) fn only_counts(&self, words: &[Field], state: &State) -> bool {
        let is_advice = self.guard.is_none() && !self.checks_all_words;
        self.follows_counts && state.is_counted && is_advice && only_prints(words)
    }

    /// Runs a command of which only counts are seen: no path is denied to it.
    pub(super) fn uncounted(&mut self, run: impl FnOnce(&mut Self) -> Output) -> Output {
        let (denied, fixes) = (self.judge.denied.len(), self.fixes.len());
        let is_fixable = self.is_fixable;
        let output = run(self);
        let added = self.judge.denied.split_off(denied);
        // Limits of the check remain.
        let others = added.into_iter().filter(|it| it.path.is_empty());
        self.judge.denied.extend(others);
        self.fixes.truncate(fixes);
        self.is_fixable = is_fixable;
        output
    }

    /// Returns the denied names among the operands of a program that prints names, and for `ls` those in folders.
    pub(super) fn list_folders(
        &mut self,
        arguments: &Arguments,
        dirs: &[PathBuf],
        state: &State,
    ) -> Rc<[DeniedName]> {
        let mut names = Vec::new();
        let mut operands = arguments.operands.clone();
        if operands.is_empty() && arguments.has_field("lists_names") {
            operands.push(Field::quoted("."));
        }
        for operand in &operands {
            names.extend(operand.names.iter().cloned());
            for (path, place) in self.judge.named(operand, dirs, state.dotglob) {
                let lists =
                    arguments.has_field("lists_names") && !arguments.is_set("-d --directory");
                let is_listed = lists && self.judge.guarded.is_some() && place.is_dir();
                if let Some(denial) = self.judge.denial(&place).filter(|_| !is_listed) {
                    names.push(DeniedName {
                        form: Form::Path,
                        ..DeniedName::new(path, place, false, denial)
                    });
                } else if let Some(program) = arguments.program.filter(|_| lists) {
                    // A line is the name without the folder.
                    let recurses = arguments.is_on("recursive");
                    let form = match path == "." && !recurses {
                        true => Form::Path,
                        false => Form::End,
                    };
                    let operand = tree::Operand {
                        dir: place.clone(),
                        place,
                        written: path,
                    };
                    let found =
                        tree::read_by_program(&mut self.judge, program, arguments, &operand, true);
                    names.extend(with_form(&found, |_| form).to_vec());
                }
            }
        }
        // `basename`
        match arguments.has_field("prints_ends") {
            true => with_form(&names, |_| Form::End),
            false => names.into(),
        }
    }

    /// Remembers the text of files that the command writes, which it may run as a script.
    pub(super) fn keep_files(&mut self, targets: &[Field], output: &Output, state: &State) {
        for target in targets {
            if output.text.is_none() && output.names.is_empty() {
                return;
            }
            for dir in &state.dirs {
                // `>>` keeps what was in the file.
                let kept = self.files.entry(dir.join(target.text())).or_default();
                let before = std::mem::replace(kept, output.clone());
                kept.append(before);
            }
        }
    }

    /// Runs a program that may write names, or a copy of a file with names, to a file.
    pub(super) fn keep_written(
        &mut self,
        name: &str,
        words: &[Field],
        state: &mut State,
    ) -> Output {
        let arguments = Arguments::new(words);
        let is_copy = has("cp mv", name);
        let targets: Vec<Field> = match is_copy {
            true => words.last().cloned().into_iter().collect(),
            false => arguments.values("-o --output").map(Field::quoted).collect(),
        };
        let is_consumed = state.is_consumed;
        state.is_consumed |= !targets.is_empty();
        let output = self.program(name, words, state);
        state.is_consumed = is_consumed;
        let mut written = if is_copy {
            Output::default()
        } else {
            output.clone()
        };
        for source in words.iter().filter(|_| is_copy) {
            self.append_written(&source.text(), state, &mut written);
        }
        self.keep_files(&targets, &written, state);
        output
    }

    /// Adds what the command line wrote to a file.
    pub(super) fn append_written(&self, path: &str, state: &State, output: &mut Output) {
        let places = state.dirs.iter().map(|dir| dir.join(path));
        for file in places.filter_map(|place| self.files.get(&place)) {
            output.append(file.clone());
        }
    }
}

/// Returns whether code of `awk` prints a field of a line, and nothing else.
fn prints_a_field(code: &str) -> bool {
    let block = code.split_once('{').map(|(_, block)| block.trim());
    let printed = block.and_then(|block| block.strip_prefix("print")?.strip_suffix('}'));
    let field = printed.and_then(|field| field.trim().strip_prefix('$'));
    field.is_some_and(|field| field.chars().all(char::is_alphanumeric))
}

/// Returns names with another form.
pub(super) fn with_form(names: &[DeniedName], change: impl Fn(Form) -> Form) -> Rc<[DeniedName]> {
    let names = names.iter().map(|name| DeniedName {
        form: change(name.form),
        ..name.clone()
    });
    names.collect()
}

/// Returns the names in the output of a program that gets them as its input.
pub(super) fn passed_on(
    names: &[DeniedName],
    program: &str,
    arguments: &Arguments,
) -> Rc<[DeniedName]> {
    let names = match has("grep egrep fgrep rg", program) {
        true => filter(names, program, arguments),
        false => names.to_vec(),
    };
    with_form(&names, |form| form.after(program, arguments))
}

/// Returns the names that a program of the `grep` family passes on, or may pass on.
fn filter(names: &[DeniedName], program: &str, arguments: &Arguments) -> Vec<DeniedName> {
    let first = arguments.uses.iter().find(|(_, kind)| *kind == Use::Text);
    let mut patterns: Vec<String> = arguments.values("-e --regexp").map(str::to_owned).collect();
    if patterns.is_empty() {
        patterns.extend(first.map(|(field, _)| field.text()));
    }
    let is_extended =
        has("egrep rg", program) || arguments.is_set("-E -P --extended-regexp --perl-regexp");
    if program == "fgrep" || arguments.is_set("-F --fixed-strings") {
        patterns = patterns.iter().map(|it| regex::escape(it)).collect();
    } else if !is_extended {
        patterns = patterns.iter().map(|it| it.replace("\\|", "|")).collect();
    }
    let pattern = patterns.join("|");
    let is_inverted = arguments.is_set("-v --invert --invert-match");
    let is_whole = arguments.is_set("-w -x --word-regexp --line-regexp");
    let is_number = |name: &str| name.parse::<u32>().is_ok();
    let counts = |(name, _): &(String, _)| name.strip_prefix('-').is_some_and(is_number);
    // Patterns in files, of another grammar, or that leave out whole words or lines: all names are kept.
    let is_unknown = !is_extended && pattern.contains(['(', '{', '+', '?'])
        || pattern.contains('\n')
        || pattern.contains("(?")
        || is_inverted && is_whole
        || arguments.is_set(MORE_LINES)
        || arguments.options.iter().any(counts);
    let regex = RegexBuilder::new(&pattern)
        .case_insensitive(!is_inverted)
        .build();
    let Some(regex) = regex.ok().filter(|_| !is_unknown) else {
        return names.to_vec();
    };
    let is_anchored = is_whole || ANCHORS.iter().any(|anchor| pattern.contains(anchor));
    let is_kept = |name: &&DeniedName| {
        !name.is_file()
            || match is_inverted {
                true => !is_left_out(name, &regex, is_anchored),
                false => may_match(name, &regex),
            }
    };
    names.iter().filter(is_kept).cloned().collect()
}

/// Returns whether a line with the name may match. Not all programs print `./` where it is expected.
fn may_match(name: &DeniedName, regex: &Regex) -> bool {
    match name.form {
        Form::Unknown | Form::Within => true,
        Form::Path | Form::Dotted => {
            regex.is_match(&name.path) || regex.is_match(&format!("./{}", name.path))
        }
        Form::End => regex.is_match(&name.path) || regex.is_match(file_name(name)),
    }
}

/// Returns whether each line with the name matches.
fn is_left_out(name: &DeniedName, regex: &Regex, is_anchored: bool) -> bool {
    match name.form {
        Form::Unknown => false,
        Form::Within => !is_anchored && regex.is_match(&name.path),
        Form::Path => regex.is_match(&name.path),
        // Not all programs print `./` where it is expected, and others may remove it.
        Form::Dotted => {
            regex.is_match(&format!("./{}", name.path))
                && (regex.is_match(&name.path) || regex.as_str().contains("./"))
        }
        Form::End => regex.is_match(file_name(name)),
    }
}

fn file_name(name: &DeniedName) -> &str {
    name.path.rsplit('/').next().unwrap_or(&name.path)
}
