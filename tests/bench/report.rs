//! What the benchmarks share: reproducible input, and lines of a table.

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

/// The figures of one kind of work.
#[derive(Default)]
pub(crate) struct Series(pub(crate) Vec<f64>);

impl Series {
    /// The figure in the middle.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    /// The smallest and the largest.
    pub(crate) fn spread(&self) -> String {
        let low = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self.0.iter().copied().fold(0.0, f64::max);
        format!("{low:.2}..{high:.2}")
    }
}

/// Prints a line of the table. `targets`: the ratio that must be reached, and the one aimed at.
pub(crate) fn row(
    what: &str,
    ours: &Series,
    peer: &str,
    theirs: &Series,
    targets: Option<(f64, f64)>,
) {
    let ratio = ours.median() / theirs.median();
    let verdict = match targets {
        None => String::new(),
        Some((_, aim)) if ratio <= aim => format!("aim {aim} reached"),
        Some((must, _)) if ratio <= must => format!("must {must} reached"),
        Some((must, _)) => format!("must {must} MISSED"),
    };
    println!(
        "{what:<36} {:>8.2} ({}) | {peer:<23} {:>8.2} ({}) | {ratio:.4} {verdict}",
        ours.median(),
        ours.spread(),
        theirs.median(),
        theirs.spread(),
    );
}
