//! Who may connect to an HTTP listener, as it is configured.

use std::path::Path;

use chio_yaml::{Key, Section};

use crate::access::{AccessConfig, JwtConfig, check_origin};
use crate::servers::{required, texts};

/// The keys of a bearer token.
pub(super) const TOKEN: &[Key] = &[
    Key::new("name", "a name", "required", "whom the token stands for"),
    Key::new("file", "a file", "required", "the file that has the token"),
];
/// The keys of an authorization server.
pub(super) const JWT: &[Key] = &[
    Key::new("issuer", "a URL", "required", "the authorization server"),
    Key::new("audience", "a text", "required", "what its tokens have to be issued for"),
    Key::new("scopes", "a list of texts", "[]", "what its tokens have to allow"),
    Key::new("keys_file", "a file", "fetched", "the keys of the issuer, as a JWK set"),
];

/// The name of the principal of standard input; no token may have it.
const STDIO: &str = chio_core::principal::STDIO;

/// What clients of an HTTP listener have to show.
pub(super) fn access(section: &Section<'_>, folder: &Path) -> AccessConfig {
    let mut files = Vec::new();
    for token in section.sections("tokens", TOKEN) {
        let (name, file) = (required(&token, "name", "a name"), required(&token, "file", "a file"));
        let (Some(name), Some(file)) = (name, file) else { continue };
        if name.text == STDIO {
            token.problem("name", "expected another name: this one stands for standard input");
        }
        files.push((name.text.to_owned(), folder.join(file.text)));
    }
    let jwt = section.section("jwt", JWT).and_then(|jwt| {
        let issuer = required(&jwt, "issuer", "a URL").map(|it| it.text.to_owned());
        let audience = required(&jwt, "audience", "a text").map(|it| it.text.to_owned());
        Some(JwtConfig {
            issuer: issuer?,
            audience: audience?,
            scopes: texts(&jwt, "scopes"),
            keys_file: jwt.text("keys_file").map(|it| folder.join(it.text)),
        })
    });
    let anonymous = section.text("anonymous").map(|it| match it.text {
        "default" => it.text.to_owned(),
        file => folder.join(file).display().to_string(),
    });
    match anonymous {
        Some(_) if !files.is_empty() || jwt.is_some() => {
            section.problem("anonymous", "expected `tokens` or `anonymous`, found both");
            AccessConfig::OwnToken
        }
        Some(value) => AccessConfig::Anonymous(value),
        None if files.is_empty() && jwt.is_none() => AccessConfig::OwnToken,
        None => AccessConfig::Tokens { files, jwt },
    }
}

/// The origins of web pages that may call.
pub(super) fn pages(section: &Section<'_>) -> Vec<String> {
    let mut pages = Vec::new();
    for origin in section.texts("origins") {
        match check_origin(origin.text) {
            Ok(origin) => pages.push(origin),
            Err(expected) => section.problem_at(origin.place, &expected),
        }
    }
    pages
}
