use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use serde_json::json;

use super::super::scripted::{START, Script, block_on};
use super::*;

const URL: &str = "https://id.example/introspect";
const RESOURCE: &str = "https://mcp.example/mcp";

fn asking() -> Introspection {
    Introspection::new(URL, "mcp", "secret").audience(RESOURCE)
}

fn asker(config: Introspection) -> Introspector {
    Introspector::new(config, Vec::new())
}

fn check(introspector: &Introspector, script: &Script, token: &str) -> Result<Principal, Unproven> {
    block_on(introspector.check(token, script))
}

fn refused(why: &str) -> Result<Principal, Unproven> {
    Err(Unproven::Token(why.to_owned()))
}

fn unknown(why: &str) -> Result<Principal, Unproven> {
    Err(Unproven::Unknown(why.to_owned()))
}

#[test]
fn the_server_is_asked_as_the_rfc_says() {
    let script = Script::new();
    script.at(URL, 200, json!({"active": false}));
    let introspector = asker(Introspection::new(URL, "a b", "c=d").audience(RESOURCE));
    assert_eq!(check(&introspector, &script, "x+y"), refused("The token is not valid."));
    let asked = script.requests().remove(0);
    assert_eq!((asked.method, &*asked.url), ("POST", URL));
    assert_eq!(asked.body, b"token=x%2By&token_type_hint=access_token");
    let basic = ("authorization", format!("Basic {}", STANDARD.encode("a%20b:c%3Dd")));
    assert!(asked.headers.contains(&basic), "{:?}", asked.headers);
}

#[test]
fn what_the_server_says_is_judged() {
    const NOT_VALID: &str = "The token is not valid.";
    let alice = Principal::new("alice").issued_by(URL);
    for (said, expected) in [
        (json!({"active": true, "aud": RESOURCE, "sub": "alice"}), Ok(alice.clone())),
        (
            json!({"active": true, "aud": ["other", RESOURCE], "sub": "alice", "client_id": "editor",
                "scope": "files:read  mcp", "exp": START + 1, "nbf": START, "iss": "https://id.example",
                "cnf": {"jkt": "thumb"}, "username": "Alice", "more": [1]}),
            Ok({
                let mut all = Principal::new("alice").issued_by("https://id.example");
                all = all.scope("files:read").scope("mcp").acting_by("editor");
                all.key = Some("thumb".into());
                all.until(UNIX_EPOCH + Duration::from_secs(START + 1))
            }),
        ),
        // A client that acts for itself.
        (
            json!({"active": true, "aud": RESOURCE, "client_id": "robot", "sub": ""}),
            Ok(Principal::new("robot").issued_by(URL).acting_by("robot")),
        ),
        (json!({"active": false, "aud": RESOURCE, "sub": "alice"}), refused(NOT_VALID)),
        (json!({"active": true, "aud": RESOURCE}), refused(NOT_VALID)),
        (json!({"active": true, "aud": RESOURCE, "sub": "", "client_id": ""}), refused(NOT_VALID)),
        (json!({"active": true, "sub": "alice"}), refused("The token is for another audience.")),
        (
            json!({"active": true, "aud": format!("{RESOURCE}/"), "sub": "alice"}),
            refused("The token is for another audience."),
        ),
        (
            json!({"active": true, "aud": [], "sub": "alice"}),
            refused("The token is for another audience."),
        ),
        (
            json!({"active": true, "aud": RESOURCE, "sub": "alice", "exp": START}),
            refused("The token has expired."),
        ),
        (
            json!({"active": true, "aud": RESOURCE, "sub": "alice", "nbf": START + 1}),
            refused("The token is not valid yet."),
        ),
        (
            json!({"active": true, "aud": RESOURCE, "sub": "alice", "exp": -1.0}),
            refused("The token has a date that there is not."),
        ),
        (
            json!({"active": true, "aud": RESOURCE, "sub": "alice", "nbf": 1e300}),
            refused("The token has a date that there is not."),
        ),
        (
            json!({"active": true, "aud": RESOURCE, "sub": "alice", "cnf": {"x5t#S256": "a"}}),
            refused("The token is bound in a way that is not known here."),
        ),
        (
            json!({"active": true, "aud": RESOURCE, "sub": "alice", "cnf": {"jkt": "a", "b": "c"}}),
            refused("The token is bound in a way that is not known here."),
        ),
        (
            json!({"active": true, "aud": RESOURCE, "sub": "alice", "cnf": {"jkt": 1}}),
            refused("The token is bound in a way that is not known here."),
        ),
        (
            json!({"sub": "alice"}),
            unknown(
                "`https://id.example/introspect` answered a question about a token with something else.",
            ),
        ),
        (
            json!({"active": "true", "aud": RESOURCE, "sub": "alice"}),
            unknown(
                "`https://id.example/introspect` answered a question about a token with something else.",
            ),
        ),
    ] {
        let script = Script::new();
        script.at(URL, 200, &said);
        assert_eq!(check(&asker(asking()), &script, "t"), expected, "{said}");
    }
}

