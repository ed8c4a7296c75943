//! A running plugin and its socket.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use trunkline_auth::tag::random_name;
use trunkline_transport::Limits;
use trunkline_transport::child::{Child, Command};
use trunkline_wire::frame::{Decoder, Frame};
use trunkline_wire::jsonrpc::Id;

use super::super::message::{self, Answer, Hello};
use super::LONGEST;
use crate::catalog::plan::PluginPlan;
use crate::policy::redact::Redactor;

/// A plugin that has introduced itself. Dropping it kills it.
pub(super) struct Session {
    child: Child,
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    decoder: Decoder,
    /// Unsent bytes begin at `sent`.
    out: Vec<u8>,
    sent: usize,
    redactor: Redactor,
    _stdout: Drain,
    _folder: Folder,
}

/// What a plugin did.
pub(super) enum Event {
    Answer(u64, Result<Answer, String>),
    Nonsense(String),
    Over,
}

impl Session {
    /// Starts the plugin, waits until it has connected and introduced itself, and sends its configuration.
    pub(super) async fn open(plan: &PluginPlan) -> Result<(Self, Hello), String> {
        let folder =
            Folder::new().map_err(|error| format!("there is no folder for it: {error}"))?;
        let path = folder.0.join("plugin.sock");
        let listener =
            UnixListener::bind(&path).map_err(|error| format!("there is no socket: {error}"))?;
        let redactor = Redactor::new(plan.env.iter().map(|(_, value)| value.as_str()));
        let mut child = Child::spawn(command(plan, &path, &redactor)?, &Limits::default())
            .await
            .map_err(|error| error.to_string().trim_end_matches('.').to_owned())?;
        let drain = Drain::new(&mut child);
        let meeting = async {
            let stream = tokio::select! {
                accepted = listener.accept() => {
                    // Only one connection is allowed. Closing the listener is not enough: a process that is
                    // just being started elsewhere has a copy of it until it runs.
                    let _ = std::fs::remove_file(&path);
                    accepted.map_err(|error| format!("it could not connect: {error}"))?.0
                }
                exit = child.exited() => {
                    return Err(format!("it {exit} before it had connected"));
                }
            };
            Self::meet(stream, plan).await
        };
        let met = match timeout(START, meeting).await {
            Ok(met) => met,
            Err(_) => Err(format!("it did not say `hello` within {} s", START.as_secs())),
        };
        match met {
            Ok((reader, writer, decoder, hello)) => {
                let mut session = Self {
                    child,
                    reader,
                    writer,
                    decoder,
                    out: Vec::new(),
                    sent: 0,
                    redactor,
                    _stdout: drain,
                    _folder: folder,
                };
                session.send(&message::configure(&plan.config));
                Ok((session, hello))
            }
            Err(why) => Err(with_stderr(why, &child, &redactor)),
        }
    }

    async fn meet(
        stream: UnixStream,
        plan: &PluginPlan,
    ) -> Result<(OwnedReadHalf, OwnedWriteHalf, Decoder, Hello), String> {
        let (mut reader, writer) = stream.into_split();
        let mut decoder = Decoder::ndjson(LONGEST);
        let hello = loop {
            match reader.read_buf(decoder.space(CHUNK)).await {
                Ok(1..) => {}
                _ => return Err("it went away before it said `hello`".to_owned()),
            }
            match decoder.next() {
                None => {}
                Some(Frame::Text(text)) => break message::hello(text, plan)?,
                Some(_) => return Err("it did not begin with a `hello`".to_owned()),
            }
        };
        Ok((reader, writer, decoder, hello))
    }

    /// Queues a line, which [`Session::next`] writes.
    pub(super) fn send(&mut self, line: &[u8]) {
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
        self.out.extend_from_slice(line);
    }

