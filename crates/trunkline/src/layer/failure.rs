//! An error of a layer → what the model, the client and the log get.

use std::error::Error;
use std::fmt;

use trunkline_wire::jsonrpc::ErrorObject;

use super::BoxError;
use crate::ToolError;

impl ToolError {
    /// Converts it into an error that a layer may return: the client gets it as if the handler had
    /// failed with it.
    ///
    /// ```
    /// use trunkline::{ToolError, layer::BoxError};
    ///
    /// fn closed() -> Result<(), BoxError> {
    ///     Err(ToolError::new("We are closed; come back at nine.").into_error())
    /// }
    /// # assert!(closed().is_err());
    /// ```
    pub fn into_error(self) -> BoxError {
        Box::new(Told(self))
    }
}

/// A wrapper that makes a [`ToolError`] a `std::error::Error`.
#[derive(Debug)]
struct Told(ToolError);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Told {}

/// What is reported of a layer's error.
pub(crate) fn told(error: BoxError, is_tool: bool) -> ToolError {
    let error = match error.downcast::<Told>() {
        Ok(told) => return told.0,
        Err(error) => error,
    };
    // A layer such as tower's `Buffer` wraps the errors of inner layers.
    let mut cause: Option<&(dyn Error + 'static)> = Some(&*error);
    while let Some(it) = cause {
        if let Some(told) = known(it, is_tool) {
            return told;
        }
        cause = it.source();
    }
    ToolError::internal(error)
}

fn known(error: &(dyn Error + 'static), is_tool: bool) -> Option<ToolError> {
    if let Some(Told(error)) = error.downcast_ref() {
        return Some(again(error));
    }
    if let Some(error) = error.downcast_ref::<ErrorObject>() {
        return Some(ToolError::rpc(error.clone()));
    }
    // tower is not a dependency, so its errors are recognized by their texts.
    let text = error.to_string();
    if error.is::<tokio::time::error::Elapsed>() || text == ELAPSED {
        return Some(match is_tool {
            true => ToolError::new(
                "The tool took longer than the server allows. Ask it for less at once, or try \
                 again later.",
            ),
            false => ToolError::rpc(ErrorObject::internal(
                "timeout",
                "This took longer than the server allows.",
            )),
        });
    }
    (text == OVERLOADED).then(|| {
        let why = "The server has too much to do; try again later.";
        ToolError::rpc(ErrorObject::internal("overloaded", why))
    })
}

/// A copy without the causes, which the wrapping layer keeps.
fn again(error: &ToolError) -> ToolError {
    let mut again = ToolError::new(&*error.message);
    again.data.clone_from(&error.data);
    again.rpc.clone_from(&error.rpc);
    again
}

/// The text of `tower::timeout::error::Elapsed`.
const ELAPSED: &str = "request timed out";
/// The text of `tower::load_shed::error::Overloaded`.
const OVERLOADED: &str = "service overloaded";
