//! Code that reads what it finds in folders: `for name in os.listdir('.'): print(open(name).read())`.

use std::path::{Path, PathBuf};

use crate::command::{
    Checker,
    programs::{COMMAND_LANGUAGES, is_listed},
    scripts::names_in_code,
    tree::{Entry, Search, Visit, search},
};
use crate::gitignore::glob::{Case, Subject, Syntax};

/// Parts of calls that name the files of folders, in lower case and without blanks.
const LISTERS: &str = "os.walk( path.walk walkdir importwalk listdir( scandir( glob( globsync( glob\" glob' iterdir( readdir \
                       opendir dir[' dir[\" find.find file::find getfiles enumeratefiles directoryiterator contentsofdirectory \
                       requesthandler";
/// Parts of calls that read files.
const READERS: &str =
    "open read slurp load contents <$ <f copy .text get-content gc$ requesthandler";
/// Parts of calls that read the files of folders.
const BOTH: &str = "copytree( make_archive( cpsync( createfromdirectory(";
/// The same, if both parts are there.
const PACKERS: [(&str, &str); 2] = [("tarfile", ".add("), ("zipfile", ".write(")];
/// With these, folders in folders are read too.
const DEEP: &str = "walk rglob ** recurs find alldirectories isdirectory is_dir copytree archive cpsync createfrom requesthandler tarfile";
/// Calls that leave out hidden files.
const HIDDEN: &str = "startswith('.') startswith(\".\") start_with?('.') start_with?(\".\")";
/// Calls with a dot that is no folder.
const DOTS: &str = "split('.') split(\".\") '.'.join \".\".join .join('.') .join(\".\")";

impl Checker<'_> {
    /// Denies the files that code finds in the folders that it names, and reads.
    pub(super) fn read_in_code(&mut self, program: &str, code: &str, dirs: &[PathBuf], how: &str) {
        let lower = code.to_lowercase().replace([' ', '\t'], "");
        let calls = lower.replace("readdir", "").replace("opendir", "");
        let is_in = |text: &str, words: &str| words.split(' ').any(|word| text.contains(word));
        let has = |words: &str| is_in(&lower, words);
        let is_command = is_listed(COMMAND_LANGUAGES, program);
        let packs = PACKERS
            .iter()
            .any(|(module, call)| has(module) && has(call));
        let lists = has(LISTERS);
        let reads = is_command || has(BOTH) || packs || lists && is_in(&calls, READERS);
        if !reads {
            return;
        }
        let names = names_in_code(program, code);
        let strings = code
            .split(['\'', '"', '`'])
            .filter(|it| it.starts_with('.') || it.contains('*'));
        let mut roots: Vec<String> = Vec::new();
        let mut patterns: Vec<String> = Vec::new();
        for name in names.iter().map(String::as_str).chain(strings) {
            let (folder, last) = name.rsplit_once('/').unwrap_or((".", name));
            let is_extension = name.len() > 1 && name.starts_with('.');
            if name.contains('*') && !name.contains(char::is_whitespace) {
                let fixed = folder
                    .split('/')
                    .take_while(|part| !part.contains(['*', '?', '[', '{']));
                let fixed = fixed.collect::<Vec<_>>().join("/");
                roots.push(if fixed.is_empty() {
                    ".".to_owned()
                } else {
                    fixed
                });
                patterns.push(last.replace("**", "*"));
            } else if is_extension && name[1..].bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                patterns.push(format!("*{name}"));
            } else if !(is_command || name == "." && has(DOTS)) {
                roots.push(name.to_owned());
            }
        }
        if is_command && patterns.is_empty() {
            return;
        }
        roots.retain(|root| dirs.iter().any(|dir| dir.join(root).is_dir()));
        if roots.is_empty() && lists {
            roots.push(".".to_owned());
        }
        let matches = |name: &str, pattern: &String| {
            let matcher = Syntax::git(Case::Sensitive).matcher(pattern.as_bytes(), Subject::Name);
            matcher.is_ok_and(|matcher| matcher.is_match(name.as_bytes()))
        };
        let is_deep = has(DEEP);
        let visit = |entry: &Entry<'_>| {
            let name = Path::new(entry.path)
                .file_name()
                .unwrap_or_default()
                .to_string_lossy();
            let is_used =
                patterns.is_empty() || patterns.iter().any(|pattern| matches(&name, pattern));
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
