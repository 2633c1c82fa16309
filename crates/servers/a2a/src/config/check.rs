//! What can be checked of a configuration before anything is sent.

use chio_core::canonical;
use chio_core::crypto::PublicKey;
use chio_core::text::{is_sound, printable};
use chio_net::client::{Certificates, ClientIdentity, Roots};

use super::A2aAdapterConfig;
use crate::card::security::KeyPlace;
use crate::error::{AgentError, MAX_SHOWN};
use crate::secret::Secret;

/// Headers that the adapter itself sets.
const OWN: [&str; 6] =
    ["a2a-version", "accept", "content-type", "content-length", "host", "x-chio-capability"];

/// The most bytes of a capability in a header.
const MAX_CAPABILITY: usize = 64 << 10;

impl A2aAdapterConfig {
    /// Checks everything that can be checked before anything is sent. Errors name what is wrong and
    /// never repeat a value.
    ///
    /// # Errors
    /// With the first that cannot be used.
    pub(crate) fn check(&self) -> Result<(), AgentError> {
        let headers = self.headers.iter().map(|(name, value)| (KeyPlace::Header, name, value));
        let cookies = self.cookies.iter().map(|(name, value)| (KeyPlace::Cookie, name, value));
        let query = self.query.iter().map(|(name, value)| (KeyPlace::Query, name, value));
        let keys = self.api_keys.iter().map(|(place, name, value)| (*place, name, value));
        for (place, name, value) in headers.chain(cookies).chain(query).chain(keys) {
            let shown = printable(name, MAX_SHOWN);
            match place {
                KeyPlace::Header => check_header(name, value)?,
                KeyPlace::Cookie => check_cookie(name, value)?,
                KeyPlace::Query => check_text(&format!("the query parameter `{shown}`"), value)?,
            }
        }
        self.check_credentials()
    }

    fn check_credentials(&self) -> Result<(), AgentError> {
        if let Some(token) = &self.bearer {
            check_text("the bearer token", token)?;
            if token.expose().contains(char::is_whitespace) {
                return Err(wrong("the bearer token", "text without blanks"));
            }
        }
        if let Some((user, password)) = &self.basic {
            check_text("the user name", user)?;
            check_text("the password", password)?;
            if user.expose().contains(':') {
                return Err(wrong("the user name", "text without a colon"));
            }
        }
        if let Some((id, secret)) = &self.oauth.credentials {
            check_text("the OAuth client id", id)?;
            check_text("the OAuth client secret", secret)?;
        }
        let is_scope = |scope: &String| {
            !scope.is_empty()
                && scope.bytes().all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
        };
        if !self.oauth.scopes.iter().all(is_scope) {
            return Err(wrong("an OAuth scope", "visible ASCII without blanks"));
        }
        self.manifest_key()?;
        self.capability_text().map(drop)
    }

    /// The key of the manifest.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn manifest_key(&self) -> Result<PublicKey, AgentError> {
        PublicKey::from_hex(&self.public_key)
            .map_err(|error| AgentError::Configuration(format!("the manifest's key: {error}")))
    }

    /// The capability as a header carries it.
    ///
    /// # Errors
    /// When it cannot stand in one.
    pub(crate) fn capability_text(&self) -> Result<Option<Secret>, AgentError> {
        let Some(capability) = &self.capability else { return Ok(None) };
        let expected = "a capability of visible ASCII of at most 64 KiB";
        let text =
            canonical::to_string(capability).map_err(|_| wrong("the capability", expected))?;
        if text.len() > MAX_CAPABILITY || !text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            return Err(wrong("the capability", expected));
        }
        Ok(Some(Secret::new(text)))
    }

    /// Which authorities to trust over TLS.
    ///
    /// # Errors
    /// When a certificate cannot be read.
    pub(crate) fn roots(&self) -> Result<Roots, AgentError> {
        if self.root_pems.is_empty() {
            return Ok(Roots::System);
        }
        let all = self.root_pems.join("\n");
        Certificates::from_pem(all.as_bytes())
            .map(Roots::SystemAnd)
            .map_err(|error| AgentError::Configuration(format!("the root authorities: {error}")))
    }

    /// Who to be over mutual TLS.
    ///
    /// # Errors
    /// When the certificate or the key cannot be read.
    pub(crate) fn identity(&self) -> Result<Option<ClientIdentity>, AgentError> {
        let Some((chain, key)) = &self.identity_pems else { return Ok(None) };
        ClientIdentity::from_pem(chain.as_bytes(), key.expose().as_bytes())
            .map(Some)
            .map_err(|error| AgentError::AuthNegotiation(format!("the client identity: {error}")))
    }
}