#[test]
fn it_speaks_for_the_issuer_it_was_said_to() {
    let ours = "https://id.example";
    for (theirs, expected) in [
        (json!(ours), Ok(Principal::new("alice").issued_by(ours))),
        (json!(null), Ok(Principal::new("alice").issued_by(ours))),
        (json!("https://id.example/"), refused("The token is from another issuer.")),
    ] {
        let script = Script::new();
        let said = json!({"active": true, "aud": RESOURCE, "sub": "alice", "iss": theirs});
        script.at(URL, 200, &said);
        let introspector = asker(asking().issuer(ours));
        assert_eq!(check(&introspector, &script, "t"), expected, "{said}");
    }
}

#[test]
fn it_speaks_for_no_issuer_whose_tokens_are_checked_otherwise() {
    let (ours, other) = ("https://id.example", "https://jwt.example");
    let no = || refused("The token is from another issuer.");
    let by = |issuer: &str| Ok(Principal::new("alice").issued_by(issuer));
    for (config, theirs, expected) in [
        (asking(), json!(other), no()),
        (asking(), json!("https://two.example"), no()),
        (asking(), json!("https://jwt.example/"), by("https://jwt.example/")),
        (asking(), json!(ours), by(ours)),
        (asking(), json!(null), by(URL)),
        (asking().issuer(other), json!(other), by(other)),
        (asking().issuer(other), json!(null), by(other)),
        (asking().issuer(ours), json!(other), no()),
    ] {
        let script = Script::new();
        let said = json!({"active": true, "aud": RESOURCE, "sub": "alice", "iss": theirs});
        script.at(URL, 200, &said);
        let others = vec![other.to_owned(), "https://two.example".to_owned()];
        let introspector = Introspector::new(config, others);
        assert_eq!(check(&introspector, &script, "t"), expected, "{said}");
    }
}

#[test]
fn when_nobody_can_say_that_is_said_to_who_runs_the_server() {
    let (script, introspector) = (Script::new(), asker(asking()));
    let down = "`https://id.example/introspect` cannot be asked: Nobody is there.";
    assert_eq!(check(&introspector, &script, "t"), unknown(down));
    script.at(URL, 401, json!({"active": true, "aud": RESOURCE, "sub": "alice"}));
    let no = "`https://id.example/introspect` answered a question about a token with 401.";
    assert_eq!(check(&introspector, &script, "t"), unknown(no));
}

#[test]
fn an_answer_is_remembered_for_a_minute_and_no_longer_than_the_token() {
    for (exp, remembered) in [(None, 60), (Some(START + 600), 60), (Some(START + 20), 20)] {
        let (script, introspector) = (Script::new(), asker(asking()));
        script.at(URL, 200, json!({"active": true, "aud": RESOURCE, "sub": "alice", "exp": exp}));
        let is_in = |token: &str| check(&introspector, &script, token).is_ok();
        assert!(is_in("t"));
        script.at(URL, 200, json!({"active": false}));
        script.wait(remembered - 1);
        assert!(is_in("t"), "{exp:?}");
        assert_eq!(script.asked().len(), 1);
        assert!(!is_in("u"), "another token is another");
        script.wait(1);
        assert!(!is_in("t"), "{exp:?}");
        assert_eq!(script.asked().len(), 2);
    }
}

