//! A recording → the server of a test, or its client.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use trunkline_recording::as_client::ClientPlayer;
use trunkline_recording::as_server::ServerPlayer;
use trunkline_recording::compare::{Difference, Ignore, compare};
use trunkline_recording::lines::{ClientLines, Turn, messages};
use trunkline_recording::recording::{Conversation, Recording};
use trunkline_wire::frame::{DEFAULT_LIMIT, Decoder, Frame, Framing, encode};
use trunkline_wire::jsonrpc::Message;

use crate::client::{ClientBuilder, ConnectError, Responder};
use crate::transport::memory;
use crate::{Client, Server};

/// A recording of `trunkline record`: the server for the client of a test ([`Recorded::connect`]), or
/// the client for its server ([`Recorded::differences`]).
///
/// ```
/// use trunkline::testing::Recorded;
/// use trunkline::{Client, Server, tool};
///
/// // The text of a file, as by `include_str!("clock.jsonl")`.
/// let recorded = Recorded::read(
///     r#"{"v":1,"t":1,"side":"client","dir":"in","message":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}}
///     {"v":1,"t":2,"side":"client","dir":"out","message":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"clock","version":"1.0.0"}}}}
///     {"v":1,"t":3,"side":"client","dir":"in","message":{"jsonrpc":"2.0","method":"notifications/initialized"}}
///     {"v":1,"t":4,"side":"client","dir":"in","message":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"now"}}}
///     {"v":1,"t":5,"side":"client","dir":"out","message":{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"noon"}]}}}"#,
/// )
/// .unwrap();
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// // A client without a server hears what the recorded one heard.
/// let client = recorded.connect(Client::builder("mine", "1.0.0")).await.unwrap();
/// assert_eq!(client.call_tool("now", ()).await.unwrap().content[0].as_text(), Some("noon"));
///
/// // A server is asked what the recorded one was asked.
/// let late = Server::builder("clock", "1.0.0").tool(tool("now", async || "midnight")).build();
/// assert_eq!(
///     recorded.ignoring("/result/capabilities").differences(&late).await,
///     [r#"tools/call now: `/result/content/0/text` was "noon" and is "midnight"."#]
/// );
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Recorded {
    recording: Recording,
    ignored: Vec<String>,
    remarks: Arc<Mutex<Vec<String>>>,
}

impl Recorded {
    /// Reads the text of a recording. The error is a sentence about the line that cannot be read.
    ///
    /// ```
    /// use trunkline::testing::Recorded;
    ///
    /// let error = Recorded::read("Dear diary").unwrap_err();
    /// assert!(error.starts_with("Line 1: This is no line of a recording"), "{error}");
    /// ```
    pub fn read(text: &str) -> Result<Self, String> {
        let recording = Recording::read(text).map_err(|error| error.to_string())?;
        Ok(Self { recording, ignored: Vec::new(), remarks: Arc::default() })
    }

    /// Leaves this path out of [`Recorded::differences`]: a JSON Pointer in which `*` is one step and
    /// `**` any number, such as `/result/**/text` or `tool now:/description`. May be repeated.
    ///
    /// # Panics
    ///
    /// If that is no path.
    #[must_use]
    #[track_caller]
    pub fn ignoring(mut self, path: impl Into<String>) -> Self {
        self.ignored.push(path.into());
        self.ignore();
        self
    }

    /// Connects a client to the recorded server, in memory. The client hears what the server said to a
    /// request of the same method and parameters: notifications, questions and the answer. A request
    /// that was never recorded gets an error that says what is different about it.
    pub async fn connect<H: Responder>(
        &self,
        builder: ClientBuilder<H>,
    ) -> Result<Client, ConnectError> {
        let ((reader, writer), (server_reader, server_writer)) = memory::pair();
        let player = ServerPlayer::new(&self.recording);
        // It ends when the client disconnects.
        tokio::spawn(serve(player, server_reader, server_writer, Arc::clone(&self.remarks)));
        builder.connect_io(reader, writer).await
    }

