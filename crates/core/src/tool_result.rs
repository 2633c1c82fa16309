//! The typed view of a tool's result.
//!
//! Tools answer with JSON of their own form. Which of it is content, structured data or a failure
//! is decided here once, for every edge and executor.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The member with the blocks of content.
pub const CONTENT: &str = "content";
/// The member with the structured form of the content.
pub const STRUCTURED: &str = "structuredContent";
/// The member that says whether the tool reports a failure.
pub const IS_ERROR: &str = "isError";

/// A tool's result, or one chunk of it, as edges and executors read it.
#[derive(Debug, Clone, Copy)]
pub struct ToolResult<'a>(&'a Value);

/// The form of a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ResultForm<'a> {
    /// A text.
    Text(&'a str),
    /// A number, a boolean or null.
    Scalar(&'a Value),
    /// An object or a list of the tool's own making.
    Data(&'a Value),
    /// Blocks of content as MCP writes them; [`Block::new`] reads each.
    Content(&'a [Value]),
}

impl<'a> ToolResult<'a> {
    /// The view of a value.
    pub const fn new(value: &'a Value) -> Self {
        Self(value)
    }

    /// The form of the result.
    pub fn form(self) -> ResultForm<'a> {
        match self.0 {
            Value::String(text) => ResultForm::Text(text),
            Value::Object(members) => match members.get(CONTENT) {
                Some(Value::Array(blocks)) => ResultForm::Content(blocks),
                _ => ResultForm::Data(self.0),
            },
            Value::Array(_) => ResultForm::Data(self.0),
            scalar => ResultForm::Scalar(scalar),
        }
    }

    /// The structured form of the content.
    pub fn structured(self) -> Option<&'a Value> {
        self.0.get(STRUCTURED).filter(|structured| structured.is_object())
    }

    /// Whether the tool reports that it failed.
    #[must_use]
    pub fn is_error(self) -> bool {
        self.0.get(IS_ERROR) == Some(&Value::Bool(true))
    }

    /// Whether the result is one of MCP's `tools/call` as it is. A member of the same name that MCP
    /// would not accept, such as a file's `content`, makes it data.
    #[must_use]
    pub fn is_mcp(self) -> bool {
        let is_block = |block: &Value| block.get("type").is_some_and(Value::is_string);
        let is_content =
            |content: &Value| content.as_array().is_some_and(|it| it.iter().all(is_block));
        let members = [
            self.0.get(CONTENT).map(is_content),
            self.0.get(STRUCTURED).map(Value::is_object),
            self.0.get(IS_ERROR).map(Value::is_boolean),
        ];
        members.contains(&Some(true)) && !members.contains(&Some(false))
    }

    /// What an A2A agent says about a task that it failed or rejected, when the result is marked as
    /// an error and describes such a task.
    pub fn failed_task(self) -> Option<Vec<&'a str>> {
        if !self.is_error() {
            return None;
        }
        let about = self.0.get("task").or_else(|| self.0.get("statusUpdate"))?;
        let parts = about.pointer("/status/message/parts").and_then(Value::as_array);
        let texts = parts.into_iter().flatten().filter_map(|part| part.get("text")?.as_str());
        Some(texts.collect())
    }

    /// The same of a stream, whose last chunk describes the task.
    pub fn failed_task_of(chunks: &[Value]) -> Option<Vec<&str>> {
        chunks.last().and_then(|last| ToolResult(last).failed_task())
    }

    /// What the tool wants its answer to be over A2A, if it says.
    pub fn reply(self) -> Option<&'a str> {
        self.0.pointer("/_meta/chio/a2a/reply").and_then(Value::as_str)
    }

    /// The result as text: a text as it is, everything else as JSON.
    pub fn to_text(self) -> Cow<'a, str> {
        self.0.as_str().map_or_else(|| Cow::Owned(self.0.to_string()), Cow::Borrowed)
    }
}

