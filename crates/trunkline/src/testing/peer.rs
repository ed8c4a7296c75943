//! The client of a test, with scripted answers and a record of what it saw.

use std::ops::Deref;
use std::sync::{Arc, PoisonError};

use tokio::net::unix::pipe;

use super::clock::Clock;
use super::script::{Reply, ScriptedModel, ScriptedResponder};
use super::tap::Tap;
use super::transcript::{Recorder, Transcript};
use super::{Transport, client};
use crate::client::{ClientBuilder, ConnectError, Question, Responder};
use crate::model::{LogLevel, LogMessage, Progress, Root};
use crate::transport::memory;
use crate::{Change, Client, Principal, Revision, Server};

/// A client connected to the server of the test. It derefs to [`Client`], declares all client
/// capabilities, answers from a script and records what it sees.
///
/// ```
/// use trunkline::testing::{self, Peer, ScriptedModel, Transport};
/// # use trunkline::model::{CreateMessageParams, SamplingMessage};
/// # use trunkline::{Context, Revision, Server, ToolError, tool};
/// # async fn sum(cx: Context) -> Result<String, ToolError> {
/// #     let params = CreateMessageParams::new(vec![SamplingMessage::user("2 + 2?")], 10);
/// #     Ok(cx.sample(params).await?.text())
/// # }
/// # let server = || Server::builder("sum", "1.0.0").tool(tool("sum", sum).about("Asks the model.")).build();
///
/// async fn the_model_is_asked(peer: Peer) {
///     let model = ScriptedModel::new(["Four."]);
///     peer.model(model.clone());
///     let result = peer.call_tool("sum", ()).await.unwrap();
///     assert_eq!(result.content[0].as_text(), Some("Four."));
///     assert_eq!(model.asked().len(), 1);
///     assert!(peer.questions().is_empty() && peer.logs().is_empty());
/// }
///
/// testing::run(Revision::V2026_07_28, Transport::Memory, server, the_model_is_asked);
/// testing::run(Revision::V2025_11_25, Transport::Stdio, server, the_model_is_asked);
/// ```
#[derive(Debug)]
pub struct Peer {
    client: Client,
    responder: Arc<ScriptedResponder>,
    place: Place,
}

/// How to connect to the server.
#[derive(Debug)]
struct Place {
    server: Server,
    revision: Revision,
    transport: Transport,
    #[cfg(feature = "http")]
    address: Option<std::net::SocketAddr>,
    recorder: Recorder,
}

impl Peer {
    /// Scripts the answers to the server's questions to the user, in this order. A question without
    /// an answer fails the test, and so does an answer without a question.
    ///
    /// ```
    /// # use trunkline::{*, testing::*};
    /// # let ask = async |cx: Context| cx.ask::<u8>("How many?").await.map(|it| format!("{it:?}")).map_err(ToolError::from);
    /// # let server = || Server::builder("inn", "1.0.0").tool(tool("ask", ask)).build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     peer.answers([Reply::accept(2), Reply::decline()]);
    ///     let first = peer.call_tool("ask", ()).await.unwrap();
    ///     let second = peer.call_tool("ask", ()).await.unwrap();
    ///     assert_eq!(first.content[0].as_text(), Some("Accept(2)"));
    ///     assert_eq!(second.content[0].as_text(), Some("Decline"));
    /// });
    /// ```
    pub fn answers<R: Into<Reply>>(&self, replies: impl IntoIterator<Item = R>) {
        self.responder.answers(replies.into_iter().map(Into::into));
    }

    /// Scripts the answers to the server's questions to a model; keep a clone to read the
    /// questions.
    pub fn model(&self, model: ScriptedModel) {
        self.responder.model(model);
    }

