//! `access.visibleTo`: commands of the user's choice that may see denied files.

/// Returns whether a command line is one simple command that starts with the words of an entry.
/// The check of commands lets it pass, and `sightline exec` hides nothing from it.
pub fn is_line_visible_to(entries: &[String], line: &str) -> bool {
    simple_words(line).is_some_and(|words| are_visible_to(entries, &words))
}

/// Like [`is_line_visible_to`], for the words of a command that no shell reads.
pub fn are_visible_to(entries: &[String], words: &[&str]) -> bool {
    let mut entries = entries
        .iter()
        .map(|entry| entry.split_whitespace().collect::<Vec<_>>());
    entries.any(|entry| !entry.is_empty() && words.starts_with(&entry))
}

/// Splits a line that every shell splits at its blanks and nowhere else: without quotes, lists,
/// pipes, substitutions, redirections and patterns.
fn simple_words(line: &str) -> Option<Vec<&str>> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _-./:=@%+,".contains(&byte);
    line.bytes()
        .all(is_plain)
        .then(|| line.split(' ').filter(|word| !word.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_simple_commands_are_visible_to() {
        let entries = ["npm run dev".to_owned(), String::new()];
        let is_visible = |line| is_line_visible_to(&entries, line);
        assert!(is_visible("npm  run dev -- --port=3000"));
        for line in [
            "npm run devel",
            "npm run",
            "A=1 npm run dev",
            "npm run dev; cat .env",
            "npm run dev | tee x",
            "npm run dev && cat .env",
            "npm run dev\ncat .env",
            "npm run dev $(cat .env)",
            "npm run dev `cat .env`",
            "npm run dev < .env",
            "npm run dev &",
            "npm run 'dev'",
            "npm run dev *",
            "npm run dev {a,b}",
            "npm run dev ~",
            "(npm run dev)",
            "npm run dev # x",
            "! npm run dev",
            "npm run dev\\ncat",
        ] {
            assert!(!is_visible(line), "{line}");
        }
    }
}
