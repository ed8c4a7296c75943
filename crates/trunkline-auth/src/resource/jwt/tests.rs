use serde_json::json;

use super::*;
use crate::jose::SigningKey;
use crate::jose::tests::{forged, signing};

const ISSUER: &str = "https://id.example";
const AUDIENCE: &str = "https://mcp.example/mcp";

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn rules() -> Rules {
    Rules::new(ISSUER, [AUDIENCE])
}

/// Claims that are good at 1000, and have expired at 2000.
fn claims() -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": 2_000})
}

/// The claims with one set to this; or without it, if null.
fn with(member: &str, value: Value) -> Value {
    crate::jose::tests::changed(claims(), member, value)
}

fn checked_by(rules: &Rules, claims: &Value, now: SystemTime) -> Result<Claims, TokenError> {
    let key = signing(Algorithm::ES256).named("k1");
    let keys = Jwks::new([key.public().clone()]);
    check(&key.sign(json!({"typ": "at+jwt"}), claims), &keys, rules, now)
}

fn checked(claims: &Value) -> Result<Claims, TokenError> {
    checked_by(&rules(), claims, at(1_000))
}

/// What becomes of the claims with one member set to each of these.
fn table(member: &str, rows: &[(Value, Option<TokenError>)]) {
    for (value, refusal) in rows {
        let result = checked(&with(member, value.clone()));
        assert_eq!(result.err(), *refusal, "`{member}`: {value}");
    }
}

#[test]
fn a_good_token_says_who_comes() {
    let all = json!({
        "iss": ISSUER, "aud": ["https://other.example", AUDIENCE], "sub": "alice", "exp": 2_000,
        "nbf": 900, "iat": 900, "jti": "1", "client_id": "editor", "azp": "other",
        "scope": "files:read files:write", "cnf": {"jkt": "thumb"}, "team": "red",
    });
    let expected = Claims {
        issuer: ISSUER.into(),
        subject: "alice".into(),
        client_id: Some("editor".into()),
        scopes: vec!["files:read".into(), "files:write".into()],
        expires: at(2_000),
        jkt: Some("thumb".into()),
        all: all.as_object().unwrap().clone(),
    };
    assert_eq!(checked(&all).unwrap(), expected);
    let expected = Claims {
        issuer: ISSUER.into(),
        subject: "alice".into(),
        client_id: None,
        scopes: vec![],
        expires: at(2_000),
        jkt: None,
        all: claims().as_object().unwrap().clone(),
    };
    assert_eq!(checked(&claims()).unwrap(), expected);
}

#[test]
fn the_rules_are_strict_unless_told_otherwise() {
    let expected = Rules {
        issuer: ISSUER.into(),
        audiences: vec![AUDIENCE.into()],
        algorithms: Algorithm::ALL.to_vec(),
        leeway: Duration::from_secs(60),
        types: Types::Usual,
        claims: Vec::new(),
    };
    assert_eq!(rules(), expected);
}

#[test]
fn the_issuer_is_compared_byte_for_byte() {
    let wrong = || Some(TokenError::WrongIssuer);
    table(
        "iss",
        &[
            (json!(ISSUER), None),
            (json!(null), Some(TokenError::Missing("iss"))),
            (json!("https://id.example/"), wrong()),
            (json!("https://ID.example"), wrong()),
            (json!("https://id.example:443"), wrong()),
            (json!("https://evil.example"), wrong()),
            (json!(""), wrong()),
            (json!([ISSUER]), Some(TokenError::Malformed)),
        ],
    );
}

#[test]
fn the_audience_is_compared_byte_for_byte() {
    let wrong = || Some(TokenError::WrongAudience);
    table(
        "aud",
        &[
            (json!(AUDIENCE), None),
            (json!([AUDIENCE]), None),
            (json!(["https://other.example", AUDIENCE]), None),
            (json!(null), Some(TokenError::Missing("aud"))),
            (json!("https://mcp.example/mcp/"), wrong()),
            (json!("https://mcp.example"), wrong()),
            (json!("https://MCP.example/mcp"), wrong()),
            (json!("https://mcp.example/mcp https://other.example"), wrong()),
            (json!(["https://other.example"]), wrong()),
            (json!([]), wrong()),
            (json!(""), wrong()),
            (json!(1), Some(TokenError::Malformed)),
            (json!({}), Some(TokenError::Malformed)),
            (json!([AUDIENCE, 1]), Some(TokenError::Malformed)),
        ],
    );
    let two = Rules { audiences: vec!["urn:a".into(), AUDIENCE.into()], ..rules() };
    for (audience, is_good) in [("urn:a", true), (AUDIENCE, true), ("urn:b", false)] {
        let result = checked_by(&two, &with("aud", json!(audience)), at(1_000));
        assert_eq!(result.is_ok(), is_good, "{audience}");
    }
    let nobody = Rules { audiences: vec![], ..rules() };
    let refused = checked_by(&nobody, &claims(), at(1_000)).unwrap_err();
    assert_eq!(refused, TokenError::WrongAudience);
}

