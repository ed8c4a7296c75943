//! The client's end: a conversation that runs in its own task, and calls into it.

use std::future::Future;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use trunkline_proto::CallError;
use trunkline_proto::client::{Client, Config, OpenError, Opened};
use trunkline_wire::frame::Framing;
use trunkline_wire::json::Json;

use crate::clock::now;
use crate::conversation_handle::{ConversationHandle, Request};
use crate::drive::Driver;
use crate::handler::Handler;
#[cfg(feature = "http")]
use crate::http::client::{HttpDriver, HttpTarget};
use crate::limits::Limits;

/// An open connection to a server. Dropping it hangs up.
#[derive(Debug)]
pub struct Connection {
    handle: ConversationHandle,
    opened: Arc<Opened>,
    driving: JoinHandle<()>,
    /// Closes when the conversation's task has ended.
    ended: watch::Receiver<()>,
    /// Whether closing must send `DELETE`: over HTTP the server would not notice otherwise.
    says_goodbye: bool,
}

impl Connection {
    /// Performs the handshake over a byte stream.
    pub async fn open(
        config: Arc<Config>,
        handler: Arc<impl Handler>,
        stream: (impl AsyncRead + Unpin + Send + 'static, impl AsyncWrite + Unpin + Send + 'static),
        framing: Framing,
        limits: Limits,
    ) -> Result<Self, OpenError> {
        let core = Client::new(config, now());
        let mut driver = Driver::new(core, handler, stream, Some(framing), limits);
        let (handle, opened) = (driver.handle(), driver.on_opened());
        // Open calls learn how the conversation ended; nothing else needs to know.
        let (driving, ended) = spawn(async move { drop(driver.run().await) });
        let stop = StopOnDrop(Some(driving));
        let opened = opened.await.unwrap_or(Err(OpenError::Closed { probing: false }))?;
        Ok(Self { handle, opened, driving: stop.keep(), ended, says_goodbye: false })
    }

    /// Performs the handshake over HTTP: the newest way first, then the older ones.
    #[cfg(feature = "http")]
    pub async fn open_http(
        config: Arc<Config>,
        handler: Arc<impl Handler>,
        target: HttpTarget,
        limits: Limits,
    ) -> Result<Self, OpenError> {
        let mut driver = HttpDriver::new(config, handler, target, limits)?;
        let (handle, opened) = (driver.handle(), driver.on_opened());
        let (driving, ended) = spawn(driver.run());
        let stop = StopOnDrop(Some(driving));
        let opened = opened.await.unwrap_or(Err(OpenError::Closed { probing: false }))?;
        Ok(Self { handle, opened, driving: stop.keep(), ended, says_goodbye: true })
    }

    /// What the handshake found.
    pub fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    /// Calls the server. Dropping the future cancels the call on the wire.
    pub fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Json, CallError>> + Send + use<> {
        self.handle.ask(request)
    }

    /// The handle of the conversation.
    pub fn handle(&self) -> &ConversationHandle {
        &self.handle
    }

    /// Whether the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Resolves when the conversation is over, whichever side ended it. From then on every call fails.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let mut ended = self.ended.clone();
        async move { while ended.changed().await.is_ok() {} }
    }

    /// Closes gracefully: writes everything queued first.
    pub async fn close(mut self) {
        self.handle.close();
        let _ = (&mut self.driving).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        match self.says_goodbye {
            // The task then ends by itself.
            true => self.handle.close(),
            false => self.driving.abort(),
        }
    }
}

/// Spawns the task of a conversation. The receiver closes once the task has stopped, for whatever
/// reason.
fn spawn(
    driving: impl Future<Output = ()> + Send + 'static,
) -> (JoinHandle<()>, watch::Receiver<()>) {
    let (tell, ended) = watch::channel(());
    let driving = tokio::spawn(async move {
        // Declared first, so dropped last.
        let _tell = tell;
        driving.await;
    });
    (driving, ended)
}

/// Aborts a handshake whose caller stopped waiting.
struct StopOnDrop(Option<JoinHandle<()>>);

impl StopOnDrop {
    fn keep(mut self) -> JoinHandle<()> {
        self.0.take().expect("it is taken only here")
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(driving) = &self.0 {
            driving.abort();
        }
    }
}
