//! Scans a message for its role, the kinds of its blocks, and the ranges of texts and tool ids.

use std::{
    borrow::Cow,
    ops::{Deref, Range},
    sync::Arc,
};

use serde_json::value::RawValue;

use super::json::{Cursor, decode, string_equals};

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Any other.
    Other,
}

/// A scanned message.
#[derive(Debug)]
pub struct Message<'a> {
    /// The message as written.
    pub text: &'a str,
    outline: Outline,
}

/// The scan result of a message. It can be stored with the message to avoid a second scan.
#[derive(Clone, Debug)]
pub struct Outline(Arc<Layout>);

/// Ranges and kinds found in a message.
#[derive(Debug)]
pub struct Layout {
    /// Author.
    pub role: Role,
    /// Content.
    pub content: Content,
}

impl Outline {
    /// Scans a message. Returns `None` if it is not an object.
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

/// The content of a message, by range.
#[derive(Debug)]
pub enum Content {
    /// Absent or `null`; the range of the `null`.
    Empty(Option<Range<usize>>),
    /// A string.
    Text(Range<usize>),
    /// A list of blocks.
    Blocks {
        /// Range of the list.
        range: Range<usize>,
        /// Its elements.
        blocks: Vec<Block>,
    },
    /// Any other value.
    Other(Range<usize>),
}

/// Kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// A text.
    Text,
    /// A call of a tool that the client runs.
    ToolUse,
    /// The result of such a call.
    ToolResult,
    /// A call of a tool that the provider runs, such as `server_tool_use`.
    ServerToolUse,
    /// The result of such a call, such as `web_search_tool_result`. Providers write both into
    /// messages of the assistant.
    ServerToolResult,
    /// An image.
    Image,
    /// Any other block, which stays as it is.
    Other,
}

/// A content block, by ranges in the message.
#[derive(Debug)]
pub struct Block {
    /// The whole block.
    pub range: Range<usize>,
    /// Its kind.
    pub kind: BlockKind,
    /// The string of a text block, or of the first block of a tool result.
    pub text: Option<Range<usize>>,
    /// The id string of a tool call, or of the call that a result belongs to.
    pub id: Option<Range<usize>>,
    /// The data string of an image.
    pub data: Option<Range<usize>>,
}

impl<'a> Message<'a> {
    /// Scans a message. Returns `None` if it is not an object.
    pub fn scan(text: &'a str) -> Option<Self> {
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

    /// Combines a message with the result of an earlier scan.
    pub fn with_outline(text: &'a str, outline: &Outline) -> Self {
        Self {
            text,
            outline: outline.clone(),
        }
    }

    /// Returns a range of the message.
    pub fn slice(&self, range: &Range<usize>) -> &'a str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// Returns the blocks; empty if the content is not a list.
    pub fn blocks(&self) -> &[Block] {
        match &self.content {
            Content::Blocks { blocks, .. } => blocks,
            _ => &[],
        }
    }

    /// Returns the JSON string of a block, unless it is empty.
    pub fn string(&self, block: &Block) -> Option<&'a str> {
        let string = self.slice(block.text.as_ref()?);
        (string.len() > 2).then_some(string)
    }

    /// Returns the tool id of a block, unless it is empty.
    pub fn id(&self, block: &Block) -> Option<Cow<'a, str>> {
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
        BlockKind::ToolUse | BlockKind::ServerToolUse => block.id = id,
        BlockKind::ServerToolResult => block.id = result_of,
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
        ("server_tool_use", BlockKind::ServerToolUse),
        ("mcp_tool_use", BlockKind::ServerToolUse),
    ]
    .into_iter()
    .find(|(name, _)| string_equals(string, name))
    .map_or_else(
        || {
            if decode(string).ends_with("_tool_result") {
                BlockKind::ServerToolResult
            } else {
                BlockKind::Other
            }
        },
        |(_, kind)| kind,
    )
}

/// Skips a value and returns its range if it is a string.
fn string(cursor: &mut Cursor<'_>) -> Option<Range<usize>> {
    let is_string = cursor.peek() == Some(b'"');
    let range = cursor.skip_value();
    is_string.then_some(range)
}

/// Skips the content of a tool result. Returns the string of its first block if that is a text
/// block.
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

/// Skips the source of an image. Returns its data if it is base64.
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
            {"type":"text","text":""},
            {"type":"mcp_tool_use","id":"s1"},
            {"type":"x_tool_result","tool_use_id":"s1","content":[{"type":"text","text":"no"}]}
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
                (BlockKind::ServerToolUse, None, id("s1")),
                (BlockKind::ServerToolResult, None, id("s1")),
            ]
        );
        let data = |index: usize| message.blocks()[index].data.clone();
        assert_eq!(data(6).map(|place| message.slice(&place)), Some("\"AAAA\""));
        assert_eq!(data(7), None);
        assert_eq!(message.slice(&message.blocks()[1].range), "5");
        assert!(message.slice(&message.blocks()[8].range).ends_with("\"\"}"));
    }

    #[test]
    fn content_that_is_not_a_list() {
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
