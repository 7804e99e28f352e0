//! Patterns for error messages. A pattern is a sequence of parts that must occur in order on
//! one line. Matching is linear in the length of the message, unlike a regular expression with
//! `.*`.

/// Parts that must occur in this order on one line, with any text between them.
pub(super) type Pattern = &'static [&'static [Atom]];

/// An element of a part; elements follow each other directly. A part starts with
/// [`Atom::OneOf`], optionally after a word boundary.
#[derive(Clone, Copy, Debug)]
pub(super) enum Atom {
    /// The first alternative with which the rest of the part matches.
    OneOf(&'static [&'static str]),
    /// Start or end of a word of ASCII letters, digits and `_`.
    WordBoundary,
    /// Any amount of whitespace.
    Whitespace,
    /// One or more digits.
    Digits,
}

/// Returns whether `text` contains the pattern. Case-sensitive.
pub(super) fn is_match(text: &str, pattern: Pattern) -> bool {
    let Some((first, others)) = pattern.split_first() else {
        return true;
    };
    let mut from = 0;
    while let Some(found) = find(text, first, from, text.len()) {
        let line_end = end_of_line(text, found);
        let mut at = found;
        if others.iter().all(|part| {
            let found = find(text, part, at, end_of_line(text, at));
            at = found.unwrap_or(at);
            found.is_some()
        }) {
            return true;
        }
        // The other parts are not on this line, so a later match of the first part on it cannot
        // succeed.
        from = line_end;
    }
    false
}

/// Returns the end of the first match that starts in `from..=until`.
fn find(text: &str, part: &[Atom], from: usize, until: usize) -> Option<usize> {
    let start = common_prefix(part);
    let mut at = from;
    while at <= until {
        at += text.get(at..)?.find(start)?;
        if at > until {
            return None;
        }
        if let Some(end) = end_of_match(text, part, at) {
            return Some(end);
        }
        at += text.get(at..)?.chars().next().map_or(1, char::len_utf8);
    }
    None
}

/// Returns the text that every match starts with.
fn common_prefix(part: &[Atom]) -> &'static str {
    let alternatives = part.iter().find_map(|atom| match atom {
        Atom::OneOf(alternatives) => Some(*alternatives),
        _ => None,
    });
    let Some((first, others)) = alternatives.and_then(<[_]>::split_first) else {
        return "";
    };
    let is_shared = |end: &usize| {
        let start = first.get(..*end);
        start.is_some_and(|start| others.iter().all(|other| other.starts_with(start)))
    };
    let end = (0..=first.len()).rev().find(is_shared).unwrap_or(0);
    first.get(..end).unwrap_or_default()
}

fn end_of_match(text: &str, part: &[Atom], at: usize) -> Option<usize> {
    let Some((atom, others)) = part.split_first() else {
        return Some(at);
    };
    let rest = text.get(at..)?;
    let length_of =
        |is: fn(&char) -> bool| -> usize { rest.chars().take_while(is).map(char::len_utf8).sum() };
    match atom {
        Atom::OneOf(alternatives) => alternatives
            .iter()
            .filter(|alternative| rest.starts_with(**alternative))
            .find_map(|alternative| end_of_match(text, others, at + alternative.len())),
        Atom::WordBoundary => {
            let before = text.get(..at)?.chars().next_back();
            let differ = is_word(before) != is_word(rest.chars().next());
            differ.then(|| end_of_match(text, others, at))?
        }
        Atom::Whitespace => end_of_match(text, others, at + length_of(is_space)),
        Atom::Digits => {
            let length = length_of(char::is_ascii_digit);
            (length > 0).then(|| end_of_match(text, others, at + length))?
        }
    }
}

fn end_of_line(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest
        .find(['\n', '\r', '\u{2028}', '\u{2029}'])
        .unwrap_or(rest.len())
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whitespace as JavaScript's `\s` defines it.
fn is_space(c: &char) -> bool {
    (c.is_whitespace() && *c != '\u{85}') || *c == '\u{feff}'
}

#[cfg(test)]
mod tests {
    use super::{
        Atom::{Digits, OneOf, Whitespace, WordBoundary},
        Pattern, is_match,
    };

    const CONTEXT: Pattern = &[&[
        WordBoundary,
        OneOf(&["context"]),
        Whitespace,
        OneOf(&["length", "window"]),
        WordBoundary,
    ]];
    const TOO_LONG: Pattern = &[
        &[OneOf(&["too long"])],
        &[
            OneOf(&["token", "tokens"]),
            Whitespace,
            OneOf(&[">"]),
            Whitespace,
            Digits,
        ],
    ];

    #[test]
    fn words() {
        for text in [
            "context length",
            "the contextwindow.",
            "超context\u{feff}\n window限",
            "contexts context length",
        ] {
            assert!(is_match(text, CONTEXT), "{text}");
        }
        for text in [
            "",
            "context_length",
            "subcontext length",
            "context lengths",
            "context\u{85}length",
        ] {
            assert!(!is_match(text, CONTEXT), "{text}");
        }
    }

    #[test]
    fn parts_are_on_one_line() {
        assert!(is_match("too long: 5 tokens > 4", TOO_LONG));
        assert!(is_match("too long\ntoo long: 5 token>\n4", TOO_LONG));
        assert!(!is_match("too long:\n5 tokens > 4", TOO_LONG));
        assert!(!is_match("too long: tokens > x", TOO_LONG));
        assert!(!is_match("tokens > 4, too long", TOO_LONG));
    }

    #[test]
    fn matching_repetitive_text_is_fast() {
        let text = "too long ".repeat(200_000);
        assert!(!is_match(&text, TOO_LONG));
        let text = format!("context{}", " ".repeat(1_000_000));
        assert!(!is_match(&text, CONTEXT));
        let text = "tokens > ".repeat(200_000);
        assert!(!is_match(&text, TOO_LONG));
    }
}
