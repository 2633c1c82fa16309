//! What kind of address an address is, judged by the IPv4 address inside it where there is one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::block::Block;

/// What kind of address an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum AddressClass {
    /// Reachable from everywhere.
    Public,
    /// This machine.
    Loopback,
    /// A private network (RFC 1918).
    Private,
    /// The network segment at hand.
    LinkLocal,
    /// Where a cloud hands credentials to its machines.
    Metadata,
    /// A provider's network behind its address translation (RFC 6598).
    SharedNat,
    /// No address at all; many systems take it for this machine.
    Unspecified,
    /// Many machines at once.
    Multicast,
    /// Every machine of a network at once.
    Broadcast,
    /// Kept by the standards for something else than hosts.
    Reserved,
    /// For examples in texts.
    Documentation,
    /// For measuring equipment.
    Benchmarking,
    /// A private network of IPv6.
    UniqueLocal,
    /// The abolished private networks of IPv6.
    SiteLocal,
    /// A hash that looks like an address.
    Orchid,
    /// Where packets are thrown away.
    Discard,
    /// A segment identifier of a provider's routers.
    SegmentRouting,
    /// A public IPv4 address in one of the wrappers that are obsolete today: 6to4, Teredo, ISATAP,
    /// IPv4-compatible, IPv4-translated, local NAT64.
    Tunnel,
}

impl AddressClass {
    /// Whether no host can be meant, so that no trust in a name makes the address reachable.
    pub(super) const fn is_no_host(self) -> bool {
        matches!(self, Self::Unspecified | Self::Multicast | Self::Broadcast)
    }
}

/// The class of an address.
pub fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

/// Whether an address is this machine. Of the wrapped forms only the mapped one is, because the
/// system itself connects to the address inside.
///
/// Whatever is granted to this machine asks this and not [`classify`], which finds a loopback
/// address also where it is only hidden in one that leads elsewhere.
#[must_use]
pub const fn is_this_machine(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => address.is_loopback(),
    }
}

use AddressClass as Class;

/// First match wins, so single addresses stand before the blocks around them.
const V4: &[(Block, Class)] = &[
    // Amazon, Google, Azure, Oracle, DigitalOcean and most others; then Amazon's containers,
    // Tencent, Scaleway, Alibaba, Azure's host, Oracle's classic cloud.
    (Block::v4([169, 254, 169, 254], 32), Class::Metadata),
    (Block::v4([169, 254, 170, 2], 32), Class::Metadata),
    (Block::v4([169, 254, 170, 23], 32), Class::Metadata),
    (Block::v4([169, 254, 0, 23], 32), Class::Metadata),
    (Block::v4([169, 254, 42, 42], 32), Class::Metadata),
    (Block::v4([100, 100, 100, 200], 32), Class::Metadata),
    (Block::v4([168, 63, 129, 16], 32), Class::Metadata),
    (Block::v4([192, 0, 0, 192], 32), Class::Metadata),
    (Block::v4([0, 0, 0, 0], 8), Class::Unspecified),
    (Block::v4([10, 0, 0, 0], 8), Class::Private),
    (Block::v4([100, 64, 0, 0], 10), Class::SharedNat),
    (Block::v4([127, 0, 0, 0], 8), Class::Loopback),
    (Block::v4([169, 254, 0, 0], 16), Class::LinkLocal),
    (Block::v4([172, 16, 0, 0], 12), Class::Private),
    (Block::v4([192, 0, 0, 0], 24), Class::Reserved),
    (Block::v4([192, 0, 2, 0], 24), Class::Documentation),
    (Block::v4([192, 88, 99, 0], 24), Class::Reserved),
    (Block::v4([192, 168, 0, 0], 16), Class::Private),
    (Block::v4([198, 18, 0, 0], 15), Class::Benchmarking),
    (Block::v4([198, 51, 100, 0], 24), Class::Documentation),
    (Block::v4([203, 0, 113, 0], 24), Class::Documentation),
    (Block::v4([224, 0, 0, 0], 4), Class::Multicast),
    (Block::v4([255, 255, 255, 255], 32), Class::Broadcast),
    (Block::v4([240, 0, 0, 0], 4), Class::Reserved),
];

/// As [`V4`], for what has no IPv4 address inside.
const V6: &[(Block, Class)] = &[
    // Amazon, Amazon's containers, Scaleway, Google, Oracle, OpenStack.
    (Block::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), Class::Metadata),
    (Block::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128), Class::Metadata),
    (Block::v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128), Class::Metadata),
    (Block::v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), Class::Metadata),
    (Block::v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128), Class::Metadata),
    (Block::v6([0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128), Class::Metadata),
    (Block::v6([0; 8], 128), Class::Unspecified),
    (Block::v6([0, 0, 0, 0, 0, 0, 0, 1], 128), Class::Loopback),
    (Block::v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), Class::Discard),
    (Block::v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48), Class::Benchmarking),
    (Block::v6([0x2001, 0x10, 0, 0, 0, 0, 0, 0], 28), Class::Orchid),
    (Block::v6([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28), Class::Orchid),
    (Block::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), Class::Reserved),
    (Block::v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), Class::Documentation),
    (Block::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), Class::Documentation),
    (Block::v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), Class::SegmentRouting),
    (Block::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), Class::UniqueLocal),
    (Block::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), Class::LinkLocal),
    (Block::v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), Class::SiteLocal),
    (Block::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), Class::Multicast),
    // The only part of IPv6 that is given out to hosts everywhere.
    (Block::v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3), Class::Public),
];

