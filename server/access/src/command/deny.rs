//! Judges the words of a command, and finds a command to run instead of a denied one: the same with options that
//! leave out the denied files, and nothing else.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    rc::Rc,
};

use sightline_protocol::settings::RecursiveReaders;

use super::{
    Checker, State,
    expand::{Field, Unit, literal},
    find::Find,
    parse,
    programs::{self, Arguments, Program, Use, row},
    syntax::{DeniedName, Exclusion, Fix},
    tree::Operand,
};
use crate::AccessView;
use sightline_base::path::{AbsPath, on_drive};

/// Maximum options that a suggested command adds.
const MAX_OPTIONS: usize = 24;
/// Maximum slashes of a pattern in a folder that a line makes of others.
const MAX_SLASHES: usize = 64;
/// Characters that mean something in a pattern of some program.
const SPECIAL: &str = "*?[]{}\\\n";

impl Checker<'_> {
    /// Checks a command in a word: `--pager='cat .env'`.
    pub(super) fn embedded(&mut self, text: &str, state: &State) {
        if !text.contains(char::is_whitespace) {
            return;
        }
        for start in [0, text.find(['=', ':']).map_or(0, |at| at + 1)] {
            let command = text[start..].trim_start_matches([' ', '|', '!', '-', '@', '+']);
            if !programs::starts_with_command(command) {
                continue;
            }
            if parse::parse(command, 0).is_ok() {
                self.script(command, &mut state.clone());
            } else {
                // No shell runs it as a whole: `{ ...a, x: "y" }` of JavaScript.
                self.use_words("a command", command, state);
            }
            return;
        }
    }

    /// Checks the words of a text that is no script.
    pub(super) fn use_words(&mut self, program: &str, text: &str, state: &State) {
        let ends = |c: char| c.is_whitespace() || "(){}[];,\"'`|&=<>".contains(c);
        for word in text.split(ends).filter(|word| !word.is_empty()) {
            self.use_field(&literal(word, false), Use::Read, program, state);
        }
    }

    /// Checks what a program does with a word.
    pub(super) fn use_field(&mut self, field: &Field, kind: Use, program: &str, state: &State) {
        self.use_field_in(field, kind, program, &state.dirs, state);
    }

    pub(super) fn use_field_in(
        &mut self,
        field: &Field,
        kind: Use,
        program: &str,
        dirs: &[PathBuf],
        state: &State,
    ) {
        let kind = if self.checks_all_words {
            Use::Read
        } else {
            kind
        };
        self.judge_field(field, kind, program, dirs, state);
        if matches!(kind, Use::Write | Use::Create | Use::Alter) {
            let paths = if field.has_glob() {
                let matches = self.judge.matches(field, dirs, state.dotglob);
                matches.into_iter().map(|(path, _)| path).collect()
            } else {
                pieces(&field.text())
            };
            for path in paths {
                self.judge.add_written(&path, dirs, kind == Use::Write);
            }
        }
    }

    fn judge_field(
        &mut self,
        field: &Field,
        kind: Use,
        program: &str,
        dirs: &[PathBuf],
        state: &State,
    ) {
        let text = field.text();
        let verb = match kind {
            Use::Text | Use::Stat | Use::Alter | Use::Create => return,
            Use::Write => "write",
            Use::Read | Use::Code => "read",
        };
        let how = if program == "a redirection" || program == "an expression" {
            format!("{program} would {verb}")
        } else {
            format!("`{program}` would {verb}")
        };
        if kind == Use::Code {
            self.code(&text, program, dirs, state);
            return;
        }
        // Git may print other versions than that on the disk.
        let is_git = program.starts_with("git ");
        let mut names = field.names.to_vec();
        names.retain(|name| {
            is_git || !name.denial.by_content || self.judge.denial(&name.place).is_some()
        });
        self.deny_names(&names, &how);
        if let Some(slashed) = field.slashed()
            && slashed.has_glob()
            && !field.has_glob()
        {
            self.judge_field(&slashed, kind, program, dirs, state);
        }
        if field.has_glob() {
            // Most programs do not read folders; searches of folders are checked elsewhere.
            let reads_folders = self.reads_folders;
            let mut matches = self.judge.matches(field, dirs, state.dotglob);
            if matches.is_empty() && !self.judge.copied.is_empty() {
                // In a folder that the line makes of others.
                let copied = self.judge.copied.clone();
                let is_slash = |unit: &Unit| matches!(unit, Unit::Plain('/') | Unit::Quoted('/'));
                let slashes = (0..field.units.len()).filter(|at| is_slash(&field.units[*at]));
                for (count, at) in slashes.enumerate() {
                    if count >= MAX_SLASHES {
                        self.judge.exhaust();
                    }
                    if self.judge.is_exhausted() {
                        return;
                    }
                    let below = field.skip(at + 1);
                    matches.extend(self.judge.matches(&below, &copied, state.dotglob));
                }
            }
            for (path, place) in matches {
                if let Some(denial) = self.judge.denial(&place)
                    && (reads_folders || !place.is_dir())
                {
                    self.is_fixable = false;
                    self.judge.deny(&path, &how, denial);
                }
            }
        }
        // A text with blanks that names no file is a message, or a command that is checked as one.
        let is_text = |piece: &str| piece.contains(char::is_whitespace) && !field.has_unknown();
        for path in field.paths() {
            let key = path.split_once('=').map(|(key, _)| key);
            // A refusal names the smallest part.
            for piece in pieces(&path).into_iter().rev() {
                if is_text(&piece) && !self.judge.exists(&piece, dirs) {
                    // Agents read the files that a prompt mentions.
                    let words = piece.split_whitespace();
                    for name in words.filter_map(|word| word.strip_prefix('@')) {
                        if self.judge.is_file(name, dirs) {
                            self.is_fixable &= !self.judge.check_path(name, dirs, &how);
                        }
                    }
                    continue;
                }
                // `--set app.env=x`, `kubectl get private`
                let may_be_name = self.takes_names || key == Some(&*piece);
                if may_be_name
                    && !piece.contains(['/', '\\'])
                    && !piece.starts_with('.')
                    && !self.judge.is_file(&piece, dirs)
                {
                    continue;
                }
                let reads = verb == "read";
                self.is_fixable &= !self.judge.check_path_as(&piece, dirs, &how, reads);
            }
        }
        self.embedded(&text, state);
    }

    /// Denies files that a program reads because their names are passed to it.
    pub(super) fn deny_names(&mut self, names: &[DeniedName], how: &str) {
        if self.judge.readers == RecursiveReaders::Allow {
            return;
        }
        for name in names {
            // Most programs do not read folders.
            if name.is_dir && !self.reads_folders {
                continue;
            }
            self.add_fix(name);
            self.judge.deny(&name.path, how, name.denial.clone());
        }
    }
}

