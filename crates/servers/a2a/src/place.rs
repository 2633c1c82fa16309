//! Which URLs may be spoken to: https, and plain http on this machine alone.

use chio_net::address::{AddressPattern, AddressRules, Destination};
use url::{Host, Url};

use crate::error::AgentError;

/// Where a card is, below a base URL.
const WELL_KNOWN: &str = "/.well-known/agent-card.json";

/// The hosts to which plain http will do.
const NEAR: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Which URLs may be spoken to.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    rules: AddressRules,
    /// Whether the agent is on this machine, so that what it names may be, too.
    near: bool,
}

impl Places {
    /// The places of an agent, and those that the operator allows.
    pub(crate) fn new(
        target: &str,
        token_endpoint: Option<&str>,
        allow: &[AddressPattern],
    ) -> Self {
        let near = is_on_this_machine(target);
        let mut rules = AddressRules::public_only();
        if near || token_endpoint.is_some_and(is_on_this_machine) {
            rules = rules.with_loopback();
        }
        let rules = allow.iter().cloned().fold(rules, AddressRules::allow);
        Self { rules, near }
    }

    pub(crate) const fn rules(&self) -> &AddressRules {
        &self.rules
    }

    /// Judges a URL that the operator gave.
    ///
    /// # Errors
    /// When it may not be reached.
    pub(crate) fn judge(&self, what: &str, url: &str) -> Result<Destination, AgentError> {
        let wrong = |problem: String| AgentError::InvalidUrl(format!("{what}: {problem}"));
        let judged = self.rules.judge(url).map_err(|error| wrong(error.to_string()))?;
        let host = judged.url().host_str().unwrap_or_default();
        if !judged.is_https() && !NEAR.contains(&host) {
            return Err(wrong(format!("expected `https` to `{host}`, found `http`")));
        }
        Ok(judged)
    }

    /// Judges a URL that a remote document gave.
    ///
    /// # Errors
    /// When it may not be reached.
    pub(crate) fn judge_named(&self, what: &str, url: &str) -> Result<Destination, AgentError> {
        let judged = self.judge(what, url)?;
        // SECURITY: an agent elsewhere must not have us call what runs on this machine.
        if !self.near && is_on_this_machine(url) {
            let host = judged.url().host_str().unwrap_or_default();
            return Err(AgentError::InvalidUrl(format!(
                "{what}: expected a host that is not this machine, since the agent is not, found `{host}`"
            )));
        }
        Ok(judged)
    }

