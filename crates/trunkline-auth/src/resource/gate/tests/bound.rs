//! Tokens that are bound to a key of the client.

use super::*;
use crate::dpop::prove;
use crate::fetch::Pending;
use crate::resource::Replays;

const ALGS: &str = "algs=\"RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 EdDSA\"";

/// A client with a key, and a token that is bound to it.
struct Bound {
    place: Place,
    key: SigningKey,
    token: String,
}

fn bound(more: impl FnOnce(Protect) -> Protect) -> Bound {
    let (place, key) = (place(more), SigningKey::generate());
    let token = place.token(json!({"cnf": {"jkt": key.public().thumbprint()}}));
    Bound { place, key, token }
}

impl Bound {
    fn proof(&self, nonce: Option<&str>) -> String {
        prove(&self.key, "POST", RESOURCE, Some(&self.token), nonce, self.place.script.now())
    }

    fn send(&self, proofs: &[&str]) -> Result<Admission, Denied> {
        let authorization = format!("DPoP {}", self.token);
        let mut headers = vec![("authorization", &*authorization)];
        headers.extend(proofs.iter().map(|it| ("dpop", *it)));
        self.place.send(None, &headers)
    }
}

/// What is said of a bad proof.
fn bad(why: &str) -> String {
    denied("invalid_dpop_proof", "", why)
}

fn denied(error: &str, more: &str, why: &str) -> String {
    format!(
        "401 {error}\nWWW-Authenticate: DPoP error=\"{error}\", {METADATA}, error_description=\"{why}\", {ALGS}{more}\n{why}"
    )
}

#[test]
fn every_way_in_is_offered() {
    let any = "A token is needed; send one in the `Authorization` header.";
    let bound = "A token is needed; send one with the `DPoP` scheme and a proof.";
    for (dpop, challenge, lacking) in [
        (Dpop::Off, format!("Bearer {METADATA}"), any),
        (Dpop::Accept, format!("Bearer {METADATA}, DPoP {ALGS}"), any),
        (Dpop::Require, format!("DPoP {METADATA}, {ALGS}"), bound),
    ] {
        let place = place(|it| it.dpop(dpop));
        let expected = format!("401 -\nWWW-Authenticate: {challenge}\n{lacking}");
        assert_eq!(shown(place.send(None, &[])), expected, "{dpop:?}");
        let twice = [("authorization", "Bearer a"), ("authorization", "Bearer a")];
        let scheme = if dpop == Dpop::Require { "DPoP error=" } else { "Bearer error=" };
        let denied = place.send(None, &twice).unwrap_err();
        assert!(denied.challenge.unwrap().starts_with(scheme), "{dpop:?}");
    }
}

#[test]
fn a_bound_token_comes_with_its_proof() {
    for (dpop, is_in) in [(Dpop::Off, false), (Dpop::Accept, true), (Dpop::Require, true)] {
        let client = bound(|it| it.dpop(dpop));
        let answer = client.send(&[&client.proof(None)]);
        assert_eq!(answer.is_ok(), is_in, "{dpop:?}");
        match answer {
            Ok(admission) => {
                let thumbprint = client.key.public().thumbprint();
                assert_eq!(admission.principal.key, Some(thumbprint));
                assert_eq!(admission.nonce, None);
            }
            Err(denied) => assert_eq!((denied.status, denied.error), (401, None)),
        }
        // And never without it, though a thief would like that.
        let answer = client.place.bearer(&client.token);
        assert!(answer.starts_with("401 "), "{dpop:?} {answer}");
    }
}

#[test]
fn tokens_that_are_not_bound_go_the_other_way() {
    let client = bound(|it| it.dpop(Dpop::Accept).api_key("robot", SECRET, ["r"]));
    let token = client.place.token(json!({}));
    assert_eq!(client.place.bearer(&token), "alice may mcp");
    assert_eq!(client.place.bearer(SECRET), "robot may r");
    let why = "The token is not bound to a key; the `DPoP` scheme is for one that is.";
    for token in [&*token, SECRET] {
        let proof =
            prove(&client.key, "POST", RESOURCE, Some(token), None, client.place.script.now());
        let headers = [("authorization", &*format!("DPoP {token}")), ("dpop", &*proof)];
        let answer = shown(client.place.send(None, &headers));
        assert_eq!(answer, denied("invalid_token", "", why));
    }
    let why = "The token is bound to a key; send it with the `DPoP` scheme and a proof.";
    assert_eq!(client.place.bearer(&client.token), invalid(why));
    let client = bound(|it| it.dpop(Dpop::Require));
    assert_eq!(
        client.place.bearer(&client.place.token(json!({}))),
        format!(
            "401 -\nWWW-Authenticate: DPoP {METADATA}, {ALGS}\nA token is needed; send one with the `DPoP` scheme and a proof."
        )
    );
}

