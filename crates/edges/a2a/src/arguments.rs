//! What a tool is called with, from the parts of a message.

use serde_json::{Map, Value, json};

use crate::dialect::v1::write_part;
use crate::error::{Fault, Kind};
use crate::message::{Content, Message, Part, texts};

/// The member that texts go into, where the tool names no other.
const MESSAGE: &str = "message";
/// The property that takes files.
const PARTS: &str = "parts";

/// Reads the arguments of a tool from a message, by what the tool's input schema says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentReader {
    /// The property that texts go into; none for a tool that takes nothing.
    text: Option<String>,
    /// Whether texts have a place beside data.
    text_beside_data: bool,
    /// Whether a text that is an object may be the arguments: no property is there for texts.
    reads_objects: bool,
    /// Whether there is a property for files.
    takes_files: bool,
    /// Which names of the message the tool wants to know.
    wants: Vec<&'static str>,
}

impl ArgumentReader {
    pub(crate) fn from_schema(schema: &Map<String, Value>) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let has = |name: &str| properties.is_some_and(|it| it.contains_key(name));
        let wants = ["messageId", "contextId", "taskId"].into_iter().filter(|name| has(name));
        let names_none = properties.is_none_or(Map::is_empty);
        let takes_nothing = is_closed(schema) && names_none;
        let text = if has(MESSAGE) { None } else { only_text(schema, properties) };
        let reads_objects = !has(MESSAGE) && text.is_none() && is_closed(schema);
        let text = text.or_else(|| (!takes_nothing).then(|| MESSAGE.to_owned()));
        let is_open = names_none && !is_closed(schema);
        Self {
            reads_objects,
            text_beside_data: is_open || text.as_deref().is_some_and(has),
            text,
            takes_files: has(PARTS),
            wants: wants.collect(),
        }
    }

    /// The arguments for a message. What the tool has no place for is refused.
    pub(crate) fn read(&self, message: &Message, names: &Names<'_>) -> Result<Value, Fault> {
        let parts = &message.parts;
        let mut arguments = match data_of(parts)? {
            Some(data) => self.beside(data.clone(), parts)?,
            None => {
                let object = || self.reads_objects.then(|| object_of(parts)).flatten();
                object().unwrap_or_else(|| {
                    let text = |name: &String| (name.clone(), Value::String(texts(parts)));
                    self.text.iter().map(text).collect()
                })
            }
        };
        let files: Vec<Value> =
            parts.iter().filter(|part| part.is_file()).map(write_part).collect();
        if !files.is_empty() {
            if !self.takes_files || arguments.contains_key(PARTS) {
                return Err(refused("files"));
            }
            arguments.insert(PARTS.to_owned(), Value::Array(files));
        }
        for name in &self.wants {
            let value = match *name {
                "messageId" => names.message_id,
                "contextId" => Some(names.context_id),
                _ => Some(names.task_id),
            };
            if let Some(value) = value {
                arguments.entry(*name).or_insert_with(|| json!(value));
            }
        }
        Ok(Value::Object(arguments))
    }

    /// The arguments with the texts that stand beside them.
    fn beside(
        &self,
        mut arguments: Map<String, Value>,
        parts: &[Part],
    ) -> Result<Map<String, Value>, Fault> {
        let texts = texts(parts);
        if texts.trim().is_empty() {
            return Ok(arguments);
        }
        match &self.text {
            Some(name) if self.text_beside_data && !arguments.contains_key(name) => {
                arguments.insert(name.clone(), Value::String(texts));
                Ok(arguments)
            }
            _ => Err(refused("a text beside data")),
        }
    }
}

/// The fault of a message with something that its skill has no place for.
fn refused(what: &str) -> Fault {
    Fault::new(Kind::ContentType, format!("the skill has no place for {what}"))
}

/// The object that the texts of a message are, if they are one: some clients have only texts.
fn object_of(parts: &[Part]) -> Option<Map<String, Value>> {
    match chio_core::strict::from_slice(texts(parts).as_bytes()).ok()? {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// What a message, its context and its task are called.
pub(crate) struct Names<'a> {
    pub(crate) message_id: Option<&'a str>,
    pub(crate) context_id: &'a str,
    pub(crate) task_id: &'a str,
}

/// The one property that a text can go into: the only required one that is a string, or, where no
/// others may be made up, the only one at all.
fn only_text(
    schema: &Map<String, Value>,
    properties: Option<&Map<String, Value>>,
) -> Option<String> {
    let is_string = |name: &&str| {
        let kind = properties.and_then(|it| it.get(*name)).and_then(|it| it.get("type"));
        kind.and_then(Value::as_str) == Some("string")
    };
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    if let Some(only) = only(required.filter(is_string)) {
        return Some(only.to_owned());
    }
    let all = properties.into_iter().flat_map(Map::keys).map(String::as_str);
    if is_closed(schema) { only(all.filter(is_string)).map(str::to_owned) } else { None }
}

/// Whether no properties may be made up.
fn is_closed(schema: &Map<String, Value>) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
}

