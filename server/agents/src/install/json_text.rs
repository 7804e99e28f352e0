//! Edits of JSON text that keep the layout of everything else.

use jsonc_parser::{
    ast::{Array, Object, Value as Node},
    common::{Range, Ranged},
};
use serde_json::Value;

/// Returns whether something but white space and commas is around the only child.
pub(super) fn has_comment(text: &str, container: &Container) -> bool {
    let [child] = container.children.as_slice() else {
        return true;
    };
    let before = &text[container.whole.start..child.start];
    let after = &text[child.end..container.whole.end];
    before.contains('/') || after.contains('/')
}

/// Byte ranges of an object or array, and of what is in it.
pub(super) struct Container {
    whole: Range,
    pub(super) children: Vec<Range>,
}

impl Container {
    pub(super) fn of_object(object: &Object<'_>) -> Self {
        Self {
            whole: object.range(),
            children: object.properties.iter().map(Ranged::range).collect(),
        }
    }

    pub(super) fn of_array(array: &Array<'_>) -> Self {
        Self {
            whole: array.range(),
            children: array.elements.iter().map(Ranged::range).collect(),
        }
    }

    /// Position of the closing bracket.
    fn close(&self) -> usize {
        self.whole.end - 1
    }

    pub(super) fn is_object(&self, text: &str) -> bool {
        text[self.whole.start..].starts_with('{')
    }

    fn is_multiline(&self, text: &str) -> bool {
        text[self.whole.start..self.whole.end].contains('\n')
    }
}

/// Inserts a value, after `key`, behind the last child of a container.
pub(super) fn insert(text: &str, container: &Container, value: &Value, key: &str) -> String {
    let newline = newline(text);
    let outer = line_indent(text, container.whole.start);
    let unit = indent_unit(text);
    let Some(last) = container.children.last() else {
        let indent = format!("{outer}{unit}");
        let entry = pretty(value, &indent, &unit, newline);
        let open = container.whole.start + 1;
        let (head, tail) = text.split_at(open);
        // Keep a closing bracket that has its own line.
        let inner = &text[open..container.close()];
        let end = if inner.contains('\n') {
            String::new()
        } else {
            format!("{newline}{outer}")
        };
        return format!("{head}{newline}{indent}{key}{entry}{end}{tail}");
    };
    let comma = comma_after(text, last.end, container.close());
    let behind = comma.map_or(last.end, |comma| comma + 1);
    let trailing = if comma.is_some() { "," } else { "" };
    let between = if comma.is_some() { "" } else { "," };
    if !container.is_multiline(text) {
        let entry = value.to_string();
        let (head, tail) = text.split_at(behind);
        return format!("{head}{between} {key}{entry}{trailing}{tail}");
    }
    let indent = line_indent(text, container.children[0].start);
    let indent = if indent.len() > outer.len() {
        indent
    } else {
        format!("{outer}{unit}")
    };
    let entry = pretty(value, &indent, &unit, newline);
    // Comments behind the last child stay with it.
    let rest = &text[behind..container.close()];
    let at = behind + rest.trim_end().len();
    let (head, middle, tail) = (&text[..behind], &text[behind..at], &text[at..]);
    format!("{head}{between}{middle}{newline}{indent}{key}{entry}{trailing}{tail}")
}

/// Replaces a value. An equal one stays as it is written.
pub(super) fn replace(text: &str, node: &Node<'_>, value: &Value) -> String {
    if Value::from(node.clone()) == *value {
        return text.to_owned();
    }
    let range = node.range();
    let indent = line_indent(text, range.start);
    let entry = pretty(value, &indent, &indent_unit(text), newline(text));
    format!("{}{entry}{}", &text[..range.start], &text[range.end..])
}

/// Removes a child, the white space before it, and one comma.
pub(super) fn cut(text: &str, container: &Container, index: usize) -> String {
    let child = &container.children[index];
    let next = container.children.get(index + 1);
    let limit = next.map_or(container.close(), |next| next.start);
    let comma = comma_after(text, child.end, limit);
    let end = comma.map_or(child.end, |comma| comma + 1);
    let before = &text[..child.start];
    let mut start = before.trim_end().len();
    let follows_line_comment = before[start..].contains('\n')
        && before[..start]
            .lines()
            .next_back()
            .is_some_and(|line| line.contains("//"));
    let rest = text[end..].trim_start_matches([' ', '\t', '\r']);
    if follows_line_comment && !rest.starts_with('\n') {
        // A line comment must not swallow what follows.
        start += before[start..].find('\n').map_or(0, |newline| newline + 1);
    }
    let previous = index
        .checked_sub(1)
        .map(|index| container.children[index].end);
    match previous {
        // The comma before it separated it from the previous child.
        Some(previous) if comma.is_none() => match comma_after(text, previous, child.start) {
            Some(separator) => {
                let (head, middle) = (
                    &text[..separator],
                    &text[separator + 1..start.max(separator + 1)],
                );
                format!("{head}{middle}{}", &text[end..])
            }
            None => format!("{}{}", &text[..start], &text[end..]),
        },
        _ => format!("{}{}", &text[..start], &text[end..]),
    }
}

/// Returns the position of a comma between two positions, outside comments.
fn comma_after(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut position = from;
    while position < to {
        let rest = &text[position..to];
        if rest.starts_with("//") {
            position += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            position += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else if rest.starts_with(',') {
            return Some(position);
        } else {
            position += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    None
}

/// Returns the white space at the beginning of the line with a position.
fn line_indent(text: &str, position: usize) -> String {
    let line = text[..position]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    let line = &text[line..];
    line[..line.len() - line.trim_start_matches([' ', '\t']).len()].to_owned()
}

/// Returns the indentation of the first indented line, else two spaces.
fn indent_unit(text: &str) -> String {
    let mut indents = text.lines().map(|line| {
        let rest = line.trim_start_matches([' ', '\t']);
        (&line[..line.len() - rest.len()], rest)
    });
    indents
        .find(|(indent, rest)| !indent.is_empty() && rest.starts_with('"'))
        .map_or("  ", |(indent, _)| indent)
        .to_owned()
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Formats a value whose first line follows `indent`.
fn pretty(value: &Value, indent: &str, unit: &str, newline: &str) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    if serde::Serialize::serialize(value, &mut serializer).is_err() {
        return value.to_string();
    }
    let text = String::from_utf8(out).unwrap_or_default();
    text.replace('\n', &format!("{newline}{indent}"))
}
