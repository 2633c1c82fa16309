//! Whether a destination is a listener of this program.

use std::net::{IpAddr, UdpSocket};

use chio_net::address::is_this_machine;

use super::Known;
use crate::facts::DestinationFact;

impl Known {
    /// Whether a call connects to one of our listeners. `has_number` tells whether some argument of
    /// it is this number: where a destination says no port, another argument may.
    pub(crate) fn listens(&self, to: &DestinationFact, has_number: impl Fn(u16) -> bool) -> bool {
        self.addresses.iter().any(|own| {
            let port = match to.port {
                Some(port) => port == own.port(),
                None => has_number(own.port()),
            };
            port && to.host.as_deref().is_none_or(|host| reaches(host, own.ip()))
        })
    }
}

/// Whether a host may be the machine that this address is of.
fn reaches(host: &str, own: IpAddr) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        let address = address.to_canonical();
        // An address can be bound only on the machine that has it.
        let is_local = || own.is_unspecified() && UdpSocket::bind((address, 0)).is_ok();
        return address == own
            || is_this_machine(address)
            || address.is_unspecified()
            || is_local();
    }
    let name = bare.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.starts_with("localhost.")
        || name == "ip6-localhost"
        || is_this_host(&name)
        || crate::guards::addresses_in(&name)
            .into_iter()
            .any(|address| address == own || is_this_machine(address))
}

/// Whether this is the name of this machine.
fn is_this_host(name: &str) -> bool {
    let own = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let own = own.trim().to_ascii_lowercase();
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    !own.is_empty() && (own == name || short(&own) == short(name))
}
