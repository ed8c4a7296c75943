use serde_json::json;

use super::super::tests::signing;
use super::super::{peek, verify_with};
use super::*;

#[test]
fn every_algorithm_signs_what_its_public_key_verifies() {
    for algorithm in Algorithm::ALL {
        let key = signing(algorithm);
        assert_eq!(key.algorithm(), algorithm);
        let public = key.public();
        assert_eq!(public.alg.as_deref(), Some(algorithm.name()));
        assert_eq!((public.use_.as_deref(), public.kid.as_deref()), (Some("sig"), None));
        let token = key.sign(json!({"typ": "JWT"}), &json!({"sub": "alice"}));
        let verified = verify_with(&token, public, &[algorithm]).unwrap();
        assert_eq!(verified.payload, br#"{"sub":"alice"}"#);
        assert_eq!(verified.header.alg, algorithm.name());
        assert_eq!(verified.header.typ.as_deref(), Some("JWT"));
        let kept = SigningKey::from_pkcs8(key.pkcs8(), algorithm).unwrap();
        assert_eq!(kept.public(), public);
    }
}

#[test]
fn public_halves_are_those_another_implementation_wrote() {
    let written = super::super::Jwks::parse(include_bytes!("../test-keys/keys.json")).unwrap();
    let algorithms = [Algorithm::RS256, Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA];
    for (key, algorithm) in written.keys().iter().zip(algorithms) {
        assert_eq!(signing(algorithm).public().bare(), key.bare());
    }
    assert_eq!(written.keys().len(), algorithms.len());
}

#[test]
fn a_key_signs_with_its_own_kind_of_algorithm_alone() {
    let is_rsa = |it: Algorithm| matches!(&it.name()[..2], "RS" | "PS");
    for algorithm in Algorithm::ALL {
        let key = signing(algorithm);
        for other in Algorithm::ALL {
            let fits = other == algorithm || (is_rsa(other) && is_rsa(algorithm));
            let read = SigningKey::from_pkcs8(key.pkcs8(), other);
            assert_eq!(read.is_ok(), fits, "{algorithm:?} {other:?}");
        }
    }
    let refused = SigningKey::from_pkcs8(b"", Algorithm::ES256).unwrap_err().to_string();
    let expected = "The private key cannot sign `ES256` (InvalidEncoding); give a PKCS #8 key made \
                    for it.";
    assert_eq!(refused, expected);
}

#[test]
fn headers_say_the_algorithm_and_the_name() {
    let key = SigningKey::generate();
    let header = |key: &SigningKey, header| peek(&key.sign(header, &json!({}))).unwrap();
    for given in [Value::Null, json!({}), json!([1]), json!("typ"), json!({"alg": "none"})] {
        let header = header(&key, given);
        assert_eq!((&*header.alg, header.kid, header.typ), ("ES256", None, None));
    }
    assert_eq!(header(&key, json!({"kid": "theirs"})).kid.as_deref(), Some("theirs"));
    let key = key.named("ours");
    assert_eq!(key.public().kid.as_deref(), Some("ours"));
    assert_eq!(header(&key, json!({"kid": "theirs"})).kid.as_deref(), Some("ours"));
}

#[test]
fn keys_are_new_each_time() {
    let (one, other) = (SigningKey::generate(), SigningKey::generate());
    assert_ne!(one.public().thumbprint(), other.public().thumbprint());
    assert_ne!(one.pkcs8(), other.pkcs8());
}

#[test]
fn pem_texts_are_read_however_their_lines_end() {
    let pem = include_str!("../test-keys/p256.pem");
    let expected = signing(Algorithm::ES256);
    for text in [
        pem.to_owned(),
        pem.replace('\n', "\r\n"),
        pem.replace('\n', "\n  "),
        format!("{pem}{}", include_str!("../test-keys/rsa.pem")),
    ] {
        let read = SigningKey::from_pem(&text, Algorithm::ES256).unwrap();
        assert_eq!(read.public(), expected.public());
    }
    let none = "The PEM text has no whole `PRIVATE KEY` block (PKCS #8, not encrypted); convert \
                the key with `openssl pkcs8 -topk8 -nocrypt`.";
    for text in [
        String::new(),
        pem.replace("BEGIN PRIVATE", "BEGIN EC PRIVATE"),
        pem.replace("BEGIN PRIVATE", "BEGIN ENCRYPTED PRIVATE"),
        pem.replace("-----END", "-----"),
        pem.replace("-----BEGIN", "-----"),
        pem.replace("KEY-----\n", "KEY-----\n!"),
    ] {
        let refused = SigningKey::from_pem(&text, Algorithm::ES256).unwrap_err();
        assert_eq!(refused, JoseError::Key(none.to_owned()), "{text}");
    }
}

#[test]
fn the_private_half_is_not_shown() {
    let key = signing(Algorithm::ES256).named("k1");
    let shown = format!("SigningKey(ES256, Jwk(\"k1\", {}))", key.public().thumbprint());
    assert_eq!(format!("{key:?}"), shown);
}
