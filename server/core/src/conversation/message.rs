//! What decides in a message: its role, the kinds of its blocks, where their
//! texts and tool ids stand.

use std::{
    borrow::Cow,
    ops::{Deref, Range},
    sync::Arc,
};

use serde_json::value::RawValue;

use super::json_scan::{Cursor, decode, string_equals};

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
pub struct Outline(Arc<Layout>);

/// What decides in a message, by where it stands in it.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) role: Role,
    pub(crate) content: Content,
}

impl Outline {
    /// Looks at a message; `None` when it is no object.
    pub fn scan(message: &RawValue) -> Option<Self> {
        Message::scan(message.get()).map(|message| message.outline)
    }
}

impl Deref for Message<'_> {
    type Target = Layout;

    fn deref(&self) -> &Layout {
        &self.outline.0
    }
}

/// The content of a message, by where it stands in it.
#[derive(Debug)]
pub(crate) enum Content {
    /// Absent or `null`; the place of the `null`.
    Empty(Option<Range<usize>>),
    /// A string.
    Text(Range<usize>),
    /// A list of blocks.
    Blocks {
        range: Range<usize>,
        blocks: Vec<Block>,
    },
    /// Something else.
    Other(Range<usize>),
}

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Text,
    ToolUse,
    ToolResult,
    Image,
    Other,
}

/// A content block, by where it stands in the message.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) range: Range<usize>,
    pub(crate) kind: BlockKind,
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
        let mut layout = Layout {
            role: Role::Other,
            content: Content::Empty(None),
        };
        while let Some(key) = cursor.next_member() {
            if string_equals(key, "role") {
                let role = text.get(cursor.skip_value()).unwrap_or_default();
                layout.role = if string_equals(role, "user") {
                    Role::User
                } else if string_equals(role, "assistant") {
                    Role::Assistant
                } else {
                    Role::Other
                };
            } else if string_equals(key, "content") {
                layout.content = content(text, &mut cursor);
            } else {
                cursor.skip_value();
            }
        }
        Some(Self {
            text,
            outline: Outline(Arc::new(layout)),
        })
    }

    /// A message that was looked at before.
    pub(crate) fn with_outline(text: &'a str, outline: &Outline) -> Self {
        Self {
            text,
            outline: outline.clone(),
        }
    }

    /// What stands at a place of this message.
    pub(crate) fn slice(&self, range: &Range<usize>) -> &'a str {
        self.text.get(range.clone()).unwrap_or_default()
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
        let string = self.slice(block.text.as_ref()?);
        (string.len() > 2).then_some(string)
    }

    /// The tool id of a block, unless it is empty.
    pub(crate) fn id(&self, block: &Block) -> Option<Cow<'a, str>> {
        let id = decode(self.slice(block.id.as_ref()?));
        (!id.is_empty()).then_some(id)
    }
}

fn content(text: &str, cursor: &mut Cursor<'_>) -> Content {
    match cursor.peek() {
        Some(b'[') => {}
        Some(b'"') => return Content::Text(cursor.skip_value()),
        Some(b'n') => return Content::Empty(Some(cursor.skip_value())),
        _ => return Content::Other(cursor.skip_value()),
    }
    let start = cursor.position();
    cursor.enter(b'[');
    let mut blocks = Vec::new();
    while cursor.next_item(b']') {
        blocks.push(block(text, cursor));
    }
    Content::Blocks {
        range: start..cursor.position(),
        blocks,
    }
}

fn block(text: &str, cursor: &mut Cursor<'_>) -> Block {
    cursor.peek();
    let start = cursor.position();
    let mut block = Block {
        range: start..start,
        kind: BlockKind::Other,
        text: None,
        id: None,
        data: None,
    };
    if !cursor.enter(b'{') {
        block.range = cursor.skip_value();
        return block;
    }
    let [mut own, mut inner, mut id, mut result_of] = [const { None }; 4];
    while let Some(key) = cursor.next_member() {
        if string_equals(key, "type") {
            block.kind = kind(text.get(cursor.skip_value()).unwrap_or_default());
        } else if string_equals(key, "text") {
            own = string(cursor);
        } else if string_equals(key, "content") {
            inner = first_text(text, cursor);
        } else if string_equals(key, "id") {
            id = string(cursor);
        } else if string_equals(key, "tool_use_id") {
            result_of = string(cursor);
        } else if string_equals(key, "source") {
            block.data = image_data(text, cursor);
        } else {
            cursor.skip_value();
        }
    }
    block.range = start..cursor.position();
    match block.kind {
        BlockKind::Text => block.text = own,
        BlockKind::ToolUse => block.id = id,
        BlockKind::ToolResult => (block.text, block.id) = (inner, result_of),
        BlockKind::Image | BlockKind::Other => {}
    }
    block
}

