//! Imports between the files of a crate: circles, and arrows that run back up.
//!
//! An import is a `use` or a path of another file. Importing an ancestor module does not count.

use std::collections::{BTreeMap, BTreeSet};

use super::{Figure, Files, code, crates, figure, is_test};

/// Maximum number of arrows that run back up in the picture of a crate.
const ARROWS: usize = 3;

/// A module path: `["store", "refs"]`. The crate root is empty.
type Module = Vec<String>;

/// The imports of each node.
type Graph<N> = BTreeMap<N, BTreeSet<N>>;

/// Counts the files in circles, and the arrows that run back up between the top modules of a
/// crate, ordered so that these are few.
pub(super) fn figures(files: &Files) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (name, sources) in crates(files) {
        let modules = modules(&sources);
        let imports: Graph<Module> = modules
            .iter()
            .map(|(module, text)| (module.clone(), imports(module, text, &modules)))
            .collect();
        let circular: Vec<_> = circular(&imports)
            .iter()
            .map(|module| module.join("::"))
            .collect();
        let detail = format!("files import each other in circles: {}", circular.join(" "));
        figures.push(figure("circles", name, circular.len(), 0, detail));
        let up: Vec<_> = arrows_up(picture(&imports))
            .iter()
            .map(|(from, to)| format!("{from} → {to}"))
            .collect();
        let detail = format!("arrows run back up: {}", up.join(", "));
        figures.push(figure("arrows", name, up.len(), ARROWS, detail));
    }
    figures
}

/// Returns the code of each module, without tests.
fn modules(sources: &[(&str, &str)]) -> BTreeMap<Module, String> {
    let mut modules = BTreeMap::<Module, String>::new();
    for (file, text) in sources.iter().filter(|(file, _)| !is_test(file)) {
        let mut module: Module = file
            .trim_end_matches(".rs")
            .split('/')
            .map(str::to_owned)
            .collect();
        module.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
        let all = modules.entry(module).or_default();
        for (_, line) in code(text) {
            all.push_str(line);
            all.push('\n');
        }
    }
    modules
}

/// Returns the modules that a file names, without itself and its ancestors.
fn imports(module: &Module, text: &str, files: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let children = files
        .keys()
        .filter(|other| other.len() == module.len() + 1 && other.starts_with(module))
        .filter_map(|child| child.last())
        .map(String::as_str);
    let mut paths = Vec::new();
    for start in ["crate", "super", "self"].into_iter().chain(children) {
        for (at, _) in text.match_indices(&format!("{start}::")) {
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
        .filter(|target| !module.starts_with(target))
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
fn resolve(module: &Module, path: &[String], files: &BTreeMap<Module, String>) -> Option<Module> {
    let supers = path.iter().take_while(|part| *part == "super").count();
    let (mut full, rest) = match path[0].as_str() {
        "crate" => (Module::new(), &path[1..]),
        "super" => {
            let kept = module.len().checked_sub(supers)?;
            (module[..kept].to_vec(), &path[supers..])
        }
        "self" => (module.clone(), &path[1..]),
        _ => (module.clone(), path),
    };
    full.extend_from_slice(rest);
    (0..=full.len())
        .rev()
        .map(|length| full[..length].to_vec())
        .find(|target| files.contains_key(target))
}

/// Returns the nodes that import themselves through others.
fn circular<N: Ord + Clone>(imports: &Graph<N>) -> Vec<N> {
    let is_circular = |start: &N| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&N> = imports[start].iter().collect();
        while let Some(node) = open.pop() {
            if seen.insert(node) {
                open.extend(&imports[node]);
            }
        }
        seen.contains(start)
    };
    imports
        .keys()
        .filter(|node| is_circular(node))
        .cloned()
        .collect()
}

/// Returns the imports between the top modules of a crate.
fn picture(imports: &Graph<Module>) -> Graph<&str> {
    let mut picture = Graph::new();
    for (from, targets) in imports {
        let Some(from) = from.first() else { continue };
        let arrows = picture.entry(from.as_str()).or_insert_with(BTreeSet::new);
        arrows.extend(
            targets
                .iter()
                .filter_map(|to| to.first())
                .map(String::as_str),
        );
        arrows.remove(from.as_str());
    }
    picture
}

/// Orders the nodes from the leaves up, and returns the arrows that run from a lower to a higher
/// one. While all remaining nodes are in circles, the one with the most arrows to it and the
/// fewest from it is placed next.
fn arrows_up(mut graph: Graph<&str>) -> Vec<(&str, &str)> {
    let mut up = Vec::new();
    loop {
        let next = graph.iter().min_by_key(|(node, targets)| {
            let incoming = graph.values().filter(|targets| targets.contains(*node));
            let is_leaf = targets.is_empty();
            (!is_leaf, targets.len() as isize - incoming.count() as isize)
        });
        let Some(next) = next.map(|(node, _)| *node) else {
            return up;
        };
        let targets = graph.remove(next).unwrap_or_default();
        up.extend(targets.into_iter().map(|target| (next, target)));
        for targets in graph.values_mut() {
            targets.remove(next);
        }
    }
}
