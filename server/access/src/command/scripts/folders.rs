//! Code that reads what it finds in folders: `for name in os.listdir('.'): print(open(name).read())`.

use std::path::PathBuf;

use crate::command::{
    Checker,
    programs::{COMMAND_LANGUAGES, is_listed},
    scripts::{QUOTES, names_in_code, with_joined_paths},
    tree::{Entry, Search, Visit, search},
};
use crate::gitignore::glob::{Case, Matcher, NoGlob, Subject, Syntax};

/// Parts of calls that name the files of folders, in lower case and without blanks.
const LISTERS: &str = "os.walk( path.walk walkdir importwalk listdir( scandir( glob( globsync( glob\" glob' iterdir( readdir \
                       opendir dir[' dir[\" find.find file::find getfiles enumeratefiles directoryiterator contentsofdirectory \
                       requesthandler list.files(";
/// Parts of calls that read files.
const READERS: &str = "open read slurp load contents <$ <f copy .text get-content gc$ file($ file.foreach csv.foreach <> requesthandler";
/// Parts of calls that read the files of folders.
const BOTH: &str = "copytree( make_archive( cpsync( cp_r( createfromdirectory(";
/// The same, if both parts are there.
const PACKERS: [(&str, &str); 2] = [("tarfile", ".add("), ("zipfile", ".write(")];
/// With these, folders in folders are read too.
const DEEP: &str = "walk rglob ** recurs find alldirectories isdirectory is_dir copytree archive cpsync cp_r createfrom requesthandler tarfile";
/// Calls that leave out hidden files.
const HIDDEN: &str = "startswith('.') startswith(\".\") start_with?('.') start_with?(\".\")";
/// Calls with a dot that is no folder.
const DOTS: &str = "split('.') split(\".\") '.'.join \".\".join .join('.') .join(\".\")";

impl Checker<'_> {
    /// Denies the files that code finds in the folders that it names, and reads.
    pub(super) fn read_in_code(&mut self, program: &str, code: &str, dirs: &[PathBuf], how: &str) {
        let lower = code.to_lowercase().replace([' ', '\t'], "");
        let has = |words: &str| words.split(' ').any(|word| lower.contains(word));
        let is_command = is_listed(COMMAND_LANGUAGES, program);
        let packs = PACKERS
            .iter()
            .any(|(module, call)| has(module) && has(call));
        let lists = has(LISTERS);
        let reads = is_command || has(BOTH) || packs || lists && reads_files(code);
        if !reads {
            return;
        }
        let joined = with_joined_paths(code);
        let strings = joined.iter().flat_map(|it| it.split(QUOTES));
        let strings: Vec<&str> = strings
            .filter(|it| it.starts_with('.') || it.contains('*'))
            .collect();
        let names: Vec<String> = joined
            .iter()
            .flat_map(|it| names_in_code(program, it))
            .collect();
        let is_string = |name: &str| {
            let quoted = QUOTES.map(|quote| format!("{quote}{name}{quote}"));
            quoted
                .iter()
                .any(|it| joined.iter().any(|code| code.contains(it)))
        };
        let exists = |name: &str| dirs.iter().any(|dir| dir.join(name).exists());
        let mut roots: Vec<String> = Vec::new();
        let mut patterns: Vec<String> = Vec::new();
        let names = names.iter().map(String::as_str).chain(strings);
        for name in names.filter(|name| is_command || is_string(name)) {
            let (folder, last) = name.rsplit_once('/').unwrap_or((".", name));
            let is_extension = name.len() > 1 && name.starts_with('.') && !exists(name);
            if name.contains('*') && !name.contains(char::is_whitespace) {
                let fixed = folder
                    .split('/')
                    .take_while(|part| !part.contains(['*', '?', '[', '{']));
                let fixed = fixed.collect::<Vec<_>>().join("/");
                if !fixed.is_empty() && name.contains('/') {
                    roots.extend([fixed.trim_start_matches('/').to_owned(), fixed]);
                }
                let (start, rest) = last.split_once('{').unwrap_or((last, ""));
                let (middle, end) = rest.split_once('}').unwrap_or((rest, ""));
                let above = folder.trim_start_matches("./").trim_start_matches('/');
                let above = match above.contains(['*', '?', '[']) && !above.contains('{') {
                    true => format!("{above}/"),
                    false => String::new(),
                };
                let all = middle.split(',').map(|part| format!("{start}{part}{end}"));
                patterns.extend(all.map(|last| above.clone() + &last.replace("**", "*")));
            } else if is_extension && name[1..].bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                patterns.push(format!("*{name}"));
            } else if !(is_command || name == "." && has(DOTS) || name == "/") {
                roots.push(name.to_owned());
            }
        }
        let is_any = |pattern: &String| pattern.chars().all(|c| "*.".contains(c));
        if !patterns.iter().all(is_any) {
            patterns.retain(|pattern| !is_any(pattern));
        }
        if is_command && patterns.is_empty() {
            return;
        }
        roots.retain(|root| dirs.iter().any(|dir| dir.join(root).is_dir()));
        if roots.is_empty() && (lists || is_command) {
            roots.push(".".to_owned());
        }
        let syntax = Syntax::git(Case::Sensitive);
        let matchers = patterns
            .iter()
            .map(|it| syntax.matcher(it.as_bytes(), Subject::Path));
        let matchers: Vec<Result<Matcher, NoGlob>> = matchers.collect();
        // The matches of a pattern over a size limit are unknown.
        let matches = |text: &str| {
            matchers.iter().any(|matcher| match matcher {
                Ok(matcher) => matcher.is_match(text.as_bytes()),
                Err(why) => matches!(why, NoGlob::TooLarge),
            })
        };
        let is_deep = has(DEEP) || patterns.iter().any(|pattern| pattern.contains('/'));
        let visit = |entry: &Entry<'_>| {
            let starts = entry.path.match_indices('/').map(|(at, _)| at + 1);
            let is_used = patterns.is_empty()
                || std::iter::once(0)
                    .chain(starts)
                    .any(|at| matches(&entry.path[at..]));
            Visit {
                uses: is_used,
                is_wanted: false,
                enters: is_deep,
            }
        };
        // `glob('.*')`
        let is_hidden = |pattern: &String| pattern.rsplit('/').any(|last| last.starts_with('.'));
        let globs = has("glob( dir[")
            && !has("rglob path( dotmatch dot:")
            && !patterns.iter().any(is_hidden);
        let search_for = Search {
            skips_hidden: has(HIDDEN) || globs,
            skips_ignored: false,
            with_folders: false,
            for_names: false,
            visit: &visit,
        };
        for (root, dir) in roots
            .iter()
            .flat_map(|root| dirs.iter().map(move |dir| (root, dir)))
        {
            let found = search(&mut self.judge, &search_for, &dir.join(root), root);
            self.deny_names(&found, how);
        }
    }
}

/// Returns whether code contains a call that reads a file.
pub(super) fn reads_files(code: &str) -> bool {
    let code = code.to_lowercase().replace([' ', '\t'], "");
    let calls = code.replace("readdir", "").replace("opendir", "");
    READERS.split(' ').any(|word| calls.contains(word))
}
