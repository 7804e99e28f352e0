//! Input that looks like real work and is the same in every run.

/// Numbers that look random and are the same in every run (xorshift).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// The next one, below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Text like that of a session about code: words, signs, lines, some Chinese.
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
