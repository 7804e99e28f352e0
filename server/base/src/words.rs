//! Lists of words.

/// Returns whether a word is in a list, separated by spaces.
pub fn is_one_of(word: &str, list: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

/// Names the first texts of many: `a, b and 3 more`.
pub fn first_of(texts: &[String], count: usize) -> String {
    let shown = texts[..texts.len().min(count)].join(", ");
    match texts.len().saturating_sub(count) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
