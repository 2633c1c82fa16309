//! Tools that say how they may be shown, or say things that not every client can show.

use serde_json::{Value, json};

use super::Tool;
use crate::call::{Call, Outcome, text};

pub(super) const HIDDEN: &[Tool] = &[
    Tool::new("unpublished", "Is not for others.", done)
        .takes(|| json!({"type": "object", "x-chio-publish": false})),
    Tool::new("supervised", "Is called only when a person agrees.", done)
        .takes(|| json!({"type": "object", "x-chio-approval-required": true})),
    Tool::new("slow_stream", "Says that its output comes bit by bit.", done)
        .takes(|| json!({"type": "object", "x-chio-streaming": true})),
    Tool::new("link", "Gives a link to a resource.", |_| {
        let link = json!({"type": "resource_link", "uri": "test://static-text", "name": "a text",
            "title": "A text", "mimeType": "text/plain"});
        Ok(json!({"content": [link, {"type": "text", "text": "x", "_meta": {"of": "fixture"}}]}))
    }),
    Tool::new(
        "ask_with_mode",
        "Asks the client's user with a form, and says that it is one.",
        |call| {
            let question = json!({"mode": "form", "message": "Who are you?",
            "requestedSchema": {"type": "object", "properties": {}}});
            let answer = call.ask("elicitation", "elicitation/create", Some(question))?;
            Ok(text(answer.to_string()))
        },
    ),
    Tool::new("members", "Says what it says in members only.", |_| {
        Ok(json!({"content": [], "structuredContent": {"sum": 3}}))
    })
    .gives(|| json!({"type": "object", "properties": {"sum": {"type": "number"}}}))
    .with_task("optional"),
];

fn done(_: &Call) -> Outcome {
    Ok::<Value, _>(text("Done."))
}
