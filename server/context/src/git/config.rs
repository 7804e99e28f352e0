//! Parser for git configuration files. Never follows an include.
//!
//! libgit2 only reads configuration from files and follows includes; the parser of gitoxide would
//! add more than thirty crates.

/// Name and fetch URL of a remote.
type Remote = (String, String);

/// A parsed configuration, without included files.
#[derive(Debug, Default)]
pub struct Config {
    settings: Vec<Setting>,
    /// Whether a section includes other files.
    includes: bool,
}

#[derive(Debug)]
struct Setting {
    /// Lower-case section name, and the quoted subsection.
    section: (String, Option<String>),
    key: String,
    value: Option<String>,
}

impl Config {
    /// Parses a configuration. Returns `None` if git would reject it.
    pub fn parse(config: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(config).replace("\r\n", "\n");
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut chars = text.chars().peekable();
        let mut section = (String::new(), None);
        let mut config = Self::default();
        while let Some(c) = chars.next() {
            match c {
                '#' | ';' => {
                    chars.by_ref().find(|c| *c == '\n');
                }
                '[' => {
                    section = header(&mut chars)?;
                    let name = section.0.split('.').next().unwrap_or_default();
                    config.includes |= matches!(name, "include" | "includeif");
                }
                c if c.is_ascii_whitespace() => {}
                c if c.is_ascii_alphabetic() => {
                    let mut key = c.to_ascii_lowercase().to_string();
                    while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
                        key.push(c.to_ascii_lowercase());
                    }
                    config.settings.push(Setting {
                        section: section.clone(),
                        key,
                        value: value(&mut chars)?,
                    });
                }
                _ => return None,
            }
        }
        Some(config)
    }

    /// Returns the last value of a setting in a section without a subsection.
    pub fn get(&self, section: &str, key: &str) -> Option<&str> {
        let is_it = |setting: &&Setting| {
            setting.section == (section.to_owned(), None) && setting.key == key
        };
        let last = self.settings.iter().rev().find(is_it)?;
        last.value.as_deref()
    }
}

/// Returns the remotes of a configuration, sorted by name.
///
/// Returns `None` if it includes other files, which access rules may deny, or if git would reject
/// it.
pub(super) fn remotes(config: &[u8]) -> Option<Vec<Remote>> {
    let config = Config::parse(config).filter(|config| !config.includes)?;
    let mut remotes: Vec<Remote> = Vec::new();
    for setting in config.settings {
        if let ((section, Some(remote)), "url", Some(url)) =
            (setting.section, &*setting.key, setting.value)
            && section == "remote"
            && remotes.iter().all(|(known, _)| *known != remote)
        {
            remotes.push((remote, url));
        }
    }
    remotes.sort();
    Some(remotes)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Parses a section header: lower-case name and quoted subsection.
fn header(chars: &mut Chars<'_>) -> Option<(String, Option<String>)> {
    let mut name = String::new();
    loop {
        match chars.next()? {
            ']' => return Some(split_deprecated_subsection(name)),
            ' ' | '\t' => break,
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') => {
                name.push(c.to_ascii_lowercase());
            }
            _ => return None,
        }
    }
    while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    if chars.next()? != '"' {
        return None;
    }
    let mut part = String::new();
    loop {
        match chars.next()? {
            '"' => break,
            '\n' => return None,
            '\\' => match chars.next()? {
                '\n' => return None,
                c => part.push(c),
            },
            c => part.push(c),
        }
    }
    (chars.next()? == ']').then_some((name, Some(part)))
}

/// `[remote.origin]` is the deprecated form of `[remote "origin"]`.
fn split_deprecated_subsection(name: String) -> (String, Option<String>) {
    match name.split_once('.') {
        Some((section, part)) => (section.to_owned(), Some(part.to_owned())),
        None => (name, None),
    }
}

/// Parses the value after a key, to the end of the line. Returns `Some(None)` for a key without a
/// value.
fn value(chars: &mut Chars<'_>) -> Option<Option<String>> {
    while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    match chars.next() {
        None | Some('\n') => return Some(None),
        Some('=') => {}
        // Git rejects a comment here, too.
        Some(_) => return None,
    }
    let mut value = String::new();
    // Length without trailing white space outside quotes.
    let mut end = 0;
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '\n' if quoted => return None,
            '\n' => break,
            '#' | ';' if !quoted => {
                chars.by_ref().find(|c| *c == '\n');
                break;
            }
            '"' => {
                quoted = !quoted;
                end = value.len();
            }
            '\\' => {
                let c = match chars.next() {
                    None | Some('\n') => continue,
                    Some('t') => '\t',
                    Some('b') => '\u{8}',
                    Some('n') => '\n',
                    Some(c @ ('"' | '\\')) => c,
                    Some(_) => return None,
                };
                value.push(c);
                end = value.len();
            }
            c if c.is_ascii_whitespace() && !quoted => {
                if !value.is_empty() {
                    value.push(c);
                }
            }
            c => {
                value.push(c);
                end = value.len();
            }
        }
    }
    if quoted {
        return None;
    }
    value.truncate(end);
    Some(Some(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(config: &str) -> Option<Vec<(String, String)>> {
        remotes(config.as_bytes())
    }

    fn one(name: &str, url: &str) -> Option<Vec<(String, String)>> {
        Some(vec![(name.to_owned(), url.to_owned())])
    }

    #[test]
    fn remotes_are_parsed_like_git() {
        for (config, url) in [
            ("[remote \"o\"]\nurl=u", "u"),
            ("\u{feff}[remote \"o\"]\n\tURL = u v \n", "u v"),
            ("[ReMote \"o\"] url = u ; comment\n", "u"),
            ("[remote \"o\"]\nurl = \"u # v\" # w", "u # v"),
            ("[remote \"o\"]\nurl = u\\\n  v", "u  v"),
            ("[remote \"o\"]\nurl = a\\\"b\\\\c", "a\"b\\c"),
            ("[remote \"o\"]\r\nurl = u\r\nfetch = x\r\n", "u"),
            ("[remote \"o\"]\nurl = first\nurl = second", "first"),
            ("[remote.o]\nurl = u", "u"),
            ("[core][remote \"o\"]url=u", "u"),
            ("[remote \"o\"]\npushurl = x\nfetch\nurl = u", "u"),
        ] {
            assert_eq!(of(config), one("o", url), "{config:?}");
        }
        assert_eq!(of("[remote \"a\\\"b\"]\nurl=u"), one("a\"b", "u"));
        assert_eq!(of(""), Some(Vec::new()));
        assert_eq!(of("[remote]\nurl=u\n[core]\n# x"), Some(Vec::new()));
    }

    #[test]
    fn includes_and_invalid_files_have_no_remotes() {
        for config in [
            "[include]",
            "[INCLUDE]path=x",
            "[core][include]",
            "[core]a=b\n [ include]",
            "[includeIf \"gitdir:x\"]",
            "[include.path]",
            "[remote \"o\"\nurl=u",
            "[remote \"o",
            "[remote \"o\"]\nurl = \"u",
            "[remote \"o\"]\nurl = \\x",
            "[remote \"o\"]\nurl # u",
            "=",
            "[a b]",
        ] {
            let config = format!("[remote \"x\"]\nurl = y\n{config}");
            assert_eq!(of(&config), None, "{config:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(config in "(\\[remote \"o\"\\]|url|[\\[\\]\"=#;\\\\ \n\ta-c])*") {
            let _ = of(&config);
        }
    }
}