/// Returns everything in a text that could be a path: the whole text, the value of an option or
/// assignment, the part after `@` or `:`.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let mut pieces = vec![text.to_owned()];
    pieces.extend(on_drive(text));
    if let Some((before, rest)) = text.split_once("://") {
        // A URL is not a path, except a `file:` URL.
        if !before.to_ascii_lowercase().ends_with("file") {
            return Vec::new();
        }
        let path = rest.strip_prefix("localhost").unwrap_or(rest);
        let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
        return vec![path.to_owned(), decoded.into_owned()];
    }
    if text.contains(['\n', ' ']) && !text.contains(['=', ':', '@']) {
        return pieces;
    }
    for part in text.split([',', ';', '=', ':', '<', '>', '|', '&', '(', ')', '@']) {
        let part = part
            .trim_matches(['\'', '"'])
            .trim_start_matches(['+', '?', '!', '%', '#', '-']);
        if !part.is_empty() {
            pieces.push(part.to_owned());
            pieces.extend(on_drive(part));
        }
    }
    if let Some((_, value)) = text.split_once('=') {
        pieces.push(value.to_owned());
        pieces.push(value.trim_start_matches('@').to_owned());
    }
    pieces
}

/// What a command to run instead leaves out: a file, or a folder of which all files are denied.
pub(super) struct LeftOut {
    fix: Rc<Fix>,
    /// Its path below the operand.
    below: String,
    is_dir: bool,
}

