//! One redirect is answered, whoever else comes.

use std::sync::Mutex;

use super::*;

/// A person who is shown a page and goes to it.
fn watching() -> (Loopback, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let tell = move |url: &str| told.lock().unwrap().push(url.to_owned());
    (Loopback::new().tell(tell).without_opening(), seen)
}

async fn say(uri: &str, request: &str) -> String {
    let place = Place::of(uri).unwrap();
    let mut stream = TcpStream::connect((place.ip, place.port)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn one_redirect_is_answered_and_no_other() {
    let (browser, seen) = watching();
    let visit = browser.prepare(&[]).await.unwrap();
    let uri = visit.redirect_uri().to_owned();
    assert!(uri.starts_with("http://127.0.0.1:") && uri.ends_with("/callback"), "{uri}");
    let going = tokio::spawn(visit.go("https://id.example/authorize".to_owned()));

    // Somebody who says nothing, for as long as the others take.
    let place = Place::of(&uri).unwrap();
    let _silent = TcpStream::connect((place.ip, place.port)).await.unwrap();
    for request in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET /favicon.ico HTTP/1.1\r\n\r\n",
        "GET /callback HTTP/1.1\r\n\r\n",
        "GET /callback/?code=1 HTTP/1.1\r\n\r\n",
        "GET /CALLBACK?code=1 HTTP/1.1\r\n\r\n",
        "POST /callback?code=1 HTTP/1.1\r\n\r\n",
        "HEAD /callback?code=1 HTTP/1.1\r\n\r\n",
        "GET /callback?code=1 HTTP/2.0\r\n\r\n",
        "GET /callback?code=\u{1}\r\n\r\n",
        "\r\n\r\n",
    ] {
        let answer = say(&uri, request).await;
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{request}: {answer}");
    }
    assert!(!going.is_finished());

    let answer = say(&uri, "GET /callback?code=a%20b&state=c HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("You can close this window") && answer.contains("no-store"),
        "{answer}"
    );
    assert!(!answer.contains("code"), "nothing of the redirect is repeated");
    assert_eq!(going.await.unwrap(), Ok("code=a%20b&state=c".to_owned()));
    assert_eq!(*seen.lock().unwrap(), ["https://id.example/authorize"]);
    let gone = TcpStream::connect((place.ip, place.port)).await;
    assert!(gone.is_err(), "it does not listen any more");
}

#[tokio::test]
async fn a_head_without_end_is_not_read_to_its_end() {
    let (browser, _) = watching();
    let visit = browser.prepare(&[]).await.unwrap();
    let uri = visit.redirect_uri().to_owned();
    let going = tokio::spawn(visit.go("https://id.example/".to_owned()));
    let place = Place::of(&uri).unwrap();
    let mut stream = TcpStream::connect((place.ip, place.port)).await.unwrap();
    let long = format!("GET /callback?{} HTTP/1.1\r\n", "x".repeat(2 * HEAD));
    let _ = stream.write_all(long.as_bytes()).await;
    let mut answer = Vec::new();
    // It may be cut off, but it is not answered.
    let _ = stream.read_to_end(&mut answer).await;
    assert_eq!(answer, b"");
    say(&uri, "GET /callback?error=access_denied HTTP/1.1\r\n\r\n").await;
    assert_eq!(going.await.unwrap(), Ok("error=access_denied".to_owned()));
}

#[tokio::test]
async fn a_registered_uri_is_used_as_it_is() {
    let (browser, _) = watching();
    let first = browser.prepare(&[]).await.unwrap();
    let taken = first.redirect_uri().to_owned();
    // The port is taken, so the next one that can be used is.
    let uris = |them: &[&str]| them.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let why = browser.prepare(&uris(&[&taken])).await.err().unwrap();
    assert!(why.starts_with("No redirect URI of this client can be used: `http://127"), "{why}");
    let other = ["https://app.example/back", &taken, "http://localhost/a/b"];
    let second = browser.prepare(&uris(&other)).await.unwrap();
    let second = second.redirect_uri();
    assert!(second.starts_with("http://localhost:") && second.ends_with("/a/b"), "{second}");
    drop(first);
    let again = browser.prepare(&uris(&[&taken])).await.unwrap();
    assert_eq!(again.redirect_uri(), taken);
    let why = browser.prepare(&uris(&["https://app.example/back"])).await.err().unwrap();
    assert!(why.ends_with("used: none of them is `http` on this machine."), "{why}");
}

#[test]
fn a_redirect_uri_is_on_this_machine_or_none() {
    for (uri, expected) in [
        ("http://127.0.0.1:8765/callback", Some((8765, "/callback"))),
        ("http://127.0.0.1/callback", Some((0, "/callback"))),
        ("http://127.0.0.1", Some((0, ""))),
        ("http://localhost:1/", Some((1, "/"))),
        ("http://[::1]:2/x", Some((2, "/x"))),
        ("http://[::1]/x", Some((0, "/x"))),
        ("https://127.0.0.1/callback", None),
        ("http://0.0.0.0/callback", None),
        ("http://10.0.0.1/callback", None),
        ("http://127.0.0.1:99999/callback", None),
        ("http://a@127.0.0.1/callback", None),
        ("http://127.0.0.1/callback?x=1", None),
        ("http://127.0.0.1/callback#x", None),
        ("editor://callback", None),
    ] {
        assert_eq!(Place::of(uri).map(|it| (it.port, it.path)), expected, "{uri}");
    }
    assert_eq!(Place::of("http://[::1]/x").unwrap().uri(7), "http://[::1]:7/x");
    assert_eq!(asked(b"GET /?code=1 HTTP/1.1\r\n", "").as_deref(), Some("code=1"));
    assert_eq!(asked(b"GET /x?code=1 HTTP/1.1\r\n", ""), None);
}

#[tokio::test]
async fn what_is_no_page_is_neither_opened_nor_told() {
    let (browser, seen) = watching();
    let visit = browser.prepare(&[]).await.unwrap();
    let why = visit.go("javascript:alert(1)".to_owned()).await.unwrap_err();
    assert!(why.starts_with("The page `javascript:alert(1)` is not opened, for"), "{why}");
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_browser_that_fails_is_an_error_unless_somebody_was_told() {
    let failing = |mut browser: Loopback| {
        browser.opener = Some(Opener(vec!["false".into()]));
        browser
    };
    let visit = failing(Loopback::new()).prepare(&[]).await.unwrap();
    let why = visit.go("https://id.example/".to_owned()).await.unwrap_err();
    assert!(why.starts_with("`false`, which opens pages, failed."), "{why}");

    let browser = failing(watching().0);
    let visit = browser.prepare(&[]).await.unwrap();
    let uri = visit.redirect_uri().to_owned();
    let going = tokio::spawn(visit.go("https://id.example/".to_owned()));
    say(&uri, "GET /callback?code=1 HTTP/1.1\r\n\r\n").await;
    assert_eq!(going.await.unwrap(), Ok("code=1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_waited_for_without_end() {
    let browser = watching().0.patience(Duration::from_secs(30));
    let visit = browser.prepare(&[]).await.unwrap();
    let why = visit.go("https://id.example/".to_owned()).await.unwrap_err();
    assert_eq!(why, "Nobody logged in within 30 s. Try again.");
}
