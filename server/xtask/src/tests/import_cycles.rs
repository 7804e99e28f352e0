//! Tests that the files of a crate do not import each other in cycles.
//!
//! Reads paths that start with `crate::` or `super::`. A module and the modules below it belong
//! together: a path from a parent to its own child is not counted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::repository;

/// A module path: `["store", "refs"]`. The crate root is empty.
type Module = Vec<String>;

/// Files that are part of a cycle, by crate. Remove a file once it is part of none; add none.
const REMAINING: [(&str, &[&str]); 2] = [("checkpoint", &[]), ("lsp", &[])];

#[test]
fn files_do_not_import_each_other_in_cycles() {
    for (crate_name, remaining) in REMAINING {
        let source = repository().join(format!("server/{crate_name}/src"));
        let mut files = BTreeMap::new();
        read(&source, &Vec::new(), &mut files);
        let imports: BTreeMap<&Module, BTreeSet<&Module>> = files
            .iter()
            .map(|(module, text)| (module, imports(module, text, &files)))
            .collect();
        assert!(imports.values().any(|targets| targets.len() > 3));
        let found: Vec<String> = cyclic(&imports)
            .iter()
            .map(|module| module.join("::"))
            .collect();
        assert_eq!(found, *remaining, "import cycle in server/{crate_name}/src");
    }
}

/// Reads the files below a directory. Leaves tests out.
fn read(folder: &Path, parent: &Module, files: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut module = parent.clone();
        if !matches!(name.as_str(), "mod" | "lib" | "main") {
            module.push(name.clone());
        }
        if path.is_dir() {
            read(&path, &module, files);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && name != "testing"
            && !name.ends_with("tests")
        {
            let text = fs::read_to_string(&path).unwrap();
            let code = text
                .split("#[cfg(test)]\nmod tests")
                .next()
                .unwrap_or_default();
            let lines = code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            let code: Vec<&str> = lines.collect();
            files.entry(module).or_default().push_str(&code.join("\n"));
        }
    }
}

/// Returns the modules that a file names, without itself and the modules below it.
fn imports<'a>(
    module: &Module,
    text: &str,
    files: &'a BTreeMap<Module, String>,
) -> BTreeSet<&'a Module> {
    let mut paths = Vec::new();
    for keyword in ["crate::", "super::"] {
        for (at, _) in text.match_indices(keyword) {
            let is_start =
                !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if is_start {
                expand(&text[at..], &mut Vec::new(), &mut paths);
            }
        }
    }
    paths
        .into_iter()
        .filter_map(|path| resolve(module, &path, files))
        .filter(|target| !target.starts_with(module))
        .collect()
}

/// Adds every path of a `use` tree, such as `a::{b, c::d}`. Returns the text after it.
fn expand<'t>(mut text: &'t str, prefix: &mut Module, paths: &mut Vec<Module>) -> &'t str {
    let depth = prefix.len();
    loop {
        text = text.trim_start();
        if let Some(mut rest) = text.strip_prefix('{') {
            loop {
                rest = expand(rest, prefix, paths).trim_start();
                match rest.strip_prefix(',') {
                    Some(more) if !more.trim_start().starts_with('}') => rest = more,
                    Some(more) => break rest = more.trim_start(),
                    None => break,
                }
            }
            text = rest.strip_prefix('}').unwrap_or(rest);
            break;
        }
        let end = text
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(text.len());
        prefix.push(text[..end].to_owned());
        text = &text[end..];
        match text.strip_prefix("::") {
            Some(rest) => text = rest,
            None => {
                paths.push(prefix.clone());
                // `as name`
                let end = text
                    .find([',', '}', ';', '(', ')', '\n'])
                    .unwrap_or(text.len());
                if text.starts_with(" as ") {
                    text = &text[end..];
                }
                break;
            }
        }
    }
    prefix.truncate(depth);
    text
}

/// Returns the file of a path: the longest prefix that is a module.
fn resolve<'a>(
    module: &Module,
    path: &[String],
    files: &'a BTreeMap<Module, String>,
) -> Option<&'a Module> {
    let supers = path.iter().take_while(|part| *part == "super").count();
    let mut full = match supers {
        0 => Module::new(),
        _ => module[..module.len().checked_sub(supers)?].to_vec(),
    };
    full.extend_from_slice(&path[supers.max(1)..]);
    (0..=full.len()).rev().find_map(|length| {
        files
            .get_key_value(&full[..length])
            .map(|(target, _)| target)
    })
}

/// Returns the modules that import themselves through others.
fn cyclic<'a>(imports: &BTreeMap<&'a Module, BTreeSet<&'a Module>>) -> Vec<&'a Module> {
    let is_cyclic = |start: &Module| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&Module> = imports[start].iter().copied().collect();
        while let Some(module) = open.pop() {
            if seen.insert(module) {
                open.extend(&imports[module]);
            }
        }
        seen.contains(start)
    };
    imports
        .keys()
        .copied()
        .filter(|module| is_cyclic(module))
        .collect()
}

#[test]
fn use_trees_are_expanded() {
    let mut paths = Vec::new();
    let rest = expand(
        "crate::a::{b, c::{self, D as E}, f}; x",
        &mut Vec::new(),
        &mut paths,
    );
    let paths: Vec<String> = paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(
        paths,
        [
            "crate::a::b",
            "crate::a::c::self",
            "crate::a::c::D",
            "crate::a::f"
        ]
    );
    assert_eq!(rest, "; x");
}
