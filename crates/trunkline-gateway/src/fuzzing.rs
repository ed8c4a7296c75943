//! Entry points for the fuzz targets of this repository. Not a stable API.

use std::sync::Arc;

use trunkline_transport::http::Answers;

use crate::admin::Operate;

/// The readings of a URI that rules check: the close ones, and those of careless servers. `None` if it is
/// ambiguous.
pub fn uri_forms(uri: &str) -> Option<(Vec<String>, Vec<String>)> {
    let forms = crate::policy::uri::Forms::of(uri);
    (!forms.is_ambiguous).then_some((forms.near, forms.far))
}

/// The admin API without a socket: with a token as over TCP, without one as on the Unix socket.
pub fn admin(operate: Arc<impl Operate>, token: Option<&str>) -> impl Answers {
    crate::admin::in_memory(operate, token)
}