#[test]
fn tokens_expire() {
    let second = Duration::from_secs(1);
    let exact = Rules { leeway: Duration::ZERO, ..rules() };
    let endless = Rules { leeway: Duration::MAX, ..rules() };
    for (rules, now, is_good) in [
        (&exact, at(2_000) - Duration::from_nanos(1), true),
        (&exact, at(2_000), false),
        (&exact, at(2_001), false),
        (&rules(), at(2_000), true),
        (&rules(), at(2_060) - second, true),
        (&rules(), at(2_060) - Duration::from_nanos(1), true),
        (&rules(), at(2_060), false),
        (&rules(), at(2_060) + second, false),
        (&endless, at(1_000_000), true),
    ] {
        let result = checked_by(rules, &claims(), now);
        assert_eq!(result.err(), (!is_good).then_some(TokenError::Expired), "{now:?}");
    }
    let malformed = || Some(TokenError::Malformed);
    table(
        "exp",
        &[
            (json!(null), Some(TokenError::Missing("exp"))),
            (json!("2000"), malformed()),
            (json!([2_000]), malformed()),
            (json!(-1), malformed()),
            (json!(-0.5), malformed()),
            (json!(0), Some(TokenError::Expired)),
            (json!(940), Some(TokenError::Expired)),
            (json!(940.5), None),
            (json!(253_402_300_799_u64), None),
            (json!(253_402_300_800_u64), malformed()),
            (json!(u64::MAX), malformed()),
            (json!(1e300), malformed()),
        ],
    );
    let expires = |exp| checked(&with("exp", exp)).unwrap().expires;
    assert_eq!(expires(json!(2_000.5)), at(2_000) + Duration::from_millis(500));
    assert_eq!(expires(json!(253_402_300_799_u64)), at(253_402_300_799));
}

#[test]
fn tokens_begin() {
    let exact = Rules { leeway: Duration::ZERO, ..rules() };
    let endless = Rules { leeway: Duration::MAX, ..rules() };
    let claims = with("nbf", json!(1_500));
    for (rules, now, is_good) in [
        (&exact, at(1_500) - Duration::from_nanos(1), false),
        (&exact, at(1_500), true),
        (&exact, at(1_501), true),
        (&rules(), at(1_440) - Duration::from_nanos(1), false),
        (&rules(), at(1_440), true),
        (&rules(), at(1_441), true),
        (&endless, at(0), true),
    ] {
        let result = checked_by(rules, &claims, now);
        assert_eq!(result.err(), (!is_good).then_some(TokenError::NotYet), "{now:?}");
    }
    table(
        "nbf",
        &[
            (json!(null), None),
            (json!(0), None),
            (json!(1_060), None),
            (json!(1_060.5), Some(TokenError::NotYet)),
            (json!("0"), Some(TokenError::Malformed)),
            (json!(-1), Some(TokenError::Malformed)),
        ],
    );
}

#[test]
fn somebody_comes() {
    table(
        "sub",
        &[
            (json!("alice"), None),
            (json!(null), Some(TokenError::Missing("sub"))),
            (json!(""), Some(TokenError::Missing("sub"))),
            (json!(1), Some(TokenError::Malformed)),
        ],
    );
    for member in ["client_id", "azp"] {
        let client = checked(&with(member, json!("editor"))).unwrap().client_id;
        assert_eq!(client.as_deref(), Some("editor"), "{member}");
        assert_eq!(checked(&with(member, json!(1))).err(), Some(TokenError::Malformed));
    }
}

#[test]
fn scopes_are_texts_or_lists_of_either_name() {
    for (scope, scp, expected) in [
        (json!("a b"), json!(null), &["a", "b"][..]),
        (json!(" a  b "), json!(null), &["a", "b"]),
        (json!(["a", "b"]), json!(null), &["a", "b"]),
        (json!(null), json!("a b"), &["a", "b"]),
        (json!(null), json!(["a", "b"]), &["a", "b"]),
        (json!("a b a"), json!("b c"), &["a", "b", "c"]),
        (json!(""), json!(null), &[]),
        (json!([]), json!(null), &[]),
    ] {
        let mut claims = with("scope", scope.clone());
        if !scp.is_null() {
            claims["scp"] = scp.clone();
        }
        assert_eq!(checked(&claims).unwrap().scopes, expected, "{scope} {scp}");
    }
    for member in ["scope", "scp"] {
        let wrong = || Some(TokenError::Malformed);
        let rows = [(json!(1), wrong()), (json!(["a", 1]), wrong()), (json!({}), wrong())];
        table(member, &rows);
    }
}

