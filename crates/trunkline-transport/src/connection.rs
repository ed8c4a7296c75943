//! The client's end: a conversation that runs by itself, and calls into it.

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
use crate::drive::Driver;
use crate::handler::Handler;
#[cfg(feature = "http")]
use crate::http::client::{HttpDriver, HttpTarget};
use crate::limits::Limits;
use crate::voice::{ConversationHandle, Request};

/// An open connection to a server. Dropping it hangs up.
#[derive(Debug)]
pub struct Connection {
    voice: ConversationHandle,
    opened: Arc<Opened>,
    driving: JoinHandle<()>,
    /// Closed when nothing drives the conversation any more.
    ended: watch::Receiver<()>,
    /// Whether the server has to be told that it is over: over HTTP, where it would not notice.
    says_goodbye: bool,
}

impl Connection {
    /// Shakes hands over a byte stream.
    pub async fn open(
        config: Arc<Config>,
        handler: Arc<impl Handler>,
        stream: (impl AsyncRead + Unpin + Send + 'static, impl AsyncWrite + Unpin + Send + 'static),
        framing: Framing,
        limits: Limits,
    ) -> Result<Self, OpenError> {
        let core = Client::new(config, now());
        let mut driver = Driver::new(core, handler, stream, Some(framing), limits);
        let (voice, opened) = (driver.voice(), driver.on_opened());
        // However the conversation ends, the calls in it learn of it; there is nobody else to tell.
        let (driving, ended) = spawn(async move { drop(driver.run().await) });
        let stop = StopOnDrop(Some(driving));
        let opened = opened.await.unwrap_or(Err(OpenError::Closed { probing: false }))?;
        Ok(Self { voice, opened, driving: stop.keep(), ended, says_goodbye: false })
    }

    /// Shakes hands over HTTP: first in the newest way, then in the older ones.
    #[cfg(feature = "http")]
    pub async fn open_http(
        config: Arc<Config>,
        handler: Arc<impl Handler>,
        target: HttpTarget,
        limits: Limits,
    ) -> Result<Self, OpenError> {
        let mut driver = HttpDriver::new(config, handler, target, limits)?;
        let (voice, opened) = (driver.voice(), driver.on_opened());
        let (driving, ended) = spawn(driver.run());
        let stop = StopOnDrop(Some(driving));
        let opened = opened.await.unwrap_or(Err(OpenError::Closed { probing: false }))?;
        Ok(Self { voice, opened, driving: stop.keep(), ended, says_goodbye: true })
    }

    /// What the handshake found out.
    pub fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    /// Calls the server. Dropping the future cancels the call on the wire.
    pub fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Json, CallError>> + Send + use<> {
        self.voice.ask(request)
    }

    /// How to speak into the conversation.
    pub fn voice(&self) -> &ConversationHandle {
        &self.voice
    }

    /// Whether the server is gone.
    pub fn is_closed(&self) -> bool {
        self.voice.is_closed()
    }

    /// Is ready when the conversation is over, whoever ended it: no call can be made then, and those
    /// that were open have failed.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let mut ended = self.ended.clone();
        async move { while ended.changed().await.is_ok() {} }
    }

    /// Hangs up in good order: everything said so far is written first.
    pub async fn close(mut self) {
        self.voice.close();
        let _ = (&mut self.driving).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        match self.says_goodbye {
            // It ends by itself, and soon.
            true => self.voice.close(),
            false => self.driving.abort(),
        }
    }
}

/// Has a conversation drive itself. What comes with it is closed once that has stopped, for
/// whatever reason.
fn spawn(
    driving: impl Future<Output = ()> + Send + 'static,
) -> (JoinHandle<()>, watch::Receiver<()>) {
    let (tell, ended) = watch::channel(());
    let driving = tokio::spawn(async move {
        // Declared first, so that it goes last.
        let _tell = tell;
        driving.await;
    });
    (driving, ended)
}

/// Ends a handshake that nobody waits for any more.
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
