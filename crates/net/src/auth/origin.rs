//! Which `Host` and `Origin` a request may carry, so that no web page reaches a server on this
//! machine through a name of its own (DNS rebinding).

use http::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use url::{Host, Origin, Url};

/// What browsers say about where a request comes from (W3C Fetch Metadata).
const SITE: &str = "sec-fetch-site";

/// Which `Host` and `Origin` a request may carry.
#[derive(Debug, Clone, Default)]
pub struct OriginRules {
    /// Hosts with their ports; without a list, every host.
    hosts: Option<Vec<(Host<String>, u16)>>,
    /// The same hosts as clients usually write them, which need not be read each time.
    usual: Vec<String>,
    origins: Vec<Origin>,
    /// Pages of other servers that the operator names.
    pages: Vec<Origin>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OriginError {
    /// No host, several, or none that can be read.
    #[error("expected one `Host`, found none, several, or something else")]
    HostForm,
    /// A host that is not this server's.
    #[error("expected a `Host` of this server, found another")]
    Host,
    /// Several origins, or none that can be read.
    #[error("expected at most one `Origin`, found several or something else")]
    OriginForm,
    /// A page that may not call this server.
    #[error("expected no `Origin` or an allowed one, found another")]
    Origin,
    /// A request that a browser makes for a page of another site, without saying which.
    #[error("expected `Sec-Fetch-Site` of this server's own pages or none, found another")]
    Site,
}

impl OriginRules {
    /// For a server on a loopback address: the names of this machine with the server's port, and
    /// pages that come from there.
    pub fn loopback(port: u16) -> Self {
        let names = ["localhost", "127.0.0.1", "[::1]"];
        let hosts: Vec<_> = names
            .iter()
            .filter_map(|name| Host::parse(name).ok())
            .map(|host| (host, port))
            .collect();
        let origins = hosts.iter().flat_map(|(host, port)| {
            ["http", "https"].map(|scheme| Origin::Tuple(scheme.to_owned(), host.clone(), *port))
        });
        let usual = names.iter().map(|name| format!("{name}:{port}")).collect();
        Self { origins: origins.collect(), hosts: Some(hosts), usual, pages: Vec::new() }
    }

    /// For a server behind a name that others can reach: every host, and no page.
    pub fn any_host() -> Self {
        Self::default()
    }

    /// As this, and this host, written `name:port`; without a port, that of https. None where the
    /// text is no host.
    pub fn with_host(mut self, host: &str) -> Option<Self> {
        self.hosts.get_or_insert_default().push(read_host(host, 443)?);
        Some(self)
    }

    /// As this, and pages of this origin, written `https://name:port`. None where the text is no
    /// origin.
    pub fn with_pages_of(mut self, origin: &str) -> Option<Self> {
        // It would be a name like any other, and is meant for all names.
        let origin = Some(origin).filter(|origin| !origin.contains('*'))?;
        self.pages.push(read_origin(origin)?);
        Some(self)
    }

    /// Whether the operator names pages of other servers.
    pub const fn names_pages(&self) -> bool {
        !self.pages.is_empty()
    }

    /// The origin of a request that comes from a page which the operator named.
    pub fn named_page<'h>(&self, headers: &'h HeaderMap) -> Option<&'h HeaderValue> {
        let mut origins = headers.get_all(ORIGIN).iter();
        let (origin, None) = (origins.next()?, origins.next()) else { return None };
        let read = read_origin(origin.to_str().ok()?)?;
        self.pages.contains(&read).then_some(origin)
    }

    /// Checks a request's headers. `authority` is what HTTP/2 has in place of `Host`.
    ///
    /// # Errors
    /// When they name another server, or a page that may not call this one.
    pub fn check(&self, headers: &HeaderMap, authority: Option<&str>) -> Result<(), OriginError> {
        self.check_host(headers, authority)?;
        let mut origins = headers.get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else { return check_site(headers) };
        let text = origin.to_str().ok().filter(|_| origins.next().is_none());
        let text = text.ok_or(OriginError::OriginForm)?;
        // `null` is what sandboxed pages and files send, of every origin.
        if text == "null" {
            return Err(OriginError::Origin);
        }
        let origin = read_origin(text).ok_or(OriginError::OriginForm)?;
        let is_allowed = self.origins.contains(&origin) || self.pages.contains(&origin);
        if is_allowed { Ok(()) } else { Err(OriginError::Origin) }
    }

    fn check_host(&self, headers: &HeaderMap, authority: Option<&str>) -> Result<(), OriginError> {
        let mut values = headers.get_all(HOST).iter();
        let (value, other) = (values.next(), values.next());
        // SECURITY: with two, this server and a proxy before it could mean different ones.
        if other.is_some() {
            return Err(OriginError::HostForm);
        }
        let Some(hosts) = &self.hosts else { return Ok(()) };
        let header = value.map(|value| value.to_str().map_err(|_| OriginError::HostForm));
        let named = [header.transpose()?, authority];
        if named == [None, None] {
            return Err(OriginError::HostForm);
        }
        // SECURITY: where both are there, both must be ours.
        for text in named.into_iter().flatten() {
            if self.usual.iter().any(|usual| usual == text) {
                continue;
            }
            // What is left out is the port of http; one of https says so in the rules.
            let plain = read_host(text, 80).ok_or(OriginError::HostForm)?;
            let secured = read_host(text, 443).ok_or(OriginError::HostForm)?;
            if !hosts.contains(&plain) && !hosts.contains(&secured) {
                return Err(OriginError::Host);
            }
        }
        Ok(())
    }
}

/// Refuses what a browser sends for another site and without an `Origin`, such as an image or a link.
fn check_site(headers: &HeaderMap) -> Result<(), OriginError> {
    let mut sites = headers.get_all(SITE).iter();
    let ours = sites.all(|site| matches!(site.as_bytes(), b"same-origin" | b"none"));
    if ours { Ok(()) } else { Err(OriginError::Site) }
}

/// Reads `host:port` as URLs are read.
fn read_host(text: &str, default: u16) -> Option<(Host<String>, u16)> {
    if text.contains(['/', '?', '#', '@', '\\']) || text.contains(char::is_whitespace) {
        return None;
    }
    let url = Url::parse(&format!("http://{text}/")).ok()?;
    // From the text, because the URL does not tell a port that was written from the scheme's own.
    let written = text.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
    let port = match written {
        Some((_, port)) => port.parse().ok()?,
        None => default,
    };
    Some((url.host()?.to_owned(), port))
}

/// Reads an origin: a scheme and a host, and nothing behind it.
fn read_origin(text: &str) -> Option<Origin> {
    let (scheme, host) = text.split_once("://")?;
    if !matches!(scheme, "http" | "https") {
        return None;
    }
    let default = if scheme == "https" { 443 } else { 80 };
    let (host, port) = read_host(host, default)?;
    Some(Origin::Tuple(scheme.to_owned(), host, port))
}
