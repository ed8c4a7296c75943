//! TLS for servers: who is served, who is disconnected, and certificates that change at run time.

use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body::Body as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use trunkline_transport::Limits;
use trunkline_transport::http::{
    Answers, Envelopes, HttpBody, Listener, RequestBody, Tls, bind, serve,
};

include!("pem.rs");

/// A server within `limits`, and who vouches for it.
async fn started(limits: Limits) -> (Authority, Server) {
    let authority = Authority::new();
    let server = Server::start(&authority.tls(None), limits).await;
    (authority, server)
}

/// The same with this long for a handshake.
async fn started_with_patience(header_read: Duration) -> (Authority, Server) {
    started(Limits::default().header_read(header_read)).await
}

#[tokio::test]
async fn both_versions_of_http_are_answered_over_tls() {
    let authority = Authority::new();
    let server = Server::start(&authority.tls(None), Limits::default()).await;
    let mut stream = authority.client(None).connect(server.address).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    for _ in 0..2 {
        let answer = ask(&mut stream, "/").await.unwrap();
        assert!(answer.ends_with("HTTP/1.1 /"), "{answer}");
    }
    let stream = authority.client(None).speaking("h2").connect(server.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let driven = tokio::spawn(connection);
    let uri = "https://localhost/two";
    let request = Request::get(uri).body(HttpBody::default()).unwrap();
    let mut response = sender.send_request(request).await.unwrap().into_body();
    let frame = poll_fn(|cx| Pin::new(&mut response).poll_frame(cx)).await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "HTTP/2.0 /two");
    drop(sender);
    driven.await.unwrap().unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_peer_without_tls_is_disconnected_and_slow_handshakes_delay_no_other() {
    let (authority, server) = started_with_patience(Duration::from_millis(300)).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut heard = Vec::new();
    let _ = plain.read_to_end(&mut heard).await;
    assert!(!heard.starts_with(b"HTTP"), "nothing is said in the clear");
    // The silent connection is still open, and others are served.
    let mut stream = authority.client(None).connect(server.address).await.unwrap();
    assert!(ask(&mut stream, "/").await.unwrap().ends_with('/'));
    assert_eq!(silent.read(&mut [0; 8]).await.unwrap(), 0, "its time was up");
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_ends_waits_for_no_handshake() {
    let (authority, server) = started_with_patience(Duration::from_secs(3600)).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    // Accepted in order: once this one is answered, the silent one is in its handshake.
    let mut stream = authority.client(None).connect(server.address).await.unwrap();
    assert!(ask(&mut stream, "/").await.is_ok());
    server.stop().await;
    assert_eq!(silent.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn replaced_certificates_apply_to_the_next_connection() {
    let (old, new) = (Authority::new(), Authority::new());
    let tls = old.tls(None);
    let server = Server::start(&tls, Limits::default()).await;
    let mut before = old.client(None).connect(server.address).await.unwrap();
    assert!(ask(&mut before, "/a").await.is_ok());

    let (chain, key) = new.issue("localhost");
    let error = tls.reload(chain.as_bytes(), old.issue("localhost").1.as_bytes(), None);
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "The key is not the one of the certificate; give the pair.");
    assert!(old.client(None).connect(server.address).await.is_ok(), "all is as it was");

    tls.reload(chain.as_bytes(), key.as_bytes(), None).unwrap();
    assert!(old.client(None).connect(server.address).await.is_err());
    let mut after = new.client(None).connect(server.address).await.unwrap();
    assert!(ask(&mut after, "/b").await.unwrap().ends_with("/b"));
    assert!(ask(&mut before, "/c").await.unwrap().ends_with("/c"), "what is open stays");
    server.stop().await;
}

#[tokio::test]
async fn with_an_authority_for_clients_only_its_clients_are_answered() {
    let (authority, other) = (Authority::new(), Authority::new());
    let tls = authority.tls(Some(&authority));
    let server = Server::start(&tls, Limits::default()).await;
    let (chain, key) = authority.issue("localhost");
    for round in ["as it began", "with other certificates"] {
        let mut welcome = authority.client(Some(&authority)).connect(server.address).await.unwrap();
        assert!(ask(&mut welcome, "/").await.unwrap().ends_with('/'), "{round}");
        for stranger in [None, Some(&other)] {
            // In TLS 1.3 the client has finished its handshake before it is refused.
            let answer = match authority.client(stranger).connect(server.address).await {
                Ok(mut stream) => ask(&mut stream, "/").await,
                Err(error) => Err(error),
            };
            assert!(answer.is_err(), "{round}: {answer:?}");
        }
        tls.reload(chain.as_bytes(), key.as_bytes(), None).unwrap();
    }
    server.stop().await;
}

#[tokio::test]
async fn a_tls_client_that_does_not_read_is_disconnected() {
    let (authority, server) =
        started(Limits::default().keep_alive(Duration::from_millis(300))).await;
    let mut stream = authority.client(None).connect(server.address).await.unwrap();
    stream.write_all(b"GET /much HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let gone = server.gone.lock().unwrap().take().unwrap();
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("it gives up").unwrap_err();
    drop(stream);
    server.stop().await;
}

#[test]
fn unusable_certificates_are_refused_with_a_sentence() {
    let authority = Authority::new();
    let (chain, key) = authority.issue("localhost");
    let (chain, key) = (chain.as_bytes(), key.as_bytes());
    let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (chain, key, clients, expected) in [
        (&b""[..], key, None, "There is no certificate in"),
        (key, key, None, "There is no certificate in"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n", key, None, "is no PEM"),
        (broken, key, None, "cannot be used"),
        (chain, chain, None, "There is no key in"),
        (chain, key, Some(&b""[..]), "There is no certificate in"),
        (chain, key, Some(broken), "not in order"),
    ] {
        let error = Tls::new(chain, key, clients).unwrap_err().to_string();
        assert!(error.contains(expected) && error.ends_with('.'), "{error}");
    }
}

#[tokio::test]
async fn a_unix_socket_is_served_like_any_other() {
    let path = std::env::temp_dir().join(format!("trunkline-serve-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let server = Server::on(listener.into(), ([0, 0, 0, 0], 0).into(), Limits::default());
    let mut stream = UnixStream::connect(&path).await.unwrap();
    let answer = ask(&mut stream, "/x").await.unwrap();
    assert!(answer.ends_with("HTTP/1.1 /x"), "{answer}");
    server.stop().await;
    assert!(UnixStream::connect(&path).await.is_err());
    std::fs::remove_file(&path).unwrap();
}

/// Echoes the request, with more than fits where much is asked for.
struct Echo {
    much: Mutex<Option<oneshot::Sender<()>>>,
    /// Held for as long as the client wants an endless body.
    held: Mutex<Vec<JoinHandle<()>>>,
}

impl Answers for Echo {
    async fn answer(&self, request: Request<RequestBody>, _: &Envelopes) -> Response<HttpBody> {
        if request.uri().path() == "/much" {
            let (sender, pieces) = tokio::sync::mpsc::channel(1);
            let told = self.much.lock().unwrap().take();
            self.held.lock().unwrap().push(tokio::spawn(async move {
                while sender.send(vec![b'x'; 64 << 10]).await.is_ok() {}
                drop(told);
            }));
            return Response::new(HttpBody::pieces(pieces));
        }
        let text = format!("{:?} {}", request.version(), request.uri().path());
        Response::new(HttpBody::from(text.into_bytes()))
    }

    fn hang_up(&self) {}

    fn end(&self) {
        self.held.lock().unwrap().clear();
    }
}

struct Server {
    address: SocketAddr,
    end: oneshot::Sender<()>,
    served: JoinHandle<io::Result<()>>,
    /// Fails when the client drops an endless body.
    gone: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Server {
    async fn start(tls: &Tls, limits: Limits) -> Self {
        let listener = bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self::on(tls.listen(listener), address, limits)
    }

    fn on(listener: Listener, address: SocketAddr, limits: Limits) -> Self {
        let (end, ended) = oneshot::channel::<()>();
        let (much, gone) = oneshot::channel();
        let echo = Arc::new(Echo { much: Mutex::new(Some(much)), held: Mutex::default() });
        let ended = async {
            match ended.await {
                Ok(()) => {}
                Err(_) => pending().await,
            }
        };
        let served = tokio::spawn(serve(listener, echo, limits, ended));
        Self { address, end, served, gone: Mutex::new(Some(gone)) }
    }

    /// Shuts it down, well before its time-out.
    async fn stop(self) {
        self.end.send(()).unwrap();
        let served = tokio::time::timeout(Duration::from_secs(10), self.served);
        served.await.expect("it ends").unwrap().unwrap();
    }
}

/// One request over HTTP/1, and the text of its answer.
async fn ask<S>(stream: &mut S, path: &str) -> io::Result<String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let (mut text, mut piece) = (String::new(), [0; 1024]);
    while !text.contains("\r\n\r\n") || text.ends_with("\r\n\r\n") {
        match stream.read(&mut piece).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => text.push_str(std::str::from_utf8(&piece[..n]).unwrap()),
        }
    }
    Ok(text)
}

/// A certificate authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate and its key, as PEM.
    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (pem("CERTIFICATE", certificate.der()), pem("PRIVATE KEY", &key.serialize_der()))
    }

    fn tls(&self, clients: Option<&Self>) -> Tls {
        let (chain, key) = self.issue("localhost");
        let clients = clients.map(|it| pem("CERTIFICATE", it.0.der()));
        Tls::new(chain.as_bytes(), key.as_bytes(), clients.as_ref().map(String::as_bytes)).unwrap()
    }

    /// A client that trusts it, with a client certificate if given.
    fn client(&self, shows: Option<&Self>) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match shows {
            None => config.with_no_client_auth(),
            Some(authority) => {
                let (chain, key) = authority.issue("client");
                let chain = CertificateDer::from_pem_slice(chain.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                config.with_client_auth_cert(vec![chain], key).unwrap()
            }
        };
        Client(config).speaking("http/1.1")
    }
}

struct Client(ClientConfig);

impl Client {
    fn speaking(mut self, protocol: &str) -> Self {
        self.0.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        self
    }

    async fn connect(self, address: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(self.0)).connect(name, stream).await
    }
}
