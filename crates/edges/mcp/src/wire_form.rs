//! Messages as a client of an older version reads them: without what later versions have added, and
//! with as much of it as the version can say otherwise.

use chio_core::tool_result::STRUCTURED;
use serde_json::{Map, Value, json};

use crate::version::{Object, Version};

/// Writes the result of a request for a client of this version.
pub(crate) fn fit_result(version: Version, method: &str, result: &mut Value) {
    if version.is_whole() {
        return;
    }
    let Value::Object(result) = result else { return };
    match method {
        "initialize" => {
            fit_member(version, Object::Server, result, "capabilities");
            fit_member(version, Object::Implementation, result, "serverInfo");
        }
        "tools/list" => each(result, "tools", |tool| version.strip(Object::Tool, tool)),
        "resources/list" => each(result, "resources", |it| fit_resource(version, it)),
        "resources/templates/list" => {
            each(result, "resourceTemplates", |it| fit_resource(version, it));
        }
        "prompts/list" => each(result, "prompts", |prompt| {
            version.strip(Object::Prompt, prompt);
            each(prompt, "arguments", |it| version.strip(Object::Argument, it));
        }),
        "tools/call" => fit_tool_result(version, result),
        "resources/read" => {
            each(result, "contents", |contents| version.strip(Object::Contents, contents));
        }
        "prompts/get" => each(result, "messages", |message| fit_content(version, message)),
        _ => {}
    }
}

/// Writes a notification for a client of this version; false when that version has no such.
pub(crate) fn fit_notification(
    version: Version,
    method: &str,
    params: &mut Map<String, Value>,
) -> bool {
    if method == "notifications/progress" {
        version.strip(Object::Progress, params);
    }
    version.knows_method(method)
}

/// Writes what a client of this version is asked; false when that version cannot say it.
pub(crate) fn fit_question(
    version: Version,
    method: &str,
    params: &mut Map<String, Value>,
) -> bool {
    if version.is_whole() {
        return true;
    }
    if method == "elicitation/create" {
        // What has no mode is a form.
        let mode = params.remove("mode");
        return version.knows_method(method) && mode.is_none_or(|mode| mode == "form");
    }
    let messages = params.get("messages").and_then(Value::as_array).into_iter().flatten();
    let mut kinds = messages.filter_map(|message| message.pointer("/content/type")?.as_str());
    kinds.all(|kind| version.knows_block(kind)) && version.knows_params(params)
}

/// What a client of this version can do, whatever else it says.
pub(crate) fn fit_client(version: Version, capabilities: &mut Map<String, Value>) {
    version.strip(Object::Client, capabilities);
    fit_member(version, Object::Sampling, capabilities, "sampling");
    fit_member(version, Object::Elicitation, capabilities, "elicitation");
}

fn fit_member(version: Version, object: Object, of: &mut Map<String, Value>, name: &str) {
    if let Some(Value::Object(members)) = of.get_mut(name) {
        version.strip(object, members);
    }
}

fn fit_resource(version: Version, resource: &mut Map<String, Value>) {
    version.strip(Object::Resource, resource);
    fit_member(version, Object::Annotations, resource, "annotations");
}

fn fit_tool_result(version: Version, result: &mut Map<String, Value>) {
    // Usually the content says the same in words.
    let is_silent = result.get("content").and_then(Value::as_array).is_none_or(Vec::is_empty);
    let structured = result.get(STRUCTURED).filter(|_| is_silent).map(Value::to_string);
    version.strip(Object::ToolResult, result);
    if let Some(structured) = structured.filter(|_| !result.contains_key(STRUCTURED)) {
        result.insert("content".to_owned(), json!([{"type": "text", "text": structured}]));
    }
    each(result, "content", |block| fit_block(version, block));
}

/// The block of a message, or its blocks.
fn fit_content(version: Version, message: &mut Map<String, Value>) {
    match message.get_mut("content") {
        Some(Value::Object(block)) => fit_block(version, block),
        Some(Value::Array(_)) => each(message, "content", |block| fit_block(version, block)),
        _ => {}
    }
}

fn fit_block(version: Version, block: &mut Map<String, Value>) {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    if !version.knows_block(kind) {
        *block = match kind {
            "audio" => audio_as_resource(block),
            _ => link_as_text(block),
        };
    }
    if block.get("type").is_some_and(|kind| kind == "resource_link") {
        version.strip(Object::Resource, block);
    }
    version.strip(Object::Block, block);
    fit_member(version, Object::Contents, block, "resource");
    fit_member(version, Object::Annotations, block, "annotations");
}

/// Audio as a resource that is embedded, which every version has.
fn audio_as_resource(audio: &mut Map<String, Value>) -> Map<String, Value> {
    let mut resource = Map::from_iter([("uri".to_owned(), json!("chio:audio"))]);
    for (from, to) in [("mimeType", "mimeType"), ("data", "blob")] {
        resource.extend(audio.remove(from).map(|value| (to.to_owned(), value)));
    }
    let mut block = Map::from_iter([("type".to_owned(), json!("resource"))]);
    block.insert("resource".to_owned(), Value::Object(resource));
    block.extend(audio.remove_entry("annotations"));
    block
}

/// A link in words.
fn link_as_text(link: &mut Map<String, Value>) -> Map<String, Value> {
    let text = |name: &str| link.get(name).and_then(Value::as_str);
    let named =
        [text("title").or(text("name")), text("uri"), text("mimeType"), text("description")];
    let words: Vec<&str> = named.into_iter().flatten().collect();
    let mut block = Map::from_iter([("type".to_owned(), json!("text"))]);
    block.insert("text".to_owned(), json!(words.join("\n")));
    block.extend(link.remove_entry("annotations"));
    block
}

/// The objects of a list in a member.
fn each(of: &mut Map<String, Value>, member: &str, change: impl FnMut(&mut Map<String, Value>)) {
    let Some(Value::Array(items)) = of.get_mut(member) else { return };
    items.iter_mut().filter_map(Value::as_object_mut).for_each(change);
}

#[cfg(test)]
mod tests;
