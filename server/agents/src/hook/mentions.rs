//! Files that the user mentions in a prompt as `@path`.
//!
//! Agents end a path at different characters. So every text behind an `@` that could be a path is
//! returned; only those that exist matter.

use std::collections::BTreeSet;

use super::written_path::{MAX_PATH, readings, shortened};

/// gemini-cli appends the mentioned files to the prompt after this line.
const CONTENT_START: &str = "--- Content from referenced files ---";
/// Start of the line before the content of each file.
const CONTENT_OF: &str = "Content from @";
/// Maximum length of a path as written, in bytes. Agents remove `.` and `..` before they open it.
const MAX_WRITTEN: usize = 256 * 1024;
/// Maximum total length of the texts of a prompt, in bytes. A pasted file can have many `@`.
const MAX_TOTAL: usize = 64 * 1024 * 1024;

/// Returns the texts of a prompt that may be paths. `None` if there are too many.
/// `has_content` says that the agent has appended the content of mentioned files.
pub(super) fn mentions(prompt: &str, has_content: bool) -> Option<Vec<String>> {
    let (typed, _) = prompt
        .rsplit_once(CONTENT_START)
        .filter(|_| has_content)
        .unwrap_or((prompt, ""));
    let mut found = Found::default();
    for (at, _) in typed.match_indices('@') {
        let end = typed.ceil_char_boundary(at + 1 + MAX_WRITTEN);
        add_word(typed.get(at + 1..end).unwrap_or_default(), &mut found);
        if found.total > MAX_TOTAL {
            return None;
        }
    }
    // The content may have the line at its start too.
    for line in prompt.lines().filter(|_| has_content) {
        if let Some(path) = line.strip_prefix(CONTENT_OF) {
            found.add(path.trim_end().trim_end_matches(':'));
        }
    }
    Some(found.texts.into_iter().collect())
}

#[derive(Default)]
struct Found {
    texts: BTreeSet<String>,
    /// Length of all texts, in bytes.
    total: usize,
}

impl Found {
    fn add(&mut self, text: &str) {
        if !text.is_empty() && text.len() <= MAX_PATH {
            self.total += text.len();
            self.texts.insert(text.to_owned());
        }
    }
}

/// Adds the paths at the start of `text`.
fn add_word(text: &str, found: &mut Found) {
    for quote in ['"', '\''] {
        let quoted = text.strip_prefix(quote);
        if let Some((quoted, _)) = quoted.and_then(|quoted| quoted.split_once(quote)) {
            found.add(quoted);
        }
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let word = text.get(..end).unwrap_or_default();
    if word.len() > MAX_PATH {
        add_prefixes(cut(&shortened(word)), found);
    }
    let word = cut(word);
    add_prefixes(word, found);
    // `@server:file:///path`
    for reading in readings(word) {
        found.add(&reading);
    }
    if !word.contains('\\') {
        return;
    }
    // `my\ file`: escaped characters are a part of the path.
    let mut unescaped = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => unescaped.extend(chars.next()),
            c if c.is_whitespace() => break,
            c => unescaped.push(c),
        }
    }
    add_prefixes(&unescaped, found);
}

/// Returns the beginning of a text that can be a path.
fn cut(text: &str) -> &str {
    text.get(..text.ceil_char_boundary(MAX_PATH))
        .unwrap_or(text)
}

/// Adds the text, and the text before each character that can end a path. `.env.example` does
/// not end at its second dot.
fn add_prefixes(text: &str, found: &mut Found) {
    let mut previous = 'a';
    for (at, c) in text.char_indices() {
        let next = text
            .get(at + c.len_utf8()..)
            .and_then(|rest| rest.chars().next());
        let is_in_name =
            matches!(c, '.' | '-' | '_') && next.is_some_and(|next| next.is_ascii_alphanumeric());
        let can_end = !c.is_ascii_alphanumeric() || !previous.is_ascii_alphanumeric();
        if can_end && !is_in_name {
            found.add(text.get(..at).unwrap_or_default());
        }
        previous = if is_in_name { 'a' } else { c };
    }
    found.add(text);
}

#[cfg(test)]
mod tests {
    use super::mentions;

    fn finds(prompt: &str, path: &str) -> bool {
        let found = mentions(prompt, false).expect("not too many");
        found.iter().any(|text| text == path)
    }

    #[test]
    fn a_path_ends_where_any_agent_ends_it() {
        for prompt in [
            "look at @a/b.rs, please",
            "(@a/b.rs)",
            "@a/b.rs#L1-2",
            "@a/b.rs#section",
            "@a/b.rs/",
            "@a/b.rs\u{3002}next",
            "@a/b.rs\u{200b}",
            "@a/b.rs\u{898b}\u{308b}",
            "@a/b.rs,ok",
            "@a/b.rs;ok",
            "@\"a/b.rs\"",
            "@'a/b.rs'",
            "mail@a/b.rs",
            "@@a/b.rs",
            "@a/b.rs:10",
            "@server:file://a/b.rs",
        ] {
            assert!(finds(prompt, "a/b.rs"), "{prompt}");
        }
        assert!(finds(&format!("@{}a/b.rs", "./".repeat(9000)), "a/b.rs"));
        assert!(finds(&format!("@{}a/b.rs", "x/../".repeat(9000)), "a/b.rs"));
        assert!(finds(&format!("@a/b.rs,{}", "x".repeat(9000)), "a/b.rs"));
        for prompt in ["@a/b.rs.example", "joe@a/b.rs-x", "@a/b.rs_2"] {
            assert!(!finds(prompt, "a/b.rs"), "{prompt}");
        }
        assert!(finds(r"@my\ file, x", "my file"));
        assert!(finds(r"@a\b", r"a\b"));
        assert!(finds("@\"my file\" x", "my file"));
        assert_eq!(mentions("@ alone", false), Some(Vec::new()));
    }

    #[test]
    fn only_content_that_the_agent_added_is_not_searched() {
        let prompt = "see @a\n--- Content from referenced files ---\nContent from @dir/b c:\n@d\n";
        let found = mentions(prompt, true);
        assert_eq!(found, Some(vec!["a".to_owned(), "dir/b c".to_owned()]));
        assert!(finds(prompt, "d"));
        let twice = format!("--- Content from referenced files ---\n{prompt}");
        assert_eq!(mentions(&twice, true), found);
        let content = format!("{prompt}--- Content from referenced files ---\nend");
        assert!(
            mentions(&content, true)
                .unwrap()
                .contains(&"dir/b c".to_owned())
        );
    }

    #[test]
    fn too_many_mentions_are_reported() {
        let long = format!("@{}", "a,".repeat(2000));
        assert!(mentions(&long.repeat(40), false).is_none());
        assert!(mentions(&"@types/node, ".repeat(100_000), false).is_some());
    }
}
