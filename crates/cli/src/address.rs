//! Addresses to listen at, as people write them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Reads an address and a port. Without an address, it is that of this machine alone.
///
/// # Errors
/// With what was expected.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let port = port.parse().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()));
    let here = matches!(host, "" | "localhost");
    match port.filter(|_| here) {
        Some(port) => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        None => Err("expected an address such as `127.0.0.1:9090`, `localhost:9090` or `9090`, \
                     which are this machine alone (0.0.0.0:9090 is every address; a command stands \
                     after `--`)"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_port_alone_is_of_this_machine() {
        for (text, expected) in [
            ("9191", Some("127.0.0.1:9191")),
            (":9191", Some("127.0.0.1:9191")),
            ("localhost:9191", Some("127.0.0.1:9191")),
            ("127.0.0.1:0", Some("127.0.0.1:0")),
            ("0.0.0.0:80", Some("0.0.0.0:80")),
            ("[::1]:9191", Some("[::1]:9191")),
            ("example.com:9191", None),
            ("99999", None),
            ("+1", None),
            ("npx", None),
            ("", None),
        ] {
            assert_eq!(parse(text).ok().map(|it| it.to_string()).as_deref(), expected, "{text}");
        }
    }
}
