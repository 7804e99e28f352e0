//! The values of a JSON text, found in one pass: the objects of a request hold most of it, so each
//! further pass costs as much.

use std::ops::Range;

use super::json::{Cursor, string_equals};

/// Maximum nesting of arrays and objects.
const MAX_DEPTH: usize = 128;

/// The text is nested too deeply.
#[derive(Debug)]
pub struct TooDeep;

/// The values of a valid JSON text, in their order. A member of an object is two values: its key, and its
/// value.
#[derive(Debug, Default)]
pub struct Values(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    range: Range<usize>,
    /// Number of the next value that is not in this one.
    next: usize,
}

impl Values {
    /// Number of the value that the text is.
    pub const ALL: usize = 0;

    /// Finds the values of a text.
    ///
    /// # Errors
    /// If it is nested too deeply.
    pub fn find(text: &str) -> Result<Self, TooDeep> {
        let mut found: Vec<Entry> = Vec::new();
        let mut open = Vec::new();
        let mut cursor = Cursor::new(text);
        while let Some(byte) = cursor.peek() {
            match byte {
                b',' | b':' => {
                    cursor.enter(byte);
                }
                b'}' | b']' => {
                    cursor.enter(byte);
                    let next = found.len();
                    if let Some(entry) = open.pop().and_then(|at: usize| found.get_mut(at)) {
                        entry.range.end = cursor.position();
                        entry.next = next;
                    }
                }
                b'{' | b'[' => {
                    if open.len() >= MAX_DEPTH {
                        return Err(TooDeep);
                    }
                    open.push(found.len());
                    let start = cursor.position();
                    cursor.enter(byte);
                    found.push(Entry {
                        range: start..text.len(),
                        next: found.len() + 1,
                    });
                }
                _ => {
                    let range = cursor.skip_value();
                    let next = found.len() + 1;
                    found.push(Entry { range, next });
                }
            }
        }
        Ok(Self(found))
    }

    /// Returns the place of a value.
    pub fn range(&self, value: usize) -> Range<usize> {
        self.0.get(value).map_or(0..0, |entry| entry.range.clone())
    }

    /// Returns the text of a value.
    pub fn text<'a>(&self, text: &'a str, value: usize) -> &'a str {
        text.get(self.range(value)).unwrap_or_default()
    }

    /// Returns the values in an array; the keys and values of an object.
    pub fn inside(&self, value: usize) -> impl Iterator<Item = usize> {
        let end = self.0.get(value).map_or(0, |entry| entry.next);
        let next = |at: &usize| self.0.get(*at).map(|entry| entry.next);
        std::iter::successors(Some(value + 1), next).take_while(move |at| *at < end)
    }

    /// Returns the keys and values of an object. Any other value has none.
    pub fn members(&self, text: &str, object: usize) -> impl Iterator<Item = (usize, usize)> {
        let is_object = self.text(text, object).starts_with('{');
        let mut inside = self.inside(object);
        let member = move || is_object.then(|| Some((inside.next()?, inside.next()?)))?;
        std::iter::from_fn(member)
    }

    /// Returns a member of an object; the last one if there are several.
    pub fn member(&self, text: &str, object: usize, name: &str) -> Option<usize> {
        let members = self.members(text, object);
        let named = members.filter(|(key, _)| string_equals(self.text(text, *key), name));
        named.last().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_where_they_are() {
        let text = r#" {"a" : [1, {"x": "]}\""}, []] ,"b":null, "a":-1.5e3, "c":{}} "#;
        let values = Values::find(text).unwrap();
        let texts = |of: usize| -> Vec<&str> {
            values.inside(of).map(|at| values.text(text, at)).collect()
        };
        assert_eq!(values.text(text, Values::ALL), text.trim());
        assert_eq!(
            texts(Values::ALL),
            [
                "\"a\"",
                r#"[1, {"x": "]}\""}, []]"#,
                "\"b\"",
                "null",
                "\"a\"",
                "-1.5e3",
                "\"c\"",
                "{}",
            ]
        );
        let array = values.inside(Values::ALL).nth(1).unwrap();
        assert_eq!(texts(array), ["1", r#"{"x": "]}\""}"#, "[]"]);
        assert!(values.members(text, array).next().is_none());
        let a = values.member(text, Values::ALL, "a").unwrap();
        assert_eq!(values.text(text, a), "-1.5e3");
        assert_eq!(values.member(text, Values::ALL, "d"), None);
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Values::find(&deep(MAX_DEPTH)).is_ok());
        assert!(Values::find(&deep(MAX_DEPTH + 1)).is_err());
    }

    #[test]
    fn invalid_json_does_not_panic() {
        for text in ["", "{", "]", "{\"a\":", "[}", "\"", "{,,}", "}{", "1 2"] {
            let values = Values::find(text).unwrap();
            values.member(text, Values::ALL, "a");
        }
    }
}