    /// Sets the roots. Call [`Client::roots_changed`] if the server knows others already.
    ///
    /// ```
    /// # use trunkline::{*, model::Root, testing::*};
    /// # let count = async |cx: Context| cx.roots().await.map(|it| it.len().to_string()).map_err(ToolError::from);
    /// # let server = || Server::builder("files", "1.0.0").tool(tool("count", count)).build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     peer.roots([Root::new("file:///projects/ada")]);
    ///     let count = peer.call_tool("count", ()).await.unwrap();
    ///     assert_eq!(count.content[0].as_text(), Some("1"));
    /// });
    /// ```
    pub fn roots(&self, roots: impl IntoIterator<Item = Root>) {
        self.responder.roots.set(roots);
    }

    /// The questions to the user so far.
    ///
    /// ```
    /// # use trunkline::{*, testing::*};
    /// # let ask = async |cx: Context| cx.ask::<bool>("Book it?").await.map(|_| ()).map_err(ToolError::from);
    /// # let server = || Server::builder("inn", "1.0.0").tool(tool("ask", ask)).build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     peer.answers([true]);
    ///     peer.call_tool("ask", ()).await.unwrap();
    ///     assert_eq!(peer.questions()[0].message(), "Book it?");
    /// });
    /// ```
    pub fn questions(&self) -> Vec<Question> {
        self.responder.questions()
    }

