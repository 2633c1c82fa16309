//! The prompts.

use serde_json::{Value, json};

use crate::media::PNG;
use crate::rpc::{Fault, INVALID_PARAMS};

/// The prompt whose arguments can be completed.
pub(crate) const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";

/// All prompts.
pub(crate) fn list() -> Vec<Value> {
    let argument =
        |name, description| json!({"name": name, "description": description, "required": true});
    vec![
        json!({
            "name": "test_simple_prompt",
            "title": "A simple prompt",
            "description": "A prompt without arguments.",
        }),
        json!({
            "name": WITH_ARGUMENTS,
            "title": "A prompt with arguments",
            "description": "A prompt that repeats its arguments.",
            "arguments": [
                argument("arg1", "First test argument"),
                argument("arg2", "Second test argument"),
            ],
        }),
        json!({
            "name": "test_prompt_with_embedded_resource",
            "title": "A prompt with a resource",
            "description": "A prompt that embeds a resource.",
            "arguments": [argument("resourceUri", "URI of the resource to embed")],
        }),
        json!({
            "name": "test_prompt_with_image",
            "title": "A prompt with a picture",
            "description": "A prompt that shows a picture.",
        }),
    ]
}

/// Fills in a prompt.
pub(crate) fn get(name: &str, params: &Value) -> Result<Value, Fault> {
    let argument = |name| argument(params, name);
    let messages = match name {
        "test_simple_prompt" => vec![user(&text("This is a simple prompt for testing."))],
        WITH_ARGUMENTS => {
            let (first, second) = (argument("arg1")?, argument("arg2")?);
            let line = format!("Prompt with arguments: arg1='{first}', arg2='{second}'");
            vec![user(&text(&line))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri")?,
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            let request = text("Please process the embedded resource above.");
            vec![user(&json!({"type": "resource", "resource": resource})), user(&request)]
        }
        "test_prompt_with_image" => {
            let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
            vec![user(&image), user(&text("Please analyze the image above."))]
        }
        _ => return Err(Fault::new(INVALID_PARAMS, format!("there is no prompt `{name}`"))),
    };
    Ok(json!({"messages": messages}))
}

fn argument<'a>(params: &'a Value, name: &str) -> Result<&'a str, Fault> {
    let found = params.get("arguments").and_then(|all| all.get(name)).and_then(Value::as_str);
    found.ok_or_else(|| Fault::new(INVALID_PARAMS, format!("expected an argument `{name}`")))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user(content: &Value) -> Value {
    json!({"role": "user", "content": content})
}
