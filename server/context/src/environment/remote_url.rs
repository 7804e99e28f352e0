//! URLs of git remotes without their credentials.

use std::borrow::Cow;

/// Removes user, password, query and fragment from `url`. Leaves a local path unchanged. Returns
/// `None` for a command (`ext::...`), which may contain credentials anywhere.
pub(super) fn without_credentials(url: &str) -> Option<String> {
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
    use super::*;

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
}
