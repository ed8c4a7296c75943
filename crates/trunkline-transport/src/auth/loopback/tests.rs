//! Exactly one redirect is answered, whatever else arrives.

use std::sync::Mutex;

use super::*;

/// A person who is shown a page and visits it.
fn watching() -> (Loopback, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let tell = move |url: &str| told.lock().unwrap().push(url.to_owned());
    (Loopback::new().tell(tell).without_opening(), seen)
}

/// A visit that goes on: where it expects the browser, and what comes of it.
async fn visited() -> (String, tokio::task::JoinHandle<Result<String, String>>) {
    let (browser, _) = watching();
    let visit = browser.prepare(&[]).await.unwrap();
    let uri = visit.redirect_uri().to_owned();
    (uri, tokio::spawn(visit.go(PAGE.to_owned())))
}

/// Sends the first line of a request to the redirect URI.
async fn say(uri: &str, line: &str) -> String {
    let place = LoopbackUri::of(uri).unwrap();
    say_as(uri, line, &format!("Host: {}\r\n", place.authority(place.port))).await
}

async fn say_as(uri: &str, line: &str, headers: &str) -> String {
    let place = LoopbackUri::of(uri).unwrap();
    let mut stream = TcpStream::connect((place.ip, place.port)).await.unwrap();
    stream.write_all(format!("{line}\r\n{headers}\r\n").as_bytes()).await.unwrap();
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
    let going = tokio::spawn(visit.go(PAGE.to_owned()));

    // A silent connection, open as long as the others.
    let place = LoopbackUri::of(&uri).unwrap();
    let _silent = TcpStream::connect((place.ip, place.port)).await.unwrap();
    for line in [
        "GET / HTTP/1.1",
        "GET /favicon.ico HTTP/1.1",
        "GET /callback HTTP/1.1",
        "GET /callback/?code=1&state=s-1 HTTP/1.1",
        "GET /CALLBACK?code=1&state=s-1 HTTP/1.1",
        "POST /callback?code=1&state=s-1 HTTP/1.1",
        "HEAD /callback?code=1&state=s-1 HTTP/1.1",
        "GET /callback?code=1&state=s-1 HTTP/2.0",
        "GET /callback?code=\u{1}",
        "",
    ] {
        let answer = say(&uri, line).await;
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{line}: {answer}");
    }
    assert!(!going.is_finished());

    let answer = say(&uri, "GET /callback?code=a%20b&state=s-1 HTTP/1.1").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("You can close this window") && answer.contains("no-store"),
        "{answer}"
    );
    assert!(!answer.contains("code"), "nothing of the redirect is repeated");
    assert_eq!(going.await.unwrap(), Ok("code=a%20b&state=s-1".to_owned()));
    assert_eq!(*seen.lock().unwrap(), [PAGE]);
    // A process that another test is just forking has a copy of the listener until it executes its
    // program.
    let gone = async {
        while TcpStream::connect((place.ip, place.port)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await; // the sleep is the subject
        }
    };
    timeout(REQUEST_TIMEOUT, gone).await.expect("it does not listen any more");
}

#[tokio::test]
async fn a_client_that_sends_a_body_can_read_the_refusal() {
    let (uri, going) = visited().await;
    let body = format!("Content-Length: {}\r\n\r\n{}", 1 << 20, "x".repeat(1 << 20));
    for _ in 0..20 {
        let answer = say_as(&uri, "POST /callback?code=1&state=s-1 HTTP/1.1", &body).await;
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{answer}");
    }
    going.abort();
}

#[tokio::test]
async fn no_other_page_ends_the_login() {
    let (browser, _) = watching();
    let visit = browser.prepare(&[]).await.unwrap();
    let uri = visit.redirect_uri().to_owned();
    let going = tokio::spawn(visit.go("https://id.example/?a=b&state=s%2D1#state=x".to_owned()));
    let place = LoopbackUri::of(&uri).unwrap();
    let host = format!("Host: {}\r\n", place.authority(place.port));
    let good = "GET /callback?code=1&state=s-1 HTTP/1.1";
    for (line, headers) in [
        ("GET /callback?error=access_denied HTTP/1.1", &*host),
        ("GET /callback?code=1&state= HTTP/1.1", &host),
        ("GET /callback?code=1&state=S-1 HTTP/1.1", &host),
        ("GET /callback?code=1&state=x HTTP/1.1", &host),
        ("GET /callback?code=1&state=s-1&state=s-1 HTTP/1.1", &host),
        ("GET /callback?code=1&state=s-1&state=x HTTP/1.1", &host),
        ("GET /callback?code=1&state=s%2 HTTP/1.1", &host),
        ("GET /callback?code=1&xstate=s-1 HTTP/1.1", &host),
        (good, ""),
        (good, "Host: evil.example\r\n"),
        (good, "Host: 127.0.0.1\r\n"),
        (good, &format!("{host}Host: evil.example\r\n")),
    ] {
        let answer = say_as(&uri, line, headers).await;
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{line} {headers}: {answer}");
    }
    assert!(!going.is_finished());
    let answer = say(&uri, "GET /callback?state=s%2D1&code=1 HTTP/1.1").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(going.await.unwrap(), Ok("state=s%2D1&code=1".to_owned()));
}

