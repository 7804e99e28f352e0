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

#[cfg(test)]
mod tests {
    use super::stack_for;

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