    /// The number of unsent bytes.
    pub(super) fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Writes and reads until the plugin has sent something. Cancel-safe.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            match self.decoder.next() {
                Some(Frame::Text(text)) => {
                    return match message::answer(text) {
                        Ok((id, answer)) => Event::Answer(id, answer),
                        Err(why) => Event::Nonsense(why),
                    };
                }
                Some(Frame::TooLong(line)) => {
                    let why = format!("its answer has more than {LONGEST} bytes");
                    return match line.id {
                        Some(Id::Number(id)) if id >= 0 => Event::Answer(id as u64, Err(why)),
                        _ => Event::Nonsense(why),
                    };
                }
                Some(Frame::Broken(why)) => return Event::Nonsense(why.to_owned()),
                None => {}
            }
            tokio::select! {
                read = self.reader.read_buf(self.decoder.space(CHUNK)) => {
                    if !matches!(read, Ok(1..)) {
                        return Event::Over;
                    }
                }
                written = self.writer.write(&self.out[self.sent..]), if self.sent < self.out.len() => {
                    match written {
                        Ok(count @ 1..) => self.sent += count,
                        _ => return Event::Over,
                    }
                }
            }
        }
    }

    /// Tells the plugin to end, and kills it if it does not.
    pub(super) async fn end(mut self) {
        self.send(&message::shutdown());
        let Self { mut writer, out, sent, child, .. } = self;
        let _ = timeout(FAREWELL, writer.write_all(&out[sent..])).await;
        drop(writer);
        child.stop().await;
    }

    /// Why it ended, in a clause.
    pub(super) async fn last_words(mut self) -> String {
        let why = match timeout(FAREWELL, self.child.exited()).await {
            Ok(exit) => format!("it {exit}"),
            Err(_) => "it closed its socket".to_owned(),
        };
        with_stderr(why, &self.child, &self.redactor)
    }
}

fn command(plan: &PluginPlan, socket: &Path, redactor: &Redactor) -> Result<Command, String> {
    let (program, args) = plan.command.split_first().ok_or("its command is empty")?;
    let mut command = Command::new(program).args(args.iter().cloned());
    for (name, value) in &plan.env {
        command = command.env(name, value);
    }
    let (name, redactor) = (plan.name.clone(), redactor.clone());
    Ok(command.env(SOCKET, socket).on_stderr(move |line| {
        let line = redactor.redact(line);
        tracing::info!(target: "trunkline::plugin", plugin = name, "{line}");
    }))
}

/// Precedes a plugin's stderr, which is for the operator.
pub(in crate::policy::plugins) const LAST_WORDS: &str = ", and its last words were:";

fn with_stderr(why: String, child: &Child, redactor: &Redactor) -> String {
    match child.stderr().lines().last() {
        Some(line) => format!("{why}{LAST_WORDS} {}", redactor.redact(line)),
        None => why,
    }
}

/// Discards a plugin's stdout, so that it can print without blocking.
struct Drain(Option<JoinHandle<()>>);

impl Drain {
    fn new(child: &mut Child) -> Self {
        let read = |mut stdout: tokio::net::unix::pipe::Receiver| async move {
            let _ = tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await;
        };
        Self(child.take_stdout().map(|stdout| tokio::spawn(read(stdout))))
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// A private folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        // A socket path is limited to about a hundred bytes.
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let place = runtime
            .filter(|it| it.is_absolute() && it.is_dir() && it.as_os_str().len() < 60)
            .unwrap_or_else(|| {
                let usual = std::env::temp_dir();
                if usual.as_os_str().len() < 60 { usual } else { PathBuf::from("/tmp") }
            });
        let name: String =
            random_name().chars().filter(char::is_ascii_alphanumeric).take(16).collect();
        let path = place.join(format!("trunkline-{name}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The variable with the path of the socket.
const SOCKET: &str = "TRUNKLINE_PLUGIN_SOCKET";
/// How long a plugin may take to introduce itself.
const START: Duration = Duration::from_secs(10);
/// How long to wait for the stderr of an ending plugin.
const FAREWELL: Duration = Duration::from_millis(500);
/// The bytes read at a time.
const CHUNK: usize = 16 << 10;
