//! Tokens and key sets: a token that was changed never proves anything, and keys mean the same after
//! they were written and read.

use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use trunkline_auth::dpop::{Checker, Expect};
use trunkline_auth::jose::{
    Algorithm, Jwk, Jwks, SigningKey, peek, unverified_payload, verify, verify_with,
};

use crate::input::{Input, edited};

/// A byte that chooses, then: a token, a key set, or edits of a token that is genuine.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 4 {
        0 => token(&String::from_utf8_lossy(input.rest())),
        1 => keys(input.rest()),
        2 => forged(&GENUINE, input.rest()),
        _ => proof(&edited(&PROOF, input.rest())),
    }
}

fn token(text: &str) {
    let read = peek(text);
    let _ = unverified_payload(text);
    let verified = verify(text, &KEYS, &Algorithm::ALL);
    assert!(verified.is_err() || text == GENUINE.as_str(), "nobody signed {text}");
    if let Ok(header) = read {
        // What brings its own key proves the key and nothing else.
        let own = header.jwk.map(|key| verify_with(text, &key, &Algorithm::ALL));
        assert!(own.is_none_or(|it| it.is_err()) || text == PROOF.as_str());
        assert!(!header.has_crit || verify_with(text, KEY.public(), &Algorithm::ALL).is_err());
    }
    proof(text);
}

fn keys(text: &[u8]) {
    let Ok(keys) = Jwks::parse(text) else { return };
    let written = serde_json::to_vec(&keys).expect("keys can be written");
    assert_eq!(Jwks::parse(&written).as_ref(), Ok(&keys));
    let shown = String::from_utf8_lossy(&written);
    let members: Value = serde_json::from_slice(&written).expect("it is JSON");
    for key in members["keys"].as_array().into_iter().flatten() {
        assert!(["d", "p", "q", "k"].iter().all(|it| key.get(it).is_none()), "{shown}");
    }
    for key in keys.keys() {
        let bare = Jwk::parse(&key.bare()).expect("a bare key is a key");
        assert_eq!(bare.thumbprint(), key.thumbprint());
    }
    assert!(
        verify(&GENUINE, &keys, &Algorithm::ALL).is_err()
            || keys.keys().contains(KEY.public())
            || has_key(&keys)
    );
}

fn has_key(keys: &Jwks) -> bool {
    keys.keys().iter().any(|it| it.thumbprint() == KEY.public().thumbprint())
}

fn forged(genuine: &str, edits: &[u8]) {
    let forged = edited(genuine, edits);
    match verify(&forged, &KEYS, &Algorithm::ALL) {
        Ok(verified) => {
            assert_eq!(forged, genuine, "it was changed and still proves");
            assert_eq!(Some(&*verified.payload), unverified_payload(genuine).ok().as_deref());
        }
        Err(_) => assert_ne!(forged, genuine, "the genuine token proves nothing"),
    }
}

fn proof(text: &str) {
    let checker = Checker::new(Duration::from_secs(60));
    let expect = Expect {
        method: "POST",
        url: "https://a.example/mcp",
        token: None,
        nonce: None,
        now: UNIX_EPOCH,
    };
    match checker.check(text, expect) {
        Ok(thumbprint) => {
            assert_eq!((text, thumbprint), (PROOF.as_str(), KEY.public().thumbprint()));
            assert!(checker.check(text, expect).is_err(), "a proof is good once");
        }
        Err(_) => assert_ne!(text, PROOF.as_str(), "the genuine proof proves nothing"),
    }
}

/// PKCS #8 of an Ed25519 key whose secret half is 32 times the byte 7: signatures are the same each time.
static KEY: LazyLock<SigningKey> = LazyLock::new(|| {
    let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let key = SigningKey::from_pkcs8(&[&head[..], &[7; 32]].concat(), Algorithm::EdDSA);
    key.expect("the key is well formed").named("k1")
});
static KEYS: LazyLock<Jwks> = LazyLock::new(|| Jwks::new([KEY.public().clone()]));
static GENUINE: LazyLock<String> =
    LazyLock::new(|| KEY.sign(json!({"typ": "at+jwt"}), &json!({"sub": "alice", "exp": 7})));
static PROOF: LazyLock<String> = LazyLock::new(|| {
    let header = json!({"typ": "dpop+jwt", "jwk": KEY.public().bare()});
    let claims = json!({"jti": "1", "htm": "POST", "htu": "https://a.example/mcp", "iat": 0});
    KEY.sign(header, &claims)
});
pub(crate) const WORDS: &[&str] = &[
    "eyJhbGciOiJub25lIn0",
    "eyJhbGciOiJFZERTQSIsImtpZCI6ImsxIn0",
    "e30",
    ".",
    "..",
    "{\"keys\":[",
    "\"kty\":\"EC\"",
    "\"kty\":\"RSA\"",
    "\"kty\":\"OKP\"",
    "\"kty\":\"oct\"",
    "\"crv\":\"P-256\"",
    "\"crv\":\"P-384\"",
    "\"crv\":\"Ed25519\"",
    "\"x\":\"",
    "\"y\":\"",
    "\"n\":\"",
    "\"e\":\"AQAB\"",
    "\"d\":\"",
    "\"kid\":\"k1\"",
    "\"alg\":\"EdDSA\"",
    "\"use\":\"sig\"",
    "\"key_ops\":[\"verify\"]",
    "]}",
];