#[test]
fn a_proof_is_for_one_request() {
    let client = bound(|it| it.dpop(Dpop::Accept));
    let now = client.place.script.now();
    let by = |key: &SigningKey, method: &str, url: &str, token: &str, now: SystemTime| {
        prove(key, method, url, Some(token), None, now)
    };
    let (key, token) = (&client.key, &*client.token);
    let good = client.proof(None);
    assert_eq!(shown(client.send(&[&good])), "alice may mcp");
    let long = Duration::from_secs(121);
    for (proofs, why) in [
        (vec![], "The `DPoP` header with the proof is missing."),
        (vec![good.clone()], "The proof was used before."),
        (
            vec![client.proof(None), client.proof(None)],
            "More than one `DPoP` header is refused; send one.",
        ),
        (vec!["x".into()], "The proof is not by the key that the token is bound to."),
        (
            vec![by(&SigningKey::generate(), "POST", RESOURCE, token, now)],
            "The proof is not by the key that the token is bound to.",
        ),
        (vec![by(key, "GET", RESOURCE, token, now)], "The proof is for another method."),
        (
            vec![by(key, "POST", "https://other.example/mcp", token, now)],
            "The proof is for another URL.",
        ),
        (
            vec![by(key, "POST", "https://mcp.example/other", token, now)],
            "The proof is for another URL.",
        ),
        (vec![by(key, "POST", RESOURCE, "other", now)], "The proof is for another token."),
        (
            vec![by(key, "POST", RESOURCE, token, now - long)],
            "The proof was not made just now; the clocks may differ.",
        ),
    ] {
        let proofs: Vec<&str> = proofs.iter().map(|it| &**it).collect();
        assert_eq!(shown(client.send(&proofs)), bad(why), "{why}");
    }
    let just = Duration::from_secs(120);
    assert!(client.send(&[&by(key, "POST", RESOURCE, token, now - just)]).is_ok());
}

#[test]
fn the_path_of_the_request_counts_not_that_of_the_resource() {
    let client = bound(|it| it.dpop(Dpop::Accept));
    let url = "https://mcp.example/sse";
    let proof =
        prove(&client.key, "GET", url, Some(&client.token), None, client.place.script.now());
    let authorization = format!("DPoP {}", client.token);
    let headers = [("authorization", authorization.as_bytes()), ("dpop", proof.as_bytes())];
    let head = HeadView::new("GET", "/sse", Some("x=1"), headers);
    assert_eq!(shown(block_on(client.place.gate.admit(head))), "alice may mcp");
}

#[test]
fn a_proxy_may_show_clients_another_path() {
    for (own, path, url, is_good) in [
        ("/mcp", "/mcp", "https://mcp.example/mcp", true),
        ("/mcp", "/sse", "https://mcp.example/sse", true),
        ("/", "/", "https://mcp.example/mcp", true),
        ("/inner", "/inner", "https://mcp.example/mcp", true),
        ("/inner", "/inner", "https://mcp.example/inner", false),
        ("/inner", "/inner/sse", "https://mcp.example/sse", true),
        ("/inner", "/inner/sse", "https://mcp.example/mcp", false),
    ] {
        let client = bound(|it| it.dpop(Dpop::Accept));
        let now = client.place.script.now();
        let proof = prove(&client.key, "POST", url, Some(&client.token), None, now);
        let authorization = format!("DPoP {}", client.token);
        let headers = [("authorization", authorization.as_bytes()), ("dpop", proof.as_bytes())];
        let head = HeadView::new("POST", path, None, headers).served_at(own);
        let answer = shown(block_on(client.place.gate.admit(head)));
        let no = bad("The proof is for another URL.");
        assert_eq!(answer, if is_good { "alice may mcp" } else { &no }, "{own} {path} {url}");
    }
}

#[test]
fn too_many_proofs_are_nobodys_fault() {
    let client = bound(|it| it.dpop(Dpop::Accept));
    let (jkt, now) = (client.key.public().thumbprint(), client.place.script.now());
    client.place.gate.proofs.fill(&jkt, 57_343, now);
    let last = client.proof(None);
    assert_eq!(shown(client.send(&[&last])), "alice may mcp");
    let full = "503 -\nToo many proofs came in the last minutes; try again later.";
    assert_eq!(shown(client.send(&[&client.proof(None)])), full);
    assert_eq!(shown(client.send(&[&last])), bad("The proof was used before."));
    client.place.script.wait(240);
    assert_eq!(shown(client.send(&[&client.proof(None)])), "alice may mcp");
}

