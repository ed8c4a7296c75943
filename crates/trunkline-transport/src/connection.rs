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
use crate::voice::{Request, Voice};

/// An open connection to a server. Dropping it hangs up.
///
/// ```
/// # use std::sync::Arc;
/// # use trunkline_proto::{client, server};
/// # use trunkline_transport::{connection::Connection, drive::Driver, handler::Nobody, memory};
/// # use trunkline_transport::{voice::*, Limits};
/// # use trunkline_wire::{frame::Framing, jsonrpc::Object, model::*, revision::*};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let config = Arc::new(server::Config::new(Implementation::new("travel", "1.0")));
/// # let core = server::Server::new(config);
/// # let (near, far) = memory::pair();
/// # tokio::spawn(Driver::new(core, Arc::new(Nobody), far, None, Limits::default()).run());
/// # let mut config = client::Config::new(Implementation::new("host", "1.0"));
/// # config.revisions = Revisions::only(Revision::LATEST_STATEFUL);
/// # let (config, nobody, limits) = (Arc::new(config), Arc::new(Nobody), Limits::default());
/// # let opening = Connection::open(config, nobody, near, Framing::Newline, limits);
/// # let connection = opening.await.unwrap();
/// let request = Request::new("ping", Object::default());
/// assert_eq!(connection.call(request).await.unwrap().get(), "{}");
/// # }
/// ```
#[derive(Debug)]
pub struct Connection {
    voice: Voice,
    opened: Arc<Opened>,
    driving: JoinHandle<()>,
    /// Closed when nothing drives the conversation any more.
    ended: watch::Receiver<()>,
    /// Whether the server has to be told that it is over: over HTTP, where it would not notice.
    says_goodbye: bool,
}

impl Connection {
    /// Shakes hands over a byte stream.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use trunkline_proto::{client, server};
    /// # use trunkline_transport::{connection::Connection, drive::Driver, handler::Nobody, memory};
    /// # use trunkline_transport::{voice::*, Limits};
    /// # use trunkline_wire::{frame::Framing, jsonrpc::Object, model::*, revision::*};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (near, far) = memory::pair();
    /// let config = Arc::new(client::Config::new(Implementation::new("host", "1.0")));
    /// let (nobody, limits) = (Arc::new(Nobody), Limits::default());
    /// drop(far);
    /// let opened = Connection::open(config, nobody, near, Framing::Newline, limits).await;
    /// assert_eq!(opened.unwrap_err().to_string(), "The server hung up during the handshake.");
    /// # }
    /// ```
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
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use trunkline_proto::{client, server};
    /// # use trunkline_transport::{connection::Connection, handler::Nobody, Limits};
    /// # use trunkline_transport::http::{bind, client::HttpTarget, serve, Endpoint, Settings};
    /// # use trunkline_wire::model::Implementation;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let listener = bind("127.0.0.1:0").await.unwrap();
    /// # let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    /// # let core = Arc::new(server::Config::new(Implementation::new("travel", "1.0")));
    /// # let endpoint = Endpoint::new(core, Arc::new(Nobody), Settings::new(Limits::default()));
    /// # tokio::spawn(serve(listener, endpoint, Limits::default(), std::future::pending()));
    /// let config = Arc::new(client::Config::new(Implementation::new("host", "1.0")));
    /// let (nobody, target) = (Arc::new(Nobody), HttpTarget::new(url));
    /// let opening = Connection::open_http(config, nobody, target, Limits::default());
    /// let connection = opening.await.unwrap();
    /// assert_eq!(connection.opened().info.as_ref().unwrap().name, "travel");
    /// # }
    /// ```
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
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use trunkline_proto::{client, server};
    /// # use trunkline_transport::{connection::Connection, drive::Driver, handler::Nobody, memory};
    /// # use trunkline_transport::{voice::*, Limits};
    /// # use trunkline_wire::{frame::Framing, jsonrpc::Object, model::*, revision::*};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let config = Arc::new(server::Config::new(Implementation::new("travel", "1.0")));
    /// # let core = server::Server::new(config);
    /// # let (near, far) = memory::pair();
    /// # tokio::spawn(Driver::new(core, Arc::new(Nobody), far, None, Limits::default()).run());
    /// # let mut config = client::Config::new(Implementation::new("host", "1.0"));
    /// # config.revisions = Revisions::only(Revision::LATEST_STATEFUL);
    /// # let (config, nobody, limits) = (Arc::new(config), Arc::new(Nobody), Limits::default());
    /// # let opening = Connection::open(config, nobody, near, Framing::Newline, limits);
    /// # let connection = opening.await.unwrap();
    /// assert_eq!(connection.opened().revision, Revision::LATEST_STATEFUL);
    /// # }
    /// ```
    pub fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    /// Calls the server. Dropping the future cancels the call on the wire.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use trunkline_proto::{client, server};
    /// # use trunkline_transport::{connection::Connection, drive::Driver, handler::Nobody, memory};
    /// # use trunkline_transport::{voice::*, Limits};
    /// # use trunkline_wire::{frame::Framing, jsonrpc::Object, model::*, revision::*};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let config = Arc::new(server::Config::new(Implementation::new("travel", "1.0")));
    /// # let core = server::Server::new(config);
    /// # let (near, far) = memory::pair();
    /// # tokio::spawn(Driver::new(core, Arc::new(Nobody), far, None, Limits::default()).run());
    /// # let mut config = client::Config::new(Implementation::new("host", "1.0"));
    /// # config.revisions = Revisions::only(Revision::LATEST_STATEFUL);
    /// # let (config, nobody, limits) = (Arc::new(config), Arc::new(Nobody), Limits::default());
    /// # let opening = Connection::open(config, nobody, near, Framing::Newline, limits);
    /// # let connection = opening.await.unwrap();
    /// let request = Request::new("tools/list", Object::default());
    /// let refused = connection.call(request).await.unwrap_err();
    /// assert!(refused.to_string().contains("The server does not offer `tools/list`."));
    /// # }
    /// ```
    pub fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Json, CallError>> + Send + use<> {
        self.voice.ask(request)
    }

