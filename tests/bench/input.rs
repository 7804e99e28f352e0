//! Realistic input that is the same in every run.

/// Pseudorandom numbers with a fixed seed (xorshift).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// Returns the next number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Text like that of a session about code: words, punctuation, lines, some Chinese.
pub(crate) fn text(numbers: &mut Numbers, bytes: usize) -> String {
    const WORDS: &[&str] = &[
        "fn",
        "let",
        "value",
        "return",
        "error",
        "state",
        "parse",
        "token",
        "索引",
        "文件",
        "if",
        "else",
        "match",
        "self",
        "config",
        "\"quoted\"",
        "path/to/file",
        "{",
        "}",
        "(",
        ");",
        "\n",
        "the",
        "of",
        "and",
        "buffer",
        "readable",
        "request_id",
        "0x1f",
        "::<Vec<_>>",
        "\t",
    ];
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        text.push_str(WORDS[numbers.below(WORDS.len())]);
        text.push(' ');
    }
    text
}
