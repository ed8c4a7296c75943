use ring::hmac;
use serde_json::{Value, json};

use super::*;

/// The private key of the test folder that signs with this algorithm.
pub(crate) fn signing(algorithm: Algorithm) -> SigningKey {
    let pem = match algorithm {
        Algorithm::ES256 => include_str!("test-keys/p256.pem"),
        Algorithm::ES384 => include_str!("test-keys/p384.pem"),
        Algorithm::EdDSA => include_str!("test-keys/ed25519.pem"),
        _ => include_str!("test-keys/rsa.pem"),
    };
    SigningKey::from_pem(pem, algorithm).unwrap()
}

/// Parts as they are given, put together with whatever signature.
pub(crate) fn forged(header: &Value, payload: &str, signature: &[u8]) -> String {
    let b64 = |it: &[u8]| URL_SAFE_NO_PAD.encode(it);
    let header = b64(header.to_string().as_bytes());
    format!("{header}.{}.{}", b64(payload.as_bytes()), b64(signature))
}

/// The public keys of the test folder, as another implementation wrote them.
fn written_elsewhere() -> Jwks {
    Jwks::parse(include_bytes!("test-keys/keys.json")).unwrap()
}

/// A token of each algorithm, as another implementation signed it.
fn signed_elsewhere() -> Vec<(Algorithm, &'static str)> {
    let lines = include_str!("test-keys/tokens.txt").lines();
    let tokens = lines.map(|line| line.split_once(' ').unwrap());
    tokens.map(|(name, token)| (Algorithm::parse(name).unwrap(), token)).collect()
}

fn refusal(token: &str, keys: &Jwks, allowed: &[Algorithm]) -> JoseError {
    verify(token, keys, allowed).unwrap_err()
}

/// The claims with one set to this; or without it, if null.
pub(crate) fn changed(mut claims: Value, member: &str, value: Value) -> Value {
    if value.is_null() {
        claims.as_object_mut().unwrap().remove(member);
    } else {
        claims[member] = value;
    }
    claims
}

#[test]
fn names_of_algorithms() {
    let names = Algorithm::ALL.map(Algorithm::name);
    let expected =
        ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
    assert_eq!(names, expected);
    for algorithm in Algorithm::ALL {
        assert_eq!(Algorithm::parse(algorithm.name()), Some(algorithm));
    }
    assert_eq!(Algorithm::parse("Ed25519"), Some(Algorithm::EdDSA));
    for name in ["none", "None", "", "HS256", "HS384", "HS512", "ES512", "ES256K", "Ed448", "es256"]
    {
        assert_eq!(Algorithm::parse(name), None, "{name}");
    }
}

