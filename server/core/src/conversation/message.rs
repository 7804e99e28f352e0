//! What decides in a message: its role, the kinds of its blocks, where their
//! texts and tool ids stand.

use std::{
    borrow::Cow,
    ops::{Deref, Range},
    sync::Arc,
};

use serde_json::value::RawValue;

use super::json::{Cursor, decode, says};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
    Other,
}

/// A message, looked at but not built.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    /// As it was written.
    pub(crate) text: &'a str,
    outline: Outline,
}

/// What was seen of a message. Whoever keeps a message can keep this with it:
/// then it costs nothing to look at it again.
#[derive(Clone, Debug)]
pub struct Outline(Arc<Shape>);

/// What decides in a message, by where it stands in it.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) role: Role,
    pub(crate) content: Content,
}

impl Outline {
    /// Looks at a message; `None` when it is no object.
    pub fn at(message: &RawValue) -> Option<Self> {
        Message::scan(message.get()).map(|message| message.outline)
    }
}

impl Deref for Message<'_> {
    type Target = Shape;

    fn deref(&self) -> &Shape {
        &self.outline.0
    }
}

/// The content of a message, by where it stands in it.
#[derive(Debug)]
pub(crate) enum Content {
    /// Absent or `null`; the place of the `null`.
    Nothing(Option<Range<usize>>),
    /// A string.
    Text(Range<usize>),
    /// A list of blocks.
    Blocks {
        place: Range<usize>,
        blocks: Vec<Block>,
    },
    /// Something else.
    Other(Range<usize>),
}

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    ToolUse,
    ToolResult,
    Image,
    Other,
}

/// A content block, by where it stands in the message.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) place: Range<usize>,
    pub(crate) kind: Kind,
    /// The string a text block says, or the first block of a tool result.
    pub(crate) text: Option<Range<usize>>,
    /// The string that is the id of a tool use, or of the one a result is for.
    pub(crate) id: Option<Range<usize>>,
    /// The string that is the data of an image.
    pub(crate) data: Option<Range<usize>>,
}

impl<'a> Message<'a> {
    /// Looks at a message; `None` when it is no object.
    pub(crate) fn scan(text: &'a str) -> Option<Self> {
        let mut cursor = Cursor::new(text);
        if !cursor.enter(b'{') {
            return None;
        }
        let mut shape = Shape {
            role: Role::Other,
            content: Content::Nothing(None),
        };
        while let Some(key) = cursor.member() {
            if says(key, "role") {
                let role = text.get(cursor.value()).unwrap_or_default();
                shape.role = if says(role, "user") {
                    Role::User
                } else if says(role, "assistant") {
                    Role::Assistant
                } else {
                    Role::Other
                };
            } else if says(key, "content") {
                shape.content = content(text, &mut cursor);
            } else {
                cursor.value();
            }
        }
        Some(Self {
            text,
            outline: Outline(Arc::new(shape)),
        })
    }

    /// A message that was looked at before.
    pub(crate) fn seen(text: &'a str, outline: &Outline) -> Self {
        Self {
            text,
            outline: outline.clone(),
        }
    }

    /// What stands at a place of this message.
    pub(crate) fn at(&self, place: &Range<usize>) -> &'a str {
        self.text.get(place.clone()).unwrap_or_default()
    }

    /// The blocks; none when the content is no list.
    pub(crate) fn blocks(&self) -> &[Block] {
        match &self.content {
            Content::Blocks { blocks, .. } => blocks,
            _ => &[],
        }
    }

    /// The JSON string a block says, unless it says nothing.
    pub(crate) fn string(&self, block: &Block) -> Option<&'a str> {
        let string = self.at(block.text.as_ref()?);
        (string.len() > 2).then_some(string)
    }

    /// The tool id of a block, unless it is empty.
    pub(crate) fn id(&self, block: &Block) -> Option<Cow<'a, str>> {
        let id = decode(self.at(block.id.as_ref()?));
        (!id.is_empty()).then_some(id)
    }
}

fn content(text: &str, cursor: &mut Cursor<'_>) -> Content {
    match cursor.peek() {
        Some(b'[') => {}
        Some(b'"') => return Content::Text(cursor.value()),
        Some(b'n') => return Content::Nothing(Some(cursor.value())),
        _ => return Content::Other(cursor.value()),
    }
    let start = cursor.place();
    cursor.enter(b'[');
    let mut blocks = Vec::new();
    while cursor.item(b']') {
        blocks.push(block(text, cursor));
    }
    Content::Blocks {
        place: start..cursor.place(),
        blocks,
    }
}