    /// Warnings about handlers called so far, in sentences: a handler that awaits something outside
    /// [`Context::once`](crate::Context::once) before it asks repeats it with each answer. This is
    /// detected in debug builds and in 2026-07-28, where calls that ask run again.
    ///
    /// ```
    /// # use trunkline::{*, testing::*};
    /// async fn reserve() -> u32 {
    ///     tokio::task::yield_now().await; // a request to the hotel
    ///     7
    /// }
    /// async fn book(cx: Context) -> Result<String, ToolError> {
    ///     let room = reserve().await; // better: `cx.once("room", async || Ok::<_, ToolError>(reserve().await))`
    ///     cx.ask::<bool>(format!("Shall it be room {room}?")).await?.accepted()?;
    ///     Ok(format!("Room {room}."))
    /// }
    /// # let server = || Server::builder("inn", "1.0.0").tool(tool("book", book)).build();
    /// run(Revision::V2026_07_28, Transport::Memory, server, async |peer| {
    ///     peer.answers([true]);
    ///     peer.call_tool("book", ()).await.unwrap();
    ///     # if cfg!(debug_assertions) {
    ///     assert!(peer.warnings()[0].starts_with("`book` waits for something before it asks"));
    ///     # }
    /// });
    /// ```
    pub fn warnings(&self) -> Vec<String> {
        let inner = self.place.server.inner();
        inner.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The progress of all calls so far, in order of arrival.
    ///
    /// ```
    /// # use trunkline::{*, testing::*};
    /// # let save = async |cx: Context| cx.progress(1.0, 2.0).await;
    /// # let server = || Server::builder("files", "1.0.0").tool(tool("save", save)).build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     peer.call_tool("save", ()).await.unwrap();
    ///     assert_eq!(peer.progress()[0].progress, 1.0);
    /// });
    /// ```
    pub fn progress(&self) -> Vec<Progress> {
        self.responder.progress()
    }

    /// What the server logged so far.
    ///
    /// ```
    /// # use trunkline::{*, model::LogLevel, testing::*};
    /// # let save = async |cx: Context| cx.log(LogLevel::Info, "Saved.").await;
    /// # let server = || Server::builder("files", "1.0.0").tool(tool("save", save)).build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     peer.call_tool("save", ()).await.unwrap();
    ///     assert_eq!(peer.logs()[0].data.get(), r#""Saved.""#);
    /// });
    /// ```
    pub fn logs(&self) -> Vec<LogMessage> {
        self.responder.logs()
    }

    /// The changes that the server announced so far; in 2026-07-28 only those listened to.
    ///
    /// ```
    /// # use trunkline::{*, model::SubscriptionFilter, testing::*};
    /// # let server = || Server::builder("clock", "1.0.0").tools_later().build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     let filter = SubscriptionFilter::new().tools_list_changed(true);
    ///     let mut listener = peer.listen(filter).await.unwrap();
    ///     peer.server().put_tool(tool("now", async || "noon")).unwrap();
    ///     listener.next().await;
    ///     assert_eq!(peer.changes(), [Change::Tools]);
    /// });
    /// ```
    pub fn changes(&self) -> Vec<Change> {
        self.responder.changes()
    }

    /// Every message after the handshake, as sent on the wire.
    ///
    /// ```
    /// # use trunkline::{*, testing::*};
    /// # let server = || Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     peer.call_tool("now", ()).await.unwrap();
    ///     assert_eq!(peer.transcript().outline(), "> tools/call now\n< result");
    /// });
    /// ```
    pub fn transcript(&self) -> Transcript {
        self.place.recorder.read()
    }

    /// Compares the [outline](Transcript::outline) of the transcript with lines such as
    /// `> tools/call book`; indentation does not count.
    ///
    /// ```
    /// # use trunkline::testing::{self, Transport};
    /// # use trunkline::{Revision, Server, tool};
    /// # let server = || Server::builder("clock", "1.0.0").tool(tool("now", async || "noon").about("The time.")).build();
    /// testing::run(Revision::V2025_11_25, Transport::Memory, server, async |peer| {
    ///     peer.call_tool("now", ()).await.unwrap();
    ///     peer.assert_transcript(
    ///         "> tools/call now
    ///          < result",
    ///     );
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// If they differ, with the whole transcript.
    #[track_caller]
    pub fn assert_transcript(&self, expected: &str) {
        let transcript = self.transcript();
        let expected: Vec<_> =
            expected.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
        let expected = expected.join("\n");
        let found = transcript.outline();
        if found != expected {
            panic!(
                "The transcript is another one.\nexpected:\n{expected}\nfound:\n{found}\nin full:\n\
                 {transcript}"
            );
        }
    }

    /// The revision of the connection.
    ///
    /// ```
    /// # use trunkline::{*, testing::*};
    /// # let server = || Server::builder("empty", "1.0.0").build();
    /// run(Revision::V2025_06_18, Transport::Memory, server, async |peer| {
    ///     assert_eq!(peer.revision(), Revision::V2025_06_18);
    /// });
    /// ```
    pub fn revision(&self) -> Revision {
        self.place.revision
    }

    /// The transport between client and server.
    ///
    /// ```
    /// # use trunkline::{*, testing::*};
    /// # let server = || Server::builder("empty", "1.0.0").build();
    /// run(Revision::LATEST, Transport::Stdio, server, async |peer| {
    ///     assert_eq!(peer.transport(), Transport::Stdio);
    /// });
    /// ```
    pub fn transport(&self) -> Transport {
        self.place.transport
    }

    /// The server, to change it while it is used.
    ///
    /// ```
    /// # use trunkline::{*, testing::*};
    /// # let server = || Server::builder("clock", "1.0.0").tools_later().build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     peer.server().put_tool(tool("now", async || "noon")).unwrap();
    ///     assert_eq!(peer.list_tools().await.unwrap().len(), 1);
    /// });
    /// ```
    pub fn server(&self) -> &Server {
        &self.place.server
    }

    /// A clock that only the test advances: deadlines, pauses and lifetimes of both sides follow
    /// it.
    ///
    /// ```
    /// # use {std::time::Duration, trunkline::{*, testing::*}};
    /// # let server = || Server::builder("empty", "1.0.0").build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     let clock = peer.clock();
    ///     clock.advance(Duration::from_secs(3600)).await;
    ///     assert!(clock.elapsed() >= Duration::from_secs(3600), "an hour, in no time");
    /// });
    /// ```
    pub fn clock(&self) -> Clock {
        Clock::stop()
    }

    /// Makes every call to the server as this principal, with its scopes, until another is set. No
    /// token is needed.
    ///
    /// ```
    /// # use trunkline::{*, testing::*};
    /// # let server = || Server::builder("a", "1.0.0").tool(tool("who", async |it: Principal| it.subject).scopes(["read"])).build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     assert!(peer.call_tool("who", ()).await.is_err());
    ///     peer.principal(Principal::new("ada").scope("read"));
    ///     assert_eq!(peer.call_tool("who", ()).await.unwrap().content[0].as_text(), Some("ada"));
    ///     peer.principal(Principal::new("bob"));
    ///     assert!(peer.call_tool("who", ()).await.is_err(), "bob may not read");
    /// });
    /// ```
    pub fn principal(&self, principal: impl Into<Option<Principal>>) {
        let makes = &self.place.server.inner().principal;
        *makes.lock().unwrap_or_else(PoisonError::into_inner) = principal.into();
    }

    /// Connects one more client to the server, in the same way.
    ///
    /// ```
    /// # use trunkline::{*, testing::*};
    /// # let server = || Server::builder("empty", "1.0.0").build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     let other = peer.connect(Client::builder("other", "1.0.0")).await.unwrap();
    ///     assert_eq!(other.revision(), peer.revision());
    /// });
    /// ```
    pub async fn connect<H: Responder>(
        &self,
        builder: ClientBuilder<H>,
    ) -> Result<Client, ConnectError> {
        // On another port, if there are ports: its messages are not part of this transcript.
        let Place { server, revision, transport, .. } = &self.place;
        let aside = Recorder::default();
        let place = Place::open(server.clone(), *revision, *transport, aside.clone()).await;
        place.expect("there was a port before").connect(builder, &aside).await
    }

    pub(super) async fn begin(
        server: Server,
        revision: Revision,
        transport: Transport,
    ) -> Result<(Self, Arc<ScriptedResponder>), String> {
        let recorder = Recorder::default();
        let place = Place::open(server, revision, transport, recorder.clone()).await?;
        let responder = Arc::new(ScriptedResponder::new());
        let seen = Arc::clone(&responder);
        let builder = client()
            .responder(Arc::clone(&responder))
            .log_level(LogLevel::Debug)
            .watch_progress(move |progress| seen.progressed(progress));
        let connected = place.connect(builder, &recorder).await;
        let client = connected.map_err(|error| format!("The client did not connect: {error}"))?;
        recorder.begin();
        Ok((Self { client, responder: Arc::clone(&responder), place }, responder))
    }
}

impl Deref for Peer {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Place {
    async fn open(
        server: Server,
        revision: Revision,
        transport: Transport,
        recorder: Recorder,
    ) -> Result<Self, String> {
        #[cfg(feature = "http")]
        let address = match transport {
            Transport::Http => Some(
                super::http::serve(&server, &recorder)
                    .await
                    .map_err(|error| format!("There is no port to listen at: {error}."))?,
            ),
            _ => None,
        };
        Ok(Self {
            server,
            revision,
            transport,
            #[cfg(feature = "http")]
            address,
            recorder,
        })
    }