#[test]
fn tokens_of_another_implementation_are_verified_by_their_algorithm_alone() {
    let (keys, tokens) = (written_elsewhere(), signed_elsewhere());
    assert_eq!(tokens.iter().map(|it| it.0).collect::<Vec<_>>(), Algorithm::ALL);
    for (algorithm, token) in tokens {
        let verified = verify(token, &keys, &[algorithm]).unwrap();
        assert_eq!(verified.payload, br#"{"sub":"alice"}"#);
        assert_eq!(verified.header.alg, algorithm.name());
        assert_eq!(verified.header.typ.as_deref(), Some("JWT"));
        for other in Algorithm::ALL.into_iter().filter(|it| *it != algorithm) {
            assert_eq!(refusal(token, &keys, &[other]), JoseError::Algorithm);
        }
        assert_eq!(refusal(token, &keys, &[]), JoseError::Algorithm);
    }
}

#[test]
fn a_signature_of_one_algorithm_is_none_of_another() {
    let keys = written_elsewhere();
    for (algorithm, token) in signed_elsewhere() {
        let signature = decode(token.rsplit_once('.').unwrap().1).unwrap();
        for other in Algorithm::ALL {
            let token = forged(&json!({"alg": other.name()}), "{}", &signature);
            let refused = refusal(&token, &keys, &Algorithm::ALL);
            assert_eq!(refused, JoseError::Signature, "{algorithm:?} as {other:?}");
        }
    }
}

#[test]
fn the_example_of_rfc_7515_with_es256() {
    let token = "eyJhbGciOiJFUzI1NiJ9.\
        eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0\
        cnVlfQ.\
        DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    let key = Jwk::parse(&json!({
        "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    }));
    let verified = verify_with(token, &key.unwrap(), &[Algorithm::ES256]).unwrap();
    assert!(verified.payload.starts_with(b"{\"iss\":\"joe\",\r\n"));
}

#[test]
fn the_example_of_rfc_8037_with_ed25519() {
    let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
        hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    let key = Jwk::parse(&json!({
        "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    }));
    let verified = verify_with(token, &key.unwrap(), &[Algorithm::EdDSA]).unwrap();
    assert_eq!(verified.payload, b"Example of Ed25519 signing");
}

#[test]
fn every_byte_is_signed() {
    let key = SigningKey::generate();
    let token = key.sign(Value::Null, &json!({"sub": "alice"}));
    let allowed = [Algorithm::ES256];
    assert!(verify_with(&token, key.public(), &allowed).is_ok());
    let [header, payload, signature] = token.split('.').collect::<Vec<_>>()[..] else { panic!() };
    let other = key.sign(json!({"typ": "x"}), &json!({"sub": "bob"}));
    let other: Vec<_> = other.split('.').collect();
    for parts in [
        [other[0], payload, signature],
        [header, other[1], signature],
        [header, payload, other[2]],
        [header, payload, ""],
        [header, payload, &signature[..84]],
    ] {
        let refused = verify_with(&parts.join("."), key.public(), &allowed);
        assert_eq!(refused.unwrap_err(), JoseError::Signature);
    }
}

#[test]
fn no_signature_and_shared_secrets_are_refused() {
    let keys = written_elsewhere();
    let public = keys.keys()[0].bare().to_string();
    let pem = include_str!("test-keys/rsa.pem");
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        let token = forged(&json!({"alg": alg}), "{}", b"");
        assert_eq!(refusal(&token, &keys, &Algorithm::ALL), JoseError::Algorithm, "{alg}");
    }
    for secret in [public.as_bytes(), pem.as_bytes(), b""] {
        for (alg, how) in [
            ("HS256", hmac::HMAC_SHA256),
            ("HS384", hmac::HMAC_SHA384),
            ("HS512", hmac::HMAC_SHA512),
        ] {
            let unsigned = forged(&json!({"alg": alg}), "{}", b"");
            let message = unsigned.trim_end_matches('.');
            let tag = hmac::sign(&hmac::Key::new(how, secret), message.as_bytes());
            let token = forged(&json!({"alg": alg}), "{}", tag.as_ref());
            assert_eq!(refusal(&token, &keys, &Algorithm::ALL), JoseError::Algorithm, "{alg}");
        }
    }
}

#[test]
fn the_key_is_the_one_that_is_named() {
    let named = |kid: &str| SigningKey::generate().named(kid);
    let (one, two, other) = (named("one"), named("two"), named("two"));
    let nameless = SigningKey::generate();
    let keys = Jwks::new([&one, &two, &other].map(|it| it.public().clone()));
    let claims = json!({});
    let allowed = [Algorithm::ES256];
    for key in [&one, &two, &other] {
        assert!(verify(&key.sign(Value::Null, &claims), &keys, &allowed).is_ok());
    }
    let copy = |key: &SigningKey| SigningKey::from_pkcs8(key.pkcs8(), Algorithm::ES256).unwrap();
    // By a key of the set, without a name: every key is tried.
    for key in [&one, &two, &other] {
        assert!(verify(&copy(key).sign(Value::Null, &claims), &keys, &allowed).is_ok());
    }
    let refused =
        |key: &SigningKey, keys: &Jwks| refusal(&key.sign(Value::Null, &claims), keys, &allowed);
    assert_eq!(refused(&copy(&one).named("two"), &keys), JoseError::Signature);
    assert_eq!(refused(&copy(&one).named("three"), &keys), JoseError::UnknownKey);
    assert_eq!(refused(&copy(&one).named(""), &keys), JoseError::UnknownKey);
    assert_eq!(refused(&nameless, &keys), JoseError::Signature);
    assert_eq!(refused(&nameless, &Jwks::new([])), JoseError::UnknownKey);
    // A name finds no nameless key.
    let unnamed = Jwks::new([copy(&one).public().clone()]);
    assert_eq!(refused(&one, &unnamed), JoseError::UnknownKey);
    // Given the key, its name does not matter.
    let token = one.sign(Value::Null, &claims);
    assert!(verify_with(&token, copy(&one).public(), &allowed).is_ok());
}

#[test]
fn keys_that_do_not_fit_are_passed_over_without_hiding_the_wrong_signature() {
    let (es, ed) = (SigningKey::generate(), signing(Algorithm::EdDSA));
    let token = SigningKey::generate().sign(Value::Null, &json!({}));
    for keys in [[&es, &ed], [&ed, &es]] {
        let keys = Jwks::new(keys.map(|it| it.public().clone()));
        assert_eq!(refusal(&token, &keys, &Algorithm::ALL), JoseError::Signature);
        assert!(verify(&es.sign(Value::Null, &json!({})), &keys, &Algorithm::ALL).is_ok());
    }
    let keys = Jwks::new([ed.public().clone()]);
    assert_eq!(refusal(&token, &keys, &Algorithm::ALL), JoseError::UnfitKey);
}

#[test]
fn headers_are_read_strictly() {
    let key = SigningKey::generate().public().bare();
    let read = |header: Value| peek(&forged(&header, "", b""));
    let header = read(json!({"alg": "ES256", "typ": "JWT", "kid": "k", "jwk": key, "x": 1}));
    let expected = Header {
        alg: "ES256".into(),
        typ: Some("JWT".into()),
        kid: Some("k".into()),
        jwk: Some(Jwk::parse(&key).unwrap()),
        has_crit: false,
    };
    assert_eq!(header.unwrap(), expected);
    let bare = Header { alg: "x".into(), typ: None, kid: None, jwk: None, has_crit: false };
    assert_eq!(read(json!({"alg": "x"})).unwrap(), bare);
    for crit in [json!(["b64"]), json!([]), json!(null)] {
        assert!(read(json!({"alg": "x", "crit": crit})).unwrap().has_crit);
    }
    for header in [
        json!({}),
        json!([]),
        json!("alg"),
        json!({"alg": null}),
        json!({"alg": 1}),
        json!({"alg": "x", "typ": 1}),
        json!({"alg": "x", "typ": null}),
        json!({"alg": "x", "kid": ["k"]}),
    ] {
        assert_eq!(read(header.clone()).unwrap_err(), JoseError::Malformed, "{header}");
    }
    let mut private = key.clone();
    private["d"] = json!("AA");
    let refused = read(json!({"alg": "x", "jwk": private})).unwrap_err();
    assert_eq!(refused, JoseError::PrivateKey);
    let refused = read(json!({"alg": "x", "jwk": "k"})).unwrap_err();
    assert!(matches!(refused, JoseError::Key(_)));
}

#[test]
fn what_must_be_understood_is_refused() {
    let key = SigningKey::generate();
    let keys = Jwks::new([key.public().clone()]);
    let token = key.sign(json!({"crit": ["exp"], "exp": 1}), &json!({}));
    assert_eq!(refusal(&token, &keys, &Algorithm::ALL), JoseError::Critical);
    assert!(peek(&token).unwrap().has_crit);
}

#[test]
fn tokens_have_three_parts_of_base64url() {
    let header = "eyJhbGciOiJub25lIn0";
    for token in [
        "",
        ".",
        "..",
        "opaque",
        header,
        "eyJhbGciOiJub25lIn0.e30",
        "eyJhbGciOiJub25lIn0.e30.AA.AA",
        "eyJhbGciOiJub25lIn0..e30.",
        "eyJhbGciOiJub25lIn0.a.b.c.d",
        "eyJhbGciOiJub25lIn0=.e30.",
        " eyJhbGciOiJub25lIn0.e30.",
        "eyJhbGciOiJub25lIn0\n.e30.",
        "bm90IGpzb24.e30.",
    ] {
        assert_eq!(peek(token).unwrap_err(), JoseError::Malformed, "{token:?}");
    }
    for (rest, is_payload) in [
        (".e30=.", true),
        (".e30 .", true),
        (".e3+.", true),
        // Stray bits at the end: a second spelling of the same bytes.
        (".e31.", true),
        (".e30.A", false),
        (".e30.AB", false),
        (".e30.AA==", false),
        (".e30.A/A", false),
    ] {
        let token = format!("{header}{rest}");
        let refused = refusal(&token, &Jwks::new([]), &Algorithm::ALL);
        assert_eq!(refused, JoseError::Malformed, "{rest}");
        assert_eq!(unverified_payload(&token).is_err(), is_payload, "{rest}");
    }
    assert_eq!(unverified_payload("!.e30.!").unwrap(), b"{}");
    assert_eq!(unverified_payload("e30").unwrap_err(), JoseError::Malformed);
}

#[test]
fn long_texts_are_not_read() {
    let of = |length: usize| {
        let head = "eyJhbGciOiJub25lIn0.";
        format!("{head}{}.", "A".repeat(length - head.len() - 1))
    };

    for (length, is_read) in [(16_383, true), (16_384, true), (16_385, false)] {
        let token = of(length);
        assert_eq!(token.len(), length);
        assert_eq!(peek(&token).is_ok(), is_read, "{length}");
        let refused = refusal(&token, &Jwks::new([]), &Algorithm::ALL);
        assert_eq!(refused == JoseError::TooLong, !is_read, "{length}");
        assert_eq!(unverified_payload(&token) == Err(JoseError::TooLong), !is_read, "{length}");
    }
}

#[test]
fn refusals_are_sentences() {
    for (error, sentence) in [
        (JoseError::TooLong, "The text is too long to be a token or a key set."),
        (JoseError::Malformed, "The text is not a signed token or a key set."),
        (JoseError::Critical, "The token wants extensions understood that are not known here."),
        (JoseError::Algorithm, "The token is signed with an algorithm that is not allowed here."),
        (JoseError::UnknownKey, "The token is signed with a key that is not known here."),
        (JoseError::UnfitKey, "The key is not one for the algorithm of the token."),
        (JoseError::Signature, "The signature of the token is wrong."),
        (JoseError::PrivateKey, "The key came with its private half, so it proves nothing."),
        (JoseError::Key("Why.".into()), "Why."),
    ] {
        assert_eq!(error.to_string(), sentence);
    }
}

#[test]
fn what_was_signed_is_not_shown() {
    let key = SigningKey::generate();
    let token = key.sign(json!({"typ": "JWT"}), &json!({"sub": "alice"}));
    let verified = verify_with(&token, key.public(), &Algorithm::ALL).unwrap();
    let shown = format!("{verified:?}");
    assert!(shown.contains("JWT") && shown.ends_with("with 15 bytes"), "{shown}");
}
