//! Where requests go, and where they do not. Nothing here connects to an address outside of a fake.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use trunkline_auth::address::Reach;

use super::*;

#[cfg(feature = "tls")]
mod secure;

/// A network with a table of names, which records every connection.
#[derive(Clone, Default)]
struct Fake(Arc<Records>);

#[derive(Default)]
struct Records {
    names: HashMap<&'static str, Vec<IpAddr>>,
    /// The answers, by the address and the first line of the request.
    answers: HashMap<(IpAddr, &'static str), String>,
    looked_up: Mutex<Vec<String>>,
    called: Mutex<Vec<SocketAddr>>,
    heard: Mutex<Vec<String>>,
}

impl Fake {
    fn new(
        names: impl IntoIterator<Item = (&'static str, Vec<&'static str>)>,
        answers: impl IntoIterator<Item = (&'static str, &'static str, String)>,
    ) -> Self {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let names = names.into_iter().map(|(name, to)| (name, to.into_iter().map(ip).collect()));
        let answers = answers.into_iter().map(|(at, line, answer)| ((ip(at), line), answer));
        let (names, answers) = (names.collect(), answers.collect());
        Self(Arc::new(Records { names, answers, ..Records::default() }))
    }

    fn fetch(&self, guard: Guard) -> HttpFetch {
        HttpFetch::through(guard, self.clone())
    }

    fn called(&self) -> Vec<String> {
        self.0.called.lock().unwrap().iter().map(SocketAddr::to_string).collect()
    }

    fn heard(&self) -> Vec<String> {
        self.0.heard.lock().unwrap().clone()
    }
}

impl Connector for Fake {
    fn resolve<'a>(&'a self, name: &'a str, port: u16) -> Pending<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move {
            self.0.looked_up.lock().unwrap().push(name.to_owned());
            let found = self.0.names.get(name).ok_or(io::ErrorKind::NotFound)?;
            Ok(found.iter().map(|&ip| SocketAddr::new(ip, port)).collect())
        })
    }

    fn dial(&self, to: SocketAddr) -> Pending<'_, io::Result<Box<dyn Stream>>> {
        self.0.called.lock().unwrap().push(to);
        if !self.0.answers.keys().any(|(ip, _)| *ip == to.ip()) {
            return Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) });
        }
        let (near, mut far) = duplex(1 << 20);
        let records = Arc::clone(&self.0);
        tokio::spawn(async move {
            let mut heard = Vec::new();
            let is_all = |heard: &[u8]| match heard.starts_with(b"POST") {
                true => heard.ends_with(b"END"),
                false => heard.ends_with(b"\r\n\r\n"),
            };
            while !is_all(&heard) {
                let Ok(byte) = far.read_u8().await else { return };
                heard.push(byte);
            }
            let heard = String::from_utf8(heard).unwrap();
            let line = heard.split(" HTTP/1.1").next().unwrap().to_owned();
            records.heard.lock().unwrap().push(heard);
            let answer = records.answers.iter().find(|((ip, it), _)| *ip == to.ip() && *it == line);
            match answer {
                Some((_, answer)) => far.write_all(answer.as_bytes()).await.unwrap_or_default(),
                None => std::future::pending().await,
            }
        });
        Box::pin(async { Ok(Box::new(near) as Box<dyn Stream>) })
    }
}

fn says(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nX-Note: yes\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn moved(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
}

fn public() -> Guard {
    Guard::for_server("https://mcp.example/mcp")
}

/// Every spelling of an address that a server on the internet may not send us to.
const SPELLINGS: [&str; 38] = [
    "http://127.0.0.1/",
    "http://127.0.0.1./",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0X7F.0.0.1/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0177.0.0.01:8080/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]:9/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://localhost/",
    "http://localhost./",
    "http://LOCALHOST:80/",
    "http://a.localhost/",
    "http://0/",
    "http://0.0.0.0/",
    "http://[::]/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://[fd00::1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[fe80::1]/",
    "http://[fd00:ec2::254]/",
];

/// Names that resolve to such addresses, also among others.
const NAMES: [(&str, &[&str]); 8] = [
    ("private.example", &["10.0.0.1"]),
    ("local.example", &["127.0.0.1"]),
    ("cloud.example", &["169.254.169.254"]),
    ("mapped.example", &["::ffff:a9fe:a9fe"]),
    ("nat64.example", &["64:ff9b::a00:1"]),
    ("last.example", &["8.8.8.8", "8.8.4.4", "10.0.0.1"]),
    ("first.example", &["fd00::1", "8.8.8.8"]),
    ("between.example", &["8.8.8.8", "::1", "2606:4700::1111"]),
];

fn hostile() -> Vec<String> {
    let named = NAMES.iter().flat_map(|(name, _)| {
        [format!("http://{name}/x"), format!("https://{name}/x"), format!("http://{name}./x")]
    });
    SPELLINGS.iter().map(|it| (*it).to_owned()).chain(named).collect()
}

