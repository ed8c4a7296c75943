//! An address → its class.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The class of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Class {
    /// The public internet.
    Public,
    /// A private network, or that of a provider.
    Private,
    /// This machine.
    Loopback,
    /// The same link; in a cloud often the metadata service, which issues credentials.
    LinkLocal,
    /// The metadata service of a cloud at an address that is not link-local.
    Metadata,
    /// The unspecified address; connecting to it often reaches this machine.
    Unspecified,
    /// Many.
    Multicast,
    /// Unassigned or unpredictable: documentation, old tunnels, future use.
    Reserved,
}

/// The class of `address`. An IPv4 address embedded in an IPv6 address counts as itself where it is
/// reached as such (mapped, NAT64); other embeddings are reserved.
///
/// ```
/// use trunkline_auth::address::{Class, class};
///
/// assert_eq!(class("::ffff:10.0.0.1".parse().unwrap()), Class::Private);
/// assert_eq!(class("64:ff9b::a9fe:a9fe".parse().unwrap()), Class::LinkLocal);
/// assert_eq!(class("2002:7f00:1::".parse().unwrap()), Class::Reserved);
/// ```
pub fn class(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(four) => {
            let bits = four.to_bits();
            let is_it = |row: &&(u32, u32, Class)| bits >> (32 - row.1) == row.0 >> (32 - row.1);
            FOUR.iter().find(is_it).map_or(Class::Public, |row| row.2)
        }
        IpAddr::V6(six) => {
            let bits = six.to_bits();
            if EMBEDDING.contains(&(bits >> 32)) {
                return class(Ipv4Addr::from_bits(bits as u32).into());
            }
            let is_it = |row: &&(u128, u32, Class)| bits >> (128 - row.1) == row.0 >> (128 - row.1);
            SIX.iter().find(is_it).map_or(Class::Reserved, |row| row.2)
        }
    }
}

const fn four(a: u8, b: u8, c: u8, d: u8, length: u32, class: Class) -> (u32, u32, Class) {
    (Ipv4Addr::new(a, b, c, d).to_bits(), length, class)
}

const fn six(head: [u16; 3], tail: u16, length: u32, class: Class) -> (u128, u32, Class) {
    (Ipv6Addr::new(head[0], head[1], head[2], 0, 0, 0, 0, tail).to_bits(), length, class)
}

/// The first matching row counts. From the registry of special-purpose addresses (RFC 6890) and the
/// documentation of clouds.
const FOUR: [(u32, u32, Class); 18] = [
    four(0, 0, 0, 0, 8, Class::Unspecified),
    four(10, 0, 0, 0, 8, Class::Private),
    four(100, 100, 100, 200, 32, Class::Metadata),
    // Shared by the customers of a provider (carrier-grade NAT), and by overlay networks.
    four(100, 64, 0, 0, 10, Class::Private),
    four(127, 0, 0, 0, 8, Class::Loopback),
    four(168, 63, 129, 16, 32, Class::Metadata),
    four(169, 254, 0, 0, 16, Class::LinkLocal),
    four(172, 16, 0, 0, 12, Class::Private),
    four(192, 0, 0, 192, 32, Class::Metadata),
    four(192, 0, 0, 0, 24, Class::Reserved),
    four(192, 0, 2, 0, 24, Class::Reserved),
    four(192, 88, 99, 0, 24, Class::Reserved),
    four(192, 168, 0, 0, 16, Class::Private),
    // For benchmarks within a network; some tunnels resolve every name to one of these.
    four(198, 18, 0, 0, 15, Class::Private),
    four(198, 51, 100, 0, 24, Class::Reserved),
    four(203, 0, 113, 0, 24, Class::Reserved),
    four(224, 0, 0, 0, 4, Class::Multicast),
    four(240, 0, 0, 0, 4, Class::Reserved),
];

/// The first matching row counts; anything else is not a global unicast address.
const SIX: [(u128, u32, Class); 12] = [
    six([0, 0, 0], 0, 128, Class::Unspecified),
    six([0, 0, 0], 1, 128, Class::Loopback),
    // Protocol assignments, Teredo among them, whose addresses hide an IPv4 address.
    six([0x2001, 0, 0], 0, 23, Class::Reserved),
    six([0x2001, 0xdb8, 0], 0, 32, Class::Reserved),
    // 6to4, whose addresses hide an IPv4 address.
    six([0x2002, 0, 0], 0, 16, Class::Reserved),
    six([0x3fff, 0, 0], 0, 20, Class::Reserved),
    six([0x2000, 0, 0], 0, 3, Class::Public),
    six([0xfd00, 0xec2, 0], 0x254, 128, Class::Metadata),
    six([0xfd20, 0xce, 0], 0x254, 128, Class::Metadata),
    six([0xfc00, 0, 0], 0, 7, Class::Private),
    six([0xfe80, 0, 0], 0, 10, Class::LinkLocal),
    six([0xff00, 0, 0], 0, 8, Class::Multicast),
];

/// The prefixes of IPv6 addresses that embed an IPv4 address: `::ffff:0:0/96` and `64:ff9b::/96`.
const EMBEDDING: [u128; 2] =
    [0xffff, Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0).to_bits() >> 32];
