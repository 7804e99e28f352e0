//! Code that reads what it finds in folders: `for name in os.listdir('.'): print(open(name).read())`.

use std::path::{Path, PathBuf};

use crate::command::{
    Checker,
    programs::{COMMAND_LANGUAGES, is_listed},
    scripts::{names_in_code, with_joined_paths},
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
        let strings = code.split(['\'', '"', '`']);
        let strings: Vec<&str> = strings
            .filter(|it| it.starts_with('.') || it.contains('*'))
            .collect();
        let names = names_in_code(program, &with_joined_paths(code));
        let is_string = |name: &str| {
            ["'", "\"", "`"]
                .iter()
                .any(|it| code.contains(&format!("{it}{name}{it}")))
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
                    roots.push(fixed);
                }
                let (start, rest) = last.split_once('{').unwrap_or((last, ""));
                let (middle, end) = rest.split_once('}').unwrap_or((rest, ""));
                let all = middle.split(',').map(|part| format!("{start}{part}{end}"));
                patterns.extend(all.map(|pattern| pattern.replace("**", "*")));
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
            .map(|it| syntax.matcher(it.as_bytes(), Subject::Name));
        let matchers: Vec<Result<Matcher, NoGlob>> = matchers.collect();
        // The matches of a pattern over a size limit are unknown.
        let matches = |name: &str| {
            matchers.iter().any(|matcher| match matcher {
                Ok(matcher) => matcher.is_match(name.as_bytes()),
                Err(why) => matches!(why, NoGlob::TooLarge),
            })
        };
        let is_deep = has(DEEP);
        let visit = |entry: &Entry<'_>| {
            let name = Path::new(entry.path)
                .file_name()
                .unwrap_or_default()
                .to_string_lossy();
            let is_used = patterns.is_empty() || matches(&name);
            Visit {
                uses: is_used,
                is_wanted: false,
                enters: is_deep,
            }
        };
        let globs = has("glob( dir[") && !has("rglob path( dotmatch dot:");
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