#[test]
fn what_is_not_valid_is_asked_about_again_after_ten_seconds() {
    let (script, introspector) = (Script::new(), asker(asking()));
    for (said, why) in [
        (json!({"active": false}), "The token is not valid."),
        (json!({"active": true, "aud": "x"}), "The token is for another audience."),
    ] {
        script.at(URL, 200, said);
        assert_eq!(check(&introspector, &script, "t"), refused(why));
        script.at(URL, 200, json!({"active": true, "aud": RESOURCE, "sub": "alice"}));
        script.wait(9);
        assert_eq!(check(&introspector, &script, "t"), refused(why));
        assert_eq!(script.asked().len(), 1);
        script.wait(1);
        assert!(check(&introspector, &script, "t").is_ok());
        assert_eq!(script.asked().len(), 1);
        script.wait(60);
    }
    // A failure is not cached.
    script.down(URL);
    assert!(check(&introspector, &script, "u").is_err());
    script.at(URL, 200, json!({"active": true, "aud": RESOURCE, "sub": "alice"}));
    assert!(check(&introspector, &script, "u").is_ok());
}

#[test]
fn strangers_push_nobody_out() {
    let (script, introspector) = (Script::new(), asker(asking()));
    script.at(URL, 200, json!({"active": true, "aud": RESOURCE, "sub": "alice"}));
    check(&introspector, &script, "alice's").unwrap();
    script.at(URL, 200, json!({"active": false}));
    for token in 0..2 * MOST {
        check(&introspector, &script, &token.to_string()).unwrap_err();
    }
    assert_eq!(lock(&introspector.refused).len(), MOST);
    assert_eq!(script.asked().len(), 1 + 2 * MOST);
    check(&introspector, &script, "alice's").unwrap();
    assert_eq!(script.asked().len(), 0);
}

/// A caller that waits for an answer, polled step by step.
type Asking<'a> = Pin<Box<dyn Future<Output = Result<Principal, Unproven>> + 'a>>;

