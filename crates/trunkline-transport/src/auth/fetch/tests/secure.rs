//! `https`: whose certificate is accepted, and that redirects never leave it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

use super::*;

/// A network in which every host is `id.example` with the same answer.
struct Secure {
    acceptor: TlsAcceptor,
    answer: String,
    called: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Connector for Secure {
    fn resolve<'a>(&'a self, _: &'a str, port: u16) -> Pending<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(vec![SocketAddr::new([8, 8, 8, 8].into(), port)]) })
    }

    fn dial(&self, to: SocketAddr) -> Pending<'_, io::Result<Box<dyn Stream>>> {
        self.called.lock().unwrap().push(to);
        let (near, far) = duplex(1 << 16);
        let (accepting, answer) = (self.acceptor.accept(far), self.answer.clone());
        tokio::spawn(async move {
            let Ok(mut far) = accepting.await else { return };
            let _ = far.read(&mut [0; 4096]).await;
            let _ = far.write_all(answer.as_bytes()).await;
        });
        Box::pin(async { Ok(Box::new(near) as Box<dyn Stream>) })
    }
}

/// A network with this answer, its root certificate, and the addresses called.
fn secure(answer: String) -> (Secure, String, Arc<Mutex<Vec<SocketAddr>>>) {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["id.example".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().der().clone();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    let called = Arc::default();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let body = STANDARD.encode(issuer.der());
    let pem = format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
    (Secure { acceptor, answer, called: Arc::clone(&called) }, pem, called)
}

#[tokio::test]
async fn the_certificate_must_be_for_the_name_that_was_asked_for() {
    for (url, expected) in [
        ("https://id.example/", Ok(())),
        ("https://ID.example./", Ok(())),
        ("https://other.example/", Err("its certificate is not for `other.example`")),
        ("https://8.8.8.8/", Err("its certificate is not for `8.8.8.8`")),
    ] {
        let (network, pem, _) = secure(says("safe"));
        let fetch = HttpFetch::through(public(), network).root_certificate(pem);
        match (fetch.fetch(Ask::get(url)).await, expected) {
            (Ok(answer), Ok(())) => assert_eq!(answer.body, b"safe"),
            (Err(FetchError::Failed(why)), Err(expected)) => {
                assert!(
                    why.starts_with("Connecting to `https://") && why.contains(expected),
                    "{why}"
                )
            }
            (other, _) => panic!("{url}: {other:?}"),
        }
    }
    let (network, _, _) = secure(says("safe"));
    let error = HttpFetch::through(public(), network).fetch(Ask::get("https://id.example/")).await;
    assert!(error.unwrap_err().to_string().contains("issued by somebody we do not know"));
}

#[tokio::test]
async fn a_redirect_does_not_leave_https() {
    let (network, pem, called) = secure(moved(302, "http://id.example/"));
    let fetch = HttpFetch::through(public(), network).root_certificate(pem);
    let why = "`https://id.example` redirects from `https` to `http`, where others can listen in. \
               Ask its operator.";
    let refused = fetch.fetch(Ask::get("https://id.example/")).await;
    assert_eq!(refused, Err(FetchError::Forbidden(why.to_owned())));
    assert_eq!(called.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_invalid_root_certificate_is_reported() {
    let (network, _, called) = secure(says("safe"));
    let fetch = HttpFetch::through(public(), network).root_certificate("nothing");
    let why = fetch.fetch(Ask::get("https://id.example/")).await.unwrap_err().to_string();
    assert!(why.contains("holds no certificate") && why.ends_with("in order."), "{why}");
    assert_eq!(called.lock().unwrap().len(), 1);
}
