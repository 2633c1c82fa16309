//! What a card says about security: schemes, and which of them a call needs.

use chio_core::text::printable;
use serde_json::{Map, Value};

use crate::error::{AgentError, MAX_SHOWN};

/// Ways to meet a requirement: any one of them will do.
pub(crate) type Requirements = Vec<Alternative>;

/// What one way needs: all of it.
pub(crate) type Alternative = Vec<SchemeRequirement>;

/// A scheme that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemeRequirement {
    /// Its name in the card.
    pub(crate) scheme: String,
    /// What the credentials have to be good for.
    pub(crate) scopes: Vec<String>,
}

/// A security scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// A bearer token.
    Bearer,
    /// A user name and a password.
    Basic,
    /// A token that an authorization server gives.
    OAuth2 {
        /// Where clients get tokens by their own credentials.
        token_url: Option<String>,
        /// Where the authorization server says what it has.
        metadata_url: Option<String>,
    },
    /// A token of an OpenID provider.
    OpenId {
        /// Where the provider says what it has.
        url: String,
    },
    /// A client certificate.
    MutualTls,
    /// A key under a name.
    ApiKey {
        /// Where the key goes.
        place: KeyPlace,
        /// Under which name.
        name: String,
    },
    /// Something that is not spoken here, and what.
    Unknown(String),
}

/// Where an API key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive, const_into_str)]
pub(crate) enum KeyPlace {
    Header,
    Query,
    Cookie,
}

/// The members of 1.0 that say which kind a scheme is of, and what 0.3 has in `type`.
const KINDS: [(&str, &str, &str); 5] = [
    ("httpAuthSecurityScheme", "http_auth_security_scheme", "http"),
    ("oauth2SecurityScheme", "oauth2_security_scheme", "oauth2"),
    ("openIdConnectSecurityScheme", "open_id_connect_security_scheme", "openIdConnect"),
    ("mtlsSecurityScheme", "mtls_security_scheme", "mutualTLS"),
    ("apiKeySecurityScheme", "api_key_security_scheme", "apiKey"),
];

impl Scheme {
    /// Reads a scheme. One that cannot be read is unknown, and satisfied by nothing.
    pub(crate) fn read(value: &Value) -> Self {
        let unknown = || Self::Unknown("what is no security scheme".to_owned());
        let Some(object) = value.as_object() else { return unknown() };
        let mut kinds = KINDS.iter().filter_map(|(camel, snake, old)| {
            Some((*old, object.get(*camel).or_else(|| object.get(*snake))?))
        });
        match (kinds.next(), kinds.next()) {
            (Some((kind, Value::Object(inner))), None) => Self::from_kind(kind, inner),
            (Some(_), _) => unknown(),
            (None, _) => match object.get("type").and_then(Value::as_str) {
                Some(kind) => Self::from_kind(kind, object),
                None => Self::Unknown(first_name(object)),
            },
        }
    }

    fn from_kind(kind: &str, object: &Map<String, Value>) -> Self {
        let text = |names: &[&str]| {
            let mut found = names.iter().filter_map(|name| object.get(*name)?.as_str());
            found.next().filter(|text| !text.trim().is_empty()).map(str::to_owned)
        };
        let scheme = match kind {
            "http" => text(&["scheme"]).map(|name| match name.to_ascii_lowercase().as_str() {
                "bearer" => Self::Bearer,
                "basic" => Self::Basic,
                other => {
                    Self::Unknown(format!("HTTP authentication `{}`", printable(other, MAX_SHOWN)))
                }
            }),
            "oauth2" => {
                let flows = ["clientCredentials", "client_credentials"];
                let flows = flows.iter().filter_map(|name| object.get("flows")?.get(*name));
                let urls = ["tokenUrl", "token_url"];
                let mut in_flow = flows.flat_map(|flow| urls.map(|name| flow.get(name)));
                let in_flow = in_flow.find_map(|url| url?.as_str()).map(str::to_owned);
                Some(Self::OAuth2 {
                    token_url: text(&urls).or(in_flow),
                    metadata_url: text(&["oauth2MetadataUrl", "oauth2_metadata_url"]),
                })
            }
            "openIdConnect" => {
                text(&["openIdConnectUrl", "open_id_connect_url"]).map(|url| Self::OpenId { url })
            }
            "mutualTLS" => Some(Self::MutualTls),
            "apiKey" => {
                let place = text(&["location", "in"]).and_then(|name| name.parse().ok());
                place.zip(text(&["name"])).map(|(place, name)| Self::ApiKey { place, name })
            }
            other => Some(Self::Unknown(format!("`{}`", printable(other, MAX_SHOWN)))),
        };
        scheme.unwrap_or_else(|| Self::Unknown(format!("`{kind}` without what it needs")))
    }
}

fn first_name(object: &Map<String, Value>) -> String {
    object
        .keys()
        .next()
        .map_or("nothing".to_owned(), |name| format!("`{}`", printable(name, MAX_SHOWN)))
}

/// Reads requirements of either spelling.
///
/// # Errors
/// When they are none: what is needed and not understood must not be left out.
pub(crate) fn requirements(
    whose: &str,
    value: Option<Value>,
) -> Result<Option<Requirements>, AgentError> {
    let wrong = |expected: &str| {
        AgentError::Protocol(format!("expected {expected} in the security requirements of {whose}"))
    };
    let alternatives = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(alternatives)) => alternatives,
        Some(_) => return Err(wrong("a list")),
    };
    let read = |alternative: &Value| {
        let object = alternative.as_object().ok_or_else(|| wrong("objects"))?;
        let schemes = match object.get("schemes") {
            Some(schemes) if object.len() == 1 && !schemes.is_array() => {
                schemes.as_object().ok_or_else(|| wrong("an object as `schemes`"))?
            }
            _ => object,
        };
        let asked = schemes.iter().map(|(scheme, scopes)| {
            let scopes = scopes_of(scopes).ok_or_else(|| wrong("lists of scopes"))?;
            Ok(SchemeRequirement { scheme: scheme.clone(), scopes })
        });
        asked.collect()
    };
    alternatives.iter().map(read).collect::<Result<_, _>>().map(Some)
}

fn scopes_of(value: &Value) -> Option<Vec<String>> {
    let list = match value {
        Value::Null => return Some(Vec::new()),
        Value::Object(wrapped) => match wrapped.get("list") {
            None | Some(Value::Null) => return Some(Vec::new()),
            Some(list) => list.as_array()?,
        },
        other => other.as_array()?,
    };
    list.iter().map(|scope| scope.as_str().map(str::to_owned)).collect()
}
