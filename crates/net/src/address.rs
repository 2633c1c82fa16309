//! Which addresses may be reached.
//!
//! A URL is judged twice: as text, when it comes in, and by the addresses that its name has, when a
//! connection is made. Between the second judgement and the connection nothing is resolved again,
//! so that a name which changes its address (DNS rebinding) gains nothing.

mod block;
mod class;
mod name;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

pub use block::{Block, BlockError};
pub use class::{AddressClass, classify, is_this_machine};
pub use name::{AddressPattern, PatternError};

use class::{hidden, is_translated};
use name::{is_local_name, is_loopback_name};

/// The longest URL that is read.
const MAX_URL: usize = 8 * 1024;

/// The longest host name that DNS can hold.
const MAX_NAME: usize = 253;

/// Ports of protocols that a forged HTTP request could speak to: those that browsers refuse.
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// Which addresses may be reached. By default: public ones, over https.
///
/// What is denied by pattern is denied whatever else is allowed. Metadata addresses are reached
/// only where they are allowed one by one.
#[derive(Debug, Clone, Default)]
pub struct AddressRules {
    loopback: bool,
    http: bool,
    allow: Vec<AddressPattern>,
    deny: Vec<AddressPattern>,
}

/// Why an address may not be reached. Paths, queries and credentials of URLs never appear in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// No URL that every reader understands in the same way.
    #[error("expected an absolute http or https URL, found {0}")]
    Malformed(&'static str),
    /// A scheme that is not allowed.
    #[error("expected `https` to `{host}`, found `http`")]
    PlainHttp {
        /// The host.
        host: String,
    },
    /// Name or password before the host.
    #[error("expected a URL without user name and password, found one with them")]
    UserInfo,
    /// A port of another protocol.
    #[error("expected a port for HTTP, found {0}")]
    Port(u16),
    /// A name that means something only inside a network.
    #[error("expected a public host name, found `{host}`, which is local")]
    LocalName {
        /// The name.
        host: String,
    },
    /// On the list of what is denied.
    #[error("`{host}` is denied by the address rules")]
    Denied {
        /// The host.
        host: String,
    },
    /// An address of a kind that is not allowed.
    #[error("expected a public address for `{host}`, found `{address}` ({class})")]
    Class {
        /// The host.
        host: String,
        /// Its address.
        address: IpAddr,
        /// What kind of address that is.
        class: AddressClass,
    },
    /// A name without addresses.
    #[error("expected an address for `{host}`, found none")]
    NoAddress {
        /// The host.
        host: String,
    },
}

/// A URL whose text was judged. Only [`AddressRules::judge`] makes one.
#[derive(Clone, PartialEq, Eq)]
pub struct Destination {
    url: Url,
    host: Host<String>,
}

impl AddressRules {
    /// Public addresses, over https.
    pub fn public_only() -> Self {
        Self::default()
    }

    /// As these, and this machine, also over http.
    #[must_use]
    pub fn with_loopback(mut self) -> Self {
        self.loopback = true;
        self
    }

    /// As these, also over http.
    #[must_use]
    pub fn with_http(mut self) -> Self {
        self.http = true;
        self
    }

    /// As these, and what the pattern means: a block of addresses, or a host whatever its address.
    #[must_use]
    pub fn allow(mut self, pattern: AddressPattern) -> Self {
        self.allow.push(pattern);
        self
    }

    /// As these, without what the pattern means.
    #[must_use]
    pub fn deny(mut self, pattern: AddressPattern) -> Self {
        self.deny.push(pattern);
        self
    }

    /// As these, without whatever is not public: the loopback and all that is allowed by pattern.
    pub(crate) fn without_grants(&self) -> Self {
        Self { loopback: false, allow: Vec::new(), ..self.clone() }
    }