fn names() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    NAMES.iter().map(|(name, to)| (*name, to.to_vec()))
}

#[tokio::test]
async fn no_connection_is_made_to_a_forbidden_address() {
    for url in hostile() {
        for ask in [Ask::get(&*url), Ask::form(&*url, &[("a", "b")])] {
            let fake = Fake::new(names(), []);
            let refused = fake.fetch(public()).fetch(ask).await;
            let Err(FetchError::Forbidden(why)) = refused else { panic!("{url}: {refused:?}") };
            assert!(why.contains("requests may not be sent there by what a server says"), "{why}");
            assert_eq!(fake.called(), [""; 0], "{url}");
        }
    }
}

#[tokio::test]
async fn a_redirect_does_not_lead_to_a_forbidden_address() {
    for url in hostile() {
        for status in [301, 302, 303, 307, 308] {
            let hop = [("8.8.8.8", "GET /go", moved(status, &url))];
            let fake = Fake::new(names().chain([("id.example", vec!["8.8.8.8"])]), hop);
            let refused = fake.fetch(public()).fetch(Ask::get("http://id.example/go")).await;
            assert!(matches!(refused, Err(FetchError::Forbidden(_))), "{url}: {refused:?}");
            assert_eq!(fake.called(), ["8.8.8.8:80"], "{url}");
        }
    }
}

#[tokio::test]
async fn spellings_that_are_none_are_refused_too() {
    for url in [
        "http://127.0.0.1%00.example/",
        "http://%31%32%37.0.0.1/",
        "http://１２７.0.0.1/",
        "http://127.0.0.256/",
        "http://1.2.3.4.5/",
        "http://[fe80::1%25eth0]/",
        "http://user@10.0.0.1/",
        "http://8.8.8.8@10.0.0.1/",
        "http://a\\@10.0.0.1/",
        "ftp://id.example/",
        "file:///etc/passwd",
        "gopher://10.0.0.1/",
        "//10.0.0.1/",
        "http:///x",
        "http://",
        "",
    ] {
        let fake = Fake::new([("id.example", vec!["8.8.8.8"])], []);
        let refused = fake.fetch(public()).fetch(Ask::get(url)).await;
        assert!(matches!(refused, Err(FetchError::Forbidden(_))), "{url}: {refused:?}");
        assert_eq!(fake.called(), [""; 0], "{url}");
    }
}

#[tokio::test]
async fn a_name_is_looked_up_once_and_its_address_called() {
    let answers = [("8.8.4.4", "GET /a?b", says("{}"))];
    let fake = Fake::new([("id.example", vec!["8.8.8.8", "8.8.4.4"])], answers);
    let answer = fake.fetch(public()).fetch(Ask::get("http://id.example:81/a?b#c")).await.unwrap();
    assert_eq!(
        (answer.status, &*answer.body, answer.first("x-note")),
        (200, &b"{}"[..], Some("yes"))
    );
    assert_eq!(*fake.0.looked_up.lock().unwrap(), ["id.example"]);
    assert_eq!(fake.called(), ["8.8.8.8:81", "8.8.4.4:81"], "the next one is tried");
    let heard = &fake.heard()[0];
    assert!(heard.contains("host: id.example:81\r\n") && !heard.contains("cookie"), "{heard}");
}

#[tokio::test]
async fn a_server_may_send_us_to_its_own_kind_of_place() {
    for (server, url, at) in [
        ("http://localhost:3000/mcp", "http://127.0.0.1/", "127.0.0.1"),
        ("http://[::1]:3000/mcp", "http://localhost/", "127.0.0.1"),
        ("http://10.0.0.7/mcp", "http://private.example/", "10.0.0.1"),
        ("http://mcp.internal/mcp", "http://10.0.0.1/", "10.0.0.1"),
    ] {
        let names = names().chain([("localhost", vec!["127.0.0.1"])]);
        let fake = Fake::new(names, [(at, "GET /", says("here"))]);
        let answer = fake.fetch(Guard::for_server(server)).fetch(Ask::get(url)).await.unwrap();
        assert_eq!(answer.body, b"here", "{server}");
        let cloud = Ask::get("http://cloud.example/");
        let refused = fake.fetch(Guard::for_server(server)).fetch(cloud).await;
        assert!(matches!(refused, Err(FetchError::Forbidden(_))), "{server}");
        assert_eq!(fake.called(), [format!("{at}:80")], "{server}");
    }
    let fake = Fake::new([], [("169.254.1.1", "GET /jwks", says("keys"))]);
    let fetch = fake.fetch(Guard::new(Reach::Anywhere));
    assert_eq!(fetch.fetch(Ask::get("http://169.254.1.1/jwks")).await.unwrap().body, b"keys");
}

