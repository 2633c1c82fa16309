//! Which of an agent's interfaces is spoken to.

use chio_core::text::printable;

use crate::card::{Card, Offered};
use crate::config::A2aAdapterConfig;
use crate::error::{AgentError, MAX_SHOWN};
use crate::place::{Places, origin};
/// The interface that is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) url: String,
    pub(crate) binding: Binding,
    pub(crate) dialect: Dialect,
    pub(crate) tenant: Option<String>,
}

/// How requests are put into HTTP, as cards and the registry name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(ascii_case_insensitive, const_into_str)]
pub(crate) enum Binding {
    #[strum(serialize = "JSONRPC")]
    JsonRpc,
    #[strum(serialize = "HTTP+JSON")]
    HttpJson,
}

/// Which version's words are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// A2A 1.x.
    V1,
    /// A2A 0.3.
    V03,
}

impl Dialect {
    /// What `A2A-Version` says.
    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::V1 => "1.0",
            Self::V03 => "0.3",
        }
    }

    /// By major and minor number alone.
    fn read(version: &str) -> Option<Self> {
        let mut numbers = version.trim().split('.').map(str::parse::<u32>);
        match (numbers.next()?.ok()?, numbers.next().and_then(Result::ok)) {
            (1, _) => Some(Self::V1),
            (0, Some(3)) => Some(Self::V03),
            _ => None,
        }
    }
}

/// Chooses the interface: one of 1.x before one of 0.3, then as the card lists them. What cannot
/// be spoken or read, or must not be sent what is configured, is skipped.
///
/// # Errors
/// When none is left, by what is wrong with the first.
pub(crate) fn select(
    card: &Card,
    places: &Places,
    config: &A2aAdapterConfig,
) -> Result<Interface, AgentError> {
    let policy = config.policy.as_ref();
    let numbered = card.interfaces.iter().zip(1..);
    let read: Vec<_> = numbered.map(|(it, number)| understood(it, number, places)).collect();
    let usable = read.iter().filter_map(|read| read.as_ref().ok());
    // SECURITY: the author of a card could have what is for the agent sent to another server.
    let may_get = |origin: &str| !config.has_secrets() || config.trusts(origin);
    let allows = |origin: &str| policy.is_none_or(|policy| policy.allows(origin));
    let is_allowed = |it: &&Interface| {
        let origin = origin_of(it);
        allows(&origin) && may_get(&origin)
    };
    let mut allowed: Vec<&Interface> = usable.filter(is_allowed).collect();
    allowed.sort_by_key(|it| {
        let unfit = policy.is_some_and(|policy| !policy.prefers(it));
        (unfit, it.dialect != Dialect::V1)
    });
    if let Some(first) = allowed.first() {
        return Ok((*first).clone());
    }
    if let Some(interface) = read.iter().find_map(|read| read.as_ref().ok()) {
        let origin = origin_of(interface);
        return Err(match policy.filter(|policy| !policy.allows(&origin)) {
            Some(policy) => policy.no_origin(&origin),
            None => AgentError::PartnerAdmission(untrusted("an interface", &origin)),
        });
    }
    Err(read.into_iter().find_map(Result::err).unwrap_or_else(|| {
        AgentError::NoSupportedInterfaces(format!(
            "expected an interface in the card of `{}`, found none",
            card.name
        ))
    }))
}

/// Why nothing secret goes to an origin that a card names.
pub(crate) fn untrusted(what: &str, origin: &str) -> String {
    format!(
        "expected {what} of the card's own origin or an allowed one, since credentials would be sent \
         there, found `{origin}`; `--allow-origin` or `allow_origins` allows it"
    )
}

fn origin_of(interface: &Interface) -> String {
    url::Url::parse(&interface.url).map_or_else(|_| String::new(), |url| origin(&url))
}

