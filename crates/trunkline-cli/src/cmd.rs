//! One file for each verb.

pub(crate) mod call;
pub(crate) mod complete;
pub(crate) mod list;
pub(crate) mod ping;
pub(crate) mod prompt;
pub(crate) mod read;
pub(crate) mod welcome;

use trunkline::client::{Call, Client};

use crate::failure::Failure;

/// Makes a call; what goes wrong is told with its method.
async fn made<T: 'static>(client: &Client, method: &str, call: Call<T>) -> Result<T, Failure> {
    match call.await {
        Ok(result) => Ok(result),
        Err(error) => Err(Failure::call(method, &error, client)),
    }
}
