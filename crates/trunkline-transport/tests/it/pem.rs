/// A certificate or a key as PEM.
fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<_> =
        body.as_bytes().chunks(64).map(|it| std::str::from_utf8(it).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// A self-signed certificate for `localhost`, and its key.
#[allow(dead_code, unreachable_pub)]
pub fn self_signed() -> (String, String) {
    let pair = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&pair).unwrap();
    (pem("CERTIFICATE", certificate.der()), pem("PRIVATE KEY", &pair.serialize_der()))
}
