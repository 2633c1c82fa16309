//! Where an edge over byte streams listens.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where an edge over byte streams listens: written `unix:PATH` or `tcp:ADDRESS:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP port of a loopback address.
    Tcp(SocketAddr),
}

/// A text that is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `unix:PATH` or `tcp:ADDRESS:PORT`, found `{0}`")]
pub struct EndpointError(String);

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let unknown = || EndpointError(text.to_owned());
        match text.split_once(':').ok_or_else(unknown)? {
            ("unix", path) if !path.is_empty() => Ok(Self::Unix(path.into())),
            ("tcp", address) => address.parse().map(Self::Tcp).map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Endpoint;

    #[test]
    fn endpoints_are_read_as_they_are_written() {
        for text in ["unix:/run/chio.sock", "unix:a:b", "tcp:127.0.0.1:9000", "tcp:[::1]:9000"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        for text in ["", "unix", "unix:", "tcp:localhost:1", "tcp:127.0.0.1", "http://a"] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
