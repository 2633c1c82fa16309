//! Messages as compact JSON on one line, members in the order in which people read them.

use serde::Serialize;

use super::{Message, Notification, Params, Request, RequestId, Response, VERSION};

impl Message {
    /// The message as text.
    pub fn to_text(&self) -> String {
        match self {
            Self::Request(request) => request.to_text(),
            Self::Notification(notification) => notification.to_text(),
            Self::Response(response) => response.to_text(),
        }
    }
}

impl Request {
    /// The message as text.
    pub fn to_text(&self) -> String {
        call(Some(&self.id), &self.method, &self.params)
    }
}

impl Notification {
    /// The message as text.
    pub fn to_text(&self) -> String {
        call(None, &self.method, &self.params)
    }
}

impl Response {
    /// The message as text.
    pub fn to_text(&self) -> String {
        let mut text = begin(Some(&self.id));
        match &self.outcome {
            Ok(body) => member(&mut text, "result", &body.to_text()),
            Err(error) => member(&mut text, "error", &json(error)),
        }
        text.push('}');
        text
    }
}

fn call(id: Option<&RequestId>, method: &str, params: &Params) -> String {
    let mut text = begin(id);
    member(&mut text, "method", &json(method));
    match params {
        Params::Absent => {}
        Params::Object(members) => member(&mut text, "params", &json(members)),
        Params::Array(items) => member(&mut text, "params", &json(items)),
    }
    text.push('}');
    text
}

fn begin(id: Option<&RequestId>) -> String {
    let mut text = format!(r#"{{"jsonrpc":"{VERSION}""#);
    if let Some(id) = id {
        member(&mut text, "id", &json(id));
    }
    text
}

fn member(text: &mut String, name: &str, value: &str) {
    text.push_str(",\"");
    text.push_str(name);
    text.push_str("\":");
    text.push_str(value);
}

/// A value as compact JSON.
pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> String {
    // Strings, integers and trees can all be written; if one could not, the line stays JSON.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}