#[test]
fn what_a_token_is_bound_to_is_not_overlooked() {
    table(
        "cnf",
        &[
            (json!({"jkt": "thumb"}), None),
            (json!({"jkt": "thumb", "x5t#S256": "other"}), None),
            (json!({"jkt": 1}), Some(TokenError::Malformed)),
            (json!({"x5t#S256": "thumb"}), Some(TokenError::Bound)),
            (json!({}), Some(TokenError::Bound)),
            (json!("thumb"), Some(TokenError::Bound)),
        ],
    );
}

#[test]
fn id_tokens_let_nobody_in() {
    let key = signing(Algorithm::ES256).named("k1");
    let keys = Jwks::new([key.public().clone()]);
    let only = Types::Only("JWT".into());
    for (claims, is_access) in [
        (json!({}), true),
        (json!({"typ": "Bearer"}), true),
        (json!({"typ": "Bearer", "nonce": "n"}), true),
        (json!({"typ": "DPoP", "nonce": "n"}), true),
        (json!({"typ": "Bearer", "at_hash": "h"}), false),
        (json!({"typ": "DPoP", "at_hash": "h"}), false),
        (json!({"typ": "ID"}), false),
        (json!({"typ": "other"}), true),
        (json!({"typ": "other", "nonce": "n"}), false),
        (json!({"typ": 1, "nonce": "n"}), false),
        (json!({"nonce": "n"}), false),
        (json!({"nonce": null}), false),
        (json!({"at_hash": "h"}), false),
        (json!({"nonce": "n", "at_hash": "h"}), false),
    ] {
        let mut all = self::claims();
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        for (types, header, expected) in [
            (&Types::Usual, json!({}), is_access),
            (&Types::Usual, json!({"typ": "JWT"}), is_access),
            // Who says that it is an access token is believed, as far as the signature goes.
            (&Types::Usual, json!({"typ": "application/AT+jwt"}), true),
            (&only, json!({"typ": "JWT"}), true),
        ] {
            let rules = Rules { types: types.clone(), ..rules() };
            let result = check(&key.sign(header.clone(), &all), &keys, &rules, at(1_000));
            let refusal = (!expected).then_some(TokenError::WrongType);
            assert_eq!(result.err(), refusal, "{types:?} {header} {claims}");
        }
    }
}

#[test]
fn only_access_tokens_let_in() {
    let key = SigningKey::generate();
    let keys = Jwks::new([key.public().clone()]);
    let only = |typ: &str| Types::Only(typ.into());
    for (types, typ, is_good) in [
        (Types::Usual, json!({}), true),
        (Types::Usual, json!({"typ": "at+jwt"}), true),
        (Types::Usual, json!({"typ": "AT+JWT"}), true),
        (Types::Usual, json!({"typ": "application/at+jwt"}), true),
        (Types::Usual, json!({"typ": "Application/AT+jwt"}), true),
        (Types::Usual, json!({"typ": "JWT"}), true),
        (Types::Usual, json!({"typ": "jwt"}), true),
        (Types::Usual, json!({"typ": "dpop+jwt"}), false),
        (Types::Usual, json!({"typ": "logout+jwt"}), false),
        (Types::Usual, json!({"typ": "text/at+jwt"}), false),
        // As long as `application/`, and something else.
        (Types::Usual, json!({"typ": "experiments/at+jwt"}), false),
        (Types::Usual, json!({"typ": "application/"}), false),
        (Types::Usual, json!({"typ": ""}), false),
        (only("at+jwt"), json!({"typ": "at+jwt"}), true),
        (only("at+jwt"), json!({"typ": "application/at+jwt"}), true),
        (only("application/at+jwt"), json!({"typ": "at+jwt"}), true),
        (only("at+jwt"), json!({"typ": "JWT"}), false),
        (only("at+jwt"), json!({}), false),
        (only("oauth-id-jag+jwt"), json!({"typ": "oauth-id-jag+jwt"}), true),
        (only("oauth-id-jag+jwt"), json!({"typ": "at+jwt"}), false),
    ] {
        let rules = Rules { types, ..rules() };
        let result = check(&key.sign(typ.clone(), &claims()), &keys, &rules, at(1_000));
        assert_eq!(result.err(), (!is_good).then_some(TokenError::WrongType), "{typ} {rules:?}");
    }
}

