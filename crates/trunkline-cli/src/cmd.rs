//! One file for each verb.

pub(crate) mod approve;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod complete;
pub(crate) mod connect;
pub(crate) mod console;
pub(crate) mod diff;
pub(crate) mod disconnect;
pub(crate) mod doctor;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod logs;
pub(crate) mod ping;
pub(crate) mod prompt;
pub(crate) mod ps;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod reload;
pub(crate) mod replay;
pub(crate) mod retry;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod welcome;
pub(crate) mod whoami;

use std::time::Duration;

use anyhow::Result;
use tokio::time::timeout;
use trunkline::client::{Call, Client};

use crate::failure::Failure;
use crate::output::Screen;
use crate::target::Target;

/// Starts the server, runs the conversation, and closes the connection.
async fn talk<T>(
    target: &Target,
    screen: &Screen,
    talk: impl AsyncFnOnce(&Client) -> Result<T>,
) -> Result<T> {
    let (client, stored) = target.connect(screen).await?;
    let mut outcome = talk(&client).await;
    match &mut outcome {
        Ok(_) => drop(client.close().await),
        Err(error) => {
            if let Some(failure) = error.downcast_mut::<Failure>() {
                target.explain(failure, stored.as_deref());
                if failure.is_hung_up
                    && let Ok(Some(exit)) = timeout(EXIT_GRACE, client.close()).await
                {
                    failure.ended(exit);
                }
            }
        }
    }
    outcome
}

/// Makes a call; a failure names its method.
async fn made<T: 'static>(client: &Client, method: &str, call: Call<T>) -> Result<T, Failure> {
    match call.await {
        Ok(result) => Ok(result),
        Err(error) => Err(Failure::call(method, &error, client)),
    }
}

/// How long a server that closed the connection may take to exit. Until then it gets no signal from
/// us, so the exit status is its own.
const EXIT_GRACE: Duration = Duration::from_secs(1);
