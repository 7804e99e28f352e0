//! The options with which the check asks git.

use super::super::programs::has;

/// Options of a subcommand that start no program and write no file. Only these are passed to git, in
/// exactly this spelling or as a letter of a cluster.
pub(super) struct Options {
    /// Options without a value, or with one after `=`.
    flags: &'static str,
    /// Options whose value is the rest of the word or the next word.
    pub(super) values: &'static str,
    /// Options that do not change which files are printed. They are not passed on.
    shown: &'static str,
    /// Like `shown`, with a value.
    shown_values: &'static str,
}

pub(super) const DIFF: Options = Options {
    flags: "--cached --staged --merge-base --all --branches --tags --remotes --first-parent --merges --no-merges --root \
            --min-parents --max-parents --no-min-parents --no-max-parents \
            --no-renames --find-renames --find-copies --find-copies-harder --full-history --follow --ours --theirs --base \
            --topo-order --date-order --author-date-order --simplify-merges --sparse --dense --ancestry-path \
            --include-untracked --only-untracked --no-walk --boundary --cherry-pick --cherry-mark --cherry --left-only \
            --right-only --pickaxe-all --pickaxe-regex --ignore-all-space --ignore-space-change --ignore-space-at-eol \
            --ignore-cr-at-eol --ignore-blank-lines --full-diff --text --remove-empty --invert-grep --all-match --no-diff-merges \
            --regexp-ignore-case --extended-regexp --fixed-strings --basic-regexp --perl-regexp --walk-reflogs -c --cc \
            --dd -m -a -b -w -i -E -F -P -g -q -r -t -R --reverse --ignore-submodules \
            --show-pulls --not --bisect --reflog --simplify-by-decoration --no-textconv --no-ext-diff",
    values: "-S -G -n -I --since --until --after --before --author --committer --grep --grep-reflog --max-count --skip \
             --diff-filter --diff-algorithm --anchored --ignore-matching-lines --glob --exclude",
    shown: "--no-index --submodule --graph --no-graph --oneline --format --pretty --color --no-color --abbrev --abbrev-commit --no-abbrev-commit \
            --no-abbrev --full-index -z --exit-code --color-moved --no-color-moved --patch-with-stat \
            --patch-with-raw --relative --no-relative --no-prefix --default-prefix --left-right --decorate --no-decorate \
            --show-notes --notes --no-notes --break-rewrites --minimal --patience --histogram \
            --indent-heuristic --no-indent-heuristic --show-signature --relative-date --parents --children --log-size \
            --irreversible-delete --ita-invisible-in-index --quiet --source --no-mailmap --mailmap --use-mailmap -p -u \
            --patch --binary --check --word-diff --color-words -W --function-context -s --no-patch --stat --shortstat \
            --numstat --dirstat --summary --name-only --name-status --raw --compact-summary -D -M -C -B -v --no-commit-id \
            --always --no-color-moved-ws --expand-tabs --no-expand-tabs --unified -U",
    shown_values: "-L -l --date --word-diff-regex --decorate-refs --color-moved-ws --encoding --inter-hunk-context \
                   --stat-width --stat-count --ws-error-highlight --src-prefix --dst-prefix --line-prefix",
};
pub(super) const GREP: Options = Options {
    flags: "--cached --untracked --exclude-standard --no-exclude-standard --ignore-case --invert-match --word-regexp \
            --extended-regexp --basic-regexp --fixed-strings --perl-regexp --text --and --or --not --all-match --recursive \
            --no-recursive --no-textconv -i -v -w -E -G -F -P -I -r -a",
    values: "-e -m --max-count --max-depth --threads",
    shown: "--no-index --recurse-submodules --line-number --no-line-number --color --no-color --heading --break --count --files-with-matches --name-only \
            --files-without-match --quiet --only-matching --show-function --function-context --column --null --full-name -n \
            -h -H -l -L -c -q -o -p -W -z",
    shown_values: "-A -B -C --after-context --before-context --context",
};
pub(super) const ARCHIVE: Options = Options {
    flags: "",
    values: "",
    shown: "-v --verbose --worktree-attributes -l --list",
    shown_values: "-o --format --prefix --output --mtime",
};
pub(super) const LIST: Options = Options {
    flags: "-c -d -m -o -i -u -k -r --cached --deleted --modified --others --ignored --unmerged --killed --exclude-standard \
            --directory --no-empty-directory --error-unmatch --full-tree",
    values: "-x --exclude",
    shown: "-z -s -t -v -l --stage --long --full-name --name-only --name-status --abbrev --eol --debug",
    shown_values: "",
};

/// The words of a command that git is asked with.
#[derive(Default)]
pub(super) struct Question {
    pub(super) words: Vec<String>,
    /// Words before `--` that are neither options nor their values.
    pub(super) operands: Vec<String>,
    /// Names of the options, also of those that are left out.
    pub(super) names: Vec<String>,
}

impl Options {
    /// Returns `None` with an option that is not in the table.
    pub(super) fn question(&self, words: impl Iterator<Item = String>) -> Option<Question> {
        let mut question = Question::default();
        let mut words = words.peekable();
        while let Some(text) = words.next() {
            if text == "--" {
                question.words.push(text);
                question.words.extend(words);
                break;
            }
            if !text.starts_with('-') || text.len() < 2 {
                question.operands.push(text.clone());
                question.words.push(text);
                continue;
            }
            if text.starts_with("--") {
                let (name, value) = match text.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (text.as_str(), None),
                };
                question.names.push(name.to_owned());
                if value.is_none() && (has(self.values, name) || has(self.shown_values, name)) {
                    let value = words.next()?;
                    if has(self.values, name) {
                        question.words.extend([name.to_owned(), value]);
                    }
                } else if has(self.flags, name) || has(self.values, name) {
                    question.words.push(text);
                } else if !has(self.shown, name) && !has(self.shown_values, name) {
                    return None;
                }
                continue;
            }
            if text[1..].bytes().all(|byte| byte.is_ascii_digit()) && self.values.contains("-S ") {
                // `log -5`
                question.words.push(text);
                continue;
            }
            for (at, letter) in text[1..].char_indices() {
                let name = format!("-{letter}");
                let rest = &text[1 + at + letter.len_utf8()..];
                question.names.push(name.clone());
                let is_passed = has(self.values, &name);
                if is_passed || has(self.shown_values, &name) {
                    let value = if rest.is_empty() {
                        words.next()?
                    } else {
                        rest.to_owned()
                    };
                    if is_passed {
                        question.words.push(format!("{name}{value}"));
                    }
                    break;
                } else if has(self.flags, &name) {
                    question.words.push(name);
                } else if !has(self.shown, &name) && !letter.is_ascii_digit() && letter != '%' {
                    return None;
                }
            }
        }
        Some(question)
    }
}
