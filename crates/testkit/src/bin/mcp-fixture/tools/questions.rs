//! The tools that ask the client something while they run.

use serde_json::{Value, json};

use super::{Tool, required};
use crate::call::{Call, Outcome, Stop, text};

pub(super) const TOOLS: &[Tool] = &[
    Tool::new("test_sampling", "Asks the client's model.", sampling)
        .takes(|| required(&[("prompt", "string")])),
    Tool::new("test_elicitation", "Asks the client's user.", |call| {
        let schema = json!({
            "type": "object",
            "properties": {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            },
            "required": ["username", "email"],
        });
        let answer = elicit(call, call.text("message")?, &schema)?;
        Ok(text(format!("User response: {}", told(&answer))))
    })
    .takes(|| required(&[("message", "string")])),
    Tool::new("test_elicitation_sep1034_defaults", "Asks with a default for each field.", |call| {
        let message = "Please review and update the form fields with defaults";
        let answer = elicit(call, message, &defaults())?;
        Ok(text(format!("Elicitation completed: {}", told(&answer))))
    }),
    Tool::new("test_elicitation_sep1330_enums", "Asks with every kind of choice.", |call| {
        let answer = elicit(call, "Please select options from the enum fields", &choices())?;
        Ok(text(format!("Elicitation completed: {}", told(&answer))))
    }),
    Tool::new("ask_roots", "Asks for the client's roots, and gives them.", |call| {
        let answer = call.ask("roots", "roots/list", None)?;
        let roots = answer.get("roots").cloned().unwrap_or_else(|| json!([]));
        Ok(text(roots.to_string()))
    }),
];

fn sampling(call: &Call) -> Outcome {
    let question = json!({
        "messages": [
            {"role": "user", "content": {"type": "text", "text": call.text("prompt")?}},
        ],
        "maxTokens": 100,
    });
    let answer = call.ask("sampling", "sampling/createMessage", Some(question))?;
    let said = answer.pointer("/content/text").and_then(Value::as_str);
    let said = said.ok_or_else(|| Stop::Failed("expected an answer that is a text".to_owned()))?;
    Ok(text(format!("LLM response: {said}")))
}

fn elicit(call: &Call, message: &str, schema: &Value) -> Result<Value, Stop> {
    let question = json!({"message": message, "requestedSchema": schema});
    call.ask("elicitation", "elicitation/create", Some(question))
}

fn told(answer: &Value) -> String {
    let action = answer.get("action").and_then(Value::as_str).unwrap_or("none");
    let content = answer.get("content").cloned().unwrap_or_else(|| json!({}));
    format!("action={action}, content={content}")
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "User name", "default": "John Doe"},
            "age": {"type": "integer", "description": "User age", "default": 30},
            "score": {"type": "number", "description": "User score", "default": 95.5},
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "description": "Verified", "default": true},
        },
        "required": [],
    })
}

fn choices() -> Value {
    let titled =
        |values: [(&str, &str); 3]| values.map(|(it, title)| json!({"const": it, "title": title}));
    let singles = titled([
        ("value1", "First Option"),
        ("value2", "Second Option"),
        ("value3", "Third Option"),
    ]);
    let several = titled([
        ("value1", "First Choice"),
        ("value2", "Second Choice"),
        ("value3", "Third Choice"),
    ]);
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": singles},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
            },
            "titledMulti": {"type": "array", "items": {"anyOf": several}},
        },
        "required": [],
    })
}
