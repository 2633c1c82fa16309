//! Blocks of addresses, written `10.0.0.0/8`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A block of addresses that share their first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block {
    first: IpAddr,
    prefix: u8,
}

/// Why a text is no block of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// Not `ADDRESS` or `ADDRESS/BITS`.
    #[error("expected an address or `ADDRESS/BITS`, found something else")]
    Form,
    /// The address has bits outside of the prefix, so that two blocks could be meant.
    #[error("expected no bits after the first {0} of the address, found some")]
    HostBits(u8),
}

impl Block {
    /// A block of IPv4 addresses.
    pub(super) const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Self {
        Self { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    /// A block of IPv6 addresses.
    pub(super) const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], prefix: u8) -> Self {
        Self { first: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix }
    }

    /// Whether an address is in the block.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let rest = u32::from(width(self.first).saturating_sub(self.prefix));
        width(self.first) == width(address)
            && (bits(self.first) ^ bits(address)).checked_shr(rest).unwrap_or(0) == 0
    }

    /// The block of the IPv4 addresses that a block of mapped ones means.
    const fn plain(self) -> Self {
        match (self.first.to_canonical(), self.prefix.checked_sub(96)) {
            (first @ IpAddr::V4(_), Some(prefix)) if self.first.is_ipv6() => Self { first, prefix },
            _ => self,
        }
    }

    /// Whether the block is one address.
    pub(super) const fn is_single(&self) -> bool {
        self.prefix == width(self.first)
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl FromStr for Block {
    type Err = BlockError;

    fn from_str(text: &str) -> Result<Self, BlockError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| BlockError::Form)?;
        let prefix = match length {
            None => width(first),
            Some(length) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
                length.parse().map_err(|_| BlockError::Form)?
            }
            Some(_) => return Err(BlockError::Form),
        };
        if prefix > width(first) {
            return Err(BlockError::Form);
        }
        let host_bits = u32::from(width(first) - prefix);
        let mask = 1_u128.checked_shl(host_bits).map_or(u128::MAX, |end| end - 1);
        if bits(first) & mask != 0 {
            return Err(BlockError::HostBits(prefix));
        }
        Ok(Self { first, prefix }.plain())
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::Block;

    #[test]
    fn a_block_holds_its_addresses_and_no_others() {
        for (block, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.168.4.0/22", "192.168.7.255", "192.168.8.0"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("0.0.0.0/0", "255.255.255.255", "::"),
            ("::/0", "ffff::", "0.0.0.0"),
            ("fd00::/8", "fdff::1", "fc00::1"),
            ("2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::"),
            ("::1", "::1", "::2"),
            ("::ffff:8.8.8.0/120", "8.8.8.8", "8.8.9.0"),
            ("::ffff:8.8.8.8", "8.8.8.8", "8.8.8.9"),
            ("::ffff:0:0/96", "8.8.8.8", "::1"),
            ("::fffe:0:0/95", "::ffff:8.8.8.8", "8.8.8.8"),
        ] {
            let block: Block = block.parse().unwrap();
            assert!(block.contains(inside.parse().unwrap()), "{block} {inside}");
            assert!(!block.contains(outside.parse().unwrap()), "{block} {outside}");
        }
    }

    #[test]
    fn what_is_no_block_or_could_be_two_is_refused() {
        for text in [
            "",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/8/8",
            "::/129",
            "10.0/8",
            "a/8",
        ] {
            assert!(text.parse::<Block>().is_err(), "{text}");
        }
        for text in ["10.0.0.1/8", "fd00::1/64"] {
            let message = text.parse::<Block>().unwrap_err().to_string();
            assert!(message.starts_with("expected no bits after"), "{message}");
        }
    }
}
