//! The tools that the conformance suite calls and that ask the client nothing.

use serde_json::{Value, json};

use super::Tool;
use crate::call::{Call, Outcome, Stop, text};
use crate::media::{PNG, WAV};

/// Between two notifications, in milliseconds.
const PAUSE: u64 = 50;
/// How long `test_reconnection` takes, in milliseconds: long enough for a stream to be closed.
const RECONNECTION: u64 = 1000;

pub(super) const TOOLS: &[Tool] = &[
    Tool::new("test_simple_text", "Gives a text.", |_| {
        Ok(text("This is a simple text response for testing."))
    }),
    Tool::new("test_image_content", "Gives a picture.", |_| Ok(json!({"content": [image()]}))),
    Tool::new("test_audio_content", "Gives a sound.", |_| {
        let sound = json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"});
        Ok(json!({"content": [sound]}))
    }),
    Tool::new("test_embedded_resource", "Gives a resource.", |_| {
        let content = "This is an embedded resource content.";
        Ok(json!({"content": [resource("test://embedded-resource", "text/plain", content)]}))
    }),
    Tool::new("test_multiple_content_types", "Gives a text, a picture and a resource.", mixed),
    Tool::new("test_tool_with_logging", "Logs three messages while it works.", logging),
    Tool::new("test_tool_with_progress", "Tells how far it is three times.", progress),
    Tool::new("test_error_handling", "Always fails.", |_| {
        Err(Stop::Failed("This tool intentionally returns an error for testing".to_owned()))
    }),
    Tool::new(
        "test_reconnection",
        "Takes a second, so that the stream may be closed before the answer is there.",
        |call| {
            call.pause(RECONNECTION)?;
            Ok(text("Reconnection test completed: the answer came after a second."))
        },
    ),
    Tool::new("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", |call| {
        Ok(text(format!("JSON Schema 2020-12 tool called with: {}", call.arguments)))
    })
    .takes(schema_2020_12),
];

fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

fn resource(uri: &str, kind: &str, content: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": content}})
}

fn mixed(_: &Call) -> Outcome {
    let data = r#"{"test":"data","value":123}"#;
    Ok(json!({
        "content": [
            {"type": "text", "text": "Multiple content types test:"},
            image(),
            resource("test://mixed-content-resource", "application/json", data),
        ],
    }))
}

fn logging(call: &Call) -> Outcome {
    call.session.log("info", "Tool execution started");
    call.pause(PAUSE)?;
    call.session.log("info", "Tool processing data");
    call.pause(PAUSE)?;
    call.session.log("info", "Tool execution completed");
    Ok(text("Tool with logging executed successfully"))
}

fn progress(call: &Call) -> Outcome {
    call.progress(0, 100);
    call.pause(PAUSE)?;
    call.progress(50, 100);
    call.pause(PAUSE)?;
    call.progress(100, 100);
    Ok(text("Tool with progress executed successfully"))
}

/// Has every keyword that must come through unchanged.
fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
