//! Text that is wiped when dropped and never printed.

use std::fmt;

use serde_json::Value;
use url::form_urlencoded::byte_serialize;
use zeroize::Zeroizing;

/// What stands for a secret in text that people read.
const HIDDEN: &str = "[secret]";

/// The shortest secret that is looked for in a remote server's words: shorter ones are everywhere.
const SHORTEST: usize = 6;

/// The shortest secret that is looked for in results, which are more than words.
const SHORTEST_IN_RESULTS: usize = 8;

/// The most characters that an error repeats of what a remote server said.
const MAX_REMOTE: usize = 200;

/// Text that is wiped when dropped and never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Zeroizing<String>);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// What a remote server said, as an error may repeat it: short, plain, and without any of these
/// secrets, which it may have echoed.
pub(crate) fn remote_words<'a>(
    text: &str,
    secrets: impl IntoIterator<Item = &'a Secret>,
) -> String {
    // The cut comes last: one that leaves half of a secret would hide it from the search.
    let mut words = text.to_owned();
    for secret in secrets {
        if secret.expose().len() >= SHORTEST {
            for form in forms(secret.expose()) {
                words = words.replace(form.expose(), HIDDEN);
            }
        }
    }
    let plain = words.chars().map(|c| if c.is_control() { ' ' } else { c });
    let plain: String = plain.take(MAX_REMOTE).collect();
    plain.trim().to_owned()
}

/// Takes these secrets out of what a remote server answered, which it may have echoed.
pub(crate) fn hide<'a>(value: &mut Value, secrets: impl IntoIterator<Item = &'a Secret>) {
    let long = secrets.into_iter().filter(|secret| secret.expose().len() >= SHORTEST_IN_RESULTS);
    let forms: Vec<Secret> = long.flat_map(|secret| forms(secret.expose())).collect();
    if !forms.is_empty() {
        hide_all(value, &forms);
    }
}

fn hide_all(value: &mut Value, forms: &[Secret]) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => hide_in(text, forms),
        Value::Array(items) => items.iter_mut().for_each(|item| hide_all(item, forms)),
        Value::Object(members) => {
            let tells = |name: &String| forms.iter().any(|form| name.contains(form.expose()));
            if members.keys().any(tells) {
                let all = std::mem::take(members).into_iter();
                members.extend(all.map(|(mut name, value)| {
                    hide_in(&mut name, forms);
                    (name, value)
                }));
            }
            members.values_mut().for_each(|member| hide_all(member, forms));
        }
    }
}

fn hide_in(text: &mut String, forms: &[Secret]) {
    for form in forms {
        if text.contains(form.expose()) {
            *text = text.replace(form.expose(), HIDDEN);
        }
    }
}

/// A secret as it may come back: as it is, as forms and URLs carry it, and inside JSON.
fn forms(secret: &str) -> [Secret; 4] {
    let form: String = byte_serialize(secret.as_bytes()).collect();
    let url = form.replace('+', "%20");
    let json = Value::from(secret).to_string();
    let json = json.trim_matches('"').to_owned();
    [Secret::new(secret), Secret::new(form), Secret::new(url), Secret::new(json)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Secret, hide, remote_words};

    #[test]
    fn results_have_none_of_our_secrets_and_are_else_as_they_were() {
        let secrets = [Secret::new("Bearer hunter2hunter2"), Secret::new("hunter2hunter2")];
        let mut value = json!({
            "headers": {"authorization": "Bearer hunter2hunter2", "hunter2hunter2": 1},
            "list": ["x hunter2hunter2 y", 7, null, true, {"deep": "hunter2"}],
        });
        hide(&mut value, &secrets);
        let expected = json!({
            "headers": {"authorization": "[secret]", "[secret]": 1},
            "list": ["x [secret] y", 7, null, true, {"deep": "hunter2"}],
        });
        assert_eq!(value, expected);
        let mut value = json!({"word": "secret"});
        hide(&mut value, &[Secret::new("secret")]);
        assert_eq!(value, json!({"word": "secret"}), "words that short are everywhere");
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "[secret]");
    }

    #[test]
    fn remote_words_are_short_plain_and_without_our_secrets() {
        let secrets = [Secret::new("hunter2"), Secret::new("a")];
        let said = "no\r\nway: Bearer hunter2 a";
        assert_eq!(remote_words(said, &secrets), "no  way: Bearer [secret] a");
        assert_eq!(remote_words(&"x".repeat(5000), &secrets).chars().count(), 200);
        let secrets = [Secret::new("a b&\"c")];
        let said = r#"a b&"c, a+b%26%22c, a%20b%26%22c, {"x":"a b&\"c"}"#;
        let hidden = r#"[secret], [secret], [secret], {"x":"[secret]"}"#;
        assert_eq!(remote_words(said, &secrets), hidden);
        let secrets = [Secret::new("hunter2")];
        // A secret that the cut would leave half of.
        let said = format!("{}hunter2", "y".repeat(197));
        assert!(!remote_words(&said, &secrets).contains("hun"));
    }
}