    /// Where the card is.
    ///
    /// # Errors
    /// When the target may not be reached.
    pub(crate) fn card(&self, target: &str) -> Result<Url, AgentError> {
        let mut url = self.judge("the target", target)?.url().clone();
        if url.path().to_ascii_lowercase().ends_with(".json") {
            return Ok(url);
        }
        let path = format!("{}{WELL_KNOWN}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url.set_query(None);
        Ok(url)
    }
}

/// Whether a URL leads to this machine by what it says.
fn is_on_this_machine(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

/// The name of an agent at this URL in grants, calls and receipts, unless it is given another; none
/// where the text is no URL of an agent.
pub fn server_id_of(target: &str) -> Option<String> {
    let url = Url::parse(target).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    is_web.then(|| server_id(&url))
}

/// The name of an agent's server: its host, and its port where one host has many.
pub(crate) fn server_id(card: &Url) -> String {
    let host = card.host_str().unwrap_or("agent");
    match card.port_or_known_default() {
        Some(port) if is_on_this_machine(card.as_str()) => format!("a2a:{host}:{port}"),
        _ => format!("a2a:{host}"),
    }
}

/// Scheme, host and port, where it is not the scheme's own.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Checks a URL to which the agent is to send notifications.
///
/// # Errors
/// When it is neither https nor on this machine, or has a user name or a fragment.
pub(crate) fn check_callback(text: &str) -> Result<(), AgentError> {
    let wrong = |found: &str| {
        AgentError::InvalidUrl(format!(
            "expected an https URL for callbacks, or http to this machine, found {found}"
        ))
    };
    let url = Url::parse(text).map_err(|_| wrong("what is no URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("one with a user name"));
    }
    if url.fragment().is_some() {
        return Err(wrong("one with a fragment"));
    }
    match (url.scheme(), url.host_str()) {
        ("https", Some(_)) => Ok(()),
        ("http", Some(host)) if NEAR.contains(&host) => Ok(()),
        ("http", Some(_)) => Err(wrong("http to another host")),
        _ => Err(wrong("another scheme")),
    }
}

/// A segment of a path, or an error for one that would be none.
///
/// # Errors
/// When it would lead to another path.
pub(crate) fn segment(member: &str, text: &str) -> Result<String, AgentError> {
    // SECURITY: URL parsers resolve these before any check sees them.
    if matches!(text, "" | "." | "..") {
        let problem = format!("expected an id in `{member}`, found a path");
        return Err(AgentError::InvalidToolInput(problem));
    }
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::{Places, check_callback, segment, server_id_of};

    // covers: A2A-007
    #[test]
    fn a_base_url_leads_to_the_well_known_card_and_a_card_url_to_itself() {
        for (target, card) in [
            ("https://a.example", "https://a.example/.well-known/agent-card.json"),
            ("https://a.example/", "https://a.example/.well-known/agent-card.json"),
            ("https://a.example/x/?q#f", "https://a.example/x/.well-known/agent-card.json"),
            ("https://a.example/cards/me.json", "https://a.example/cards/me.json"),
            ("https://a.example/me.JSON?v=1", "https://a.example/me.JSON?v=1"),
        ] {
            let places = Places::new(target, None, &[]);
            assert_eq!(places.card(target).unwrap().as_str(), card);
        }
    }

    // covers: A2A-015, A2A-016
    #[test]
    fn plain_http_is_for_this_machine_alone() {
        for (url, fine) in [
            ("https://a.example", true),
            ("http://a.example", false),
            ("http://localhost:1080/x", true),
            ("http://127.0.0.1:1080", true),
            ("http://[::1]:1080", true),
            ("http://127.0.0.2:1080", false),
            ("http://a.localhost:1080", false),
            ("https://127.0.0.1:1080", true),
            ("ftp://a.example", false),
            ("https://10.0.0.1", false),
            ("https://u:p@a.example", false),
        ] {
            assert_eq!(Places::new(url, None, &[]).judge("x", url).is_ok(), fine, "{url}");
        }
    }

    #[test]
    fn an_agent_elsewhere_cannot_name_this_machine() {
        let (far, near) = ("https://a.example", "http://127.0.0.1:1080");
        assert!(Places::new(far, None, &[]).judge_named("x", near).is_err());
        assert!(Places::new(near, None, &[]).judge_named("x", near).is_ok());
        assert!(Places::new(near, None, &[]).judge_named("x", far).is_ok());
        // An endpoint that the operator gave may be here; one that the card gives still may not.
        let mixed = Places::new(far, Some(near), &[]);
        assert!(mixed.judge("x", near).is_ok());
        assert!(mixed.judge_named("x", near).is_err());
    }

    #[test]
    fn a_server_is_named_by_its_host() {
        for (card, name) in [
            ("https://agent.example.com/x.json", "a2a:agent.example.com"),
            ("https://agent.example.com:8443/x.json", "a2a:agent.example.com"),
            ("http://127.0.0.1:8080/x.json", "a2a:127.0.0.1:8080"),
            ("http://[::1]:8080/x.json", "a2a:[::1]:8080"),
            ("http://localhost/x.json", "a2a:localhost:80"),
        ] {
            assert_eq!(server_id_of(card).as_deref(), Some(name));
        }
        for other in ["agent.example.com", "ftp://a.example", "mailto:a@b.example", ""] {
            assert_eq!(server_id_of(other), None, "{other}");
        }
    }

    // covers: A2A-058, A2A-059
    #[test]
    fn callbacks_are_https_or_on_this_machine() {
        for (url, fine) in [
            ("https://hook.example/x?y", true),
            ("http://hook.example/x", false),
            ("http://localhost:9/x", true),
            ("http://127.0.0.1:9/x", true),
            ("http://[::1]:9/x", true),
            ("http://127.0.0.3:9/x", false),
            ("https://u@hook.example/", false),
            ("https://u:p@hook.example/", false),
            ("https://hook.example/#f", false),
            ("ftp://hook.example/", false),
            ("hook.example", false),
        ] {
            assert_eq!(check_callback(url).is_ok(), fine, "{url}");
        }
    }

    #[test]
    fn ids_stay_one_segment() {
        assert_eq!(segment("id", "task-1.a_b~c").unwrap(), "task-1.a_b~c");
        assert_eq!(segment("id", "a/b c:d%é").unwrap(), "a%2Fb%20c%3Ad%25%C3%A9");
        for path in ["", ".", ".."] {
            assert!(segment("id", path).is_err(), "{path}");
        }
    }
}