fn block(text: &str, cursor: &mut Cursor<'_>) -> Block {
    cursor.peek();
    let start = cursor.place();
    let mut block = Block {
        place: start..start,
        kind: Kind::Other,
        text: None,
        id: None,
        data: None,
    };
    if !cursor.enter(b'{') {
        block.place = cursor.value();
        return block;
    }
    let [mut own, mut inner, mut id, mut result_of] = [const { None }; 4];
    while let Some(key) = cursor.member() {
        if says(key, "type") {
            block.kind = kind(text.get(cursor.value()).unwrap_or_default());
        } else if says(key, "text") {
            own = string(cursor);
        } else if says(key, "content") {
            inner = first_text(text, cursor);
        } else if says(key, "id") {
            id = string(cursor);
        } else if says(key, "tool_use_id") {
            result_of = string(cursor);
        } else if says(key, "source") {
            block.data = image_data(text, cursor);
        } else {
            cursor.value();
        }
    }
    block.place = start..cursor.place();
    match block.kind {
        Kind::Text => block.text = own,
        Kind::ToolUse => block.id = id,
        Kind::ToolResult => (block.text, block.id) = (inner, result_of),
        Kind::Image | Kind::Other => {}
    }
    block
}

fn kind(string: &str) -> Kind {
    [
        ("text", Kind::Text),
        ("tool_use", Kind::ToolUse),
        ("tool_result", Kind::ToolResult),
        ("image", Kind::Image),
    ]
    .into_iter()
    .find(|(name, _)| says(string, name))
    .map_or(Kind::Other, |(_, kind)| kind)
}

/// Passes over a value; where it was, if it is a string.
fn string(cursor: &mut Cursor<'_>) -> Option<Range<usize>> {
    let is_string = cursor.peek() == Some(b'"');
    let place = cursor.value();
    is_string.then_some(place)
}

/// Passes over the content of a tool result; the string its first block says,
/// if that is a text block.
fn first_text(text: &str, cursor: &mut Cursor<'_>) -> Option<Range<usize>> {
    if cursor.peek() != Some(b'[') {
        cursor.value();
        return None;
    }
    cursor.enter(b'[');
    let mut first = None;
    let mut is_first = true;
    while cursor.item(b']') {
        if !is_first || !cursor.enter(b'{') {
            cursor.value();
            is_first = false;
            continue;
        }
        is_first = false;
        let mut is_text = false;
        while let Some(key) = cursor.member() {
            if says(key, "type") {
                is_text = kind(text.get(cursor.value()).unwrap_or_default()) == Kind::Text;
            } else if says(key, "text") {
                first = string(cursor);
            } else {
                cursor.value();
            }
        }
        first = first.filter(|_| is_text);
    }
    first
}

/// Passes over the source of an image; its data, if that is there as base64.
fn image_data(text: &str, cursor: &mut Cursor<'_>) -> Option<Range<usize>> {
    if !cursor.enter(b'{') {
        cursor.value();
        return None;
    }
    let mut data = None;
    let mut is_base64 = false;
    while let Some(key) = cursor.member() {
        if says(key, "type") {
            is_base64 = says(text.get(cursor.value()).unwrap_or_default(), "base64");
        } else if says(key, "data") {
            data = string(cursor);
        } else {
            cursor.value();
        }
    }
    data.filter(|_| is_base64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_their_texts() {
        let text = r#"{"x":{"role":"assistant"},"ro\u006ce":"user","content":[
            {"text":"one","type":"text"}, 5,
            {"type":"tool_result","content":[{"text":"two","type":"text"},{"type":"text","text":"no"}],"tool_use_id":"t1","id":"no"},
            {"type":"tool_result","content":[{"type":"image"},{"type":"text","text":"no"}]},
            {"type":"tool_result","content":"no","tool_use_id":7},
            {"type":"tool_use","id":"t2","input":{"type":"text","text":"no"}},
            {"type":"image","source":{"data":"AAAA","type":"base64"}},
            {"type":"image","source":{"data":"AAAA","type":"url"}},
            {"type":"text","text":""}
        ]}"#;
        let message = Message::scan(text).unwrap();
        assert_eq!(message.role, Role::User);
        let seen: Vec<_> = message
            .blocks()
            .iter()
            .map(|block| (block.kind, message.string(block), message.id(block)))
            .collect();
        let id = |id| Some(Cow::Borrowed(id));
        assert_eq!(
            seen,
            [
                (Kind::Text, Some("\"one\""), None),
                (Kind::Other, None, None),
                (Kind::ToolResult, Some("\"two\""), id("t1")),
                (Kind::ToolResult, None, None),
                (Kind::ToolResult, None, None),
                (Kind::ToolUse, None, id("t2")),
                (Kind::Image, None, None),
                (Kind::Image, None, None),
                (Kind::Text, None, None),
            ]
        );
        let data = |index: usize| message.blocks()[index].data.clone();
        assert_eq!(data(6).map(|place| message.at(&place)), Some("\"AAAA\""));
        assert_eq!(data(7), None);
        assert_eq!(message.at(&message.blocks()[1].place), "5");
        assert!(message.at(&message.blocks()[8].place).ends_with("\"\"}"));
    }

    #[test]
    fn content_that_is_no_list() {
        let of = |text| Message::scan(text).unwrap();
        let text = of(r#"{"content":"x"}"#);
        assert!(matches!(text.content, Content::Text(_)));
        assert!(matches!(of("{}").content, Content::Nothing(None)));
        let null = of(r#"{"content":null}"#);
        assert!(matches!(null.content, Content::Nothing(Some(_))));
        let object = of(r#"{"content":{}}"#);
        assert!(matches!(object.content, Content::Other(_)));
        assert!(Message::scan("[]").is_none());
    }
}