    async fn connect<H: Responder>(
        &self,
        builder: ClientBuilder<H>,
        recorder: &Recorder,
    ) -> Result<Client, ConnectError> {
        let builder = builder.protocol(self.revision);
        let server = self.server.clone();
        match self.transport {
            Transport::Memory => {
                let ((reader, writer), (server_reader, server_writer)) = memory::pair();
                tokio::spawn(async move { server.serve(server_reader, server_writer).await });
                let (reader, writer) =
                    (Tap::reader(reader, recorder), Tap::writer(writer, recorder));
                builder.connect_io(reader, writer).await
            }
            Transport::Stdio => {
                let (server_writer, reader) = pipe::pipe().expect("a pipe can be had");
                let (writer, server_reader) = pipe::pipe().expect("a pipe can be had");
                tokio::spawn(async move { server.serve(server_reader, server_writer).await });
                let (reader, writer) =
                    (Tap::reader(reader, recorder), Tap::writer(writer, recorder));
                builder.connect_io(reader, writer).await
            }
            #[cfg(feature = "http")]
            Transport::Http => {
                let address = self.address.expect("it was opened for HTTP");
                builder.ask_anew().connect_http(format!("http://{address}/mcp")).await
            }
            #[cfg(not(feature = "http"))]
            Transport::Http => panic!(
                "A test over HTTP needs trunkline's feature `http`; add it in `Cargo.toml`, or test \
                 over memory and stdio."
            ),
        }
    }
}
