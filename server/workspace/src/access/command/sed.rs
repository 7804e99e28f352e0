//! Recognizes `sed` scripts that access no file.

/// Returns whether a script consists of substitutions and simple commands only, so that every word
/// in it is a pattern or text.
pub(super) fn edits_only_text(script: &str) -> bool {
    let mut rest = script.trim_start_matches([' ', '\n', ';']);
    while !rest.is_empty() {
        let Some(next) = command(rest) else {
            return false;
        };
        rest = next.trim_start_matches([' ', '\n', ';', '}']);
    }
    true
}

/// Parses a command with its addresses. Returns the rest.
fn command(text: &str) -> Option<&str> {
    let mut rest = address(text)?;
    if let Some(second) = rest.strip_prefix(',') {
        rest = address(second.trim_start())?;
    }
    rest = rest
        .trim_start()
        .trim_start_matches(['!', '{'])
        .trim_start();
    let mut chars = rest.chars();
    match chars.next()? {
        's' | 'y' => {
            let delimiter = chars.next().filter(|c| *c != '\\' && *c != '\n')?;
            let rest = delimited(chars.as_str(), delimiter)?;
            let rest = delimited(rest, delimiter)?;
            end(rest.trim_start_matches(|c: char| "gpiI".contains(c) || c.is_ascii_digit()))
        }
        'd' | 'p' | 'q' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'D' | 'P' | '=' => {
            end(chars.as_str())
        }
        _ => None,
    }
}

fn end(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches(' ');
    (rest.is_empty() || rest.starts_with([';', '\n', '}'])).then_some(rest)
}

/// Parses an address, if there is one. Returns the rest.
fn address(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    match chars.next()? {
        '/' => Some(delimited(chars.as_str(), '/')?.trim_start_matches(['I', 'M'])),
        '\\' => {
            let delimiter = chars.next()?;
            delimited(chars.as_str(), delimiter)
        }
        '$' => Some(chars.as_str()),
        c if c.is_ascii_digit() => Some(text.trim_start_matches(|c: char| c.is_ascii_digit())),
        _ => Some(text),
    }
}

/// Returns the text after the next unescaped `delimiter`.
fn delimited(text: &str, delimiter: char) -> Option<&str> {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == delimiter {
            return Some(chars.as_str());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::edits_only_text;

    #[test]
    fn scripts_that_access_files_are_recognized() {
        for script in [
            "s/.env/x/",
            "/^.env$/d",
            "s|.env|x|gi;2,/x/p",
            "1!s/a\\/b/.env/",
            "$d",
        ] {
            assert!(edits_only_text(script), "{script}");
        }
        for script in [
            "r .env",
            "s/x/y/w .env",
            "s/x/cat .env/e",
            "s/a/b/;r .env",
            "1e cat .env",
            "s/a",
            "a .env",
        ] {
            assert!(!edits_only_text(script), "{script}");
        }
    }
}
