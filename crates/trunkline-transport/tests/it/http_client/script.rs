//! A server that answers each request with a closure, and records the requests.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    pub(crate) at: Instant,
    /// The connection it came on.
    pub(crate) connection: usize,
}

impl Seen {
    /// The message's method, or the verb of a request without a message.
    pub(crate) fn what(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.verb)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// A response to it with this result.
    pub(crate) fn result(&self, result: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.body["id"])
    }

    pub(crate) fn error(&self, error: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, self.body["id"])
    }
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Write(String),
    Wait(Duration),
    /// Closes the connection.
    Close,
    /// Waits until the client has disconnected.
    Hang,
    /// The same, and says that nothing more will come.
    Leave,
}

pub(crate) fn json(text: impl AsRef<str>) -> Vec<Step> {
    status(200, "application/json", text)
}

pub(crate) fn status(status: u16, content_type: &str, text: impl AsRef<str>) -> Vec<Step> {
    headed(status, &format!("content-type: {content_type}\r\n"), text)
}

pub(crate) fn headed(status: u16, headers: &str, text: impl AsRef<str>) -> Vec<Step> {
    let text = text.as_ref();
    let length = text.len();
    vec![Step::Write(format!(
        "HTTP/1.1 {status} Whatever\r\n{headers}content-length: {length}\r\n\r\n{text}"
    ))]
}

pub(crate) fn accepted() -> Vec<Step> {
    headed(202, "", "")
}

/// An event stream that has begun and stays open.
pub(crate) fn events(text: impl AsRef<str>) -> Vec<Step> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    vec![Step::Write(head.to_owned()), chunk(text)]
}

pub(crate) fn chunk(text: impl AsRef<str>) -> Step {
    let text = text.as_ref();
    Step::Write(match text.is_empty() {
        true => String::new(),
        false => format!("{:x}\r\n{text}\r\n", text.len()),
    })
}

pub(crate) fn end() -> Step {
    Step::Write("0\r\n\r\n".to_owned())
}

pub(crate) fn data(json: impl AsRef<str>) -> String {
    format!("data: {}\n\n", json.as_ref())
}

type Respond = dyn Fn(&Seen, usize) -> Vec<Step> + Send + Sync;

/// A server on a port of its own.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    news: Arc<Notify>,
    hung_up: Arc<Mutex<Vec<String>>>,
}

impl Script {
    /// Answers with `respond`, which gets a request and its number (from 0) among those of the same
    /// kind.
    pub(crate) async fn start(
        respond: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self::start_with("http://127.0.0.1", async |stream| Some(stream), respond).await
    }

    /// The same with a wrapper around every connection.
    pub(crate) async fn start_with<S, F>(
        origin: &str,
        wrap: impl Fn(TcpStream) -> F + Send + 'static,
        respond: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
        F: Future<Output = Option<S>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{origin}:{}/mcp", listener.local_addr().unwrap().port());
        let script =
            Self { url, seen: Arc::default(), news: Arc::default(), hung_up: Arc::default() };
        let (respond, ours): (Arc<Respond>, _) = (Arc::new(respond), script.clone());
        tokio::spawn(async move {
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (wrapping, respond, ours) = (wrap(stream), Arc::clone(&respond), ours.clone());
                tokio::spawn(async move {
                    if let Some(stream) = wrapping.await {
                        ours.serve(stream, connection, respond).await;
                    }
                });
            }
        });
        script
    }

    /// Everything seen so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The kinds of everything seen so far.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.seen().iter().map(|it| it.what().to_owned()).collect()
    }

    pub(crate) fn all(&self, what: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|it| it.what() == what).collect()
    }

    /// Waits for the `n`th request of a kind.
    pub(crate) async fn nth(&self, what: &str, n: usize) -> Seen {
        self.until(|script| script.all(what).into_iter().nth(n), what).await
    }

    /// Waits until the client has disconnected from a request of this kind.
    pub(crate) async fn hung_up(&self, what: &str) {
        self.hung_up_times(what, 1).await;
    }

    /// The same of so many requests.
    pub(crate) async fn hung_up_times(&self, what: &str, times: usize) {
        let found = |it: &Self| {
            let all = it.hung_up.lock().unwrap();
            (all.iter().filter(|it| *it == what).count() >= times).then_some(())
        };
        self.until(found, what).await;
    }

    async fn until<T>(&self, found: impl Fn(&Self) -> Option<T>, what: &str) -> T {
        let waiting = async {
            loop {
                let news = self.news.notified();
                if let Some(it) = found(self) {
                    return it;
                }
                news.await;
            }
        };
        let seen = tokio::time::timeout(Duration::from_secs(10), waiting).await;
        seen.unwrap_or_else(|_| panic!("no `{what}` among {:?}", self.kinds()))
    }

    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        connection: usize,
        respond: Arc<Respond>,
    ) {
        let mut stream = BufReader::new(stream);
        while let Some(seen) = read(&mut stream, connection).await {
            let n = {
                let mut all = self.seen.lock().unwrap();
                let n = all.iter().filter(|it| it.what() == seen.what()).count();
                all.push(seen.clone());
                n
            };
            self.news.notify_waiters();
            for step in respond(&seen, n) {
                match step {
                    Step::Write(text) => {
                        let written = stream.write_all(text.as_bytes()).await;
                        if written.is_err() || stream.flush().await.is_err() {
                            return self.note_hang_up(&seen);
                        }
                    }
                    // the sleep is the subject
                    Step::Wait(time) => tokio::time::sleep(time).await,
                    Step::Close => return,
                    Step::Hang | Step::Leave => {
                        if matches!(step, Step::Leave) {
                            let _ = stream.shutdown().await;
                        }
                        let _ = stream.read_u8().await;
                        return self.note_hang_up(&seen);
                    }
                }
            }
        }
    }

    fn note_hang_up(&self, seen: &Seen) {
        self.hung_up.lock().unwrap().push(seen.what().to_owned());
        self.news.notify_waiters();
    }
}

async fn read(stream: &mut BufReader<impl AsyncRead + Unpin>, connection: usize) -> Option<Seen> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|n| *n > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (verb, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            // A value may be empty.
            match line.trim_end().strip_suffix(':') {
                Some(name) => headers.insert(name.to_owned(), String::new()),
                None => break,
            };
            continue;
        };
        let before = headers.insert(name.to_owned(), value.to_owned());
        assert_eq!(before, None, "{name} stands twice");
    }
    let length = headers.get("content-length").map_or(0, |it| it.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    Some(Seen { verb, path, headers, body, at: Instant::now(), connection })
}