fn poll(asking: &mut Asking<'_>) -> Poll<Result<Principal, Unproven>> {
    asking.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn one_asks_and_the_others_take_the_same_answer() {
    let alice = Ok(Principal::new("alice").issued_by(URL));
    let said = json!({"active": true, "aud": RESOURCE, "sub": "alice"});
    let down =
        unknown("`https://id.example/introspect` answered a question about a token with 503.");
    for (status, expected) in [(200, alice), (503, down)] {
        let (script, introspector) = (Script::new(), asker(asking()));
        script.at(URL, status, &said);
        script.hold(true);
        let mut all: Vec<Asking<'_>> =
            (0..5).map(|_| Box::pin(introspector.check("t", &*script)) as Asking<'_>).collect();
        assert!(all.iter_mut().all(|it| poll(it).is_pending()));
        // The asking caller is dropped: the next asks in its place.
        assert_eq!(script.asked().len(), 1);
        drop(all.remove(0));
        assert!(all.iter_mut().all(|it| poll(it).is_pending()));
        assert_eq!((script.asked().len(), introspector.flights.len()), (1, 1));
        script.hold(false);
        for it in &mut all {
            assert_eq!(poll(it), Poll::Ready(expected.clone()));
        }
        assert_eq!((script.asked().len(), introspector.flights.len()), (0, 0));
    }
}

#[test]
fn only_so_many_are_asked_about_at_once() {
    let (script, introspector) = (Script::new(), asker(asking()));
    script.at(URL, 200, json!({"active": true, "aud": RESOURCE, "sub": "alice"}));
    check(&introspector, &script, "known").unwrap();
    script.hold(true);
    script.asked();
    let mut strangers: Vec<Asking<'_>> = Vec::new();
    for token in 0..64 {
        // Each twice, which counts once.
        for _ in 0..2 {
            let token = token.to_string();
            strangers.push(Box::pin({
                let (introspector, script) = (&introspector, &*script);
                async move { introspector.check(&token, script).await }
            }));
        }
    }
    assert!(strangers.iter_mut().all(|it| poll(it).is_pending()));
    assert_eq!((script.asked().len(), introspector.flights.len()), (64, 64));
    let full = unknown("`https://id.example/introspect` is being asked about 64 tokens already.");
    assert_eq!(check(&introspector, &script, "one more"), full);
    assert!(check(&introspector, &script, "known").is_ok());
    assert_eq!(script.asked().len(), 0);
    // Both callers of one token are dropped, one after the other, and make room.
    drop(strangers.remove(0));
    assert_eq!(check(&introspector, &script, "one more"), full);
    drop(strangers.remove(0));
    let mut next: Asking<'_> = Box::pin(introspector.check("one more", &*script));
    assert!(poll(&mut next).is_pending());
    assert_eq!(check(&introspector, &script, "another"), full);
    script.hold(false);
    assert!(poll(&mut next).is_ready());
    assert!(check(&introspector, &script, "another").is_ok());
    drop(strangers);
    assert_eq!(introspector.flights.len(), 0);
}

#[test]
fn who_comes_after_the_answer_asks_anew() {
    let (script, introspector) = (Script::new(), asker(asking()));
    script.at(URL, 503, "");
    script.hold(true);
    let mut first: Asking<'_> = Box::pin(introspector.check("t", &*script));
    let mut waits: Asking<'_> = Box::pin(introspector.check("t", &*script));
    assert!(poll(&mut first).is_pending() && poll(&mut waits).is_pending());
    script.hold(false);
    assert!(matches!(poll(&mut first), Poll::Ready(Err(_))));
    // One still waits for that answer, but it is no longer fresh.
    script.at(URL, 200, json!({"active": true, "aud": RESOURCE, "sub": "alice"}));
    script.hold(true);
    let mut later: Asking<'_> = Box::pin(introspector.check("t", &*script));
    assert!(poll(&mut later).is_pending());
    assert!(matches!(poll(&mut waits), Poll::Ready(Err(_))));
    drop(waits);
    assert_eq!(introspector.flights.len(), 1, "which is the later one's");
    script.hold(false);
    assert!(matches!(poll(&mut later), Poll::Ready(Ok(_))));
    assert_eq!((script.asked().len(), introspector.flights.len()), (2, 0));
}

#[test]
fn so_many_are_remembered_and_no_more() {
    let (script, introspector) = (Script::new(), asker(asking()));
    let said = |exp: u64| json!({"active": true, "aud": RESOURCE, "sub": "a", "exp": START + exp});
    script.at(URL, 200, said(50));
    for token in 0..MOST - 1 {
        check(&introspector, &script, &token.to_string()).unwrap();
    }
    script.at(URL, 200, said(40));
    check(&introspector, &script, "ends first").unwrap();
    assert_eq!((lock(&introspector.known).len(), MOST), (1024, 1024));
    script.asked();
    // The entry that would expire first is evicted.
    script.at(URL, 200, said(600));
    check(&introspector, &script, "one more").unwrap();
    assert_eq!(lock(&introspector.known).len(), MOST);
    check(&introspector, &script, "0").unwrap();
    check(&introspector, &script, "one more").unwrap();
    assert_eq!(script.asked().len(), 1);
    check(&introspector, &script, "ends first").unwrap();
    assert_eq!(script.asked().len(), 1);
    // And so are all that have expired.
    script.wait(50);
    check(&introspector, &script, "and another").unwrap();
    assert_eq!(lock(&introspector.known).len(), 3);
}
