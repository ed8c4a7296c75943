//! A fault is reported once, at its cause.

use super::*;

#[test]
fn a_missing_certificate_is_not_reported_as_missing_tls() {
    let text = "mcpServers: {}\ngateway:\n  listen: 0.0.0.0:1\n  \
                auth: { tokens: [{ name: a, token: hunter2-hunter2-hunter2 }] }\n  \
                tls: { certificate: none.pem, key: k.pem }\n";
    let faults = loaded(text).unwrap_err();
    let paths: Vec<_> = faults.faults.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["gateway.tls.certificate"], "{faults}");
    assert!(faults.rest.is_none(), "it stops the start");
}
