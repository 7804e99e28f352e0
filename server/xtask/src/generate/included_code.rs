//! Parts of documents that are not written by hand: code blocks that include a whole file of the
//! repository, and texts that change with the first release.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Marks a code block that includes a whole file.
const SHOWN: &str = "<!-- the file: ";

/// Whether packages of a release can be downloaded. `cargo xtask generate` then replaces the texts
/// for the time before by those for the time after it.
pub(crate) const IS_RELEASED: bool = false;

/// Starts a text that is shown before the first release.
const BEFORE: &str = "<!-- before the first release -->\n";
/// Ends it, and starts the text after the first release, which is a comment until then.
const AFTER: &str = "<!-- after the first release\n";

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
        .filter(|(_, text)| text.contains(SHOWN) || text.contains(BEFORE))
        .map(|(path, text)| {
            let text = if IS_RELEASED {
                after_release(text)?
            } else {
                text
            };
            Ok((path, update(repository, &text)?))
        })
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

/// Replaces the texts for the time before the first release.
fn after_release(mut text: String) -> io::Result<String> {
    let invalid = || io::Error::other(format!("no `{}` follows `{BEFORE}`", AFTER.trim_end()));
    while let Some((start, rest)) = text.split_once(BEFORE) {
        let (_, rest) = rest.split_once(AFTER).ok_or_else(invalid)?;
        let (after, rest) = rest.split_once("-->\n").ok_or_else(invalid)?;
        text = format!("{start}{after}{rest}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_change_with_the_first_release() {
        let text = format!("a\n{BEFORE}old\n{AFTER}new\n-->\nb\n");
        let text = text.repeat(2);
        assert_eq!(after_release(text).unwrap(), "a\nnew\nb\n".repeat(2));
        assert!(after_release(format!("{BEFORE}old\n")).is_err());
    }

    #[test]
    fn documents_can_be_released() {
        let documents = documents(&crate::repository()).unwrap();
        let texts = documents
            .into_iter()
            .map(|(_, text)| after_release(text).unwrap());
        assert!(
            texts
                .filter(|text| text.contains("There are no releases yet"))
                .count()
                == 0
        );
    }
}