fn understood(offered: &Offered, number: usize, places: &Places) -> Result<Interface, AgentError> {
    // Not by its URL, in which there may be a password.
    let url = url::Url::parse(&offered.url).ok();
    let host = url.as_ref().and_then(url::Url::host_str);
    let at = host.map(|host| format!(", at `{host}`")).unwrap_or_default();
    let which = format!("interface {number} of the card{at}");
    let binding = offered.binding.trim().parse().map_err(|_| {
        let found = printable(&offered.binding, MAX_SHOWN);
        AgentError::UnsupportedBinding(format!(
            "expected JSONRPC or HTTP+JSON of {which}, found `{found}`"
        ))
    })?;
    let dialect = Dialect::read(&offered.version).ok_or_else(|| {
        let found = printable(&offered.version, MAX_SHOWN);
        AgentError::UnsupportedVersion(format!("expected 1.0 or 0.3 of {which}, found `{found}`"))
    })?;
    let judged = places.judge_named(&which, &offered.url)?;
    let url = judged.url().as_str().to_owned();
    Ok(Interface { url, binding, dialect, tenant: offered.tenant.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Dialect, select};
    use crate::card::Card;
    use crate::config::A2aAdapterConfig;
    use crate::place::Places;
    use crate::policy::A2aPartnerPolicy;

    fn config() -> A2aAdapterConfig {
        A2aAdapterConfig::new("https://a.example", "00")
    }

    fn choose(interfaces: &Value, config: &A2aAdapterConfig) -> String {
        let card = json!({
            "name": "A", "skills": [{"id": "s"}], "supportedInterfaces": interfaces,
        });
        let card = Card::read(card.to_string().as_bytes()).unwrap();
        let places = Places::new("https://a.example", None, &[]);
        match select(&card, &places, config) {
            Ok(it) => format!("{} {} {:?}", it.url, it.binding.into_str(), it.dialect),
            Err(error) => error.to_string(),
        }
    }

    fn entry(url: &str, binding: &str, version: &str) -> Value {
        json!({"url": url, "protocolBinding": binding, "protocolVersion": version})
    }

    // covers: A2A-008
    #[test]
    fn the_first_that_can_be_spoken_to_is_chosen_and_of_1_0_before_0_3() {
        for (interfaces, expected) in [
            (
                json!([entry("https://a.example/r", "HTTP+JSON", "1.0")]),
                "https://a.example/r HTTP+JSON V1",
            ),
            (
                json!([
                    entry("a.example:443", "GRPC", "1.0"),
                    entry("::not a url::", "JSONRPC", "1.0"),
                    entry("http://a.example/", "JSONRPC", "1.0"),
                    entry("https://a.example/", "REST", "1.0"),
                    entry("https://a.example/old", "jsonrpc", "0.3.0"),
                    entry("https://a.example/new", "jsonrpc", "1.0.1"),
                    entry("https://a.example/later", "JSONRPC", "1.0"),
                ]),
                "https://a.example/new JSONRPC V1",
            ),
            (
                json!([entry("https://a.example/old", "JSONRPC", "0.3")]),
                "https://a.example/old JSONRPC V03",
            ),
        ] {
            assert_eq!(choose(&interfaces, &config()), expected);
        }
    }

    #[test]
    fn when_none_can_be_the_first_says_why() {
        for (interfaces, expected) in [
            (json!([entry("x:1", "GRPC", "1.0")]), "unsupported binding: expected JSONRPC or"),
            (json!([entry("https://a.example", "JSONRPC", "2.0")]), "unsupported version:"),
            (json!([entry("https://a.example", "JSONRPC", "0.2")]), "unsupported version:"),
            (
                json!([entry("http://a.example", "JSONRPC", "1.0")]),
                "invalid URL: interface 1 of the card, at",
            ),
            (
                json!([entry("http://127.0.0.1:1", "JSONRPC", "1.0")]),
                "invalid URL: interface 1 of the card, at",
            ),
            (json!([]), "no supported interfaces:"),
        ] {
            let found = choose(&interfaces, &config());
            assert!(found.starts_with(expected), "{found}");
        }
    }

    // covers: A2A-065, A2A-066
    #[test]
    fn only_interfaces_of_allowed_origins_are_used() {
        let interfaces = || {
            json!([
                entry("https://b.example/x", "JSONRPC", "1.0"),
                entry("https://a.example:8443/x", "JSONRPC", "1.0"),
            ])
        };
        let policy = A2aPartnerPolicy::new("p").allow_interface_origin("https://A.example:8443/");
        let config = |policy| config().with_partner_policy(policy);
        let found = choose(&interfaces(), &config(policy));
        assert_eq!(found, "https://a.example:8443/x JSONRPC V1");
        let policy = A2aPartnerPolicy::new("p").allow_interface_origin("https://a.example");
        let found = choose(&interfaces(), &config(policy));
        let expected = "partner admission failed: partner `p`: expected an interface of one of \
                        `https://a.example`, found only `https://b.example`";
        assert_eq!(found, expected);
    }

    #[test]
    fn credentials_go_to_the_origin_of_the_card_and_to_those_that_are_allowed() {
        let other = || json!([entry("https://b.example/x", "JSONRPC", "1.0")]);
        let both = json!([
            entry("https://b.example/x", "JSONRPC", "1.0"),
            entry("https://a.example/y", "JSONRPC", "0.3"),
        ]);
        assert_eq!(choose(&other(), &config()), "https://b.example/x JSONRPC V1");
        for config in [
            config().with_bearer_token("t"),
            config().with_http_basic("u", "p"),
            config().with_api_key_query("k", "v"),
            config().with_request_header("x-a", "v"),
            config().with_oauth_client_credentials("i", "s"),
        ] {
            let found = choose(&other(), &config);
            assert!(found.contains("own origin or an allowed one"), "{found}");
            assert_eq!(choose(&both, &config), "https://a.example/y JSONRPC V03");
            let policy = A2aPartnerPolicy::new("p").allow_interface_origin("https://b.example");
            let config = config.with_partner_policy(policy);
            assert_eq!(choose(&other(), &config), "https://b.example/x JSONRPC V1");
        }
    }

    #[test]
    fn versions_are_compared_by_major_and_minor() {
        for (version, expected) in [
            ("1", Some(Dialect::V1)),
            ("1.0", Some(Dialect::V1)),
            ("1.7.2", Some(Dialect::V1)),
            ("0.3", Some(Dialect::V03)),
            ("0.3.26", Some(Dialect::V03)),
            ("0.30", None),
            ("0.2.6", None),
            ("10.0", None),
            ("v1", None),
        ] {
            assert_eq!(Dialect::read(version), expected, "{version}");
        }
    }
}