    /// How to speak into the conversation.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use trunkline_proto::{client, server};
    /// # use trunkline_transport::{connection::Connection, drive::Driver, handler::Nobody, memory};
    /// # use trunkline_transport::{voice::*, Limits};
    /// # use trunkline_wire::{frame::Framing, jsonrpc::Object, model::*, revision::*};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let config = Arc::new(server::Config::new(Implementation::new("travel", "1.0")));
    /// # let core = server::Server::new(config);
    /// # let (near, far) = memory::pair();
    /// # tokio::spawn(Driver::new(core, Arc::new(Nobody), far, None, Limits::default()).run());
    /// # let mut config = client::Config::new(Implementation::new("host", "1.0"));
    /// # config.revisions = Revisions::only(Revision::LATEST_STATEFUL);
    /// # let (config, nobody, limits) = (Arc::new(config), Arc::new(Nobody), Limits::default());
    /// # let opening = Connection::open(config, nobody, near, Framing::Newline, limits);
    /// # let connection = opening.await.unwrap();
    /// assert!(connection.voice().is(connection.voice()));
    /// # }
    /// ```
    pub fn voice(&self) -> &Voice {
        &self.voice
    }

    /// Whether the server is gone.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use trunkline_proto::{client, server};
    /// # use trunkline_transport::{connection::Connection, drive::Driver, handler::Nobody, memory};
    /// # use trunkline_transport::{voice::*, Limits};
    /// # use trunkline_wire::{frame::Framing, jsonrpc::Object, model::*, revision::*};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let config = Arc::new(server::Config::new(Implementation::new("travel", "1.0")));
    /// # let core = server::Server::new(config);
    /// # let (near, far) = memory::pair();
    /// # tokio::spawn(Driver::new(core, Arc::new(Nobody), far, None, Limits::default()).run());
    /// # let mut config = client::Config::new(Implementation::new("host", "1.0"));
    /// # config.revisions = Revisions::only(Revision::LATEST_STATEFUL);
    /// # let (config, nobody, limits) = (Arc::new(config), Arc::new(Nobody), Limits::default());
    /// # let opening = Connection::open(config, nobody, near, Framing::Newline, limits);
    /// # let connection = opening.await.unwrap();
    /// assert!(!connection.is_closed());
    /// # }
    /// ```
    pub fn is_closed(&self) -> bool {
        self.voice.is_closed()
    }

    /// Is ready when the conversation is over, whoever ended it: no call can be made then, and those
    /// that were open have failed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use trunkline_proto::{client, server};
    /// # use trunkline_transport::{connection::Connection, drive::Driver, handler::Nobody, memory};
    /// # use trunkline_transport::{voice::*, Limits};
    /// # use trunkline_wire::{frame::Framing, jsonrpc::Object, model::*, revision::*};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let config = Arc::new(server::Config::new(Implementation::new("travel", "1.0")));
    /// # let core = server::Server::new(config);
    /// # let (near, far) = memory::pair();
    /// # let driver = Driver::new(core, Arc::new(Nobody), far, None, Limits::default());
    /// # let server = tokio::spawn(driver.run());
    /// # let mut config = client::Config::new(Implementation::new("host", "1.0"));
    /// # config.revisions = Revisions::only(Revision::LATEST_STATEFUL);
    /// # let (config, nobody, limits) = (Arc::new(config), Arc::new(Nobody), Limits::default());
    /// # let opening = Connection::open(config, nobody, near, Framing::Newline, limits);
    /// # let connection = opening.await.unwrap();
    /// let ended = connection.ended();
    /// server.abort();
    /// ended.await;
    /// assert!(connection.is_closed());
    /// # }
    /// ```
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let mut ended = self.ended.clone();
        async move { while ended.changed().await.is_ok() {} }
    }

    /// Hangs up in good order: everything said so far is written first.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use trunkline_proto::{client, server};
    /// # use trunkline_transport::{connection::Connection, drive::Driver, handler::Nobody, memory};
    /// # use trunkline_transport::{voice::*, Limits};
    /// # use trunkline_wire::{frame::Framing, jsonrpc::Object, model::*, revision::*};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let config = Arc::new(server::Config::new(Implementation::new("travel", "1.0")));
    /// # let core = server::Server::new(config);
    /// # let (near, far) = memory::pair();
    /// # tokio::spawn(Driver::new(core, Arc::new(Nobody), far, None, Limits::default()).run());
    /// # let mut config = client::Config::new(Implementation::new("host", "1.0"));
    /// # config.revisions = Revisions::only(Revision::LATEST_STATEFUL);
    /// # let (config, nobody, limits) = (Arc::new(config), Arc::new(Nobody), Limits::default());
    /// # let opening = Connection::open(config, nobody, near, Framing::Newline, limits);
    /// # let connection = opening.await.unwrap();
    /// let voice = connection.voice().clone();
    /// connection.close().await;
    /// assert!(voice.is_closed());
    /// # }
    /// ```
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