#[tokio::test]
async fn a_page_without_a_state_is_not_shown() {
    let (browser, seen) = watching();
    for page in ["https://id.example/", "https://id.example/?state=", "https://id.example/#state=a"]
    {
        let visit = browser.prepare(&[]).await.unwrap();
        let why = visit.go(page.to_owned()).await.unwrap_err();
        assert!(why.starts_with("The page has no `state`"), "{why}");
    }
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_head_without_end_is_not_read_to_its_end() {
    let (uri, going) = visited().await;
    let place = LoopbackUri::of(&uri).unwrap();
    let mut stream = TcpStream::connect((place.ip, place.port)).await.unwrap();
    let long = format!("GET /callback?{} HTTP/1.1\r\n", "x".repeat(2 * HEAD));
    let _ = stream.write_all(long.as_bytes()).await;
    let mut answer = Vec::new();
    // The connection may be closed, but it is not answered.
    let _ = stream.read_to_end(&mut answer).await;
    assert_eq!(answer, b"");
    say(&uri, "GET /callback?error=access_denied&state=s-1 HTTP/1.1").await;
    assert_eq!(going.await.unwrap(), Ok("error=access_denied&state=s-1".to_owned()));
}

#[tokio::test]
async fn a_registered_uri_is_used_as_it_is() {
    let (browser, _) = watching();
    let first = browser.prepare(&[]).await.unwrap();
    let taken = first.redirect_uri().to_owned();
    // The first port is taken, so the next usable one is chosen.
    let uris = |them: &[&str]| them.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let why = browser.prepare(&uris(&[&taken])).await.err().unwrap();
    assert!(why.starts_with("No redirect URI of this client can be used: `http://127"), "{why}");
    let other = ["https://app.example/back", &taken, "http://localhost/a/b"];
    let second = browser.prepare(&uris(&other)).await.unwrap();
    let second = second.redirect_uri();
    assert!(second.starts_with("http://localhost:") && second.ends_with("/a/b"), "{second}");
    drop(first);
    // Another process may get a port that was just released.
    let mut is_used = false;
    for _ in 0..10 {
        let free = browser.prepare(&[]).await.unwrap().redirect_uri().to_owned();
        if let Ok(again) = browser.prepare(&uris(&[&free])).await {
            assert_eq!(again.redirect_uri(), free);
            is_used = true;
            break;
        }
    }
    assert!(is_used, "a URI that is free is used as it is");
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
        assert_eq!(LoopbackUri::of(uri).map(|it| (it.port, it.path)), expected, "{uri}");
    }
    assert_eq!(LoopbackUri::of("http://[::1]/x").unwrap().uri(7), "http://[::1]:7/x");
    let wanted = Wanted { path: String::new(), host: "localhost:80".into(), state: "s".into() };
    let asked = |line: &str| wanted.asked(format!("{line}\r\nhost: localhost\r\n\r\n").as_bytes());
    assert_eq!(asked("GET /?state=s HTTP/1.1").as_deref(), Some("state=s"));
    assert_eq!(asked("GET /x?state=s HTTP/1.1"), None);
}

#[tokio::test]
async fn an_invalid_page_is_neither_opened_nor_reported() {
    let (browser, seen) = watching();
    let visit = browser.prepare(&[]).await.unwrap();
    let why = visit.go("javascript:alert(1)".to_owned()).await.unwrap_err();
    assert!(why.starts_with("The page `javascript:alert(1)` is not opened, for"), "{why}");
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_failing_browser_is_an_error_unless_the_url_is_also_reported() {
    let failing = |mut browser: Loopback| {
        browser.opener = Some(Opener(vec!["false".into()]));
        browser
    };
    let visit = failing(Loopback::new()).prepare(&[]).await.unwrap();
    let why = visit.go(PAGE.to_owned()).await.unwrap_err();
    assert!(why.starts_with("`false`, which opens pages, failed."), "{why}");

    let browser = failing(watching().0);
    let visit = browser.prepare(&[]).await.unwrap();
    let uri = visit.redirect_uri().to_owned();
    let going = tokio::spawn(visit.go(PAGE.to_owned()));
    say(&uri, "GET /callback?code=1&state=s-1 HTTP/1.1").await;
    assert_eq!(going.await.unwrap(), Ok("code=1&state=s-1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_login_ends() {
    let browser = watching().0.patience(Duration::from_secs(30));
    let visit = browser.prepare(&[]).await.unwrap();
    let why = visit.go(PAGE.to_owned()).await.unwrap_err();
    assert_eq!(why, "Nobody logged in within 30 s. Try again.");
}

const PAGE: &str = "https://id.example/authorize?response_type=code&state=s-1";
