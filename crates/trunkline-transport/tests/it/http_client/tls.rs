//! `https`: who is trusted, who is not, and the error messages.

use std::sync::Mutex;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// A certificate authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        Self::named("Test Authority")
    }

    fn named(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its root certificate.
    fn pem(&self) -> String {
        pem(self.0.der())
    }

    /// A server's certificate for these names.
    fn issue(&self, names: &[&str]) -> Certified {
        self.issue_with(names, |_| {})
    }

    fn issue_with(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Certified {
        let names: Vec<_> = names.iter().map(|it| (*it).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap().der().clone();
        Certified { certificate, key: PrivateKeyDer::try_from(key.serialize_der()).unwrap() }
    }
}

/// A server's certificate and its key.
struct Certified {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Certified {
    fn accepting(self, versions: &[&'static SupportedProtocolVersion], alpn: &str) -> TlsAcceptor {
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate], self.key)
            .unwrap();
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        Arc::new(config).into()
    }

    fn accepting_usual(self) -> TlsAcceptor {
        self.accepting(&[&TLS12, &TLS13], "http/1.1")
    }
}

fn pem(der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let lines: Vec<_> =
        body.as_bytes().chunks(64).map(|it| std::str::from_utf8(it).unwrap()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// The server name and protocol that clients asked for (SNI, ALPN).
type Asked = Arc<Mutex<Vec<(Option<String>, Option<Vec<u8>>)>>>;

/// A stateless server behind TLS.
async fn secured(origin: &str, acceptor: TlsAcceptor) -> (Script, Asked) {
    serving(origin, acceptor, |seen, _| match seen.what() {
        "server/discover" => json(seen.result(&discovered())),
        _ => json(seen.result(DONE)),
    })
    .await
}

async fn serving(
    origin: &str,
    acceptor: TlsAcceptor,
    respond: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static,
) -> (Script, Asked) {
    let asked = Asked::default();
    let told = Arc::clone(&asked);
    let wrap = move |stream| {
        let (acceptor, told) = (acceptor.clone(), Arc::clone(&told));
        async move {
            let stream = acceptor.accept(stream).await.ok()?;
            let session = stream.get_ref().1;
            let name = session.server_name().map(str::to_owned);
            told.lock().unwrap().push((name, session.alpn_protocol().map(<[u8]>::to_vec)));
            Some(stream)
        }
    };
    (Script::start_with(origin, wrap, respond).await, asked)
}

fn trusting(script: &Script, authority: &Authority) -> HttpTarget {
    target(script).root_certificate(authority.pem())
}

/// Why there is no connection; no request may have been sent.
async fn refused(target: HttpTarget, limits: Limits) -> String {
    match open_at(target, limits).await {
        Err(OpenError::Unreachable(why)) => why,
        other => panic!("it was to fail for want of TLS: {:?}", other.err()),
    }
}

#[track_caller]
fn says(why: &str, what: &str, advice: &str) {
    assert!(why.contains(what) && why.contains(advice) && why.ends_with('.'), "{why}");
}

#[tokio::test]
async fn calls_go_over_tls_on_a_connection_that_is_kept() {
    let authority = Authority::new();
    for version in [&TLS12, &TLS13] {
        let acceptor = authority.issue(&["localhost"]).accepting(&[version], "http/1.1");
        let (script, asked) = secured("https://localhost", acceptor).await;
        let connection = open_at(trusting(&script, &authority), Limits::default()).await.unwrap();
        for _ in 0..3 {
            assert_eq!(call_tool(&connection).await.unwrap().get(), DONE);
        }
        let expected = (Some("localhost".to_owned()), Some(b"http/1.1".to_vec()));
        assert_eq!(*asked.lock().unwrap(), [expected], "{version:?}");
        assert_eq!(script.kinds().len(), 4);
    }
}

#[tokio::test]
async fn an_address_is_as_good_as_a_name_if_the_certificate_has_it() {
    let authority = Authority::new();
    let acceptor = authority.issue(&["127.0.0.1"]).accepting_usual();
    let (script, asked) = secured("https://127.0.0.1", acceptor).await;
    let connection = open_at(trusting(&script, &authority), Limits::default()).await.unwrap();
    call_tool(&connection).await.unwrap();
    assert_eq!(asked.lock().unwrap()[0].0, None, "an address is no name to ask for");
}

#[tokio::test]
async fn a_bundle_may_hold_many_certificates() {
    let (one, other) = (Authority::named("One"), Authority::named("Other"));
    let acceptor = other.issue(&["localhost"]).accepting_usual();
    let (script, _) = secured("https://localhost", acceptor).await;
    let bundle = format!("# Ours\n{}\n# Theirs\n{}", one.pem(), other.pem());
    let connection = open_at(target(&script).root_certificate(bundle), Limits::default()).await;
    call_tool(&connection.unwrap()).await.unwrap();
}

#[tokio::test]
async fn an_untrusted_server_gets_no_request() {
    let authority = Authority::new();
    let day = rcgen::date_time_ymd;
    let cases = [
        (
            authority.issue(&["other.example", "192.0.2.1"]),
            "its certificate is not for `localhost`, but for `other.example`, `192.0.2.1`.",
            "Use a name that the certificate is for",
        ),
        (
            Authority::named("Another Authority").issue(&["localhost"]),
            "issued by somebody we do not know",
            "`--cacert FILE`",
        ),
        (
            Authority::new().issue(&["localhost"]),
            "not signed by the issuer that it names",
            "If the issuer has another root certificate",
        ),
        (
            authority.issue_with(&["localhost"], |it| it.not_after = day(2020, 1, 1)),
            "its certificate has expired",
            "must renew it",
        ),
        (
            authority.issue_with(&["localhost"], |it| it.not_before = day(3000, 1, 1)),
            "its certificate is not valid yet",
            "Set the clock",
        ),
        (
            authority.issue_with(&["localhost"], |it| {
                it.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
            }),
            "is not meant for servers",
            "must get another one",
        ),
    ];
    for (certified, what, advice) in cases {
        let (script, _) = secured("https://localhost", certified.accepting_usual()).await;
        let why = refused(trusting(&script, &authority), Limits::default()).await;
        says(&why, what, advice);
        assert_eq!(script.kinds(), Vec::<String>::new(), "{why}");
    }
}

#[tokio::test]
async fn a_certificate_can_vouch_for_itself_unless_it_is_one_that_issues_others() {
    for is_authority in [false, true] {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        if is_authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        let root = pem(&certificate);
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let acceptor = Certified { certificate, key }.accepting_usual();
        let (script, _) = secured("https://localhost", acceptor).await;
        let target = target(&script).root_certificate(root);
        match is_authority {
            false => {
                let connection = open_at(target, Limits::default()).await.unwrap();
                call_tool(&connection).await.unwrap();
            }
            true => {
                let why = refused(target, Limits::default()).await;
                says(&why, "one that issues others (`CA:TRUE`)", "`CA:FALSE`");
            }
        }
    }
}

#[tokio::test]
async fn without_a_root_of_ours_only_public_ones_are_trusted() {
    let acceptor = Authority::new().issue(&["localhost"]).accepting_usual();
    let (script, _) = secured("https://localhost", acceptor).await;
    let why = refused(target(&script), Limits::default()).await;
    says(&why, "issued by somebody we do not know", "root certificate");
}

#[tokio::test]
async fn a_server_without_http_1_is_no_server() {
    let authority = Authority::new();
    let acceptor = authority.issue(&["localhost"]).accepting(&[&TLS13], "h2");
    let (script, _) = secured("https://localhost", acceptor).await;
    let why = refused(trusting(&script, &authority), Limits::default()).await;
    says(&why, "it speaks no HTTP/1.1", "Check that the address");
}

#[tokio::test]
async fn an_answer_in_plain_http_is_recognised() {
    for answer in ["HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", ""] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            // The input must be read: closing with unread bytes is a reset.
            let _ = stream.read(&mut [0; 4096]).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let why = refused(HttpTarget::new(url).verdicts(None), Limits::default()).await;
        let what = if answer.is_empty() { "hung up" } else { "something else than TLS" };
        says(&why, what, "its address begins with `http://`");
    }
}

#[tokio::test]
async fn a_handshake_has_the_time_that_connecting_has() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/mcp", listener.local_addr().unwrap());
    // The kernel accepts the connection, and nobody ever answers.
    let limits = Limits::default().connect(Duration::from_millis(50));
    let why = refused(HttpTarget::new(url).verdicts(None), limits).await;
    says(&why, "did not answer the TLS handshake in time", "Check that its port");
    drop(listener);
}

#[tokio::test]
async fn a_redirect_never_leaves_tls() {
    let plain = stateless(|seen, _| json(seen.result(DONE))).await;
    let authority = Authority::new();
    let acceptor = authority.issue(&["localhost"]).accepting_usual();
    let to = format!("location: {}\r\n", plain.url);
    let respond = move |_: &Seen, _| headed(308, &to, "");
    let (script, _) = serving("https://localhost", acceptor, respond).await;
    let Err(OpenError::Http(error)) =
        open_at(trusting(&script, &authority), Limits::default()).await
    else {
        panic!("a redirect out of TLS is refused");
    };
    assert_eq!((error.status, &*error.message), (308, "it redirects from `https` to `http`."));
    assert_eq!(plain.kinds(), Vec::<String>::new());
}

#[tokio::test]
async fn an_invalid_root_certificate_is_reported_before_anything_is_sent() {
    let script = stateless(|_, _| Vec::new()).await;
    let why = refused(target(&script).root_certificate("oh"), Limits::default()).await;
    says(&why, "holds no certificate", "give a PEM file");
    assert_eq!(script.kinds(), Vec::<String>::new());
}