    /// What the connected clients did that is not in the recording, so far: requests that were never
    /// recorded, and other answers to questions.
    ///
    /// ```
    /// # use trunkline::{Client, testing::Recorded};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let recorded = Recorded::read("").unwrap();
    /// assert!(recorded.connect(Client::builder("mine", "1.0.0")).await.is_err());
    /// assert_eq!(recorded.remarks().last().unwrap(), "The recording has no `initialize`.");
    /// # });
    /// ```
    pub fn remarks(&self) -> Vec<String> {
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says to a server what the recorded client said, answers its questions as recorded, and compares
    /// what it says. Each difference is a sentence. Ids, times and what else differs in every run does
    /// not count.
    pub async fn differences(&self, server: &Server) -> Vec<String> {
        let mut live = Recording::default();
        for conversation in &self.recording.conversations {
            live.conversations.push(say_again(conversation, server.clone()).await);
        }
        let found = compare(&self.recording, &live, &self.ignore());
        found.differences.iter().map(sentence).collect()
    }

    #[track_caller]
    fn ignore(&self) -> Ignore {
        Ignore::read(&self.ignored).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Plays the server until the client has gone.
async fn serve(
    mut player: ServerPlayer,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    remarks: Arc<Mutex<Vec<String>>>,
) {
    let (mut decoder, mut buffer) = (Decoder::ndjson(DEFAULT_LIMIT), vec![0; CHUNK]);
    while let Ok(count @ 1..) = reader.read(&mut buffer).await {
        decoder.push(&buffer[..count]);
        let mut out = Vec::new();
        while let Some(frame) = decoder.next() {
            let Frame::Text(text) = frame else { continue };
            let said = messages(text).into_iter().flat_map(|it| player.receive(&it));
            said.for_each(|it| write(&it.message, &mut out));
        }
        remarks.lock().unwrap_or_else(PoisonError::into_inner).extend(player.remarks());
        if writer.write_all(&out).await.is_err() {
            return;
        }
    }
    let mut out = Vec::new();
    player.ended().iter().for_each(|it| write(&it.message, &mut out));
    // A client that has closed its side may not read any more.
    let _ = writer.write_all(&out).await;
}

/// Plays the client of a conversation, and returns what was said this time.
async fn say_again(recorded: &Conversation, server: Server) -> Conversation {
    let ((mut reader, mut writer), (server_reader, server_writer)) = memory::pair();
    tokio::spawn(async move { server.serve(server_reader, server_writer).await });
    let mut player = ClientPlayer::new(recorded, false);
    let mut lines = ClientLines::new(&mut player, DEFAULT_LIMIT);
    let mut buffer = vec![0; CHUNK];
    loop {
        let is_done = match lines.say(now()) {
            Turn::Pause => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            turn => turn == Turn::Done,
        };
        if lines.is_closed() {
            // What comes of it is read.
            let _ = writer.shutdown().await;
        }
        let patience = match is_done {
            true if lines.unsent().is_empty() && !lines.is_missing_news() => break,
            true => LAST_NEWS,
            false => PATIENCE,
        };
        // Both at once: a server that is not read may not read.
        let moved = timeout(patience, async {
            tokio::select! {
                sent = writer.write(lines.unsent()), if !lines.unsent().is_empty() => (sent, false),
                read = reader.read(&mut buffer) => (read, true),
            }
        });
        // What has no answer is a difference.
        match moved.await {
            Ok((Ok(count), false)) => lines.sent(count),
            Ok((Ok(count @ 1..), true)) => lines.hear(&buffer[..count], now()),
            _ => break,
        }
    }
    player.into_live()
}

fn write(message: &Message, out: &mut Vec<u8>) {
    encode(Framing::Newline, |out| message.write(out), out);
}

fn sentence(it: &Difference) -> String {
    let Difference { of, path, a, b, .. } = it;
    match (path.as_str(), a, b) {
        ("", Some(_), None) => format!("{of}: only the recording has it."),
        ("", None, Some(_)) => format!("{of}: the recording does not have it."),
        (path, Some(a), None) => format!("{of}: `{path}` was {a} and is absent."),
        (path, None, Some(b)) => format!("{of}: `{path}` was absent and is {b}."),
        (path, Some(a), Some(b)) => format!("{of}: `{path}` was {a} and is {b}."),
        (path, None, None) => format!("{of}: `{path}` differs."),
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

const CHUNK: usize = 64 << 10;
/// How long a server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait for notifications that the recording has and nothing else waits for.
const LAST_NEWS: Duration = Duration::from_secs(1);
/// How long to wait before a task is asked for again.
const PAUSE: Duration = Duration::from_millis(100);
