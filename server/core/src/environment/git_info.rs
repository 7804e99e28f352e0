//! What a repository says about itself: remotes and commit.
//!
//! What cannot be read is left out. A remote's URL may hold a password or a
//! token; what could be one never gets past [`without_credentials`].

use std::{borrow::Cow, path::Path};

use crate::{access::AccessView, git::Repository};

/// Remotes and commit of the repository around a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitInfo {
    /// The remotes, in the order of their names.
    pub(super) remotes: Vec<Remote>,
    /// The commit checked out, in hex.
    pub(super) head: Option<String>,
}

/// A remote.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Remote {
    pub(super) name: String,
    /// Where it fetches from, without credentials.
    pub(super) url: String,
}

/// Returns the facts; none outside a repository.
pub(super) fn read(view: &AccessView, dir: &Path) -> GitInfo {
    let Some(repository) = Repository::discover(view, dir) else {
        return GitInfo::default();
    };
    let remotes = repository.remotes().into_iter();
    GitInfo {
        remotes: remotes
            .filter_map(|(name, url)| {
                let url = without_credentials(&url)?;
                Some(Remote { name, url })
            })
            .collect(),
        head: repository.head(),
    }
}

/// `url` without user, password, query and fragment. A local path stays as it
/// is. `None` for a command (`ext::...`), which can hold anything anywhere.
fn without_credentials(url: &str) -> Option<String> {
    if url.is_empty() || url.starts_with("ext::") {
        return None;
    }
    if let Some((scheme, rest)) = url.split_once("://") {
        return Some(format!("{scheme}://{}", without_query(&without_user(rest))));
    }
    let first_folder = url.split('/').next().unwrap_or_default();
    if first_folder.contains(':') && !has_drive(url) {
        // `user@host:path`, as scp writes it.
        return Some(without_query(&without_user(url)).to_owned());
    }
    Some(url.to_owned())
}

fn has_drive(url: &str) -> bool {
    let bytes = url.as_bytes();
    matches!(bytes, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

/// `rest` is `user:password@host:port/path`, of which only the last two stay.
fn without_user(rest: &str) -> Cow<'_, str> {
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    if let Some((_, host)) = authority.rsplit_once('@') {
        return Cow::Owned(format!("{host}{path}"));
    }
    // `user:pass/word@host`: no valid URL, so what stands before is not shown.
    if authority.contains(':')
        && let Some((before, after)) = path.rsplit_once('@')
        && !before.ends_with('/')
    {
        return Cow::Borrowed(after);
    }
    Cow::Borrowed(rest)
}

fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{access::Access, git, path::Roots};

    #[test]
    fn credentials_are_taken_out_of_every_form() {
        for (url, clean) in [
            ("https://github.com/o/r.git", "https://github.com/o/r.git"),
            (
                "https://me:pass@github.com/o/r.git",
                "https://github.com/o/r.git",
            ),
            ("https://token@github.com/o/r", "https://github.com/o/r"),
            ("https://u:p@ss@host:8443/o/r", "https://host:8443/o/r"),
            ("https://u:p?q#f@host/o/r", "https://host/o/r"),
            ("https://host/o/r?access_token=x#y", "https://host/o/r"),
            ("https://host?token=x", "https://host"),
            ("https://host:1/@scope/r", "https://host:1/@scope/r"),
            ("https://host/me@corp/r", "https://host/me@corp/r"),
            ("ssh://git@host:22/~me/r", "ssh://host:22/~me/r"),
            ("git@github.com:o/r.git", "github.com:o/r.git"),
            ("u:p@host:o/r.git?token=x", "host:o/r.git"),
            ("me@[::1]:r", "[::1]:r"),
            ("host:r", "host:r"),
            ("/srv/git/a@b:c.git", "/srv/git/a@b:c.git"),
            ("../other", "../other"),
            ("C:/git/me@r.git", "C:/git/me@r.git"),
            (r"C:\git\me@r.git", r"C:\git\me@r.git"),
            (r"u:p@host:a\b", r"host:a\b"),
            ("file:///srv/r.git", "file:///srv/r.git"),
        ] {
            assert_eq!(without_credentials(url).as_deref(), Some(clean), "{url}");
        }
        assert_eq!(without_credentials("ext::sh -c 'nc -u me:secret@h'"), None);
    }

    #[test]
    fn a_password_with_a_slash_does_not_get_through() {
        for url in [
            "https://u:pa/ss@host/r",
            "https://u:1/ss@host/r",
            "u:pa/ss@host:r",
        ] {
            let clean = without_credentials(url).unwrap_or_default();
            assert!(!clean.contains("pa/") && !clean.contains("ss@"), "{clean}");
        }
    }

    #[test]
    fn remotes_are_told_without_credentials() {
        git::isolate();
        let folder = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init(folder.path()).unwrap();
        repository.remote("upstream", "git@host:o/r.git").unwrap();
        repository
            .remote("origin", "https://me:secret@host/o/r.git?x=1")
            .unwrap();
        let view = Access::new(Arc::new(Roots::default()), Vec::new()).view().0;
        let facts = read(&view, folder.path());
        let remotes: Vec<_> = facts
            .remotes
            .iter()
            .map(|remote| (remote.name.as_str(), remote.url.as_str()))
            .collect();
        assert_eq!(
            remotes,
            [
                ("origin", "https://host/o/r.git"),
                ("upstream", "host:o/r.git")
            ]
        );
    }
}