impl Checker<'_> {
    /// Records what a command to run instead leaves out.
    fn add_fix(&mut self, name: &DeniedName) {
        let left_out = name.fix.as_ref().and_then(|fix| self.left_out(name, fix));
        match left_out {
            Some(left_out) => self.fixes.push(left_out),
            None => self.is_fixable = false,
        }
    }

    /// Returns the file, or the folder whose contents are denied.
    fn left_out(&self, name: &DeniedName, fix: &Rc<Fix>) -> Option<LeftOut> {
        let below = name.path.get(fix.skipped..)?;
        let depth = below.split('/').count();
        let denial = |dir: AbsPath| self.judge.view.denial_of(&dir, || true);
        let is_denied = |up: &usize| {
            let dir = name.place.ancestors().nth(*up);
            dir.and_then(AbsPath::new).and_then(denial).is_some()
        };
        let up = (1..=depth).rev().find(is_denied).unwrap_or(0);
        // Nothing of the operand is left.
        if up == depth {
            return None;
        }
        let parts: Vec<&str> = below.split('/').take(depth - up).collect();
        Some(LeftOut {
            fix: Rc::clone(fix),
            below: parts.join("/"),
            is_dir: up > 0,
        })
    }

    /// Returns a command that does the same without the denied files, if there is one.
    pub(super) fn instead(&self, view: &AccessView, text: &str) -> Option<String> {
        if !self.is_fixable || self.fixes.is_empty() {
            return None;
        }
        // Without an allowed file, nothing is left to search. Git finds its files itself.
        let is_search = |left_out: &LeftOut| left_out.fix.exclusion.literal.is_empty();
        if self.judge.seen.files == 0 && self.fixes.iter().all(is_search) {
            return None;
        }
        let command = self.with_options(text)?;
        let mut checker = Checker::new(view, self.judge.readers);
        checker.check(&command);
        // It reads the same allowed files.
        let is_right =
            checker.judge.denied.is_empty() && checker.judge.seen.files == self.judge.seen.files;
        is_right.then_some(command)
    }

    /// Returns the command line with options that leave out files.
    fn with_options(&self, text: &str) -> Option<String> {
        let mut edits: BTreeMap<usize, (&Fix, Vec<String>)> = BTreeMap::new();
        for LeftOut { fix, below, is_dir } in &self.fixes {
            let name = below.rsplit('/').next().unwrap_or(below);
            let Exclusion {
                name: by_name,
                path: by_path,
                literal,
            } = fix.exclusion;
            let form =
                |forms: (&'static str, &'static str)| if *is_dir { forms.1 } else { forms.0 };
            let (form, named) = match fix.base.as_deref() {
                _ if !by_name.0.is_empty() && !self.judge.seen.has(name) => {
                    (form(by_name), name.to_owned())
                }
                Some("") => (form(by_path), below.clone()),
                Some(base) => (form(by_path), format!("{base}/{below}")),
                None => return None,
            };
            let form = match named.contains(|c| SPECIAL.contains(c))
                || named.starts_with([':', '!', '^'])
            {
                true => literal,
                false => form,
            };
            if form.is_empty() || named.contains('\n') {
                return None;
            }
            let words = form.split_ascii_whitespace();
            let option: Vec<String> = words
                .map(|word| quoted(&word.replace("{}", &named)))
                .collect();
            let option = option.join(" ");
            let (_, options) = edits.entry(fix.at).or_insert((fix, Vec::new()));
            if !options.contains(&option) {
                options.push(option);
            }
        }
        let count: usize = edits.values().map(|(_, options)| options.len()).sum();
        if count > MAX_OPTIONS {
            return None;
        }
        let mut fixed = text.to_owned();
        for (at, (fix, options)) in edits.into_iter().rev() {
            let mut inserted = format!("{} {}", fix.opening, options.join(" "));
            for quote in fix.quotes.chars() {
                inserted = escaped(&inserted, quote);
            }
            fixed = format!("{}{inserted}{}", fixed.get(..at)?, fixed.get(at..)?);
        }
        Some(fixed)
    }

    /// Returns how a program that reads folders can leave out files below one of its operands.
    pub(super) fn fix(
        &self,
        program: &Program,
        arguments: &Arguments,
        words: &[Field],
        operand: &Operand,
    ) -> Option<Rc<Fix>> {
        let place = self.place.as_ref()?;
        let last = words.iter().map(|word| word.span.end).max().unwrap_or(0);
        let at = if program.has_field("hints_last") {
            last
        } else {
            // The last matching option decides.
            let last_filter = option_end(words, &[program.get("include"), program.get("globs")]);
            last_filter
                .or(arguments.options_at)
                .unwrap_or(words[0].span.end)
        };
        if at == 0 || arguments.is_set(program.get("unfiltered")) {
            return None;
        }
        let first = arguments.operands.first().map(Field::text);
        let is_first = first.is_none_or(|first| first == operand.written);
        Some(Rc::new(Fix {
            at,
            quotes: place.quotes.clone(),
            exclusion: program.exclusion(),
            skipped: operand.len(),
            base: match program.get("paths") {
                "first" => is_first.then(String::new),
                paths => base(paths, &operand.written),
            },
            ..Fix::default()
        }))
    }

    /// Returns how `find` can leave out files below one of its operands.
    pub(super) fn fix_of_find(&self, find: &Find, written: &str) -> Option<Rc<Fix>> {
        let place = self.place.as_ref()?;
        let program = row("find", None)?;
        (find.tests_at > 0).then(|| {
            Rc::new(Fix {
                at: find.tests_at,
                quotes: place.quotes.clone(),
                exclusion: program.exclusion(),
                skipped: Operand::new(Path::new(""), written).len(),
                base: base(program.get("paths"), written),
                ..Fix::default()
            })
        })
    }
}