fn look_up(table: &[(Block, Class)], address: IpAddr) -> Option<Class> {
    table.iter().find(|(block, _)| block.contains(address)).map(|(_, class)| *class)
}

fn classify_v4(address: Ipv4Addr) -> Class {
    look_up(V4, IpAddr::V4(address)).unwrap_or(Class::Public)
}

fn classify_v6(address: Ipv6Addr) -> Class {
    let plain = look_up(V6, IpAddr::V6(address));
    let Some(wrapper) = Wrapper::of(address) else { return plain.unwrap_or(Class::Reserved) };
    let inner: Vec<Class> = wrapper.inner().iter().copied().map(classify_v4).collect();
    // SECURITY: where several addresses can be meant, credentials must not hide behind another.
    if inner.contains(&Class::Metadata) || plain == Some(Class::Metadata) {
        return Class::Metadata;
    }
    let hidden = inner.into_iter().find(|class| *class != Class::Public);
    match wrapper {
        Wrapper::Transparent(_) => hidden.unwrap_or(Class::Public),
        Wrapper::Tunnel(_) => hidden
            // A wrapper in a block that is itself not public stays what the block is.
            .or_else(|| plain.filter(|class| !matches!(class, Class::Public | Class::Reserved)))
            .unwrap_or(Class::Tunnel),
    }
}

/// An IPv6 address that stands for IPv4 addresses.
enum Wrapper {
    /// The system or the network connects to the inner address itself.
    Transparent([Ipv4Addr; 1]),
    /// One of the wrappers of the past, or of one network's own. Each has up to four inner
    /// addresses; where there are fewer, the first stands several times.
    Tunnel([Ipv4Addr; 4]),
}

impl Wrapper {
    fn of(address: Ipv6Addr) -> Option<Self> {
        Some(match address.segments() {
            // No address, and this machine: as short as an IPv4-compatible one, and none.
            [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return None,
            // IPv4-mapped, and the well-known prefix of NAT64.
            [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                Self::Transparent([join(high, low)])
            }
            [0x64, 0xff9b, 1, rest @ ..] => Self::local_nat64(rest),
            // IPv4-compatible, and IPv4-translated (SIIT).
            [0, 0, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
                Self::single(high, low)
            }
            // 6to4.
            [0x2002, high, low, ..] => Self::single(high, low),
            // Teredo: its server, and its client with every bit turned.
            [0x2001, 0, high, low, _, _, client_high, client_low] => {
                let (server, client) = (join(high, low), join(!client_high, !client_low));
                Self::Tunnel([server, client, server, server])
            }
            // ISATAP.
            [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Self::single(high, low),
            _ => return None,
        })
    }

    const fn single(high: u16, low: u16) -> Self {
        Self::Tunnel([join(high, low); 4])
    }

    /// What stands behind the local prefix of NAT64, which has 48 bits. The operator's own prefix
    /// may be longer, and the address then begins later: after 96, 48, 56 or 64 bits, always
    /// leaving out the ninth byte (RFC 6052 §2.2).
    const fn local_nat64([a, b, c, high, low]: [u16; 5]) -> Self {
        let ([a0, a1], [_, b1], [c0, c1]) = (a.to_be_bytes(), b.to_be_bytes(), c.to_be_bytes());
        let [h0, _] = high.to_be_bytes();
        Self::Tunnel([
            join(high, low),
            Ipv4Addr::new(a0, a1, b1, c0),
            Ipv4Addr::new(a1, b1, c0, c1),
            Ipv4Addr::new(b1, c0, c1, h0),
        ])
    }

    const fn inner(&self) -> &[Ipv4Addr] {
        match self {
            Self::Transparent(inner) => inner,
            Self::Tunnel(inner) => inner,
        }
    }
}

const fn join(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

/// Every IPv4 address that an IPv6 address may stand for.
pub(super) fn hidden(address: IpAddr) -> Vec<IpAddr> {
    let IpAddr::V6(address) = address else { return Vec::new() };
    let wrapper = Wrapper::of(address);
    wrapper.iter().flat_map(Wrapper::inner).copied().map(IpAddr::V4).collect()
}

/// Whether a gateway on the way, and not this system, turns the address into another one.
pub(super) fn is_translated(address: IpAddr) -> bool {
    matches!(address.to_canonical(), IpAddr::V6(address) if Wrapper::of(address).is_some())
}
