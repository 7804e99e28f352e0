//! Remotes and commit of a git repository.
//!
//! Unreadable values are left out. The URL of a remote may contain a password or token, which
//! [`without_credentials`] removes.

use std::{borrow::Cow, path::Path};

use crate::git::Repository;
use sightline_access::AccessView;

/// Remotes and commit of the repository around a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitInfo {
    /// Sorted by name.
    pub(super) remotes: Vec<Remote>,
    /// Hex id of the current commit.
    pub(super) head: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Remote {
    pub(super) name: String,
    /// Fetch URL without credentials.
    pub(super) url: String,
}

/// Reads the repository of `dir`. Empty outside a repository.
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

/// Removes user, password, query and fragment from `url`. Leaves a local path unchanged. Returns
/// `None` for a command (`ext::...`), which may contain credentials anywhere.
fn without_credentials(url: &str) -> Option<String> {
    if url.is_empty() || url.starts_with("ext::") {
        return None;
    }
    if let Some((scheme, rest)) = url.split_once("://") {
        return Some(format!("{scheme}://{}", without_query(&without_user(rest))));
    }
    let first_folder = url.split('/').next().unwrap_or_default();
    if first_folder.contains(':') && !has_drive(url) {
        // `user@host:path`, the form of scp.
        return Some(without_query(&without_user(url)).to_owned());
    }
    Some(url.to_owned())
}

fn has_drive(url: &str) -> bool {
    let bytes = url.as_bytes();
    matches!(bytes, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

/// Removes the credentials from `user:password@host:port/path`.
fn without_user(rest: &str) -> Cow<'_, str> {
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    if let Some((_, host)) = authority.rsplit_once('@') {
        return Cow::Owned(format!("{host}{path}"));
    }
    // `user:pass/word@host` is not a valid URL, so everything before the `@` is removed.
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
    use crate::git;
    use sightline_access::Access;
    use sightline_base::path::Roots;
    use sightline_protocol::settings::Secrets;

    #[test]
    fn credentials_are_removed_from_every_url_form() {
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
    fn a_password_with_a_slash_is_removed() {
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
    fn remotes_have_no_credentials() {
        git::isolate();
        let folder = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init(folder.path()).unwrap();
        repository.remote("upstream", "git@host:o/r.git").unwrap();
        repository
            .remote("origin", "https://me:secret@host/o/r.git?x=1")
            .unwrap();
        let view = Access::new(Arc::new(Roots::default()), Vec::new(), Secrets::Allow)
            .view()
            .0;
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