    /// Judges a URL by its text. A host that is an address is then wholly judged; of a name,
    /// [`AddressRules::judge_addresses`] judges the addresses.
    ///
    /// # Errors
    /// When the rules do not allow it.
    pub fn judge(&self, text: &str) -> Result<Destination, AddressError> {
        check_text(text)?;
        let authority = authority(text)?;
        if authority.contains('@') {
            return Err(AddressError::UserInfo);
        }
        let url = Url::parse(text).map_err(|_| AddressError::Malformed("what is no URL"))?;
        self.judge_parsed(url)
    }

    /// Judges where `text`, which may be relative, leads from a destination.
    ///
    /// # Errors
    /// As [`AddressRules::judge`].
    pub fn judge_from(&self, base: &Destination, text: &str) -> Result<Destination, AddressError> {
        check_text(text)?;
        let scheme = text.split_once(':').filter(|(scheme, _)| is_web(scheme));
        if scheme.is_some_and(|(_, rest)| !rest.starts_with("//")) {
            return Err(AddressError::Malformed("one without `://`"));
        }
        let url = base.url.join(text).map_err(|_| AddressError::Malformed("what is no URL"))?;
        self.judge_parsed(url)
    }

    fn judge_parsed(&self, mut url: Url) -> Result<Destination, AddressError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::Malformed("another scheme"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::UserInfo);
        }
        url.set_fragment(None);
        let host = plain_host(&mut url)?;
        let destination = Destination { url, host };
        let port = destination.port();
        if BAD_PORTS.contains(&port) {
            return Err(AddressError::Port(port));
        }
        match &destination.host {
            Host::Domain(name) => self.judge_name(name)?,
            Host::Ipv4(address) => self.judge_address(&destination, IpAddr::V4(*address))?,
            Host::Ipv6(address) => self.judge_address(&destination, IpAddr::V6(*address))?,
        }
        if !destination.is_https() && !self.may_be_plain(&destination) {
            return Err(AddressError::PlainHttp { host: destination.host() });
        }
        Ok(destination)
    }

    /// Judges the addresses that a destination's name has. All must be allowed: a name with
    /// addresses of both kinds is not trusted at all.
    ///
    /// # Errors
    /// When there is none, or one of them is not allowed.
    pub fn judge_addresses(
        &self,
        destination: &Destination,
        addresses: &[IpAddr],
    ) -> Result<(), AddressError> {
        if addresses.is_empty() {
            return Err(AddressError::NoAddress { host: destination.host() });
        }
        for address in addresses {
            self.judge_address(destination, *address)?;
            // SECURITY: a name below `localhost` may be answered by any host's server.
            if !destination.is_https() && !self.http && !is_this_machine(*address) {
                return Err(AddressError::PlainHttp { host: destination.host() });
            }
        }
        Ok(())
    }

    fn judge_name(&self, name: &str) -> Result<(), AddressError> {
        if self.deny.iter().any(|pattern| pattern.holds_name(name)) {
            return Err(AddressError::Denied { host: name.to_owned() });
        }
        let allowed = self.allows_name(name) || (self.loopback && is_loopback_name(name));
        if is_local_name(name) && !allowed {
            return Err(AddressError::LocalName { host: name.to_owned() });
        }
        Ok(())
    }

    fn judge_address(&self, from: &Destination, address: IpAddr) -> Result<(), AddressError> {
        let hidden = hidden(address);
        let denies = |block: &Block| {
            block.contains(address) || hidden.iter().any(|inner| block.contains(*inner))
        };
        if self.deny.iter().filter_map(AddressPattern::block).any(denies) {
            return Err(AddressError::Denied { host: from.host() });
        }
        // SECURITY: a refusal counts for every address that may be meant, a grant only for the one
        // that this system connects to.
        let plain = address.to_canonical();
        let class = classify(address);
        let grants = |block: &Block| block.contains(plain);
        let mut blocks = self.allow.iter().filter_map(AddressPattern::block);
        let allowed = match class {
            AddressClass::Public => true,
            // SECURITY: a wide block or a trusted name must not open the door to credentials.
            AddressClass::Metadata => blocks.any(|block| block.is_single() && grants(block)),
            _ if self.loopback && is_this_machine(address) => true,
            _ => blocks.any(grants) || (may_be_meant(address, class) && self.trusts_host(from)),
        };
        if allowed {
            return Ok(());
        }
        Err(AddressError::Class { host: from.host(), address, class })
    }

    fn trusts_host(&self, destination: &Destination) -> bool {
        matches!(&destination.host, Host::Domain(name) if self.allows_name(name))
    }

    fn allows_name(&self, name: &str) -> bool {
        self.allow.iter().any(|pattern| pattern.holds_name(name))
    }

    /// Whether http will do: anywhere if the rules say so, else on this machine.
    fn may_be_plain(&self, destination: &Destination) -> bool {
        self.http
            || match &destination.host {
                Host::Domain(name) => self.loopback && is_loopback_name(name),
                Host::Ipv4(address) => is_this_machine(IpAddr::V4(*address)),
                Host::Ipv6(address) => is_this_machine(IpAddr::V6(*address)),
            }
    }
}

