//! Runs simple commands: programs of the table, and wrappers such as `sudo`.

use std::{
    path::{Path, PathBuf},
    rc::Rc,
};

use sightline_protocol::settings::RecursiveReaders;

use super::{
    Checker, DECLARATIONS, State,
    expand::{DECODED, Field, Output, literal},
    flow,
    judge::Writes,
    names::{self, with_form},
    programs::{self, Arguments, Program, Use, folders_of, has, option_folders, program_name},
    scripts::powershell,
    syntax::{DeniedName, Form},
    tree,
};
use sightline_base::{fs::find_program, path::AbsPath};

/// Maximum programs that one pattern means.
const MAX_PROGRAMS: usize = 16;
impl Checker<'_> {
    /// Runs a command. The first word is the program.
    pub(super) fn run(&mut self, words: &[Field], state: &mut State) -> Output {
        self.nested(|checker| {
            checker.guard_words_of(words, state);
            match checker.only_counts(words, state) {
                true => checker.uncounted(|checker| checker.nested_run(words, state)),
                false => checker.nested_run(words, state),
            }
        })
    }

    fn nested_run(&mut self, words: &[Field], state: &mut State) -> Output {
        let Some(first) = words.first() else {
            return state.stdin.clone();
        };
        if self.judge.is_exhausted() {
            return Output::default();
        }
        let text = first.text();
        if text.contains(char::is_whitespace) {
            let texts: Vec<String> = words.iter().map(Field::text).collect();
            return self.script(&texts.join(" "), &mut state.clone());
        }
        let name = program_name(&text);
        if text.contains(DECODED) {
            self.refuse_decoded();
        }
        if first.has_glob() {
            let matches = self.judge.matches(first, &state.dirs, state.dotglob);
            for (path, _) in matches.into_iter().take(MAX_PROGRAMS) {
                let program = [Field::quoted(&path)];
                let command = [program.as_slice(), &words[1..]].concat();
                self.run(&command, &mut state.clone());
            }
        }
        if let Some(command) = powershell::in_block(words) {
            return self.run_block(&command, words, state);
        }
        if first.has_unknown() || first.has_glob() {
            if !first.names.is_empty() && first.units.len() > 1 {
                // `$_.Name` prints.
                return state.stdin.clone();
            }
            // `$x = gc $_`
            let is_assignment = words.get(1).is_some_and(|word| word.text() == "=");
            for word in words
                .iter()
                .filter(|it| !is_assignment || it.names.is_empty())
            {
                self.use_field(word, Use::Read, "a program", state);
            }
            let rest = &words[if is_assignment { 2 } else { 1 }..];
            return self.run(rest, &mut state.clone());
        }
        if text.contains(['/', '\\', '.']) {
            self.use_field(first, Use::Read, &name, state);
        }
        let rest = &words[1..];
        if !self.checks_all_words
            && let Some(output) = self.call(&name, rest, state)
        {
            return output;
        }
        match name.as_str() {
            _ if self.checks_all_words => {
                for word in rest {
                    self.use_field(word, Use::Read, &name, state);
                }
                Output::default()
            }
            _ if has(programs::PRINTERS, &name) => self.print(&name, rest, state),
            "compgen" => self.complete(rest, state),
            "cd" | "chdir" | "pushd" | "popd" | "set-location" | "push-location"
            | "pop-location" | "sl" => {
                self.change_dir(&name, rest, state);
                Output::default()
            }
            _ if has(DECLARATIONS, &name) => {
                for word in rest {
                    let text = word.text();
                    let value = text.split_once('=').map(|(_, value)| value);
                    // The value of `alias a=b` is a command.
                    let command = value.or((name == "alias").then_some(&*text));
                    self.script(command.unwrap_or_default(), &mut state.clone());
                }
                Output::default()
            }
            "read" | "mapfile" | "readarray" => {
                self.read_variables(rest, state);
                Output::default()
            }
            "set" | "shift" | "unset" => self.change_arguments(&name, rest, state),
            "shopt" | "setopt" => {
                let sets =
                    |word: &Field| has("dotglob globdots glob_dots", &word.text().to_lowercase());
                state.dotglob |= rest.iter().any(sets);
                Output::default()
            }
            "pwd" => {
                let dir = state.dirs.first();
                dir.map_or_else(Output::default, |dir| {
                    Output::of_text(dir.to_string_lossy().into_owned())
                })
            }
            "dirname"
                if rest
                    .iter()
                    .all(|word| word.known().is_some() && !word.has_glob()) =>
            {
                let paths = rest.iter().map(Field::text);
                let above = paths.filter(|path| !path.starts_with('-')).map(|path| {
                    let path = path.trim_end_matches('/').rsplit_once('/');
                    path.map_or(".", |(above, _)| above).to_owned() + "/\n"
                });
                Output::of_text(above.collect())
            }
            "which" | "command" | "type"
                if (state.is_consumed || name == "command") && rest.len() < 3 =>
            {
                let first = rest.first().map(Field::text).unwrap_or_default();
                let is_query = name == "which" || has("-v -V -p -P", &first);
                let found = rest.last().filter(|_| is_query);
                match found.and_then(|word| find_program(&word.text())) {
                    Some(path) => Output::of_text(path.to_string_lossy().into_owned()),
                    None if name == "command" && !is_query => self.run(rest, state),
                    // `type FILE` of Windows.
                    None if name == "type" && !is_query => self.program(&name, words, state),
                    None => Output::default(),
                }
            }
            "source" | "." => self.source(rest, state),
            "find" => self.find(words, state),
            "git" => self.git(words, state),
            "xargs" => self.run_with_input(words, state),
            "parallel" => self.parallel(words, state),
            // Their patterns match hidden files, also in quotes, and they read the files that are their input.
            _ if has(programs::POWERSHELL, &name)
                && (!state.dotglob || !state.stdin.is_empty()) =>
            {
                let mut inner = state.clone();
                inner.dotglob = true;
                let words = words.iter().map(Field::with_quoted_globs);
                if inner.stdin.is_empty() {
                    return self.run(&words.collect::<Vec<_>>(), &mut inner);
                }
                let xargs = std::iter::once(Field::quoted("xargs"));
                let words: Vec<Field> = xargs.chain(words).collect();
                self.run_with_input(&words, &mut inner)
            }
            "trap" => self.script(
                &rest.first().map(Field::text).unwrap_or_default(),
                &mut state.clone(),
            ),
            _ if has(programs::SCRIPT_TAKERS, &name) => {
                let is_option =
                    |text: &String| text.starts_with('-') || text.parse::<f32>().is_ok();
                let texts: Vec<String> =
                    rest.iter().map(Field::text).skip_while(is_option).collect();
                match rest {
                    [word] => self.script_word(word, state),
                    _ => self.script(&texts.join(" "), state),
                }
            }
            _ if has(programs::SHELLS, &name) => self.shell(&name, rest, state),
            _ => match programs::wrapped_command(words) {
                Some(at) => self.wrapped(words, at, state),
                None if has("sort tree cp mv", &name) => self.keep_written(&name, words, state),
                None => self.program(&name, words, state),
            },
        }
    }

    /// Runs the command after a wrapper such as `sudo`.
    pub(super) fn wrapped(&mut self, words: &[Field], at: usize, state: &mut State) -> Output {
        let name = program_name(&words[0].text());
        let folders = option_folders(&words[..at]);
        let mut inner = state.clone();
        // `strace` prints what the program reads.
        inner.is_counted &= has("command nice timeout", &name);
        inner.is_guess |= has(programs::LAUNCHERS, &name);
        for folder in folders {
            let entered: Vec<PathBuf> = inner.dirs.iter().map(|dir| dir.join(&folder)).collect();
            inner.add_dirs(entered);
        }
        for word in &words[1..at] {
            // `env -S 'cat .env'`
            self.takes_names = true;
            self.use_field(word, Use::Read, &name, &inner);
            self.takes_names = false;
            let text = word.text();
            if let Some((name, value)) = text
                .split_once('=')
                .filter(|(name, _)| name.starts_with("GIT_"))
            {
                inner.assign(name, [Field::quoted(value)]);
            }
            let option = text
                .trim_start_matches("-S")
                .trim_start_matches("--split-string=");
            self.embedded(option, &inner);
        }
        let text = words[at].text();
        if text.contains(char::is_whitespace) {
            // `su -c 'cat .env'`, `hyperfine 'cat .env'`
            return self.script_word(&words[at], &mut inner);
        }
        for word in &words[at + 1..] {
            if has(
                "watch hyperfine script su runuser entr sg flock nix-shell",
                &name,
            ) {
                self.embedded(&word.text(), &inner);
            }
        }
        let output = self.run(&words[at..], &mut inner);
        if has("builtin command", &name) {
            (state.dirs, state.left) = (inner.dirs, inner.left);
        }
        output
    }

    /// Runs a program of the table, or one that reads its operands.
    pub(super) fn program(&mut self, name: &str, words: &[Field], state: &mut State) -> Output {
        // `fd -x` runs the words after it.
        let exec = if has("fd fdfind", name) {
            programs::exec_of_fd(words)
        } else {
            None
        };
        let arguments = Arguments::new(exec.as_ref().map_or(words, |(before, _)| before));
        let dirs = folders_of(words, &state.dirs);
        let tree_dirs = match dirs.len() - state.dirs.len() {
            0 => state.dirs.clone(),
            named => dirs[..named].to_vec(),
        };
        let is_interpreter = programs::is_interpreter(name);
        self.reads_folders = arguments.program.is_none() || arguments.tree().is_some();
        // `npm run private`: most programs that are not listed have subcommands, targets or services.
        self.takes_names = arguments.has_field("names") || arguments.program.is_none();
        if name == "ln" || name == "link" {
            self.link(&arguments, &dirs);
        } else if arguments
            .program
            .is_some_and(|program| program.has_field("removes"))
        {
            self.remove(&arguments, &dirs, state);
        }
        for (field, kind) in &arguments.uses {
            let text = field.text();
            let is_code = is_interpreter
                && *kind != Use::Text
                && text.contains(|c: char| c.is_whitespace() || "'\"`();".contains(c));
            self.use_field_in(
                field,
                if is_code {
                    Use::Code
                } else if *kind == Use::Text
                    && arguments.has_field("file_first")
                    && self.judge.is_file(&text, &dirs)
                {
                    Use::Read
                } else {
                    *kind
                },
                name,
                &dirs,
                state,
            );
            if is_interpreter {
                self.run_written(name, field, state);
            }
        }
        if name == "patch" {
            self.patch(name, words, &dirs, state);
        }
        if has(programs::MAKES, name) {
            for path in ["GNUmakefile", "makefile", "Makefile"] {
                self.run_written(name, &Field::quoted(path), state);
            }
        }
        self.reads_folders = true;
        self.takes_names = false;
        if is_interpreter {
            self.interpret(name, state);
        }
        self.judge.add_writes(match arguments.program {
            Some(_) if arguments.extracts() => Writes::Files,
            Some(program) if program.has_field("runs_code") => Writes::Unknown,
            Some(_) if !is_interpreter || has(programs::VIEWERS, name) => Writes::Nothing,
            _ => Writes::Unknown,
        });
        let mut output = Output::default();
        if let Some(tree) = arguments.tree() {
            output.names =
                self.read_folders(tree, &arguments, words, &tree_dirs, exec.is_some(), state);
        } else if state.is_consumed && arguments.prints_names() {
            output.names = self.list_folders(&arguments, &dirs, state);
        }
        if arguments.is_on("decorates") {
            output.names = with_form(&output.names, Form::with_more);
        }
        if let Some((_, command)) = &exec {
            output.names = self.run_for_names(command, &output.names, state);
        }
        if arguments.lists_files() || has("7z 7za 7zz 7zr", name) {
            let texts: Vec<String> = arguments.operands.iter().map(Field::text).collect();
            // `7z a x.7z @list`
            let listed = texts.iter().filter_map(|text| text.strip_prefix('@'));
            let values = arguments.values("-T --files-from --files0-from");
            let written = values.chain(listed).flat_map(|path| {
                let places = state.dirs.iter().map(move |dir| dir.join(path));
                places.filter_map(|place| self.files.get(&place))
            });
            let files = words.iter().filter_map(|word| word.file.as_deref());
            let lists = [&state.stdin].into_iter().chain(files).chain(written);
            let names: Vec<Field> = lists.flat_map(flow::fields_of).collect();
            let kind = arguments.program.map_or(Use::Read, Program::operands);
            for field in &names {
                self.use_field_in(field, kind, name, &dirs, state);
            }
        }
        self.run_written(name, &words[0], state);
        if !output.names.is_empty()
            || arguments
                .program
                .is_some_and(|program| program.operands() == Use::Stat)
        {
            return output;
        }
        self.passed(name, &arguments, state)
    }

    /// Returns the output of a program that passes on its input.
    pub(super) fn passed(&mut self, name: &str, arguments: &Arguments, state: &State) -> Output {
        let mut output = state.stdin.clone();
        if output.names_commits && !has("cat head tail sort uniq", name) {
            output.text = None;
        }
        // These keep what is in an archive.
        let keeps_content = has("cat gunzip zcat gzip bzip2 xz zstd tee", name);
        output.path = output.path.filter(|_| keeps_content);
        if name == "cat" || name == "tee" {
            let single = arguments
                .operands
                .first()
                .filter(|_| arguments.operands.len() == 1);
            output.path = output.path.or(single.and_then(Field::known));
        }
        // What a program of a language prints is not what it reads.
        let is_filter = arguments.program.is_some()
            && (!programs::is_interpreter(name) || has(programs::VIEWERS, name));
        for operand in arguments.operands.iter().filter(|_| is_filter) {
            self.append_written(&operand.text(), state, &mut output);
        }
        for file in arguments
            .operands
            .iter()
            .filter_map(|it| it.file.as_deref())
        {
            output.append(file.clone());
        }
        output.has_words &= has("cat sort tac uniq", name);
        output.names = names::passed_on(&output.names, name, arguments);
        if has("tee sponge out-file set-content add-content", name) {
            let targets: Vec<Field> = arguments
                .uses
                .iter()
                .map(|(field, _)| field.clone())
                .collect();
            self.keep_files(&targets, &state.stdin.clone(), state);
        }
        let decodes = has("rev tr gunzip zcat uudecode", name)
            || arguments.is_set("-d -D --decode -r -p -dc");
        if decodes && has(programs::DECODERS, name) {
            output.mark_decoded();
        }
        output
    }

    /// Checks the targets of links in the folder of the link.
    fn link(&mut self, arguments: &Arguments, dirs: &[PathBuf]) {
        let words = arguments.uses.iter().map(|(field, _)| field);
        let words: Vec<&Field> = words
            .filter(|field| !field.text().starts_with('-'))
            .collect();
        let [targets @ .., name] = words.as_slice() else {
            return;
        };
        for dir in dirs {
            let name = dir.join(name.text());
            let above = name.parent().unwrap_or(dir).to_path_buf();
            let folders = match name.is_dir() {
                true => vec![name, above],
                false => vec![above],
            };
            for target in targets.iter().flat_map(|target| target.paths()) {
                let how = "a link would make readable";
                self.is_fixable &= !self.judge.check_path(&target, &folders, how);
                self.judge
                    .copied
                    .extend(folders.iter().map(|folder| folder.join(&target)));
            }
        }
    }

    /// Records the folders that a program removes or moves.
    fn remove(&mut self, arguments: &Arguments, dirs: &[PathBuf], state: &State) {
        for (operand, _) in arguments
            .uses
            .iter()
            .filter(|(_, kind)| *kind == Use::Write)
        {
            let named = self.judge.named(operand, dirs, state.dotglob);
            let places = named.iter().filter_map(|(_, place)| AbsPath::new(place));
            let places: Vec<PathBuf> = places.map(|place| place.as_path().to_path_buf()).collect();
            self.changes.removed.extend(places.iter().cloned());
            // A file is judged by its own name.
            self.judge
                .copied
                .extend(places.into_iter().filter(|place| place.is_dir()));
        }
    }

    /// Checks what a program reads in folders. Returns denied names that it prints.
    pub(super) fn read_folders(
        &mut self,
        program: &'static Program,
        arguments: &Arguments,
        words: &[Field],
        dirs: &[PathBuf],
        uses_names: bool,
        state: &State,
    ) -> Rc<[DeniedName]> {
        let name = &program_name(&words[0].text());
        let only_names = arguments.prints_names_only();
        let is_allowed = self.judge.readers == RecursiveReaders::Allow;
        if is_allowed {
            // A pattern that names a file is no search for it.
            for key in ["include", "globs"] {
                for value in arguments.values(program.get(key)) {
                    let field = Field::quoted(value);
                    let kind = if value.starts_with('!') {
                        Use::Text
                    } else {
                        Use::Read
                    };
                    self.use_field(&field, kind, name, state);
                }
            }
        }
        if is_allowed || (only_names && !state.is_consumed && !uses_names) {
            return Rc::default();
        }
        let mut operands: Vec<tree::Operand> = Vec::new();
        let values = arguments.values(program.get("tree_values"));
        let values: Vec<Field> = values.map(|value| literal(value, false)).collect();
        let slashed = arguments.operands.iter().filter_map(Field::slashed);
        let fields: Vec<Field> = arguments.operands.iter().cloned().chain(slashed).collect();
        let of_values = values
            .iter()
            .flat_map(|it| state.dirs.iter().map(move |dir| (it, dir)));
        let of_operands = fields
            .iter()
            .flat_map(|it| dirs.iter().map(move |dir| (it, dir)));
        for (operand, dir) in of_values.chain(of_operands) {
            if operand.has_glob() {
                let here = std::slice::from_ref(dir);
                let matches = self.judge.matches(operand, here, state.dotglob);
                let found = matches
                    .iter()
                    .map(|(path, _)| tree::Operand::new(dir, path));
                operands.extend(found);
            } else if let Some(path) = operand.known() {
                // A folder that the line makes of others.
                let is_made = !dir.join(&path).exists();
                let sources = self.judge.copied.iter().filter(|_| is_made);
                operands.extend(sources.map(|source| tree::Operand::new(source, ".")));
                operands.push(tree::Operand::new(dir, &path));
            }
        }
        let reads_default = match program.get("default") {
            "folder" => true,
            // `-f -` takes the input.
            "input or folder" => {
                !state.is_fed || arguments.values("-f --file").any(|file| file == "-")
            }
            _ => false,
        };
        // Not `8080`, `localhost:80`, `key=value`, `index.html`, `--cors x`.
        let follows_option = |text: &str| {
            let flags = ["-s", program.get("tree_values")];
            let is_flag = |it: &str| it.contains('=') || flags.iter().any(|names| has(names, it));
            let mut pairs = words.windows(2);
            pairs.any(|pair| {
                let before = pair[0].text();
                pair[1].text() == text && before.starts_with('-') && !is_flag(&before)
            })
        };
        let is_named = |it: &tree::Operand| {
            let is_other = it.written.contains([':', '='])
                || it.written.starts_with(|c: char| c.is_ascii_digit())
                || follows_option(&it.written);
            it.place.is_dir() || !is_other && !it.place.exists()
        };
        // The value of an option that is not in the table was taken for the pattern.
        let exists = |place: PathBuf| {
            let is_made = |path: &String| Path::new(path).starts_with(&place);
            place.exists() || self.judge.written.iter().any(is_made)
        };
        let is_absent = |it: &Field| {
            let path = it
                .known()
                .filter(|path| !path.contains('/') && !it.has_glob());
            path.is_some_and(|path| !dirs.iter().any(|dir| exists(dir.join(&path))))
        };
        let is_shifted = arguments.may_shift
            && self.judge.writes == Writes::Nothing
            && fields.iter().all(is_absent);
        let may_lack = match program.has_field("names") {
            true => !operands.iter().any(is_named),
            false => arguments.may_lack_operands() || is_shifted,
        };
        if may_lack && reads_default {
            operands.extend(dirs.iter().map(|dir| tree::Operand::new(dir, ".")));
        }
        let mut names = Vec::new();
        for operand in &operands {
            let mut found =
                tree::read_by_program(&mut self.judge, program, arguments, operand, false);
            let files = || found.iter().filter(|name| name.is_file());
            if files().next().is_some() {
                let fix = self.fix(program, arguments, words, operand);
                let files = found.iter_mut().filter(|name| name.is_file());
                files.for_each(|name| name.fix.clone_from(&fix));
            }
            names.extend(found);
        }
        self.keep_matching(name, arguments, &mut names);
        let mut folders = arguments.operands.iter().map(|it| Form::below(&it.text()));
        let form = folders.find(|form| *form == Form::Dotted);
        let names = with_form(&names, |_| form.unwrap_or(Form::Path));
        if !only_names {
            self.deny_names(&names, &format!("`{name}` would read"));
            return Rc::default();
        }
        names
    }
}
