//! The body of a message → the HTTP headers that repeat parts of it, so that proxies can route without
//! reading the body; and the checks that both agree.
//!
//! ```
//! use trunkline_wire::header;
//! use trunkline_wire::method::Method;
//!
//! // The headers of a `tools/call`, so that a proxy need not read the body.
//! assert_eq!(header::name_member(Method::ToolsCall), Some("name"));
//! assert_eq!(header::encode_value("book"), "book");
//! assert_eq!(header::encode_value("réserver"), "=?base64?csOpc2VydmVy?=");
//! ```

mod param;
mod registry;
mod value;

pub use param::{Fault, InvalidAnnotation, Mismatch, ParamHeaders, Why};
pub use registry::ParamRegistry;
pub use value::{BadValue, decode_value, encode_value};

use crate::method::Method;

/// The revision of the message.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The session, up to 2025-11-25.
pub const SESSION_ID: &str = "mcp-session-id";
/// The last event of a stream that the client has, up to 2025-11-25.
pub const LAST_EVENT_ID: &str = "last-event-id";
/// The method, from 2026-07-28.
pub const METHOD: &str = "mcp-method";
/// The object of the method, from 2026-07-28; see [`name_member`].
pub const NAME: &str = "mcp-name";
/// The prefix of headers that repeat an argument of a tool; see [`ParamHeaders`].
pub const PARAM_PREFIX: &str = "mcp-param-";

/// The member of the parameters that `Mcp-Name` repeats, for the methods that have that header.
///
/// ```
/// # use trunkline_wire::{header::*, method::Method};
/// assert_eq!(name_member(Method::ResourcesRead), Some("uri"));
/// assert_eq!(name_member(Method::ToolsList), None);
/// ```
pub const fn name_member(method: Method) -> Option<&'static str> {
    match method {
        Method::ToolsCall | Method::PromptsGet => Some("name"),
        Method::ResourcesRead => Some("uri"),
        Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => Some("taskId"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method;

    #[test]
    fn every_method_that_is_about_something_names_it() {
        let named: Vec<_> = method::TABLE
            .iter()
            .filter_map(|row| name_member(row.method).map(|member| (row.name, member)))
            .collect();
        for expected in [
            ("tools/call", "name"),
            ("prompts/get", "name"),
            ("resources/read", "uri"),
            ("tasks/get", "taskId"),
            ("tasks/update", "taskId"),
            ("tasks/cancel", "taskId"),
        ] {
            assert!(named.contains(&expected), "{expected:?}");
        }
        assert_eq!(name_member(Method::ToolsList), None);
        assert_eq!(name_member(Method::TasksResult), None);
    }
}