/// Whether a trusted name may lead to an address: to none that is no host's, and to none that
/// a gateway on the way turns into another one.
fn may_be_meant(address: IpAddr, class: AddressClass) -> bool {
    !class.is_no_host() && !is_translated(address)
}

/// Refuses what readers of URLs are known to disagree about: WHATWG readers drop some characters
/// and turn others, and older ones do not.
fn check_text(text: &str) -> Result<(), AddressError> {
    if text.len() > MAX_URL {
        return Err(AddressError::Malformed("one that is too long"));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(AddressError::Malformed("spaces, control characters or backslashes"));
    }
    Ok(())
}

fn is_web(scheme: &str) -> bool {
    ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web))
}

/// What stands between `//` and the path.
fn authority(text: &str) -> Result<&str, AddressError> {
    let (scheme, rest) =
        text.split_once("://").ok_or(AddressError::Malformed("one without `://`"))?;
    // SECURITY: a later `://` is no end of a scheme; `https:a://b` leads to `a`.
    if !is_web(scheme) {
        return Err(AddressError::Malformed("another scheme"));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(AddressError::Malformed("one without a host"));
    }
    Ok(authority)
}

/// The host, without the dot that may end a name.
fn plain_host(url: &mut Url) -> Result<Host<String>, AddressError> {
    let malformed = |_| AddressError::Malformed("a host that is neither name nor address");
    let host = match url.host() {
        Some(Host::Domain(name)) => Host::Domain(name.to_owned()),
        Some(Host::Ipv4(address)) => Host::Ipv4(address),
        Some(Host::Ipv6(address)) => Host::Ipv6(address),
        None => return Err(AddressError::Malformed("one without a host")),
    };
    let Host::Domain(name) = &host else { return Ok(host) };
    let plain = name.strip_suffix('.').unwrap_or(name);
    let is_name = plain.len() <= MAX_NAME
        && plain.split('.').all(|label| !label.is_empty() && label.len() <= 63);
    if !is_name {
        return Err(AddressError::Malformed("a host that is neither name nor address"));
    }
    if plain != name {
        url.set_host(Some(plain)).map_err(malformed)?;
    }
    Ok(Host::Domain(plain.to_owned()))
}

impl Destination {
    /// The URL, without fragment.
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// The host as text.
    pub fn host(&self) -> String {
        self.host.to_string()
    }

    /// The host as a name to look up, or an address.
    pub(crate) const fn parsed_host(&self) -> &Host<String> {
        &self.host
    }

    /// The port, also where it is the scheme's own.
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or_default()
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Whether both are the same scheme, host and port.
    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        self.url.origin() == other.url.origin()
    }
}

impl fmt::Debug for Destination {
    // Paths and queries may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Destination({}://{}:{})", self.url.scheme(), self.host, self.port())
    }
}
