//! Limits on commands that are passed to the parser.
//!
//! The parser backtracks: some unterminated constructs take exponential time, each nested construct
//! takes stack, and very long numbers cause a panic. Constructs are counted without regard to
//! quotes, so that none can be hidden. Ordinary commands stay far below the limits.

/// Maximum constructs that may nest. Each takes at most 30 KiB of stack for parsing and walking,
/// measured in a debug build.
const MAX_OPENERS: usize = 2_000;
/// Maximum words of a script.
const MAX_WORDS: usize = 4_000;
const STACK_PER_OPENER: usize = 64 * 1024;
const STACK: usize = 4 * 1024 * 1024;
/// Maximum constructs of each kind that the parser tries in two ways per level.
const MAX_AMBIGUOUS: usize = 8;
/// Maximum digits of a number that cannot overflow in the parser.
const MAX_DIGITS: usize = 9;

/// Returns the maximum stack for parsing `text`, in bytes, or `None` if it must not be parsed.
pub(super) fn stack_for(text: &str) -> Option<usize> {
    // Parsing some sequences of words takes quadratic time.
    if text.split_ascii_whitespace().nth(MAX_WORDS).is_some() {
        return None;
    }
    // The parser joins continued lines.
    let text = text.replace("\\\n", "");
    let bytes = text.as_bytes();
    let mut openers = 0;
    let mut double_parens = 0;
    let mut parens = 0;
    let mut dollars = 0;
    let mut quotes = 0;
    let mut brackets = 0;
    let mut subscripts = 0;
    let mut cases = 0;
    let mut digits = 0;
    let mut last_solid = b' ';
    for (at, &byte) in bytes.iter().enumerate() {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > MAX_DIGITS && is_number_place(bytes, at) {
            return None;
        }
        match byte {
            b'(' => {
                openers += 1;
                parens += 1;
                double_parens += usize::from(last_solid == b'(' && !is_arithmetic(bytes, at));
            }
            b'{' | b'!' | b'&' | b'|' => openers += 1,
            b'$' | b'`' => dollars += 1,
            b'"' | b'\'' => quotes += 1,
            b'[' => {
                openers += 1;
                brackets += 1;
                subscripts += usize::from(starts_a_word(bytes, at));
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last_solid = byte;
        }
    }
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        match word {
            "case" => {
                cases += 1;
                openers += 1;
            }
            "if" | "elif" | "while" | "until" | "for" | "do" | "then" | "else" | "function"
            | "coproc" => openers += 1,
            _ => {}
        }
    }
    let regex = text.contains("=~");
    let hostile = openers > MAX_OPENERS
        || (double_parens > 0 && parens > MAX_AMBIGUOUS)
        || cases > MAX_AMBIGUOUS
        || (regex && parens > MAX_AMBIGUOUS)
        || (subscripts > 0
            && (brackets > MAX_AMBIGUOUS || dollars + quotes + parens > 2 * MAX_AMBIGUOUS));
    (!hostile).then_some(STACK + openers * STACK_PER_OPENER)
}

/// Returns whether the `(` at `at` is the second one of `$((`, which is a single token.
fn is_arithmetic(bytes: &[u8], at: usize) -> bool {
    at >= 2 && bytes[at - 1] == b'(' && bytes[at - 2] == b'$' && (at < 3 || bytes[at - 3] != b'\\')
}

/// Returns whether the `[` at `at` follows a name at the start of a word.
fn starts_a_word(bytes: &[u8], at: usize) -> bool {
    let name = bytes[..at]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    let before = bytes[..at - name].last();
    name > 0 && before.is_none_or(|byte| b" \t\n;|&()<>".contains(byte))
}

/// Returns whether the parser would convert a number that ends at `at`: after a tilde, in a brace
/// range, before a redirection.
fn is_number_place(bytes: &[u8], at: usize) -> bool {
    let start = bytes[..=at]
        .iter()
        .rposition(|byte| !byte.is_ascii_digit())
        .map_or(0, |at| at + 1);
    let end = bytes[at..]
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .map_or(bytes.len(), |run| at + run);
    let before = start.checked_sub(1).map(|at| bytes[at]);
    let after = bytes.get(end);
    matches!(before, Some(b'~' | b'+' | b'-' | b'.' | b'{'))
        || matches!(after, Some(b'<' | b'>' | b'.'))
}

/// Maximum of braces in a word whose braces are expanded. Each may double the time.
pub(super) const MAX_BRACES: usize = 12;
/// Maximum constructs of a word that contain other constructs. Each may double the time of the word parser.
const MAX_NESTED: usize = 8;
/// Maximum subscripts in such constructs. Each may be parsed 25 times.
const MAX_SUBSCRIPTS: usize = 2;
/// Maximum digits of a number in a word: those of an `i64`.
const MAX_WORD_DIGITS: usize = 18;
/// Number of levels of well-formed constructs that a word may have.
const MAX_LEVELS: usize = 4;
/// Maximum bytes of a word with nested constructs.
const MAX_NESTED_BYTES: usize = 16 * 1024;

