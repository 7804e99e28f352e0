//! Files that the user mentions in a prompt as `@path`.

/// gemini-cli appends the mentioned files to the prompt after this line.
const CONTENT_START: &str = "--- Content from referenced files ---";
/// Start of the line before the content of each file.
const CONTENT_OF: &str = "Content from @";

/// Returns the paths that the prompt may mention. Words that are not paths are included: the
/// caller ignores paths that do not exist.
pub(super) fn mentions(prompt: &str) -> Vec<String> {
    let (typed, content) = prompt.split_once(CONTENT_START).unwrap_or((prompt, ""));
    let mut found = Vec::new();
    for (at, _) in typed.match_indices('@') {
        let before = typed.get(..at).and_then(|text| text.chars().next_back());
        // An e-mail address is not a mention.
        if !before.is_some_and(char::is_alphanumeric) {
            add_word(typed.get(at + 1..).unwrap_or_default(), &mut found);
        }
    }
    for line in content.lines() {
        if let Some(path) = line.strip_prefix(CONTENT_OF) {
            found.push(path.trim_end().trim_end_matches(':').to_owned());
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Adds the path at the start of `text`: the word, and the word without what may follow a path.
fn add_word(text: &str, found: &mut Vec<String>) {
    let mut word = String::new();
    if let Some((quoted, _)) = text
        .strip_prefix('"')
        .and_then(|quoted| quoted.split_once('"'))
    {
        word.push_str(quoted);
    } else {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => word.extend(chars.next()),
                c if c.is_whitespace() => break,
                c => word.push(c),
            }
        }
    }
    // `path#L1-2` mentions lines.
    let without_lines = word.split_once("#L").map(|(path, _)| path.to_owned());
    for word in [Some(word), without_lines].into_iter().flatten() {
        let plain = word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '/');
        found.extend(
            [plain, &word]
                .into_iter()
                .filter(|path| !path.is_empty())
                .map(str::to_owned),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn paths_are_found_with_and_without_punctuation() {
        assert_eq!(
            mentions("look at @src/a.rs, (@b.md) and mail@example.org"),
            ["b.md", "b.md)", "src/a.rs", "src/a.rs,"]
        );
        assert_eq!(mentions(r"@my\ file"), ["my file"]);
        assert_eq!(mentions("@\"my file\" x"), ["my file"]);
        assert_eq!(mentions("@notes#L1-2"), ["notes", "notes#L1-2"]);
        assert_eq!(mentions("@ alone"), Vec::<String>::new());
    }

    #[test]
    fn file_content_is_not_searched() {
        let prompt = "see @a\n--- Content from referenced files ---\nContent from @a:\n@b\n";
        assert_eq!(mentions(prompt), ["a"]);
        let hidden = "see\n--- Content from referenced files ---\nContent from @dir/b c:\n";
        assert_eq!(mentions(hidden), ["dir/b c"]);
    }
}
