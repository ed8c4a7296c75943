use super::*;
use crate::jose::tests::{forged, signing};
use crate::jose::{Jwk, unverified_payload, verify_with};

const URL: &str = "https://mcp.example/mcp";

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// A POST to `URL` at 1000 with a token, a window of 60 seconds.
fn expect() -> Expect<'static> {
    Expect { method: "POST", url: URL, token: Some("token"), nonce: None, now: at(1_000) }
}

fn check(proof: &str, expect: Expect<'_>) -> Result<String, DpopError> {
    Checker::new(Duration::from_secs(60)).check(proof, expect)
}

/// Claims that `expect` wants.
fn claims() -> Value {
    json!({"jti": "1", "htm": "POST", "htu": URL, "iat": 1_000, "ath": jose::sha256(b"token")})
}

fn with(member: &str, value: Value) -> Value {
    crate::jose::tests::changed(claims(), member, value)
}

fn signed(key: &SigningKey, claims: &Value) -> String {
    key.sign(json!({"typ": "dpop+jwt", "jwk": key.public().bare()}), claims)
}

fn why(result: Result<String, DpopError>) -> String {
    match result {
        Err(DpopError::Invalid(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn proofs_say_what_the_rfc_says() {
    let key = SigningKey::generate().named("k1");
    let url = "https://mcp.example/mcp?a=b#c";
    let proof = prove(&key, "POST", url, Some("token"), Some("n-1"), at(1_000));
    let verified = verify_with(&proof, key.public(), &Algorithm::ALL).unwrap();
    assert_eq!(verified.header.typ.as_deref(), Some("dpop+jwt"));
    let bare = Jwk::parse(&key.public().bare()).unwrap();
    assert_eq!(verified.header.jwk, Some(bare));
    let said: Value = serde_json::from_slice(&verified.payload).unwrap();
    let jti = &said["jti"];
    assert_eq!(jti.as_str().unwrap().len(), 32);
    // The digest of "token".
    let ath = "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A";
    let expected = json!({
        "jti": jti, "htm": "POST", "htu": "https://mcp.example/mcp", "iat": 1_000,
        "ath": ath, "nonce": "n-1",
    });
    assert_eq!(said, expected);
    let bare = prove(&key, "GET", URL, None, None, UNIX_EPOCH - Duration::from_secs(1));
    let bare: Value = serde_json::from_slice(&unverified_payload(&bare).unwrap()).unwrap();
    assert_eq!(bare, json!({"jti": bare["jti"], "htm": "GET", "htu": URL, "iat": 0}));
    assert_ne!(&bare["jti"], jti);
}

#[test]
fn every_kind_of_key_proves() {
    for algorithm in Algorithm::ALL {
        let key = signing(algorithm);
        let proof = prove(&key, "POST", URL, Some("token"), None, at(1_000));
        assert_eq!(check(&proof, expect()), Ok(key.public().thumbprint()));
    }
}

#[test]
fn the_examples_of_rfc_9449() {
    let header = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZy\
        aHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VO\
        SmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19";
    let at_token = "eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2Vyd\
        mVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiM\
        LvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg";
    let at_resource = "eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZX\
        NvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU\
        8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRim\
        PPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA";
    let jkt = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";
    let now = at(1_562_262_620);
    let url = "https://server.example.com/token";
    let expect = Expect { method: "POST", url, token: None, nonce: None, now };
    assert_eq!(check(&format!("{header}.{at_token}"), expect), Ok(jkt.to_owned()));
    let url = "https://resource.example.org/protectedresource";
    let token = Some("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU");
    let expect = Expect { method: "GET", url, token, ..expect };
    assert_eq!(check(&format!("{header}.{at_resource}"), expect), Ok(jkt.to_owned()));
}

#[test]
fn a_proof_is_for_one_request() {
    let key = SigningKey::generate();
    assert_eq!(check(&signed(&key, &claims()), expect()), Ok(key.public().thumbprint()));
    for (claims, expected) in [
        (json!([]), "The proof says nothing."),
        (with("jti", json!(null)), "The proof has no `jti`."),
        (with("jti", json!("")), "The proof has no `jti`."),
        (with("jti", json!(1)), "The proof has no `jti`."),
        (with("htm", json!(null)), "The proof is for another method."),
        (with("htm", json!("GET")), "The proof is for another method."),
        (with("htm", json!("post")), "The proof is for another method."),
        (with("htm", json!(["POST"])), "The proof is for another method."),
        (with("htu", json!(null)), "The proof is for another URL."),
        (with("htu", json!("")), "The proof is for another URL."),
        (with("htu", json!("https://mcp.example/")), "The proof is for another URL."),
        (with("htu", json!("http://mcp.example/mcp")), "The proof is for another URL."),
        (with("iat", json!(null)), "The proof has no `iat`."),
        (with("iat", json!("1000")), "The proof has no `iat`."),
        (with("ath", json!(null)), "The proof is for another token."),
        (with("ath", json!("")), "The proof is for another token."),
        (with("ath", json!("token")), "The proof is for another token."),
        (with("ath", json!(jose::sha256(b"other"))), "The proof is for another token."),
    ] {
        assert_eq!(why(check(&signed(&key, &claims), expect())), expected, "{claims}");
    }
    // Without a token nobody asks for its digest; a query is not looked at.
    let free = Expect { token: None, ..expect() };
    assert!(check(&signed(&key, &with("ath", json!(null))), free).is_ok());
    assert!(check(&signed(&key, &claims()), free).is_ok());
    let proof = signed(&key, &with("htu", json!("https://mcp.example/mcp?a")));
    assert!(check(&proof, Expect { url: "https://mcp.example/mcp?b", ..expect() }).is_ok());
}

#[test]
fn a_proof_is_made_just_now() {
    let key = SigningKey::generate();
    for (made, is_good) in [
        (json!(939), false),
        (json!(939.9), false),
        (json!(940), true),
        (json!(1_000), true),
        (json!(1_060), true),
        (json!(1_060.1), false),
        (json!(1_061), false),
        (json!(-1_000), false),
        (json!(0), false),
        (json!(1e300), false),
    ] {
        let result = check(&signed(&key, &with("iat", made.clone())), expect());
        assert_eq!(result.is_ok(), is_good, "{made}");
        if !is_good {
            let expected = "The proof was not made just now; the clocks may differ.";
            assert_eq!(why(result), expected, "{made}");
        }
    }
}

#[test]
fn a_nonce_that_was_handed_out_must_come_back() {
    let key = SigningKey::generate();
    let asked = Expect { nonce: Some("n-1"), ..expect() };
    for (nonce, is_good) in [
        (json!("n-1"), true),
        (json!("n-2"), false),
        (json!(""), false),
        (json!(null), false),
        (json!(1), false),
    ] {
        let proof = signed(&key, &with("nonce", nonce.clone()));
        let result = check(&proof, asked);
        if is_good {
            assert_eq!(result, Ok(key.public().thumbprint()));
        } else {
            assert_eq!(result, Err(DpopError::WrongNonce), "{nonce}");
        }
        // Not asked for, it is not looked at.
        assert!(check(&proof, expect()).is_ok());
    }
    // What was refused for its nonce is not remembered.
    let checker = Checker::new(Duration::from_secs(60));
    let proof = signed(&key, &with("nonce", json!("n-2")));
    assert_eq!(checker.check(&proof, asked), Err(DpopError::WrongNonce));
    assert!(checker.check(&proof, Expect { nonce: Some("n-2"), ..asked }).is_ok());
}

#[test]
fn a_proof_is_taken_once() {
    let (key, other) = (SigningKey::generate(), SigningKey::generate());
    let checker = Checker::new(Duration::from_secs(60));
    let sign = |key: &SigningKey, jti: &str| signed(key, &with("jti", json!(jti)));
    let proof = sign(&key, "1");
    assert!(checker.check(&proof, expect()).is_ok());
    assert_eq!(checker.check(&proof, expect()), Err(DpopError::Replayed));
    // The same name signed again is the same proof; of another key it is not.
    assert_eq!(checker.check(&sign(&key, "1"), expect()), Err(DpopError::Replayed));
    assert!(checker.check(&sign(&key, "2"), expect()).is_ok());
    assert!(checker.check(&sign(&other, "1"), expect()).is_ok());
    assert_eq!(checker.check(&sign(&other, "1"), expect()), Err(DpopError::Replayed));
}

#[test]
fn a_proof_from_the_future_is_remembered_until_it_is_too_old() {
    let key = SigningKey::generate();
    let checker = Checker::new(Duration::from_secs(60));
    // Good from 1000 to 1120.
    let proof = signed(&key, &with("iat", json!(1_060)));
    let shown = |now| checker.check(&proof, Expect { now: at(now), ..expect() });
    assert!(shown(1_000).is_ok());
    for now in [1_000, 1_060, 1_119, 1_120] {
        assert_eq!(shown(now), Err(DpopError::Replayed), "{now}");
        // Others come in between.
        let other = prove(&key, "POST", URL, Some("token"), None, at(now));
        assert!(checker.check(&other, Expect { now: at(now), ..expect() }).is_ok());
    }
    assert!(why(shown(1_121)).starts_with("The proof was not made just now"));
}

#[test]
fn the_memory_is_bounded_and_refuses_when_full() {
    let checker = Checker::new(Duration::from_secs(60));
    let key = SigningKey::generate();
    // Others, each up to their share and no further.
    for (other, count) in [("a", 57_344), ("b", 57_344), ("c", 57_344), ("d", 57_343)] {
        checker.fill(other, count, at(1_000));
    }
    assert!(checker.check(&signed(&key, &claims()), expect()).is_ok());
    let another = signed(&key, &with("jti", json!("2")));
    assert_eq!(checker.check(&another, expect()), Err(DpopError::Full));
    let full = "Too many proofs came in the last minutes; try again later.";
    assert_eq!(DpopError::Full.to_string(), full);
    assert_eq!(checker.check(&signed(&key, &claims()), expect()), Err(DpopError::Replayed));
}

#[test]
fn one_key_cannot_fill_the_memory() {
    let checker = Checker::new(Duration::from_secs(60));
    let (key, other) = (SigningKey::generate(), SigningKey::generate());
    checker.fill(&key.public().thumbprint(), 57_343, at(1_000));
    assert!(checker.check(&signed(&key, &claims()), expect()).is_ok());
    let another = signed(&key, &with("jti", json!("2")));
    assert_eq!(checker.check(&another, expect()), Err(DpopError::Full));
    assert!(checker.check(&signed(&other, &claims()), expect()).is_ok(), "of the same `jti`");
}

impl Checker {
    /// Sees so many proofs of one key, each for the first time.
    pub(crate) fn fill(&self, jkt: &str, count: usize, now: SystemTime) {
        let mut seen = self.seen.lock().unwrap();
        for number in 0..count {
            let mut name = [0; 32];
            name[..8].copy_from_slice(&number.to_be_bytes());
            name[8] = jkt.as_bytes()[0];
            assert_eq!(seen.see(jkt, name, now), Sight::First, "{jkt} {number}");
        }
    }
}

#[test]
fn proofs_are_of_their_type_and_carry_a_public_key() {
    let key = SigningKey::generate();
    let jwk = key.public().bare();
    let mut private = jwk.clone();
    private["d"] = json!("AA");
    let symmetric = json!({"kty": "oct", "k": "AA"});
    let cannot = "The proof cannot be accepted.";
    for (header, expected) in [
        (json!({"jwk": jwk}), "The proof is not of the type `dpop+jwt`.".to_owned()),
        (json!({"typ": "JWT", "jwk": jwk}), "The proof is not of the type `dpop+jwt`.".into()),
        (json!({"typ": "at+jwt", "jwk": jwk}), "The proof is not of the type `dpop+jwt`.".into()),
        (json!({"typ": "dpop+jwt"}), "The proof has no key in its header.".into()),
        (
            json!({"typ": "dpop+jwt", "jwk": private}),
            format!("{cannot} The key came with its private half, so it proves nothing."),
        ),
        (
            json!({"typ": "dpop+jwt", "jwk": symmetric}),
            format!("{cannot} The key came with its private half, so it proves nothing."),
        ),
        (
            json!({"typ": "dpop+jwt", "jwk": "k"}),
            format!("{cannot} The key cannot be used. It is not a JSON object."),
        ),
        (
            json!({"typ": "dpop+jwt", "jwk": SigningKey::generate().public()}),
            format!("{cannot} The signature of the token is wrong."),
        ),
        (
            json!({"typ": "dpop+jwt", "jwk": signing(Algorithm::RS256).public().bare()}),
            format!("{cannot} The key is not one for the algorithm of the token."),
        ),
        (
            json!({"typ": "dpop+jwt", "jwk": jwk, "crit": ["b64"]}),
            format!("{cannot} The token wants extensions understood that are not known here."),
        ),
    ] {
        let proof = key.sign(header.clone(), &claims());
        assert_eq!(why(check(&proof, expect())), expected, "{header}");
    }
    let proof = key.sign(json!({"typ": "DPoP+JWT", "jwk": jwk}), &claims());
    assert!(check(&proof, expect()).is_ok());
    for alg in ["none", "HS256"] {
        let header = json!({"typ": "dpop+jwt", "alg": alg, "jwk": jwk});
        let proof = forged(&header, &claims().to_string(), b"");
        let expected =
            format!("{cannot} The token is signed with an algorithm that is not allowed here.");
        assert_eq!(why(check(&proof, expect())), expected);
    }
    let expected = format!("{cannot} The text is not a signed token or a key set.");
    assert_eq!(why(check("proof", expect())), expected);
}

#[test]
fn long_proofs_are_not_read() {
    let cannot = "The proof cannot be accepted. The text is not a signed token or a key set.";
    assert_eq!(why(check(&"a".repeat(8_192), expect())), cannot);
    assert_eq!(why(check(&"a".repeat(8_193), expect())), "The proof is too long.");
}

#[test]
fn refusals_are_sentences() {
    for (error, sentence) in [
        (DpopError::Invalid("Why.".into()), "Why."),
        (DpopError::Replayed, "The proof was used before."),
        (DpopError::WrongNonce, "The proof lacks the nonce this server handed out."),
    ] {
        assert_eq!(error.to_string(), sentence);
    }
    assert_eq!(format!("{:?}", Checker::new(Duration::from_secs(60))), "Checker(60s)");
}