fn wrong(what: &str, expected: &str) -> AgentError {
    AgentError::AuthNegotiation(format!("{what}: expected {expected}, found something else"))
}

fn check_text(what: &str, value: &Secret) -> Result<(), AgentError> {
    if !is_sound(value.expose()) {
        return Err(wrong(what, "text without blanks around it and control characters"));
    }
    Ok(())
}

fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn check_header(name: &str, value: &Secret) -> Result<(), AgentError> {
    let what = format!("the header `{}`", printable(name, MAX_SHOWN));
    if !is_token(name) {
        return Err(wrong(&what, "a name of a header"));
    }
    if OWN.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(wrong(&what, "one that the adapter does not set itself"));
    }
    if name.eq_ignore_ascii_case("cookie") {
        return Err(wrong(&what, "cookies one by one"));
    }
    check_text(&what, value)?;
    if !value.expose().is_ascii() {
        return Err(wrong(&what, "ASCII"));
    }
    Ok(())
}

fn check_cookie(name: &str, value: &Secret) -> Result<(), AgentError> {
    let what = format!("the cookie `{}`", printable(name, MAX_SHOWN));
    if !is_token(name) {
        return Err(wrong(&what, "a name of a cookie"));
    }
    check_text(&what, value)?;
    let separates = |c: char| matches!(c, ';' | ',' | '"' | '\\') || c.is_whitespace();
    if !value.expose().is_ascii() || value.expose().contains(separates) {
        return Err(wrong(&what, "ASCII without blanks, quotes, commas and semicolons"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use chio_core::crypto::Keypair;

    use crate::A2aAdapterConfig;

    fn config() -> A2aAdapterConfig {
        let key = Keypair::from_seed(&[7; 32]).public_key().to_hex();
        A2aAdapterConfig::new("https://a.example", key)
    }

    #[test]
    fn what_cannot_be_sent_is_refused_by_its_name_and_never_repeated() {
        const BAD: &str = "hunter2\r\nx: y";
        for (config, expected) in [
            (config().with_request_header("X-A", BAD), "the header `x-a`"),
            (config().with_request_header("a b", "v"), "the header `a b`"),
            (config().with_request_header("A2A-Version", "9"), "the header `a2a-version`"),
            (config().with_request_header("Cookie", "a=b"), "the header `cookie`"),
            (config().with_request_query("q", BAD), "the query parameter `q`"),
            (config().with_request_cookie("c", "hunter2; d=1"), "the cookie `c`"),
            (config().with_request_cookie("c=d", "v"), "the cookie `c=d`"),
            (config().with_api_key_header("X-Key", " hunter2"), "the header `X-Key`"),
            (config().with_api_key_cookie("k", "hunter2,"), "the cookie `k`"),
            (config().with_api_key_query("k", ""), "the query parameter `k`"),
            (config().with_bearer_token("hunter2 x"), "the bearer token"),
            (config().with_http_basic("a:b", "hunter2"), "the user name"),
            (config().with_http_basic("a", ""), "the password"),
            (config().with_oauth_client_credentials("", "hunter2"), "the OAuth client id"),
            (config().with_oauth_client_credentials("a", BAD), "the OAuth client secret"),
            (config().with_oauth_scope("hunter2 x"), "an OAuth scope"),
            (A2aAdapterConfig::new("https://a.example", "hunter2"), "the manifest's key"),
        ] {
            let message = config.check().unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
            assert!(!format!("{config:?}").contains("hunter2"));
        }
        config().check().unwrap();
    }

    #[test]
    fn the_last_value_of_a_name_counts() {
        let config = config()
            .with_request_header("X-A", "1")
            .with_request_header("x-a", "2")
            .with_api_key_header("X-Key", "1")
            .with_api_key_header("x-key", "2")
            .with_api_key_query("k", "1")
            .with_api_key_query("K", "2");
        assert_eq!(config.headers.len(), 1);
        assert_eq!(config.headers[0].1.expose(), "2");
        assert_eq!(config.api_keys.len(), 3);
    }

    #[test]
    fn unreadable_pem_is_refused_without_repeating_it() {
        let config =
            config().with_tls_root_ca_pem("hunter2").with_mtls_client_auth_pem("x", "hunter2");
        for message in [
            config.roots().map(drop).unwrap_err().to_string(),
            config.identity().map(drop).unwrap_err().to_string(),
        ] {
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