fn kind(string: &str) -> BlockKind {
    [
        ("text", BlockKind::Text),
        ("tool_use", BlockKind::ToolUse),
        ("tool_result", BlockKind::ToolResult),
        ("image", BlockKind::Image),
    ]
    .into_iter()
    .find(|(name, _)| string_equals(string, name))
    .map_or(BlockKind::Other, |(_, kind)| kind)
}

/// Passes over a value; where it was, if it is a string.
fn string(cursor: &mut Cursor<'_>) -> Option<Range<usize>> {
    let is_string = cursor.peek() == Some(b'"');
    let place = cursor.skip_value();
    is_string.then_some(place)
}

/// Passes over the content of a tool result; the string its first block says,
/// if that is a text block.
fn first_text(text: &str, cursor: &mut Cursor<'_>) -> Option<Range<usize>> {
    if cursor.peek() != Some(b'[') {
        cursor.skip_value();
        return None;
    }
    cursor.enter(b'[');
    let mut first = None;
    let mut is_first = true;
    while cursor.next_item(b']') {
        if !is_first || !cursor.enter(b'{') {
            cursor.skip_value();
            is_first = false;
            continue;
        }
        is_first = false;
        let mut is_text = false;
        while let Some(key) = cursor.next_member() {
            if string_equals(key, "type") {
                is_text =
                    kind(text.get(cursor.skip_value()).unwrap_or_default()) == BlockKind::Text;
            } else if string_equals(key, "text") {
                first = string(cursor);
            } else {
                cursor.skip_value();
            }
        }
        first = first.filter(|_| is_text);
    }
    first
}

/// Passes over the source of an image; its data, if that is there as base64.
fn image_data(text: &str, cursor: &mut Cursor<'_>) -> Option<Range<usize>> {
    if !cursor.enter(b'{') {
        cursor.skip_value();
        return None;
    }
    let mut data = None;
    let mut is_base64 = false;
    while let Some(key) = cursor.next_member() {
        if string_equals(key, "type") {
            is_base64 = string_equals(text.get(cursor.skip_value()).unwrap_or_default(), "base64");
        } else if string_equals(key, "data") {
            data = string(cursor);
        } else {
            cursor.skip_value();
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
                (BlockKind::Text, Some("\"one\""), None),
                (BlockKind::Other, None, None),
                (BlockKind::ToolResult, Some("\"two\""), id("t1")),
                (BlockKind::ToolResult, None, None),
                (BlockKind::ToolResult, None, None),
                (BlockKind::ToolUse, None, id("t2")),
                (BlockKind::Image, None, None),
                (BlockKind::Image, None, None),
                (BlockKind::Text, None, None),
            ]
        );
        let data = |index: usize| message.blocks()[index].data.clone();
        assert_eq!(data(6).map(|place| message.slice(&place)), Some("\"AAAA\""));
        assert_eq!(data(7), None);
        assert_eq!(message.slice(&message.blocks()[1].range), "5");
        assert!(message.slice(&message.blocks()[8].range).ends_with("\"\"}"));
    }

    #[test]
    fn content_that_is_no_list() {
        let of = |text| Message::scan(text).unwrap();
        let text = of(r#"{"content":"x"}"#);
        assert!(matches!(text.content, Content::Text(_)));
        assert!(matches!(of("{}").content, Content::Empty(None)));
        let null = of(r#"{"content":null}"#);
        assert!(matches!(null.content, Content::Empty(Some(_))));
        let object = of(r#"{"content":{}}"#);
        assert!(matches!(object.content, Content::Other(_)));
        assert!(Message::scan("[]").is_none());
    }
}
