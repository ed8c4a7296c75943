//! The text of `redis://…` → which servers to ask, and how.

use std::fmt;

/// Where a Redis or Valkey is.
///
/// | text | what it names |
/// |---|---|
/// | `redis://[user:password@]host[:6379][/database]` | one server |
/// | `redis+unix:///path/to/socket` | one server on this machine |
/// | `redis+sentinel://[user:password@]host[:26379],…/name[/database]` | the primary called `name`, as these sentinels see it |
/// | `redis+cluster://[user:password@]host[:6379],…` | a cluster that these nodes belong to |
///
/// `rediss` instead of `redis` speaks TLS. User and password are percent-encoded (RFC 3986 §2.1). They are the
/// data servers', not the sentinels'.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress {
    pub(crate) kind: AddressKind,
    pub(crate) tls: bool,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AddressKind {
    Single(Node),
    Socket(String),
    Sentinel { sentinels: Vec<Node>, primary: String },
    Cluster(Vec<Node>),
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Why a text is not an address; a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress(String);

impl RedisAddress {
    /// Reads an address.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong. It never repeats a password.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| bad("The address of a Redis begins with `redis://` or `rediss://`."))?;
        let (scheme, form) = scheme.split_once('+').unwrap_or((scheme, ""));
        let tls = match scheme {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return Err(bad("The address of a Redis begins with `redis://` or `rediss://`.")),
        };
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (Some(credentials), rest),
            None => (None, rest),
        };
        let (user, password) = credentials.map(read_credentials).transpose()?.unwrap_or_default();
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (kind, database) = match form {
            "" => (AddressKind::Single(one_node(hosts)?), read_database(path)?),
            "unix" if tls => {
                return Err(bad("A socket of this machine has no TLS: write `redis+unix://`."));
            }
            "unix" if hosts.is_empty() && !path.is_empty() => {
                (AddressKind::Socket(format!("/{path}")), 0)
            }
            "unix" => return Err(bad("Write the socket as `redis+unix:///path/to/socket`.")),
            "sentinel" => {
                let (primary, database) = path.split_once('/').unwrap_or((path, ""));
                if primary.is_empty() {
                    return Err(bad(
                        "Name the primary that the sentinels watch: `redis+sentinel://host/name`.",
                    ));
                }
                let sentinels = nodes(hosts, SENTINEL_PORT)?;
                let kind = AddressKind::Sentinel { sentinels, primary: primary.to_owned() };
                (kind, read_database(database)?)
            }
            "cluster" if read_database(path)? != 0 => {
                return Err(bad("A cluster has database 0 alone: leave the number out."));
            }
            "cluster" => (AddressKind::Cluster(nodes(hosts, PORT)?), 0),
            _ => {
                return Err(bad("The forms are `redis://`, `redis+unix://`, \
                                `redis+sentinel://` and `redis+cluster://`."));
            }
        };
        Ok(Self { kind, tls, user, password, database })
    }

    /// The same with another password, for one that is kept apart from the address.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }
}

/// Without user and password.
impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls { "rediss" } else { "redis" })?;
        match &self.kind {
            AddressKind::Single(node) => write!(f, "://{node}")?,
            AddressKind::Socket(path) => write!(f, "+unix://{path}")?,
            AddressKind::Sentinel { sentinels, primary } => {
                write!(f, "+sentinel://{}/{primary}", List(sentinels))?;
            }
            AddressKind::Cluster(nodes) => write!(f, "+cluster://{}", List(nodes))?,
        }
        if self.database != 0 { write!(f, "/{}", self.database) } else { Ok(()) }
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisAddress({self})")
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadAddress {}

struct List<'a>(&'a [Node]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, node) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{node}")?;
        }
        Ok(())
    }
}

/// `user:password`, `:password` or `user`.
fn read_credentials(text: &str) -> Result<(Option<String>, Option<String>), BadAddress> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let decoded = |text: &str| {
        percent_decoded(text)
            .ok_or_else(|| bad("The user and the password of a Redis are percent-encoded UTF-8."))
    };
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    Ok((some(decoded(user)?), some(decoded(password)?)))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let value = digit(rest.next())? * 16 + digit(rest.next())?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn read_database(text: &str) -> Result<i64, BadAddress> {
    match text {
        "" => Ok(0),
        _ => match text.parse() {
            Ok(number @ 0..=1_000_000) => Ok(number),
            _ => {
                Err(bad("The database of a Redis is a small whole number, as in `redis://host/1`."))
            }
        },
    }
}

fn one_node(text: &str) -> Result<Node, BadAddress> {
    match nodes(text, PORT)?.as_slice() {
        [node] => Ok(node.clone()),
        _ => Err(bad("Several hosts are a cluster or sentinels: write `redis+cluster://` or \
                      `redis+sentinel://`.")),
    }
}

fn nodes(text: &str, port: u16) -> Result<Vec<Node>, BadAddress> {
    text.split(',').map(|node| read_node(node, port)).collect()
}

fn read_node(text: &str, default: u16) -> Result<Node, BadAddress> {
    let wrong =
        || bad(format!("`{text}` is not a host with a port, such as `redis.internal:6379`."));
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
            (
                host,
                port.strip_prefix(':')
                    .or(Some("").filter(|_| port.is_empty()))
                    .ok_or_else(wrong)?,
            )
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let port = if port.is_empty() { default } else { port.parse().map_err(|_| wrong())? };
    if host.is_empty() || host.contains(['?', '#']) {
        return Err(wrong());
    }
    Ok(Node { host: host.to_owned(), port })
}

fn bad(why: impl Into<String>) -> BadAddress {
    BadAddress(why.into())
}

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

#[cfg(test)]
mod tests;
