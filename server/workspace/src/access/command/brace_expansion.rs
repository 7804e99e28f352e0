//! Brace expansion of shell words.

/// Maximum words from one expansion.
const MAX_WORDS: usize = 256;

/// Expands `{a,b}` and `{1..3}`. Quoted braces and those of `${...}` are kept. Returns the word
/// unchanged if the expansion would be too large.
pub(super) fn expand_braces(raw: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut todo = vec![raw.to_owned()];
    while let Some(word) = todo.pop() {
        match expand_first(&word) {
            Some(alternatives) => todo.extend(alternatives.into_iter().rev()),
            None => done.push(word),
        }
        if todo.len() + done.len() > MAX_WORDS {
            return vec![raw.to_owned()];
        }
    }
    done
}

/// Expands the first brace expression of a word.
fn expand_first(word: &str) -> Option<Vec<String>> {
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut quote: Option<char> = None;
    let mut chars = word.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some('\''), '\'') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                chars.next();
            }
            (Some('"'), '"') => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '$') if chars.peek().is_some_and(|(_, c)| *c == '{') => {
                // A parameter expansion; its closing brace must not end a brace expression.
                chars.next();
                let mut depth = 1;
                for (_, c) in chars.by_ref() {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    if depth == 0 {
                        break;
                    }
                }
            }
            (None, '{') => open.push((at, Vec::new())),
            (None, ',') => {
                if let Some((_, commas)) = open.last_mut() {
                    commas.push(at);
                }
            }
            (None, '}') => {
                let Some((start, commas)) = open.pop() else {
                    continue;
                };
                let (before, after) = (&word[..start], &word[at + 1..]);
                let members = if commas.is_empty() {
                    sequence(&word[start + 1..at])
                } else {
                    let mut edges = vec![start];
                    edges.extend(commas);
                    edges.push(at);
                    let members = edges
                        .windows(2)
                        .map(|pair| word[pair[0] + 1..pair[1]].to_owned());
                    Some(members.collect())
                };
                if let Some(members) = members {
                    let members: Vec<String> = members;
                    return Some(
                        members
                            .iter()
                            .map(|member| format!("{before}{member}{after}"))
                            .collect(),
                    );
                }
            }
            _ => {}
        }
    }
    None
}

/// Expands `1..9` or `a..e`.
fn sequence(inside: &str) -> Option<Vec<String>> {
    let (from, to) = inside.split_once("..")?;
    let to = to.split("..").next()?;
    if let (Ok(from), Ok(to)) = (from.parse::<i32>(), to.parse::<i32>()) {
        let (low, high) = (from.min(to), from.max(to));
        if i64::from(high) - i64::from(low) > 200 {
            return None;
        }
        return Some((low..=high).map(|number| number.to_string()).collect());
    }
    let mut letters = [from, to].into_iter().map(|end| {
        let mut chars = end.chars();
        let letter = chars.next().filter(char::is_ascii)?;
        chars.next().is_none().then_some(letter)
    });
    let (from, to) = (letters.next()??, letters.next()??);
    Some((from.min(to)..=from.max(to)).map(String::from).collect())
}
