//! PowerShell: one command lists files, and another one reads the items, which it gets through a pipe, a
//! variable, a block, or parentheses. Which way is not followed.

use crate::command::{
    Checker, State,
    expand::{Field, Output, literal},
    flow,
    programs::{Arguments, NameList, Use, has, program_name},
};

/// Commands that list files, and others that also do so elsewhere.
const LISTERS: NameList = "get-childitem gci get-item gi resolve-path";
const SHARED_LISTERS: NameList = "ls dir git";
/// Commands that read, copy, move or send files.
const READERS: NameList = "get-content gc select-string sls import-csv ipcsv format-hex fhx copy-item cpi \
     move-item compress-archive set-azstorageblobcontent write-s3object";
/// The same, if the text has a block for each item.
const SHARED_READERS: NameList = "cat type cp copy mv move";
const FOR_EACH: NameList = "% foreach-object foreach";
/// Calls of .NET that open files: `[IO.File]::ReadAllText($_)`, `$_.OpenText()`.
const METHODS: [&str; 5] = ["::read", "::open", "::copy", "::move", ".open"];

/// Options of commands that list files, with a pattern.
const VALUES: [&str; 3] = ["-filter", "-include", "-exclude"];

impl Checker<'_> {
    /// Denies what the commands of a text list, if a command of it reads items.
    pub(super) fn read_items(&mut self, text: &str, state: &State) {
        let parts = || text.split(['|', ';', '{', '}', '(', ')', '\n']);
        let has_block = parts().any(|part| {
            let mut words = part.split_whitespace();
            words.any(|word| has(FOR_EACH, &word.to_lowercase()))
        });
        let mut listed = Vec::new();
        let mut reader = None;
        for part in parts() {
            let lower = part.to_lowercase();
            if METHODS.iter().any(|method| lower.contains(method)) {
                reader = Some("a method".to_owned());
            }
            let words = part
                .split_whitespace()
                .map(|word| word.trim_matches(['"', '\'']));
            let is_known = |word: &&str| {
                let name = program_name(word);
                let lists = has(LISTERS, &name) || has(SHARED_LISTERS, &name);
                lists || has(READERS, &name) || has_block && has(SHARED_READERS, &name)
            };
            let words: Vec<&str> = words.skip_while(|word| !is_known(word)).collect();
            let Some(name) = words.first().map(|word| program_name(word)) else {
                continue;
            };
            if has(LISTERS, &name) || has(SHARED_LISTERS, &name) {
                listed.push(lister(&name, &words[1..], state));
            } else {
                let words: Vec<Field> = words.iter().map(|word| literal(word, false)).collect();
                let operands = Arguments::new(&words).operands;
                let reads = operands.first().is_none_or(is_item);
                reader = reads.then_some(name).or(reader);
            }
        }
        let Some(reader) = reader else { return };
        let mut inner = State {
            stdin: Output::default(),
            is_consumed: true,
            ..state.clone()
        };
        for mut words in listed {
            // It packs the files of a folder.
            words.extend((reader == "compress-archive").then(|| Field::quoted("-recurse")));
            let names = self.run(&words, &mut inner).names;
            self.deny_names(&names, &format!("`{reader}` would read"));
        }
    }

    /// Runs the first command of a block, whose words begin with it or with a part of its start.
    pub(in crate::command) fn run_block(
        &mut self,
        command: &[Field],
        words: &[Field],
        state: &mut State,
    ) -> Output {
        if is_for_each(&words[0]) && opens_files(command) {
            for field in flow::fields_of(&state.stdin) {
                self.use_field(&field, Use::Read, "a method", state);
            }
        }
        // `% { $_ }` prints.
        match command.first().filter(|word| !word.names.is_empty()) {
            Some(_) => state.stdin.clone(),
            None => self.run(command, state),
        }
    }
}

/// Returns the words after the start of a block, or after a part of it: `% {gc $_}`.
pub(in crate::command) fn in_block(words: &[Field]) -> Option<Vec<Field>> {
    let (first, rest) = words.split_first()?;
    let text = first.text();
    let is_start =
        is_for_each(first) || text.starts_with('{') || text.eq_ignore_ascii_case("-process");
    let is_joined = text.len() > 1 && text.starts_with(['%', '{']);
    let inner = is_joined.then(|| first.skip(1));
    is_start.then(|| inner.into_iter().chain(rest.to_vec()).collect())
}

/// Returns the words of a command that lists files, in which variables are replaced.
fn lister(name: &str, words: &[&str], state: &State) -> Vec<Field> {
    let mut fields = vec![Field::quoted(if has("ls dir", name) {
        "gci"
    } else {
        name
    })];
    let recurses = words
        .iter()
        .any(|word| word.len() > 1 && "-recurse".starts_with(&word.to_lowercase()));
    let mut before = "";
    for word in words {
        let is_value = before.len() > 2
            && VALUES
                .iter()
                .any(|it| it.starts_with(&before.to_lowercase()));
        before = word;
        let variable = word.strip_prefix('$').map(|name| state.variables.get(name));
        match (variable, word.rsplit_once('/')) {
            (Some(Some(values)), _) => fields.extend(values.clone()),
            // In any folder.
            (Some(None), _) => fields.extend([".", "-recurse"].map(Field::quoted)),
            (None, split)
                if recurses
                    && !is_value
                    && !word.starts_with('-')
                    && word.contains('*')
                    && name != "git" =>
            {
                let (folder, pattern) = split.unwrap_or((".", word));
                fields.extend([folder, "-include", pattern].map(Field::quoted));
            }
            _ => fields.push(literal(word, false)),
        }
    }
    fields
}

/// Returns whether a word begins a block that is run for each item, `$_`.
pub(in crate::command) fn is_for_each(word: &Field) -> bool {
    let text = word.text().to_lowercase();
    has(FOR_EACH, &text) || text.starts_with("%{")
}

/// Returns whether a block calls .NET, or opens its item: `% { [IO.File]::ReadAllText($_) }`,
/// `% { $_.OpenText() }`. Functions of `[IO.Path]` take names only.
fn opens_files(words: &[Field]) -> bool {
    words.iter().any(|word| {
        let text = word.text().to_lowercase();
        text.contains("::") && !text.contains("io.path]") || text.starts_with(".open")
    })
}

/// Returns whether an operand is made of a variable, or a number.
fn is_item(operand: &Field) -> bool {
    let text = operand.text();
    text.contains('$') && !text.contains("$env:") || text.parse::<u32>().is_ok()
}
