//! The resources: a text, a picture, one that can be watched, and a template.

use serde_json::{Value, json};

use crate::media::PNG;
use crate::rpc::{Fault, RESOURCE_NOT_FOUND};

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
/// The resource of which changes are told.
pub(crate) const WATCHED: &str = "test://watched-resource";
/// The template of resources that have an id.
pub(crate) const TEMPLATE: &str = "test://template/{id}/data";

/// The resources that have a fixed address.
pub(crate) fn list() -> Vec<Value> {
    vec![
        json!({
            "uri": TEXT,
            "name": "static-text",
            "title": "A text",
            "description": "A text that never changes.",
            "mimeType": "text/plain",
        }),
        json!({
            "uri": BINARY,
            "name": "static-binary",
            "title": "A picture",
            "description": "A picture of one red pixel.",
            "mimeType": "image/png",
        }),
        json!({
            "uri": WATCHED,
            "name": "watched-resource",
            "title": "A text to watch",
            "description": "A text of which `touch_watched` says that it changed.",
            "mimeType": "text/plain",
        }),
    ]
}

/// The templates.
pub(crate) fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": TEMPLATE,
        "name": "template",
        "title": "Data with an id",
        "description": "Names the id that was asked for.",
        "mimeType": "application/json",
    })]
}

/// Reads a resource.
pub(crate) fn read(uri: &str) -> Result<Value, Fault> {
    let (kind, member, content) = match uri {
        TEXT => {
            ("text/plain", "text", "This is the content of the static text resource.".to_owned())
        }
        BINARY => ("image/png", "blob", PNG.to_owned()),
        WATCHED => ("text/plain", "text", "Watched resource content".to_owned()),
        _ => {
            let id = template_id(uri).ok_or_else(|| not_found(uri))?;
            let data = format!("Data for ID: {id}");
            let content = json!({"id": id, "templateTest": true, "data": data});
            ("application/json", "text", content.to_string())
        }
    };
    Ok(json!({"contents": [{"uri": uri, "mimeType": kind, member: content}]}))
}

fn template_id(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

fn not_found(uri: &str) -> Fault {
    let data = Some(json!({"uri": uri}));
    Fault { code: RESOURCE_NOT_FOUND, message: "Resource not found".to_owned(), data }
}
