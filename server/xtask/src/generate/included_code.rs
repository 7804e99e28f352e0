//! Code blocks of documents that include a whole file of the repository.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Marks a code block that includes a whole file.
const SHOWN: &str = "<!-- the file: ";

/// Returns every Markdown file of the repository with its text.
pub(crate) fn documents(repository: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let mut open = vec![repository.to_path_buf()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() && !path.is_symlink() {
                // `text` contains parts of generated documents, with links relative to those.
                if !matches!(name.as_str(), "target" | "node_modules" | ".git" | "text") {
                    open.push(path);
                }
            } else if name.ends_with(".md") {
                let text = fs::read_to_string(&path)?;
                found.push((path, text));
            }
        }
    }
    Ok(found)
}

/// Returns the documents that include files, with the current content of these files.
pub(super) fn updated(repository: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    documents(repository)?
        .into_iter()
        .filter(|(_, text)| text.contains(SHOWN))
        .map(|(path, text)| Ok((path, update(repository, &text)?)))
        .collect()
}

fn update(repository: &Path, text: &str) -> io::Result<String> {
    let invalid = || io::Error::other(format!("no code block follows `{SHOWN}`"));
    let mut parts = text.split(SHOWN);
    let mut updated = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->\n```").ok_or_else(invalid)?;
        let (language, rest) = rest.split_once('\n').ok_or_else(invalid)?;
        let (_, rest) = rest.split_once("\n```").ok_or_else(invalid)?;
        let code = fs::read_to_string(repository.join(name))?;
        let code = code.trim_end();
        updated.push_str(&format!(
            "{SHOWN}{name} -->\n```{language}\n{code}\n```{rest}"
        ));
    }
    Ok(updated)
}
