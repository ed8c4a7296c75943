//! What ends in the middle of a renewal, at an authorization server that takes a refresh token once.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;
use trunkline_authority::Settings;
use trunkline_testkit::peer::PATIENCE;

use super::place::Place;

/// A token endpoint before the real one: it waits until it may answer, and forgives nothing.
struct Slow {
    url: String,
    /// A request has come.
    came: Arc<Notify>,
    /// It may be answered.
    go: Arc<Notify>,
}

impl Slow {
    async fn before(real: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/token", listener.local_addr().unwrap());
        let (came, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (told, may) = (Arc::clone(&came), Arc::clone(&go));
        let spent = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = request(&mut stream).await;
                told.notify_one();
                may.notified().await;
                let body = request.split_once("\r\n\r\n").unwrap().1.to_owned();
                let token = body.split('&').find(|it| it.starts_with("refresh_token=")).unwrap();
                let token = token.to_owned();
                let is_spent = {
                    let mut spent = spent.lock().unwrap();
                    let is_spent = spent.contains(&token);
                    spent.push(token);
                    is_spent
                };
                let answer = match is_spent {
                    true => REFUSED.as_bytes().to_vec(),
                    false => forwarded(&real, &body).await,
                };
                stream.write_all(&answer).await.unwrap();
            }
        });
        Self { url, came, go }
    }
}

async fn request(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        assert_ne!(stream.read_buf(&mut all).await.unwrap(), 0, "it hung up: {text}");
    }
}

async fn forwarded(real: &str, body: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(real).await.unwrap();
    let ask = format!(
        "POST /token HTTP/1.1\r\nHost: {real}\r\nConnection: close\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_renewal_that_is_under_way_is_kept_however_the_program_ends() {
    let place = Place::open("ends", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    let login = ["login", "--no-browser", "--no-dpop", url];
    assert_eq!(place.login(&login).await.code, 0);
    let slow = Slow::before(place.authority.address().to_string()).await;
    let due = || {
        place.change_token(|token| {
            token["token_endpoint"] = (&*slow.url).into();
            (token["expires"], token["renew"]) = (1.into(), 1.into());
        });
    };
    for (signal, line, code) in [
        (Some("-INT"), &["call", "whoami", url][..], 130),
        (Some("-TERM"), &["call", "whoami", url], 143),
        (None, &["call", "whoami", "--timeout", "1", url], 5),
    ] {
        due();
        let running = place.start(line);
        timeout(PATIENCE, slow.came.notified()).await.expect("it is renewed");
        if let Some(signal) = signal {
            let pid = running.id().to_string();
            assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        }
        let end = running.end();
        tokio::pin!(end);
        // Longer than the deadline of the last case, and than a program takes that does not wait.
        let early = timeout(Duration::from_millis(1500), &mut end).await;
        assert!(early.is_err(), "{line:?} ended before the answer came");
        slow.go.notify_one();
        let found = end.await;
        assert_eq!(found.code, code, "{line:?}: {}", found.stderr);
        // With what was kept; the next round renews that once more.
        let found = place.run(&["call", "whoami", url]).await;
        assert_eq!((found.code, &*found.stdout), (0, "alice\n"), "{line:?}: {}", found.stderr);
    }
}

const REFUSED: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\
    Content-Length: 25\r\nConnection: close\r\n\r\n{\"error\":\"invalid_grant\"}";