#[test]
fn signatures_come_before_claims() {
    let key = SigningKey::generate().named("k1");
    let keys = Jwks::new([key.public().clone()]);
    let token = key.sign(json!({"typ": "at+jwt"}), &claims());
    let refused = |token: &str| check(token, &keys, &rules(), at(1_000)).unwrap_err();
    assert!(check(&token, &keys, &rules(), at(1_000)).is_ok());

    let copy = SigningKey::from_pkcs8(key.pkcs8(), Algorithm::ES256).unwrap();
    let wrong = with("iss", json!("https://evil.example"));
    for (token, expected) in [
        ("opaque".to_owned(), TokenError::Malformed),
        ("a".repeat(16_385), TokenError::Malformed),
        (forged(&json!({"alg": "none"}), &claims().to_string(), b""), TokenError::Algorithm),
        (forged(&json!({"alg": "HS256"}), &claims().to_string(), b"x"), TokenError::Algorithm),
        (key.sign(json!({"crit": ["exp"]}), &wrong), TokenError::Critical),
        (copy.named("k2").sign(json!({}), &wrong), TokenError::UnknownKey),
        (SigningKey::generate().named("k1").sign(json!({}), &wrong), TokenError::Signature),
        (signing(Algorithm::EdDSA).named("k1").sign(json!({}), &wrong), TokenError::UnfitKey),
        (key.sign(json!({"jwk": {"k": "AA"}}), &claims()), TokenError::Malformed),
        (key.sign(json!({"jwk": "k"}), &claims()), TokenError::Malformed),
        (key.sign(json!({}), &json!([])), TokenError::Malformed),
        (key.sign(json!({}), &json!("claims")), TokenError::Malformed),
        (key.sign(json!({"typ": "JWT"}), &wrong), TokenError::WrongIssuer),
    ] {
        assert_eq!(refused(&token), expected);
    }
    let narrow = Rules { algorithms: vec![Algorithm::RS256], ..rules() };
    let refused = check(&token, &keys, &narrow, at(1_000)).unwrap_err();
    assert_eq!(refused, TokenError::Algorithm);
}

#[test]
fn a_token_by_a_shared_secret_that_is_the_public_key_is_refused() {
    use ring::hmac;

    let key = signing(Algorithm::RS256);
    let keys = Jwks::new([key.public().clone()]);
    let public = key.public().bare();
    for secret in [public.to_string(), public["n"].as_str().unwrap().to_owned()] {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let unsigned = forged(&json!({"alg": "HS256", "typ": "JWT"}), &claims().to_string(), b"");
        let message = unsigned.strip_suffix('.').unwrap();
        let tag = hmac::sign(&secret, message.as_bytes());
        let token =
            forged(&json!({"alg": "HS256", "typ": "JWT"}), &claims().to_string(), tag.as_ref());
        assert!(token.starts_with(message));
        let refused = check(&token, &keys, &rules(), at(1_000)).unwrap_err();
        assert_eq!(refused, TokenError::Algorithm);
    }
}

#[test]
fn refusals_are_sentences_without_the_token() {
    for (error, sentence) in [
        (TokenError::Malformed, "The token is not a well-formed signed token."),
        (TokenError::Algorithm, "The token is signed with an algorithm that is not allowed here."),
        (TokenError::Critical, "The token wants extensions understood that are not known here."),
        (TokenError::UnknownKey, "The token is signed with a key that is not known here."),
        (TokenError::UnfitKey, "The token is signed with a key that is not one for its algorithm."),
        (TokenError::Signature, "The signature of the token is wrong."),
        (TokenError::WrongType, "The token is not an access token."),
        (TokenError::WrongIssuer, "The token is from another issuer."),
        (TokenError::WrongAudience, "The token is for another audience."),
        (TokenError::Expired, "The token has expired."),
        (TokenError::NotYet, "The token is not valid yet."),
        (TokenError::Missing("aud"), "The token has no `aud`."),
        (TokenError::Bound, "The token is bound to something that cannot be checked here."),
    ] {
        assert_eq!(error.to_string(), sentence);
    }
}

#[test]
fn claims_are_read_by_name_and_by_path() {
    let all = json!({
        "email": "ada@acme.example", "groups": ["a", 7, "b"], "count": 3,
        "realm_access": { "roles": ["eng"] }, "https://acme.example/teams": ["red"],
    });
    let Value::Object(all) = all else { panic!("it is an object") };
    for (claim, expected) in [
        ("email", &["ada@acme.example"][..]),
        ("groups", &["a", "b"]),
        ("realm_access.roles", &["eng"]),
        ("https://acme.example/teams", &["red"]),
        ("count", &[]),
        ("realm_access.none", &[]),
        ("none", &[]),
    ] {
        assert_eq!(values(&all, claim), expected, "{claim}");
    }
}
