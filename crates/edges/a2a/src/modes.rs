//! What a client takes of a result: `acceptedOutputModes`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Fault, Kind};
use crate::message::{Content, Part};

/// The most modes that a client may name.
const MAX_MODES: usize = 64;

/// Which forms of a result a client takes. What it names beside these (files) is passed on as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AcceptedModes {
    /// Whatever comes.
    #[default]
    All,
    /// Texts, but no data.
    Text,
    /// Data, but no texts.
    Data,
}

impl AcceptedModes {
    /// Reads the media types that a client names; none of them takes whatever comes.
    pub(crate) fn read(modes: &[String]) -> Result<Self, Fault> {
        if modes.len() > MAX_MODES {
            let found = modes.len();
            let message =
                format!("expected at most {MAX_MODES} `acceptedOutputModes`, found {found}");
            return Err(Fault::params(message));
        }
        let essence =
            |mode: &String| mode.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let takes = |names: &[&str]| modes.iter().any(|mode| names.contains(&&*essence(mode)));
        let all = modes.is_empty() || takes(&["*/*"]);
        let text = takes(&["text", "text/plain", "text/*", "text/markdown"]);
        let data = takes(&["data", "json", "application/json", "application/*"]);
        match (all, text, data) {
            (true, ..) | (_, true, true) => Ok(Self::All),
            (_, true, false) => Ok(Self::Text),
            (_, false, true) => Ok(Self::Data),
            _ => {
                let message = "expected `acceptedOutputModes` with `text/plain` or \
                               `application/json`, which results have";
                Err(Fault::new(Kind::ContentType, message))
            }
        }
    }

    /// Whether nothing has to be changed for it.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(crate) const fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Parts in the form that the client takes. Nothing is left out: data is written as text, and a
    /// text is data too.
    pub(crate) fn tailored(self, mut parts: Vec<Part>) -> Vec<Part> {
        for part in &mut parts {
            match (self, &mut part.content) {
                (Self::Text, Content::Data(data)) => {
                    part.content = Content::Text(data.to_string());
                }
                (Self::Data, Content::Text(text)) => {
                    part.content = Content::Data(Value::String(std::mem::take(text)));
                }
                _ => {}
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_gets_what_it_takes_and_is_refused_where_nothing_is() {
        for (modes, expected) in [
            (&[][..], Some(AcceptedModes::All)),
            (&["*/*"], Some(AcceptedModes::All)),
            (&["text/plain", "application/json"], Some(AcceptedModes::All)),
            (&["text"], Some(AcceptedModes::Text)),
            (&["image/png", "Text/Plain; charset=utf-8"], Some(AcceptedModes::Text)),
            (&["application/json"], Some(AcceptedModes::Data)),
            (&["image/png"], None),
        ] {
            let named: Vec<String> = modes.iter().map(|mode| (*mode).to_owned()).collect();
            assert_eq!(AcceptedModes::read(&named).ok(), expected, "{modes:?}");
        }
    }

    #[test]
    fn nothing_of_a_result_is_left_out() {
        let parts = || vec![Part::text("x"), Part::new(Content::Data(json!({"n": 1})))];
        let contents = |modes: AcceptedModes| -> Vec<Content> {
            modes.tailored(parts()).into_iter().map(|part| part.content).collect()
        };
        let (text, data) = (Content::Text("x".to_owned()), Content::Data(json!({"n": 1})));
        assert_eq!(contents(AcceptedModes::All), [text.clone(), data.clone()]);
        let as_text = Content::Text(r#"{"n":1}"#.to_owned());
        assert_eq!(contents(AcceptedModes::Text), [text, as_text]);
        assert_eq!(contents(AcceptedModes::Data), [Content::Data(json!("x")), data]);
    }
}
