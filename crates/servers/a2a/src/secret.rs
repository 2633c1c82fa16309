//! Text that is wiped when dropped and never printed.

use std::fmt;

use url::form_urlencoded::byte_serialize;
use zeroize::Zeroizing;

/// What stands for a secret in text that somebody reads.
const HIDDEN: &str = "[secret]";

/// The shortest secret that is looked for in somebody else's words: shorter ones are everywhere.
const SHORTEST: usize = 6;

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

/// A secret as it may come back: as it is, as forms and URLs carry it, and inside JSON.
fn forms(secret: &str) -> [Secret; 4] {
    let form: String = byte_serialize(secret.as_bytes()).collect();
    let url = form.replace('+', "%20");
    let json = serde_json::Value::from(secret).to_string();
    let json = json.trim_matches('"').to_owned();
    [Secret::new(secret), Secret::new(form), Secret::new(url), Secret::new(json)]
}

#[cfg(test)]
mod tests {
    use super::{Secret, remote_words};

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