/// Returns whether the parser takes reasonable time for a word.
///
/// It parses constructs again if the text around them is not what it expected, so nested ones take exponential time.
/// Closed constructs with plain content are ignored, up to [`MAX_LEVELS`]; all others are counted without regard to
/// quotes, so that none can be hidden.
pub(super) fn is_parsable_word(raw: &str) -> bool {
    // The parser panics on numbers that overflow.
    let mut numbers = raw.split(|c: char| !c.is_ascii_digit());
    if (raw.contains('~') || count_braces(raw) > 0)
        && numbers.any(|number| number.len() > MAX_WORD_DIGITS)
    {
        return false;
    }
    let mut text = raw.to_owned();
    for _ in 0..MAX_LEVELS {
        text = without_plain_constructs(&text);
    }
    let count = |pattern: &str| text.matches(pattern).count();
    let dollars = count("$(") + count("${") + count("$[");
    if dollars == 0 {
        return true;
    }
    dollars + count("(") <= MAX_NESTED
        && count("[") <= MAX_SUBSCRIPTS
        && raw.len() <= MAX_NESTED_BYTES
}

/// Replaces each construct that contains no other one.
fn without_plain_constructs(text: &str) -> String {
    let is_special = |c: char| "\"'`(){}[]$\\".contains(c);
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_special) {
        plain.push_str(&rest[..at]);
        let opener = rest[at..].chars().next().unwrap_or_default();
        rest = &rest[at + 1..];
        if opener == '\\' {
            // An escaped character opens nothing.
            rest = rest.strip_prefix(|_: char| true).unwrap_or(rest);
            plain.push('x');
            continue;
        }
        let closer = match opener {
            '(' => ')',
            '{' => '}',
            other => other,
        };
        let is_construct = "\"'`({".contains(opener);
        match rest
            .find(is_special)
            .filter(|end| is_construct && rest[*end..].starts_with(closer))
        {
            Some(end) => {
                if opener != '"' && plain.ends_with('$') {
                    plain.pop();
                }
                plain.push('x');
                rest = &rest[end + 1..];
            }
            None if opener == '$' && !rest.starts_with(['(', '{', '[', '\'']) => plain.push('x'),
            None => plain.push(opener),
        }
    }
    plain + rest
}

/// Counts the opening braces of a word that may be brace expressions.
pub(super) fn count_braces(raw: &str) -> usize {
    let mut quote = None;
    let mut count = 0;
    let mut chars = raw.chars();
    let mut last = ' ';
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                chars.next();
            }
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '{') if last != '$' => count += 1,
            _ => {}
        }
        last = c;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::{count_braces, is_parsable_word, stack_for};

    #[test]
    fn ordinary_commands_pass() {
        for text in [
            "for f in *.rs; do wc -l \"$f\"; done | sort -n",
            "echo $((1 + 2)) $((3 * (4 + 5)))",
            "find . -name '*.[ch]' -exec grep -n 'x[0-9]' {} +",
            "case $x in a) echo b;; *) echo c;; esac",
        ] {
            assert!(stack_for(text).is_some(), "{text}");
        }
    }

    #[test]
    fn ordinary_words_pass() {
        for word in [
            "\"$(git log --format=\"%H $(date)\" \"$a\")\"",
            &"${a:-b} $(c \"$d\") $((1 + (2 * 3))) \\$(x) ".repeat(100),
            "'{\"a\": [{\"b\": [1, 12345678901234567890]}]}'",
        ] {
            assert!(is_parsable_word(word), "{word}");
        }
        assert_eq!(count_braces("a{b,c}'{'\"{\"\\{${x}"), 1);
    }

    #[test]
    fn words_over_the_limits_are_refused() {
        for word in [
            "${a:-".repeat(20),
            "$(".repeat(20),
            "\"$(".repeat(20),
            "$(( ".repeat(20),
            "$(\"".to_owned() + &"(".repeat(20),
            "${a[\"${a[\"${a[\"".to_owned(),
            "~99999999999999999999".to_owned(),
            "{1..99999999999999999999}".to_owned(),
        ] {
            assert!(!is_parsable_word(&word), "{word}");
        }
    }

    #[test]
    fn commands_over_the_limits_are_refused() {
        for text in [
            "(".repeat(40),
            "( ".repeat(5_000),
            // Few words, too many openers.
            "{ ".repeat(3_000),
            "if a; then ".repeat(1_300),
            format!("[[ {}", "! ".repeat(3_000)),
            "case x in a) ".repeat(20),
            format!("[[ a =~ {}", "( ".repeat(40)),
            format!("a[{}]=b", "\"x$(".repeat(30)),
            "cat ~99999999999999999999999".to_owned(),
            "cat 99999999999999999999999<a".to_owned(),
            "ca\\\nse x in a) ".repeat(20),
        ] {
            assert!(stack_for(&text).is_none(), "{text}");
        }
    }
}