#[test]
fn servers_of_one_key_take_the_nonces_of_each_other() {
    let at = |key: Option<u8>| {
        place(|it| {
            let it = it.dpop(Dpop::Require).dpop_nonces(true);
            key.into_iter().fold(it, |it, byte| it.nonce_key([byte; 32]))
        })
    };
    for (one, other, is_taken) in [
        (Some(1), Some(1), true),
        (Some(1), Some(2), false),
        (Some(1), None, false),
        (None, None, false),
    ] {
        let nonces = [at(one), at(other)].map(|place| {
            let now = place.script.now();
            assert_ne!(place.gate.nonce(now, 0), place.gate.nonce(now, 1));
            [0, 1].map(|before| place.gate.nonce(now, before))
        });
        assert_eq!(nonces[0] == nonces[1], is_taken, "{one:?} {other:?}");
    }
}

#[test]
fn a_bad_token_is_refused_before_its_proof_is_looked_at() {
    let mut client = bound(|it| it.dpop(Dpop::Accept));
    let jkt = client.key.public().thumbprint();
    client.token = client.place.token(json!({"aud": "x", "cnf": {"jkt": jkt}}));
    let why = "The token is for another audience.";
    assert_eq!(shown(client.send(&[])), denied("invalid_token", "", why));
}

#[test]
fn scopes_are_asked_for_the_same_way() {
    let client = bound(|it| it.dpop(Dpop::Accept));
    let alice = client.send(&[&client.proof(None)]).unwrap().principal;
    let needed = ["write".to_owned()];
    let line =
        |who: &Principal| client.place.gate.needs(who, &needed).unwrap_err().challenge.unwrap();
    let why = "error_description=\"The token lacks the scope `write`.\"";
    let error = "error=\"insufficient_scope\", scope=\"write\"";
    assert_eq!(line(&alice), format!("DPoP {error}, {METADATA}, {why}, {ALGS}"));
    assert_eq!(
        line(&Principal::new("bob")),
        format!("Bearer {error}, {METADATA}, {why}, DPoP {ALGS}")
    );
}

#[test]
fn nonces_are_handed_out_and_change() {
    let client = bound(|it| it.dpop(Dpop::Require).dpop_nonces(true));
    let needs = "The proof needs the nonce of the `DPoP-Nonce` header.";
    let line = denied("use_dpop_nonce", "\nDPoP-Nonce: …", needs);
    let refused = client.send(&[&client.proof(None)]);
    assert_eq!(shown(refused.clone()), line);
    let first = refused.unwrap_err().nonce.unwrap();
    assert_eq!(first.len(), 16);
    assert_eq!(shown(client.send(&[&client.proof(Some("made up"))])), line);
    assert_eq!(client.send(&[&client.proof(Some(&first))]).unwrap().nonce, None);
    // START is 40 s into its two minutes.
    client.place.script.wait(79);
    assert_eq!(client.send(&[&client.proof(Some(&first))]).unwrap().nonce, None);
    client.place.script.wait(1);
    let second = client.send(&[&client.proof(Some(&first))]).unwrap().nonce.unwrap();
    assert_ne!(first, second);
    assert_eq!(client.send(&[&client.proof(Some(&second))]).unwrap().nonce, None);
    client.place.script.wait(119);
    assert_eq!(client.send(&[&client.proof(Some(&first))]).unwrap().nonce, Some(second.clone()));
    client.place.script.wait(1);
    let refused = client.send(&[&client.proof(Some(&first))]);
    assert_eq!(shown(refused.clone()), line);
    assert_ne!(refused.unwrap_err().nonce, Some(second.clone()));
    assert!(client.send(&[&client.proof(Some(&second))]).unwrap().nonce.is_some());
    // Without being asked for, a nonce is not looked at.
    let other = bound(|it| it.dpop(Dpop::Accept));
    assert_eq!(other.send(&[&other.proof(Some("any"))]).unwrap().nonce, None);
}

/// What others say of every proof.
struct Others(Option<bool>);

impl Replays for Others {
    fn is_first<'a>(&'a self, name: &'a str, life: Duration) -> Pending<'a, Option<bool>> {
        assert_eq!((name.len(), life), (64, PROOF_LIFE * 2));
        Box::pin(async { self.0 })
    }
}

#[test]
fn a_proof_that_was_used_at_another_server_is_refused() {
    for (others, expected) in [
        (Some(true), None),
        (Some(false), Some(bad("The proof was used before."))),
        (
            None,
            Some("503 -\nThe proof cannot be checked at the moment; try again later.".to_owned()),
        ),
    ] {
        let client = bound(|it| it.dpop(Dpop::Accept).replays(Arc::new(Others(others))));
        let answer = client.send(&[&client.proof(None)]);
        match expected {
            None => assert!(answer.is_ok(), "{others:?}"),
            Some(expected) => assert_eq!(shown(answer), expected, "{others:?}"),
        }
    }
}