/// Returns what patterns of paths have in place of an operand; empty for the folder itself.
fn base(paths: &str, written: &str) -> Option<String> {
    let trimmed = written.trim_end_matches('/');
    let plain = trimmed.trim_start_matches("./");
    match paths {
        "written" => (!trimmed.is_empty()).then(|| trimmed.to_owned()),
        "plain" if plain.starts_with("..") || plain.starts_with('/') => None,
        "plain" if plain == "." => Some(String::new()),
        "plain" => Some(plain.to_owned()),
        _ => None,
    }
}

/// Quotes a word for a shell, if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/+@:,=".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", escaped(word, '\''))
    }
}

/// Escapes text between quotes.
fn escaped(text: &str, quote: char) -> String {
    if quote == '\'' {
        return text.replace('\'', "'\\''");
    }
    let mut escaped = String::new();
    for c in text.chars() {
        escaped.extend("\\\"$`".contains(c).then_some('\\'));
        escaped.push(c);
    }
    escaped
}

/// Returns where the last of these options ends in the command line, with its value.
fn option_end(words: &[Field], lists: &[&str]) -> Option<usize> {
    let names = || lists.iter().flat_map(|list| list.split_ascii_whitespace());
    let at = words.iter().rposition(|word| {
        let text = word.text();
        names().any(|name| {
            text.strip_prefix(name).is_some_and(|value| {
                value.is_empty() || value.starts_with('=') || !name.starts_with("--")
            })
        })
    })?;
    let is_alone = names().any(|name| name == words[at].text());
    let end = words.get(at + usize::from(is_alone))?;
    Some(end.span.end).filter(|end| *end > 0)
}
