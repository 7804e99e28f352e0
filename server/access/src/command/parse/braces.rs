//! Statements of PowerShell: `if (…) {…} else {…}`, `foreach ($f in …) {…}`. A POSIX shell does not run them.

use std::ops::Range;

use super::{ParseError, Parser};
use crate::command::syntax::Command;

impl Parser<'_> {
    /// Parses a statement with its conditions and blocks. `None` if it is one of a POSIX shell.
    pub(super) fn braced(&mut self, keyword: &str) -> Result<Option<Command>, ParseError> {
        let mut body = Vec::new();
        let mut next = Some(self.at + keyword.len());
        let mut end = None;
        while let Some(at) = next.take() {
            let condition = self.bracketed(at, '(');
            let after = condition.as_ref().map_or(at, |inner| inner.end + 1);
            let block = self.bracketed(after, '{');
            let (Some(block), true) = (block, condition.is_some() || end.is_some()) else {
                break;
            };
            match condition {
                Some(head) if keyword == "foreach" => body.extend(self.for_each(head, &block)?),
                condition => {
                    for part in condition.into_iter().chain([block.clone()]) {
                        body.extend(self.part(part)?);
                    }
                }
            }
            let rest = self.text[block.end + 1..].trim_start();
            let at = self.text.len() - rest.len();
            next = ["elseif", "else"]
                .iter()
                .find(|word| rest.starts_with(**word))
                .map(|word| at + word.len());
            end = Some(block.end + 1);
        }
        self.at = end.unwrap_or(self.at);
        Ok(end.map(|_| Command::Group {
            body,
            redirects: Vec::new(),
            is_subshell: false,
        }))
    }

    /// Parses the loop as `LIST | ForEach-Object {…}`, which is checked with what the list prints.
    fn for_each(
        &mut self,
        head: Range<usize>,
        block: &Range<usize>,
    ) -> Result<Vec<Command>, ParseError> {
        let (head, block) = (&self.text[head], &self.text[block.clone()]);
        let (name, list) = head.split_once(" in ").unwrap_or_default();
        let name = name.trim();
        if !name.starts_with('$') {
            return Err("a compound command is not finished");
        }
        let block = block.replace(name, "$_");
        let statements: Vec<&str> = match block.contains('{') {
            true => vec![&block],
            false => block.split([';', '\n']).collect(),
        };
        let statements = statements.into_iter().filter(|one| !one.trim().is_empty());
        let pipelines = statements.map(|one| format!("{list} | ForEach-Object {{ {one} }}\n"));
        let text = list.to_owned() + "\n" + &pipelines.collect::<String>();
        let mut inner = Parser::new(&text, self.depth);
        inner.nested(|parser| parser.list(&[]))
    }

    /// Parses a part of the text as a list.
    fn part(&self, part: Range<usize>) -> Result<Vec<Command>, ParseError> {
        let mut inner = Parser {
            at: part.start,
            place: self.place,
            ..Parser::new(&self.text[..part.end], self.depth)
        };
        inner.nested(|parser| parser.list(&[]))
    }

    /// Returns what is in the brackets that open at `at`, after blanks.
    fn bracketed(&self, at: usize, open: char) -> Option<Range<usize>> {
        let rest = self.text[at..].trim_start();
        let start = self.text.len() - rest.len() + 1;
        if !rest.starts_with(open) {
            return None;
        }
        let mut depth = 0_usize;
        let mut quote = None;
        for (offset, c) in rest.char_indices() {
            match (c, quote) {
                (c, Some(open)) if c == open => quote = None,
                (_, Some(_)) => {}
                ('\'' | '"', None) => quote = Some(c),
                ('(' | '{', None) => depth += 1,
                (')' | '}', None) => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(start..start - 1 + offset);
            }
        }
        None
    }
}
