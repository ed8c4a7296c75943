//! The header fields of a request that are asked about, found in one look at all of them.

use http::{HeaderMap, HeaderName, HeaderValue};
use trunkline_wire::header;

/// The fields of one request by name, as far as anything here asks about them.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    /// All of them.
    pub(super) all: &'a HeaderMap,
    pub(super) host: Field<'a>,
    pub(super) upgrade: Field<'a>,
    pub(super) origin: Field<'a>,
    pub(super) accept: Field<'a>,
    pub(super) transfer_encoding: Field<'a>,
    pub(super) content_encoding: Field<'a>,
    pub(super) content_length: Field<'a>,
    pub(super) content_type: Field<'a>,
    /// What the protocol says in header fields.
    pub mcp: McpFields<'a>,
}

/// The fields that the protocol itself defines: what decides, with the body, where a POST goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct McpFields<'a> {
    pub(super) version: Field<'a>,
    pub(super) session: Field<'a>,
    pub(super) method: Field<'a>,
    pub(super) name: Field<'a>,
}

/// What a field says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Field<'a> {
    #[default]
    Absent,
    One(&'a HeaderValue),
    /// It stands there more than once; this is the first.
    Many(&'a HeaderValue),
}

/// A field that may stand once stands twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Twice;

impl<'a> Field<'a> {
    fn add(&mut self, value: &'a HeaderValue) {
        *self = match *self {
            Self::Absent => Self::One(value),
            Self::One(first) | Self::Many(first) => Self::Many(first),
        };
    }

    /// The first value.
    pub(super) fn first(self) -> Option<&'a HeaderValue> {
        match self {
            Self::Absent => None,
            Self::One(value) | Self::Many(value) => Some(value),
        }
    }

    /// The one value.
    pub(super) fn only(self) -> Result<Option<&'a HeaderValue>, Twice> {
        match self {
            Self::Absent => Ok(None),
            Self::One(value) => Ok(Some(value)),
            Self::Many(_) => Err(Twice),
        }
    }

    /// The bytes of the one value.
    pub(super) fn only_bytes(self) -> Result<Option<&'a [u8]>, Twice> {
        Ok(self.only()?.map(HeaderValue::as_bytes))
    }
}

impl<'a> Fields<'a> {
    /// Looks at all fields once.
    #[inline]
    pub fn of(all: &'a HeaderMap) -> Self {
        let absent = Field::Absent;
        let mut it = Self {
            all,
            host: absent,
            upgrade: absent,
            origin: absent,
            accept: absent,
            transfer_encoding: absent,
            content_encoding: absent,
            content_length: absent,
            content_type: absent,
            mcp: McpFields::default(),
        };
        for (name, value) in all {
            if let Some(field) = it.field(name) {
                field.add(value);
            }
        }
        it
    }

    /// Whether it says which page it comes from.
    pub fn has_origin(&self) -> bool {
        self.origin.first().is_some()
    }

    /// Whether it says what the client reads.
    pub fn has_accept(&self) -> bool {
        self.accept.first().is_some()
    }

    fn field(&mut self, name: &HeaderName) -> Option<&mut Field<'a>> {
        Some(match name.as_str() {
            "host" => &mut self.host,
            "upgrade" => &mut self.upgrade,
            "origin" => &mut self.origin,
            "accept" => &mut self.accept,
            "transfer-encoding" => &mut self.transfer_encoding,
            "content-encoding" => &mut self.content_encoding,
            "content-length" => &mut self.content_length,
            "content-type" => &mut self.content_type,
            header::PROTOCOL_VERSION => &mut self.mcp.version,
            header::SESSION_ID => &mut self.mcp.session,
            header::METHOD => &mut self.mcp.method,
            header::NAME => &mut self.mcp.name,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_stands_twice_is_told_from_one_that_stands_once() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("host", "a"), ("mcp-name", "b"), ("mcp-name", "c"), ("x", "d")] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let fields = Fields::of(&headers);
        assert_eq!(fields.host.only_bytes(), Ok(Some(b"a".as_slice())));
        assert_eq!(fields.mcp.name.only_bytes(), Err(Twice));
        assert_eq!(fields.mcp.name.first().map(HeaderValue::as_bytes), Some(b"b".as_slice()));
        assert_eq!(fields.mcp.session.only_bytes(), Ok(None));
        assert!(!fields.has_origin() && !fields.has_accept());
        let mut same = HeaderMap::new();
        same.append("host", HeaderValue::from_static("a"));
        same.append("host", HeaderValue::from_static("a"));
        assert_eq!(Fields::of(&same).host.only_bytes(), Err(Twice), "the same twice is twice");
    }
}
