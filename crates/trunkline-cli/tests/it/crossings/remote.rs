//! A fake server behind HTTP: each session is a process, and whatever does not name a request goes to the
//! session's own stream, where nothing says whom it is for. Where the process ends, so do the session and what
//! is open in it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{ChildStdin, Command};
use tokio::sync::{Mutex as AsyncMutex, mpsc};

static NAMES: AtomicUsize = AtomicUsize::new(1);

type Sessions = Arc<Mutex<HashMap<String, Arc<Session>>>>;

/// A process, and where what it says goes.
struct Session {
    stdin: AsyncMutex<ChildStdin>,
    /// Requests that wait, by their ids; none once the process has ended.
    open: Mutex<Option<HashMap<String, mpsc::UnboundedSender<Value>>>>,
    /// The session's own stream; what is said before it is there waits in it.
    own: mpsc::UnboundedSender<Value>,
    unread: AsyncMutex<mpsc::UnboundedReceiver<Value>>,
}

/// Serves the program of these words at the address that comes back, until the test ends.
pub(crate) async fn serve(words: Vec<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there are free ports");
    let address = listener.local_addr().expect("it is bound");
    let (sessions, words) = (Sessions::default(), Arc::new(words));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, Arc::clone(&sessions), Arc::clone(&words)));
        }
    });
    address
}

async fn connection(stream: TcpStream, sessions: Sessions, words: Arc<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    while let Some((method, session, body)) = request(&mut stream).await {
        let known = session.as_ref().and_then(|it| sessions.lock().unwrap().get(it).cloned());
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let told = match (method.as_str(), known) {
            ("GET", Some(session)) => {
                let _ = stream.write_all(head("").as_bytes()).await;
                let mut unread = session.unread.lock().await;
                while let Some(said) = unread.recv().await {
                    if event(&mut stream, &said).await.is_err() {
                        break;
                    }
                }
                return;
            }
            ("DELETE", Some(_)) => {
                sessions.lock().unwrap().remove(&session.unwrap_or_default());
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await
            }
            ("POST", None) if message["method"] == "initialize" => {
                // No name is given twice, also when sessions have ended.
                let name = format!("s{}", NAMES.fetch_add(1, Ordering::Relaxed));
                let session = Session::start(&words, &sessions, &name);
                answer(&mut stream, &session, &message, &format!("Mcp-Session-Id: {name}\r\n"))
                    .await
            }
            ("POST", Some(session))
                if message["method"].is_string() && !message["id"].is_null() =>
            {
                answer(&mut stream, &session, &message, "").await
            }
            ("POST", Some(session)) => {
                session.tell(&message).await;
                stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await
            }
            _ => stream.write_all(b"HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n").await,
        };
        if told.is_err() {
            return;
        }
    }
}

/// The method, the session and the body of the next request.
async fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, Option<String>, Vec<u8>)> {
    let (mut line, mut method, mut session, mut length) = (String::new(), None, None, 0);
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let text = line.trim_end();
        if text.is_empty() {
            break;
        }
        let Some((name, value)) = text.split_once(':').filter(|_| method.is_some()) else {
            method = text.split(' ').next().map(str::to_owned);
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "mcp-session-id" => session = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((method?, session, body))
}

/// Passes a request on, and its answer back, with what names the request before it.
async fn answer(
    stream: &mut BufReader<TcpStream>,
    session: &Session,
    message: &Value,
    headers: &str,
) -> std::io::Result<()> {
    let (tell, mut told) = mpsc::unbounded_channel();
    if let Some(open) = &mut *session.open.lock().unwrap() {
        open.insert(message["id"].to_string(), tell);
    }
    session.tell(message).await;
    stream.write_all(head(headers).as_bytes()).await?;
    while let Some(said) = told.recv().await {
        event(stream, &said).await?;
        if said.get("method").is_none() {
            break;
        }
    }
    stream.write_all(b"0\r\n\r\n").await
}

fn head(headers: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{headers}\
         Transfer-Encoding: chunked\r\n\r\n"
    )
}

async fn event(stream: &mut BufReader<TcpStream>, said: &Value) -> std::io::Result<()> {
    let text = format!("data: {said}\n\n");
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
}

impl Session {
    fn start(words: &[String], sessions: &Sessions, name: &str) -> Arc<Self> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).kill_on_drop(true).spawn().expect("it runs");
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (own, unread) = mpsc::unbounded_channel();
        let (stdin, unread) = (AsyncMutex::new(stdin), AsyncMutex::new(unread));
        let session = Arc::new(Self { stdin, open: Mutex::new(Some(HashMap::new())), own, unread });
        sessions.lock().unwrap().insert(name.to_owned(), Arc::clone(&session));
        let (this, sessions, name) =
            (Arc::downgrade(&session), Arc::clone(sessions), name.to_owned());
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let (Some(this), Ok(said)) = (this.upgrade(), serde_json::from_str(&line)) else {
                    break;
                };
                this.route(said);
            }
            sessions.lock().unwrap().remove(&name);
            if let Some(this) = this.upgrade() {
                this.open.lock().unwrap().take();
            }
            drop(child);
        });
        session
    }

    async fn tell(&self, message: &Value) {
        let line = format!("{message}\n");
        let _ = self.stdin.lock().await.write_all(line.as_bytes()).await;
    }

    fn route(&self, said: Value) {
        let mut open = self.open.lock().unwrap();
        let Some(open) = &mut *open else { return };
        if said.get("method").is_none() {
            if let Some(waits) = open.remove(&said["id"].to_string()) {
                let _ = waits.send(said);
            }
            return;
        }
        let token = &said["params"]["progressToken"];
        match open.get(&token.to_string()).filter(|_| *token != json!(null)) {
            Some(waits) => drop(waits.send(said)),
            None => drop(self.own.send(said)),
        }
    }
}