#[tokio::test]
async fn redirects_are_followed_for_get_alone_and_not_for_ever() {
    let hops = |last: &str| {
        [
            ("8.8.8.8", "GET /0", moved(302, "/1")),
            ("8.8.8.8", "GET /1", moved(307, "http://other.example/2")),
            ("8.8.4.4", "GET /2", moved(301, "./3")),
            ("8.8.4.4", "GET /3", last.to_owned()),
            ("8.8.8.8", "POST /0", moved(308, "/1")),
        ]
    };
    let names = || [("id.example", vec!["8.8.8.8"]), ("other.example", vec!["8.8.4.4"])];
    let ask = || Ask::get("http://id.example/0").header("authorization", "secret");

    let fake = Fake::new(names(), hops(&says("there")));
    assert_eq!(fake.fetch(public()).fetch(ask()).await.unwrap().body, b"there");
    let told: Vec<_> = fake.heard().iter().map(|it| it.contains("secret")).collect();
    assert_eq!(told, [true, true, false, false], "what was meant for one is not shown to another");
    assert!(fake.heard().iter().all(|it| it.contains("accept: application/json")));

    let fake = Fake::new(names(), hops(&moved(302, "/4")));
    let error = fake.fetch(public()).fetch(ask()).await.unwrap_err();
    let expected = "`http://id.example/0` redirects more than 3 times. Ask its operator.";
    assert_eq!(error, FetchError::Failed(expected.to_owned()));
    assert_eq!(fake.called().len(), 4);

    let fake = Fake::new(names(), hops(""));
    let post = Ask::form("http://id.example/0", &[("x", "END")]);
    let answer = fake.fetch(public()).fetch(post).await.unwrap();
    assert_eq!((answer.status, fake.called().len()), (308, 1));
    assert!(fake.heard()[0].ends_with("content-length: 5\r\n\r\nx=END"), "{:?}", fake.heard());
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    for (length, is_read) in [(BODY, true), (BODY + 1, false)] {
        let fake = Fake::new([], [("8.8.8.8", "GET /", says(&"x".repeat(length)))]);
        match fake.fetch(public()).fetch(Ask::get("http://8.8.8.8/")).await {
            Ok(answer) => assert!(is_read && answer.body.len() == length),
            Err(error) => {
                let expected =
                    "Asking `http://8.8.8.8/` failed: its answer is longer than 256 KiB.";
                assert_eq!((is_read, error.to_string()), (false, expected.to_owned()));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unresponsive_server_times_out() {
    let fake = Fake::new([], [("8.8.8.8", "GET /other", String::new())]);
    let before = tokio::time::Instant::now();
    let error = fake.fetch(public()).fetch(Ask::get("http://8.8.8.8/?token=t")).await.unwrap_err();
    assert_eq!(before.elapsed(), DEADLINE);
    let expected = "`http://8.8.8.8/` did not answer within 15 s. Try again later.";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn unreachable_servers_are_reported_with_a_sentence() {
    let fake = Fake::new([("empty.example", vec![]), ("id.example", vec!["8.8.8.8"])], []);
    for (url, expected) in [
        ("http://8.8.8.8/", "Connecting to `http://8.8.8.8` failed: connection refused."),
        (
            "http://empty.example/",
            "Connecting to `http://empty.example` failed: its name leads nowhere.",
        ),
        ("http://no.example/", "Connecting to `http://no.example` failed: entity not found."),
    ] {
        let error = fake.fetch(public()).fetch(Ask::get(url)).await.unwrap_err();
        assert_eq!(error, FetchError::Failed(expected.to_owned()));
    }
    let secret = Ask::get("http://id.example/").header("authorization", "secret\n");
    let error = fake.fetch(public()).fetch(secret).await.unwrap_err().to_string();
    assert!(error.contains("the value of `authorization` cannot stand"), "{error}");
    assert!(!error.contains("secret"));
}

#[tokio::test]
async fn what_is_let_go_goes_on_without_its_caller() {
    let fetch = HttpFetch::new(Guard::new(Reach::Public));
    let (start, started) = tokio::sync::oneshot::channel::<()>();
    let (end, ended) = tokio::sync::oneshot::channel();
    let work = fetch.detach(Box::pin(async move {
        started.await.unwrap();
        end.send(7).unwrap();
    }));
    drop((work, fetch));
    start.send(()).unwrap();
    assert_eq!(ended.await, Ok(7));
}

#[tokio::test]
async fn what_is_let_go_can_be_waited_for() {
    let fetch = HttpFetch::new(Guard::new(Reach::Public));
    let is_done = Arc::new(Mutex::new(false));
    let done = Arc::clone(&is_done);
    fetch.detach(Box::pin(async move { *done.lock().unwrap() = true })).await;
    assert!(*is_done.lock().unwrap());
    let panics = fetch.detach(Box::pin(async { panic!("of the work") }));
    let panicked = tokio::spawn(panics).await.unwrap_err();
    assert!(panicked.is_panic());
}
