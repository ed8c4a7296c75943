//! One client of one server, which the body of a test speaks through and looks at.

use std::ops::Deref;
use std::sync::Arc;

use tokio::net::unix::pipe;

use super::clock::Clock;
use super::script::{Reply, ScriptedModel, Stage};
use super::tap::Tap;
use super::transcript::{Recorder, Transcript};
use super::{Transport, client};
use crate::client::{ClientBuilder, ConnectError, Question, Responder};
use crate::model::{LogLevel, LogMessage, Progress, Root};
use crate::transport::memory;
use crate::{Change, Client, Revision, Server};

/// A client that is connected to the server of the test. It derefs to [`Client`], declares
/// everything a client can, answers from a script and remembers what it saw.
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
    stage: Arc<Stage>,
    place: Place,
}

/// Where the server is.
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
    /// Answers the questions of the server to its user, in this order. A question without an answer
    /// fails the test, and so does an answer without a question.
    pub fn answers<R: Into<Reply>>(&self, replies: impl IntoIterator<Item = R>) {
        self.stage.answers(replies.into_iter().map(Into::into));
    }

    /// Answers the questions of the server to a model; keep a clone to see what it was asked.
    pub fn model(&self, model: ScriptedModel) {
        self.stage.model(model);
    }

    /// The folders the server is told. Say [`Client::roots_changed`] if it knows others already.
    pub fn roots(&self, roots: impl IntoIterator<Item = Root>) {
        self.stage.roots.set(roots);
    }

    /// The questions to the user so far.
    pub fn questions(&self) -> Vec<Question> {
        self.stage.questions()
    }

    /// The progress of all calls so far, in the order in which it came.
    pub fn progress(&self) -> Vec<Progress> {
        self.stage.progress()
    }

    /// What the server logged so far.
    pub fn logs(&self) -> Vec<LogMessage> {
        self.stage.logs()
    }

    /// The changes the server told so far; in 2026-07-28 only those that are listened to.
    pub fn changes(&self) -> Vec<Change> {
        self.stage.changes()
    }

    /// Every message after the handshake, as it went over the wire.
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

    /// The revision that is spoken.
    pub fn revision(&self) -> Revision {
        self.place.revision
    }

    /// What lies between client and server.
    pub fn transport(&self) -> Transport {
        self.place.transport
    }

    /// The server, to change it while it is used.
    pub fn server(&self) -> &Server {
        &self.place.server
    }

    /// A clock that only the test moves: deadlines, pauses and lifetimes of both sides go by it.
    pub fn clock(&self) -> Clock {
        Clock::stop()
    }

    /// Connects one more client to the server, in the same way.
    pub async fn connect<H: Responder>(
        &self,
        builder: ClientBuilder<H>,
    ) -> Result<Client, ConnectError> {
        // Somewhere else, if there are places: what it says is not part of this transcript.
        let Place { server, revision, transport, .. } = &self.place;
        let aside = Recorder::default();
        let place = Place::open(server.clone(), *revision, *transport, aside.clone()).await;
        place.expect("there was a port before").connect(builder, &aside).await
    }

    pub(super) async fn begin(
        server: Server,
        revision: Revision,
        transport: Transport,
    ) -> Result<(Self, Arc<Stage>), String> {
        let recorder = Recorder::default();
        let place = Place::open(server, revision, transport, recorder.clone()).await?;
        let stage = Arc::new(Stage::new());
        let seen = Arc::clone(&stage);
        let builder = client()
            .responder(Arc::clone(&stage))
            .log_level(LogLevel::Debug)
            .watch_progress(move |progress| seen.progressed(progress));
        let connected = place.connect(builder, &recorder).await;
        let client = connected.map_err(|error| format!("The client did not connect: {error}"))?;
        recorder.begin();
        Ok((Self { client, stage: Arc::clone(&stage), place }, stage))
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
