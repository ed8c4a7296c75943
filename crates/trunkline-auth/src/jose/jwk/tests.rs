use serde_json::json;

use super::super::SigningKey;
use super::super::tests::{forged, signing};
use super::super::verify_with;
use super::*;

fn ec() -> Value {
    json!({
        "kty": "EC", "crv": "P-256",
        "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
        "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
    })
}

fn ed25519() -> Value {
    json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
}

fn rsa() -> Value {
    json!({
        "kty": "RSA", "e": "AQAB", "alg": "RS256", "kid": "2011-04-29",
        "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
    })
}

/// `member` of `key` set to this, or taken away.
fn with(mut key: Value, member: &str, value: Value) -> Value {
    if value.is_null() {
        key.as_object_mut().unwrap().remove(member);
    } else {
        key[member] = value;
    }
    key
}

fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[test]
fn thumbprints_are_those_of_the_rfcs() {
    for (key, thumbprint) in [
        (rsa(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"),
        (ed25519(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"),
        (ec(), "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"),
    ] {
        assert_eq!(Jwk::parse(&key).unwrap().thumbprint(), thumbprint);
    }
    // A zero in front, as some write it, is the same number.
    let n = URL_SAFE_NO_PAD.decode(rsa()["n"].as_str().unwrap()).unwrap();
    let zero = with(rsa(), "n", b64(&[&[0], &*n].concat()).into());
    assert_eq!(Jwk::parse(&zero).unwrap(), Jwk::parse(&rsa()).unwrap());
}

#[test]
fn keys_come_back_as_they_were_written() {
    let p384 = signing(Algorithm::ES384).named("k").public().clone();
    let p384 = Value::from(p384);
    assert_eq!(p384["crv"], "P-384");
    assert_eq!(
        (&p384["kid"], &p384["alg"], &p384["use"]),
        (&json!("k"), &"ES384".into(), &"sig".into())
    );
    let marked = with(with(ec(), "use", "sig".into()), "key_ops", json!(["verify"]));
    for key in [rsa(), ec(), ed25519(), p384, marked] {
        let read: Jwk = serde_json::from_value(key.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), key);
        let bare = read.bare();
        assert!(["kid", "alg", "use", "key_ops"].iter().all(|it| bare.get(it).is_none()));
        assert_eq!(Jwk::parse(&bare).unwrap().thumbprint(), read.thumbprint());
    }
    assert!(serde_json::from_value::<Jwk>(json!({"kty": "oct", "k": "AA"})).is_err());
}

#[test]
fn a_private_half_is_refused_whatever_it_holds() {
    for member in ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] {
        for key in [rsa(), ec(), ed25519()] {
            let key = with(key, member, json!(false));
            assert_eq!(Jwk::parse(&key), Err(JoseError::PrivateKey), "{key}");
        }
    }
}

#[test]
fn broken_keys_are_refused_in_words() {
    let bytes = |length| json!(b64(&vec![1; length]));
    for (key, why) in [
        (json!([]), "It is not a JSON object."),
        (json!("key"), "It is not a JSON object."),
        (json!({}), "Its type is not RSA, P-256, P-384 or Ed25519."),
        (json!({"kty": "oct"}), "Its type is not RSA, P-256, P-384 or Ed25519."),
        (with(ec(), "kty", "OKP".into()), "Its type is not RSA, P-256, P-384 or Ed25519."),
        (with(ec(), "crv", json!(null)), "Its type is not RSA, P-256, P-384 or Ed25519."),
        (with(ec(), "crv", "P-521".into()), "Its type is not RSA, P-256, P-384 or Ed25519."),
        (with(ed25519(), "crv", "X25519".into()), "Its type is not RSA, P-256, P-384 or Ed25519."),
        (with(ed25519(), "kty", "EC".into()), "Its type is not RSA, P-256, P-384 or Ed25519."),
        (with(ec(), "kty", json!(1)), "`kty` is not a text."),
        (with(ec(), "crv", json!(1)), "`crv` is not a text."),
        (with(ec(), "kid", json!(1)), "`kid` is not a text."),
        (with(ec(), "alg", json!(1)), "`alg` is not a text."),
        (with(ec(), "use", json!(1)), "`use` is not a text."),
        (with(ec(), "key_ops", json!("verify")), "`key_ops` is not a list of texts."),
        (with(ec(), "key_ops", json!(["verify", 1])), "`key_ops` is not a list of texts."),
        (with(ec(), "x", json!(null)), "`x` is missing."),
        (with(ec(), "y", json!(null)), "`y` is missing."),
        (with(ec(), "y", json!(1)), "`y` is not a text."),
        (with(ec(), "y", json!("AA==")), "`y` is not base64url."),
        (with(ec(), "x", bytes(31)), "`x` has not 32 bytes."),
        (with(ec(), "y", bytes(33)), "`y` has not 32 bytes."),
        (with(ec(), "crv", "P-384".into()), "`x` has not 48 bytes."),
        (with(with(ec(), "crv", "P-384".into()), "x", bytes(48)), "`y` has not 48 bytes."),
        (with(ed25519(), "x", bytes(31)), "`x` has not 32 bytes."),
        (with(rsa(), "n", json!(null)), "`n` is missing."),
        (with(rsa(), "e", json!(null)), "`e` is missing."),
        (with(rsa(), "n", json!("")), "`n` is zero."),
        (with(rsa(), "e", json!("AAAA")), "`e` is zero."),
    ] {
        let expected = JoseError::Key(format!("The key cannot be used. {why}"));
        assert_eq!(Jwk::parse(&key), Err(expected), "{key}");
    }
}

#[test]
fn a_key_fits_its_algorithms_and_no_other() {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    let p384 = signing(ES384).public().bare();
    for (key, fitting) in [
        (with(rsa(), "alg", json!(null)), &[RS256, RS384, RS512, PS256, PS384, PS512][..]),
        (rsa(), &[RS256]),
        (with(rsa(), "alg", "PS384".into()), &[PS384]),
        (with(rsa(), "alg", "ES256".into()), &[]),
        (with(rsa(), "alg", "RSA-OAEP".into()), &[]),
        (ec(), &[ES256]),
        (with(ec(), "alg", "ES384".into()), &[]),
        (p384, &[ES384]),
        (ed25519(), &[EdDSA]),
        (with(ed25519(), "alg", "Ed25519".into()), &[EdDSA]),
        (with(ec(), "use", "sig".into()), &[ES256]),
        (with(ec(), "use", "enc".into()), &[]),
        (with(ec(), "use", "".into()), &[]),
        (with(ec(), "key_ops", json!(["verify"])), &[ES256]),
        (with(ec(), "key_ops", json!(["sign", "verify"])), &[ES256]),
        (with(ec(), "key_ops", json!(["sign"])), &[]),
        (with(ec(), "key_ops", json!([])), &[]),
    ] {
        let read = Jwk::parse(&key).unwrap();
        for algorithm in Algorithm::ALL {
            let token = forged(&json!({"alg": algorithm.name()}), "{}", &[1; 256]);
            let refused = verify_with(&token, &read, &[algorithm]).unwrap_err();
            let fits = fitting.contains(&algorithm);
            let expected = if fits { JoseError::Signature } else { JoseError::UnfitKey };
            assert_eq!(refused, expected, "{key} {algorithm:?}");
        }
    }
}

#[test]
fn rsa_keys_have_2048_to_8192_bits() {
    // A number of this many bits, odd as a modulus is.
    let number = |bits: usize| {
        let mut bytes = vec![0xff; bits.div_ceil(8)];
        bytes[0] >>= (8 - bits % 8) % 8;
        b64(&bytes)
    };
    for (bits, fits) in [
        (512, false),
        (1_024, false),
        (2_040, false),
        (2_041, false),
        (2_047, false),
        (2_048, true),
        (2_049, true),
        (8_191, true),
        (8_192, true),
        (8_193, false),
        (16_384, false),
    ] {
        let key = with(with(rsa(), "n", number(bits).into()), "alg", json!(null));
        let key = Jwk::parse(&key).unwrap();
        for algorithm in [Algorithm::RS256, Algorithm::PS512] {
            let is_good = key.verify(algorithm, b"", &[1; 256]);
            assert_eq!(is_good, fits.then_some(false), "{bits}");
        }
    }
}

#[test]
fn points_are_read_whole() {
    let point = |first: u8, length: usize| [&[first][..], &vec![7; length]].concat();
    let read = |point: &[u8]| Jwk::ec(point).map(|it| it.bare());
    let p256 = read(&point(4, 64)).unwrap();
    assert_eq!(
        (&p256["crv"], &p256["x"], &p256["y"]),
        (&"P-256".into(), &b64(&[7; 32]).into(), &b64(&[7; 32]).into())
    );
    let p384 = read(&point(4, 96)).unwrap();
    assert_eq!(
        (&p384["crv"], &p384["x"], &p384["y"]),
        (&"P-384".into(), &b64(&[7; 48]).into(), &b64(&[7; 48]).into())
    );
    for wrong in [vec![], point(3, 64), point(4, 0), point(4, 63), point(4, 65), point(4, 97)] {
        assert_eq!(read(&wrong), None, "{wrong:?}");
    }
}

#[test]
fn key_sets_leave_out_what_cannot_be_used() {
    let set = |keys: Vec<Value>| json!({"keys": keys, "more": 1}).to_string().into_bytes();
    let keys = set(vec![
        json!({"kty": "oct", "k": "AA"}),
        rsa(),
        with(ec(), "d", "AA".into()),
        json!("key"),
        with(ec(), "x", json!(null)),
        ed25519(),
    ]);
    let expected = [rsa(), ed25519()].map(|it| Jwk::parse(&it).unwrap());
    assert_eq!(Jwks::parse(&keys).unwrap().keys(), expected);
    for wrong in
        ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":null}"#, "{\"keys\":[]} x", "\"keys\""]
    {
        assert_eq!(Jwks::parse(wrong.as_bytes()), Err(JoseError::Malformed), "{wrong}");
    }
    assert_eq!(Jwks::parse(&set(vec![ec(); 64])).unwrap().keys().len(), 64);
    assert_eq!(Jwks::parse(&set(vec![ec(); 65])), Err(JoseError::TooLong));
    let padded = |length: usize| {
        let mut text = set(vec![ec()]);
        text.resize(length, b' ');
        Jwks::parse(&text).map(|it| it.keys().len())
    };
    assert_eq!(padded(262_143), Ok(1));
    assert_eq!(padded(262_144), Ok(1));
    assert_eq!(padded(262_145), Err(JoseError::TooLong));
}

#[test]
fn key_sets_know_names() {
    let named = |kid: &str| SigningKey::generate().named(kid).public().clone();
    let (one, nameless) = (named("one"), SigningKey::generate().public().clone());
    for (keys, one, other, any) in [
        (Jwks::default(), false, false, false),
        (Jwks::new([nameless.clone()]), false, false, true),
        (Jwks::new([nameless, one]), true, false, true),
    ] {
        let found = [Some("one"), Some("other"), None].map(|it| keys.has(it));
        assert_eq!(found, [one, other, any], "{keys:?}");
    }
}

#[test]
fn keys_are_shown_by_what_names_them() {
    let key = Jwk::parse(&with(ec(), "kid", "k1".into())).unwrap();
    let shown = r#"Jwk("k1", 0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I)"#;
    assert_eq!(format!("{key:?}"), shown);
}
