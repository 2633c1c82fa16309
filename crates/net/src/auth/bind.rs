//! Where a server may listen: clients that need not authenticate must at least be on this machine.

use std::net::SocketAddr;

use super::Authenticator;
use crate::address::is_this_machine;

/// An address that other machines can reach, without authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected authentication or a loopback address, since others can reach `{0}`; \
     set a token or an issuer, or listen on 127.0.0.1"
)]
pub struct BindError(SocketAddr);

/// Refuses an address that other machines can reach when requests need not authenticate.
///
/// # Errors
/// When that is so.
pub fn check_bind(address: SocketAddr, authenticator: &Authenticator) -> Result<(), BindError> {
    if authenticator.is_required() || is_this_machine(address.ip()) {
        Ok(())
    } else {
        Err(BindError(address))
    }
}

#[cfg(test)]
mod tests {
    use super::{Authenticator, check_bind};

    #[test]
    fn only_loopback_may_go_without_authentication() {
        let anonymous = Authenticator::anonymous();
        let known = Authenticator::anonymous().with_token("a", "0123456789abcdef").unwrap();
        for (address, alone) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("10.0.0.1:1", false),
            ("192.168.1.1:1", false),
            ("[fe80::1]:1", false),
            ("8.8.8.8:1", false),
            // What only hides a loopback address leads elsewhere.
            ("[2606:4700::5efe:7f00:1]:1", false),
            ("[2a00:1450:4001:81b:200:5efe:7f00:1]:1", false),
            ("[2002:7f00:1::1]:1", false),
            ("[64:ff9b::7f00:1]:1", false),
            ("[64:ff9b:1::7f00:1]:1", false),
            ("[2001:0:7f00:1::1]:1", false),
            ("[::7f00:2]:1", false),
            ("[::ffff:0:7f00:1]:1", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(check_bind(address, &anonymous).is_ok(), alone, "{address}");
            assert_eq!(check_bind(address, &known), Ok(()), "{address}");
        }
    }
}
