//! Addresses that stand in names: services such as `nip.io` answer with them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names whose every sub-domain is this machine.
const LOOPBACK_DOMAINS: [&str; 10] = [
    "localtest.me",
    "lvh.me",
    "vcap.me",
    "lacolhost.com",
    "localho.st",
    "local.gd",
    "127-0-0-1.org.uk",
    "loopback.jp",
    "yoogle.com",
    "fuf.me",
];

/// Names that answer with the address in front of them, also where it is written in hex or as IPv6.
const ECHO_DOMAINS: [&str; 9] = [
    "nip.io",
    "sslip.io",
    "xip.io",
    "rbndr.us",
    "1u.ms",
    "traefik.me",
    "backname.io",
    "ip.addr.tools",
    "plex.direct",
];

/// The addresses that a name may stand for by its own text.
pub(crate) fn addresses(name: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    if LOOPBACK_DOMAINS.iter().any(|domain| is_at_or_below(name, domain)) {
        found.push(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let parts: Vec<&str> = name.split(['.', '-']).collect();
    for four in parts.windows(4) {
        found.extend(quad(four).map(IpAddr::V4));
    }
    if ECHO_DOMAINS.iter().any(|domain| is_at_or_below(name, domain)) {
        for label in name.split('.') {
            let parts = label.split(['-', '_']);
            found.extend(parts.filter_map(hexadecimal).map(IpAddr::V4));
            found.extend(dashed_v6(label).map(IpAddr::V6));
        }
    }
    found
}

fn is_at_or_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Four numbers of a byte each. Longer digits are serial numbers.
fn quad(parts: &[&str]) -> Option<Ipv4Addr> {
    let mut bytes = [0; 4];
    for (byte, part) in bytes.iter_mut().zip(parts) {
        if part.len() > 3 || !part.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        *byte = part.parse().ok()?;
    }
    Some(Ipv4Addr::from(bytes))
}

fn hexadecimal(label: &str) -> Option<Ipv4Addr> {
    let digits = label.strip_prefix("0x").unwrap_or(label);
    let is_address = digits.len() == 8 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_address.then(|| u32::from_str_radix(digits, 16).ok().map(Ipv4Addr::from)).flatten()
}

fn dashed_v6(label: &str) -> Option<Ipv6Addr> {
    label.contains("--").then(|| label.replace('-', ":").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::addresses;

    #[test]
    fn addresses_in_names_are_found() {
        for (name, expected) in [
            ("10.0.0.1.nip.io", "10.0.0.1"),
            ("www.10.0.0.1.xip.io", "10.0.0.1"),
            ("10-0-0-1.sslip.io", "10.0.0.1"),
            ("app-10-0-0-1.traefik.me", "10.0.0.1"),
            ("7f000001.nip.io", "127.0.0.1"),
            ("0x7f000001.1u.ms", "127.0.0.1"),
            ("make-169.254.169.254-rr.1u.ms", "169.254.169.254"),
            ("--1.sslip.io", "::1"),
            ("fd00--1.sslip.io", "fd00::1"),
            ("a.b.lvh.me", "127.0.0.1"),
            ("ec2-10-1-2-3.compute.example", "10.1.2.3"),
            ("example.com", "none"),
            ("1.2.3.example.com", "none"),
            ("1234.5.6.7.example.com", "none"),
            ("deadbeef.example.com", "none"),
            ("notlvh.me", "none"),
        ] {
            let found = addresses(name);
            let first = found.first().map_or("none".to_owned(), ToString::to_string);
            assert_eq!(first, expected, "{name} {found:?}");
        }
    }
}
