//! A host in any spelling, and its addresses → whether a request may go there.
//!
//! A server tells its clients which URLs to fetch. It must not use them to reach what it cannot
//! reach itself (server-side request forgery): other programs on this machine, its network, the
//! credentials of its cloud.
//!
//! ```
//! use trunkline_auth::address::Guard;
//!
//! let guard = Guard::for_server("https://mcp.example/mcp");
//! assert!(guard.check_host("id.example").is_ok());
//! // One address in two spellings.
//! assert!(guard.check_host("169.254.169.254").is_err());
//! assert!(guard.check_host("0xa9fea9fe").is_err());
//! // A name is checked again when it is known where it leads.
//! assert!(guard.check("id.example", "10.0.0.1".parse().unwrap()).is_err());
//! ```

mod class;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::fetch::FetchError;

pub use class::{Class, class};

/// Where requests may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard(Reach);

/// How far requests may go. Each variant includes the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Only the public internet.
    Public,
    /// Also private networks.
    Private,
    /// Also this machine.
    Local,
    /// Everywhere: only for addresses that the operator configured.
    Anywhere,
}

impl Guard {
    /// Allows requests this far.
    pub fn new(reach: Reach) -> Self {
        Self(reach)
    }

    /// Allows a server that the user named to refer us to its own network and to the public
    /// internet: one on this machine to this machine, one with a private address or name to private
    /// networks. What its name resolves to does not count, because the owner of the name decides
    /// that.
    pub fn for_server(url: &str) -> Self {
        let place = host_of(url).and_then(|host| Host::parse(host).ok());
        Self(match place {
            Some(Host::Name(name)) if is_local(&name) => Reach::Local,
            Some(Host::Name(name)) if is_private(&name) => Reach::Private,
            Some(Host::Address(address)) => match class(address) {
                Class::Loopback => Reach::Local,
                Class::Private => Reach::Private,
                _ => Reach::Public,
            },
            _ => Reach::Public,
        })
    }

    /// Allows requests at least this far.
    #[must_use]
    pub fn allow(self, reach: Reach) -> Self {
        Self(self.0.max(reach))
    }

    /// Parses the host of a URL. An address is checked at once; the addresses of a name must be
    /// checked when it is resolved.
    pub fn check_host(&self, host: &str) -> Result<Host, FetchError> {
        let read = Host::parse(host)?;
        match &read {
            Host::Address(address) => self.admit(host, class(*address), None)?,
            Host::Name(name) if is_local(name) => self.admit(host, Class::Loopback, None)?,
            Host::Name(_) => {}
        }
        Ok(read)
    }

    /// Checks one of the addresses that `host` resolves to. All of them must pass.
    pub fn check(&self, host: &str, address: IpAddr) -> Result<(), FetchError> {
        self.admit(host, class(address), Some(address))
    }

    fn admit(&self, host: &str, class: Class, to: Option<IpAddr>) -> Result<(), FetchError> {
        let (needed, advice) = match class {
            Class::Public => return Ok(()),
            Class::Private => (Reach::Private, ", or allow private addresses if it is yours"),
            Class::Loopback => {
                (Reach::Local, ", or allow addresses of this machine if it is yours")
            }
            _ => (Reach::Anywhere, ""),
        };
        if self.0 >= needed {
            return Ok(());
        }
        let leads = to.map(|to| format!("leads to `{to}`, which is")).unwrap_or("is".to_owned());
        let host = shown(host);
        Err(FetchError::Forbidden(format!(
            "`{host}` {leads} {class}: requests may not be sent there by what a server says. \
             Ask the operator of the server{advice}."
        )))
    }
}

/// The host of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address.
    Address(IpAddr),
    /// A name to be resolved: lower case, without a trailing dot.
    Name(String),
}

impl Host {
    /// Parses a host as the resolvers of operating systems do: an IPv4 address may have one to four
    /// parts, each decimal, octal or hexadecimal; an IPv6 address may be in brackets. What they
    /// disagree on is refused.
    pub fn parse(text: &str) -> Result<Self, FetchError> {
        read(text).ok_or_else(|| {
            let host = shown(text);
            FetchError::Forbidden(format!(
                "`{host}` is no host that can be reached. Give a name of letters, digits and \
                 hyphens, or an address."
            ))
        })
    }
}

fn read(text: &str) -> Option<Host> {
    if let Some(inner) = text.strip_prefix('[') {
        let six: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some(Host::Address(six.into()));
    }
    if text.contains(':') {
        let six: Ipv6Addr = text.parse().ok()?;
        return Some(Host::Address(six.into()));
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
    if name.len() > LONGEST || !name.bytes().all(is_plain) || name.split('.').any(str::is_empty) {
        return None;
    }
    let last = name.rsplit('.').next()?;
    if is_number(last) {
        return Some(Host::Address(dotted(name)?.into()));
    }
    Some(Host::Name(name.to_ascii_lowercase()))
}

/// Whether a last part makes the whole an address: no name ends like this.
fn is_number(part: &str) -> bool {
    match hexadecimal(part) {
        Some(digits) => digits.bytes().all(|it| it.is_ascii_hexdigit()),
        None => part.bytes().all(|it| it.is_ascii_digit()),
    }
}

/// One to four numbers; the last one fills the remaining bytes.
fn dotted(text: &str) -> Option<Ipv4Addr> {
    let numbers: Vec<u64> = text.split('.').map(number).collect::<Option<_>>()?;
    let (&last, heads) = numbers.split_last()?;
    let left: u32 = match heads.len() {
        0 => 32,
        1 => 24,
        2 => 16,
        3 => 8,
        _ => return None,
    };
    if heads.iter().any(|&head| head > 255) || last >> left != 0 {
        return None;
    }
    let mut octets = (last as u32).to_be_bytes();
    for (octet, &head) in octets.iter_mut().zip(heads) {
        *octet = head as u8;
    }
    Some(octets.into())
}

fn number(part: &str) -> Option<u64> {
    if let Some(digits) = hexadecimal(part) {
        return u64::from_str_radix(digits, 16).ok();
    }
    let radix = if part.starts_with('0') { 8 } else { 10 };
    u64::from_str_radix(part, radix).ok()
}

fn hexadecimal(part: &str) -> Option<&str> {
    part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"))
}

/// Whether a name means this machine, whatever a resolver says (RFC 6761).
fn is_local(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether a name cannot exist on the public internet.
fn is_private(name: &str) -> bool {
    !name.contains('.') || UNDELEGATED.iter().any(|suffix| name.ends_with(suffix))
}

/// The host of a URL, as written.
fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let place = authority.rsplit('@').next()?;
    match place.find(']') {
        Some(end) => place.get(..=end),
        None => place.split(':').next(),
    }
}

fn shown(host: &str) -> String {
    host.chars().filter(|it| !it.is_control() && *it != '`').take(LONGEST).collect()
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Private => "an address of a private network",
            Self::Loopback => "an address of this machine",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "an address where a cloud hands out credentials",
            Self::Unspecified => "an unspecified address",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
        })
    }
}

/// The longest name (RFC 1035).
const LONGEST: usize = 253;
/// Suffixes that the public DNS does not delegate, and that private networks use.
const UNDELEGATED: [&str; 9] = [
    ".corp",
    ".home",
    ".home.arpa",
    ".internal",
    ".intranet",
    ".lan",
    ".local",
    ".localdomain",
    ".private",
];

#[cfg(test)]
mod tests;