/// A block of content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Block<'a> {
    /// A text.
    Text(&'a str),
    /// An image, audio, a resource or a link to one.
    File(File<'a>),
    /// A block of a type that is not known, or that lacks what its type needs.
    Other(&'a Map<String, Value>),
}

/// A file in a block of content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct File<'a> {
    /// What the file holds.
    pub content: FileContent<'a>,
    /// The media type that the tool states.
    pub media_type: Option<&'a str>,
    /// The name that the tool states, or the last segment of the file's URI.
    pub name: Option<&'a str>,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileContent<'a> {
    /// Bytes in base64, which may be malformed.
    Base64(&'a str),
    /// A text.
    Text(&'a str),
    /// Something elsewhere, by its URI.
    Uri(&'a str),
}

impl<'a> Block<'a> {
    /// Reads a block; none for what has no type and no text.
    pub fn new(block: &'a Value) -> Option<Self> {
        if let Some(text) = text(block, "text") {
            return Some(Self::Text(text));
        }
        let content = match text(block, "type")? {
            "image" | "audio" => text(block, "data").map(FileContent::Base64),
            "resource_link" => text(block, "uri").map(FileContent::Uri),
            "resource" => return Self::resource(block),
            _ => None,
        };
        let file = content.map(|content| {
            let (media_type, name) = (text(block, "mimeType"), text(block, "name"));
            Self::File(File { content, media_type, name })
        });
        file.or_else(|| block.as_object().map(Self::Other))
    }

    fn resource(block: &'a Value) -> Option<Self> {
        let resource = block.get("resource").unwrap_or(&Value::Null);
        let content = text(resource, "text").map(FileContent::Text);
        let content = content.or_else(|| text(resource, "blob").map(FileContent::Base64));
        let Some(content) = content else { return block.as_object().map(Self::Other) };
        let path = text(resource, "uri").and_then(|uri| uri.split(['?', '#']).next());
        let segment = path.and_then(|path| path.rsplit('/').next());
        let name = text(resource, "name").or(segment).filter(|name| !name.is_empty());
        Some(Self::File(File { content, media_type: text(resource, "mimeType"), name }))
    }
}

fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_value_has_its_form_and_its_text() {
        let content = json!({"content": [{"type": "text", "text": "a"}]});
        let data = json!({"content": "a file's text"});
        let list = json!([1]);
        for (value, form, text) in [
            (&json!("hi"), ResultForm::Text("hi"), "hi"),
            (&json!(7), ResultForm::Scalar(&json!(7)), "7"),
            (&Value::Null, ResultForm::Scalar(&Value::Null), "null"),
            (&list, ResultForm::Data(&list), "[1]"),
            (&data, ResultForm::Data(&data), r#"{"content":"a file's text"}"#),
            (
                &content,
                ResultForm::Content(content["content"].as_array().unwrap()),
                &content.to_string(),
            ),
        ] {
            assert_eq!(ToolResult::new(value).form(), form);
            assert_eq!(ToolResult::new(value).to_text(), text);
        }
    }

    #[test]
    fn only_what_mcp_would_accept_is_its_result() {
        let block = json!([{"type": "image"}]);
        for (value, expected) in [
            (json!({"content": block}), true),
            (json!({"content": [], "isError": true, "more": 1}), true),
            (json!({"structuredContent": {}}), true),
            (json!({"isError": false}), true),
            (json!({"content": "a file's text"}), false),
            (json!({"content": [1, 2]}), false),
            (json!({"content": [{"text": "no type"}]}), false),
            (json!({"content": block, "isError": "no"}), false),
            (json!({"content": block, "structuredContent": 1}), false),
            (json!({"a": 1}), false),
            (json!("text"), false),
        ] {
            assert_eq!(ToolResult::new(&value).is_mcp(), expected, "{value}");
        }
    }

    #[test]
    fn only_a_task_that_is_marked_as_an_error_has_failed() {
        let parts = json!([{"text": "no"}, {"data": {}}, {"text": "way"}]);
        let status = json!({"state": "TASK_STATE_FAILED", "message": {"parts": parts}});
        for (value, said) in [
            (json!({"task": {"status": status}, "isError": true}), Some(vec!["no", "way"])),
            (json!({"statusUpdate": {"status": status}, "isError": true}), Some(vec!["no", "way"])),
            (json!({"task": {"status": {}}, "isError": true}), Some(vec![])),
            (json!({"task": {"status": status}}), None),
            (json!({"task": {"status": status}, "isError": "true"}), None),
            (json!({"content": [], "isError": true}), None),
            (json!("TASK_STATE_FAILED"), None),
        ] {
            assert_eq!(ToolResult::new(&value).failed_task(), said, "{value}");
            assert_eq!(ToolResult::failed_task_of(&[json!(1), value]), said);
        }
        assert_eq!(ToolResult::failed_task_of(&[]), None);
    }

    #[test]
    fn a_block_is_a_text_a_file_or_kept_as_it_is() {
        let file =
            |content, media_type, name| Some(Block::File(File { content, media_type, name }));
        for (block, expected) in [
            (json!({"type": "text", "text": "a"}), Some(Block::Text("a"))),
            (json!({"text": "a"}), Some(Block::Text("a"))),
            (
                json!({"type": "image", "data": "AA==", "mimeType": "image/png"}),
                file(FileContent::Base64("AA=="), Some("image/png"), None),
            ),
            (
                json!({"type": "resource_link", "uri": "http://x/o", "name": "o.txt"}),
                file(FileContent::Uri("http://x/o"), None, Some("o.txt")),
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///a/b.txt?c", "text": "t"}}),
                file(FileContent::Text("t"), None, Some("b.txt")),
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///a/", "blob": "AA"}}),
                file(FileContent::Base64("AA"), None, None),
            ),
            (json!({"text": 1}), None),
            (json!(7), None),
        ] {
            assert_eq!(Block::new(&block), expected, "{block}");
        }
        for block in [json!({"type": "x"}), json!({"type": "image"}), json!({"type": "resource"})] {
            assert_eq!(Block::new(&block), Some(Block::Other(block.as_object().unwrap())));
        }
    }
}
