//! Over a socket: that it is wired, and that it lets go.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use trunkline_auth::fetch::{Answer, Ask, Fetch, FetchError, Pending};
use trunkline_authority::{Authority, Serving, Settings};

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// Sends bytes and reads until the other side closes.
async fn say(address: std::net::SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

#[tokio::test]
async fn it_answers_at_its_listener_until_it_is_dropped() {
    let authority = Authority::serve(listener().await, Settings::new()).unwrap();
    let address = authority.address();
    let head = "GET /.well-known/oauth-authorization-server HTTP/1.1\r\nConnection: close\r\n";
    let answer = say(address, &format!("{head}Host: {address}\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains(&format!("\"issuer\":\"http://{address}\"")), "{answer}");
    let answer = say(address, &format!("{head}Host: evil.example\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
    assert_eq!(authority.stats().requests, 2);

    let mut waiting = TcpStream::connect(address).await.unwrap();
    drop(authority);
    let mut byte = [0];
    assert_eq!(waiting.read(&mut byte).await.unwrap_or(0), 0, "its connections end with it");
}

#[tokio::test]
async fn a_form_is_read_whole_and_not_too_long() {
    let authority = Authority::serve(listener().await, Settings::new()).unwrap();
    let address = authority.address();
    let post = |body: &str| {
        format!(
            "POST /token HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let answer = say(address, &post("grant_type=password")).await;
    assert!(answer.contains("\"error\":\"unsupported_grant_type\""), "{answer}");
    let answer = say(address, &post(&format!("grant_type={}", "x".repeat(65_000)))).await;
    assert!(answer.contains("\"error\":\"unsupported_grant_type\""), "{answer}");
    // Whoever sends more than is read gets the answer all the same, and no reset.
    for _ in 0..10 {
        let answer = say(address, &post(&"x".repeat(3 << 20))).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    }
}

/// Finds one document, and remembers who asked for it.
#[derive(Default)]
struct Library(Mutex<Vec<String>>);

impl Fetch for Library {
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        self.0.lock().unwrap().push(ask.url.clone());
        let document = format!(
            r#"{{"client_id":"{}","redirect_uris":["http://127.0.0.1/callback"]}}"#,
            ask.url
        );
        Box::pin(async move { Ok(Answer::new(200, document)) })
    }

    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

#[tokio::test]
async fn documents_of_clients_are_fetched_once() {
    let listener = listener().await;
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let library = Arc::new(Library::default());
    let settings = Settings::new().client_documents().approve_as("alice");
    let serving =
        Serving::start(Authority::new(issuer, settings), listener, Some(library.clone())).unwrap();
    let address = serving.address();
    let ask = format!(
        "GET /authorize?response_type=code&client_id=https%3A%2F%2Fapp.example%2Fclient.json\
         &code_challenge_method=S256&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM\
         &redirect_uri=http%3A%2F%2F127.0.0.1%3A7%2Fcallback HTTP/1.1\r\n\
         Host: {address}\r\nConnection: close\r\n\r\n"
    );
    for _ in 0..2 {
        let answer = say(address, &ask).await;
        assert!(answer.starts_with("HTTP/1.1 303 "), "{answer}");
        assert!(answer.contains("\r\nlocation: http://127.0.0.1:7/callback?code="), "{answer}");
    }
    assert_eq!(*library.0.lock().unwrap(), ["https://app.example/client.json"]);
}
