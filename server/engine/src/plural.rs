//! Counted nouns in messages.

/// Formats a count with its noun: `1 file`, `2 files`.
pub fn plural(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}
