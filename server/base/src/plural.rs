//! Nouns that follow a count in messages.

/// Returns `one` when `count` is 1, else `many`.
pub fn plural<'a, N: PartialEq + From<u8>>(count: N, one: &'a str, many: &'a str) -> &'a str {
    if count == N::from(1) { one } else { many }
}