fn only<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let first = names.next()?;
    names.next().is_none().then_some(first)
}

/// The object of the one data part.
fn data_of(parts: &[Part]) -> Result<Option<&Map<String, Value>>, Fault> {
    let mut data = parts.iter().filter_map(|part| match &part.content {
        Content::Data(value) => Some(value),
        _ => None,
    });
    let Some(first) = data.next() else { return Ok(None) };
    if data.next().is_some() {
        return Err(refused("several data parts"));
    }
    first.as_object().map(Some).ok_or_else(|| refused("data that is no object"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;

    const OPEN: &str = r#"{"type": "object"}"#;
    const NAMES: Names<'static> =
        Names { message_id: Some("m-1"), context_id: "c-1", task_id: "t-1" };

    #[track_caller]
    fn check(schema: &str, parts: Vec<Part>, expected: &Result<Value, Kind>) {
        let argument_reader = ArgumentReader::from_schema(&serde_json::from_str(schema).unwrap());
        let message = Message::new(Role::User, parts);
        let found = argument_reader.read(&message, &NAMES).map_err(|fault| fault.kind);
        assert_eq!(found, *expected, "{schema}");
    }

    fn data(value: Value) -> Part {
        Part::new(Content::Data(value))
    }

    fn raw() -> Part {
        Part::new(Content::Raw("AA==".to_owned()))
    }

    #[test]
    fn data_is_the_arguments_and_texts_are_a_message() {
        check(OPEN, vec![data(json!({"q": 1}))], &Ok(json!({"q": 1})));
        check(OPEN, vec![Part::text("a"), Part::text("b")], &Ok(json!({"message": "a\nb"})));
        check(OPEN, vec![data(json!({})), data(json!({}))], &Err(Kind::ContentType));
        check(OPEN, vec![data(json!([1]))], &Err(Kind::ContentType));
    }

    #[test]
    fn a_text_beside_data_goes_where_it_has_a_place_and_is_refused_otherwise() {
        let both = |member: &str| vec![data(json!({member: 1})), Part::text("x")];
        check(OPEN, both("q"), &Ok(json!({"q": 1, "message": "x"})));
        check(OPEN, both("message"), &Err(Kind::ContentType));
        let blank = vec![data(json!({"q": 1})), Part::text(" ")];
        check(r#"{"additionalProperties": false}"#, blank, &Ok(json!({"q": 1})));
        let named = r#"{"properties": {"q": {}, "message": {}}}"#;
        check(named, both("q"), &Ok(json!({"q": 1, "message": "x"})));
        let only = r#"{"properties": {"q": {}, "s": {"type": "string"}}, "required": ["s"]}"#;
        check(only, both("q"), &Ok(json!({"q": 1, "s": "x"})));
        check(only, both("s"), &Err(Kind::ContentType));
        let none = r#"{"properties": {"q": {}}}"#;
        check(none, both("q"), &Err(Kind::ContentType));
    }

    #[test]
    fn a_text_goes_into_the_only_property_that_it_can_be_for() {
        let text = || vec![Part::text("x")];
        let one = r#"{"properties": {"q": {"type": "string"}, "n": {"type": "integer"}},
            "required": ["q"]}"#;
        check(one, text(), &Ok(json!({"q": "x"})));
        let closed = r#"{"properties": {"q": {"type": "string"}, "n": {"type": "integer"}},
            "additionalProperties": false}"#;
        check(closed, text(), &Ok(json!({"q": "x"})));
        let open = r#"{"properties": {"q": {"type": "string"}}}"#;
        check(open, text(), &Ok(json!({"message": "x"})));
        let two = r#"{"properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "required": ["a", "b"]}"#;
        check(two, text(), &Ok(json!({"message": "x"})));
        check(r#"{"additionalProperties": false}"#, text(), &Ok(json!({})));
        let own = r#"{"properties": {"message": {}, "q": {"type": "string"}}, "required": ["q"]}"#;
        check(own, text(), &Ok(json!({"message": "x"})));
    }

    #[test]
    fn files_go_where_the_tool_takes_them_and_are_refused_otherwise() {
        let takes = r#"{"properties": {"parts": {}, "message": {}}}"#;
        let parts = || vec![Part::text("x"), raw()];
        check(takes, parts(), &Ok(json!({"message": "x", "parts": [{"raw": "AA=="}]})));
        check(takes, vec![data(json!({"parts": 1})), raw()], &Err(Kind::ContentType));
        check(OPEN, parts(), &Err(Kind::ContentType));
        check(OPEN, vec![raw()], &Err(Kind::ContentType));
    }

    #[test]
    fn a_tool_that_asks_for_names_is_told_them() {
        let wants = r#"{"properties": {"message": {}, "messageId": {}, "taskId": {}}}"#;
        let expected = json!({"message": "x", "messageId": "m-1", "taskId": "t-1"});
        check(wants, vec![Part::text("x")], &Ok(expected));
        let own = json!({"messageId": "mine"});
        let expected = json!({"messageId": "mine", "taskId": "t-1"});
        check(wants, vec![data(own)], &Ok(expected));
    }
}
