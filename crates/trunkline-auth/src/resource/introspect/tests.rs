use serde_json::json;

use super::super::scripted::{START, Script, block_on};
use super::*;

const URL: &str = "https://id.example/introspect";
const RESOURCE: &str = "https://mcp.example/mcp";

fn asking() -> Introspection {
    Introspection::new(URL, "mcp", "secret").audience(RESOURCE)
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
    let introspector = Introspector::new(Introspection::new(URL, "a b", "c=d").audience(RESOURCE));
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
        // A client by itself is who it is.
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
        assert_eq!(check(&Introspector::new(asking()), &script, "t"), expected, "{said}");
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
        let introspector = Introspector::new(asking().issuer(ours));
        assert_eq!(check(&introspector, &script, "t"), expected, "{said}");
    }
}

#[test]
fn when_nobody_can_say_that_is_said_to_who_runs_the_server() {
    let (script, introspector) = (Script::new(), Introspector::new(asking()));
    let down = "`https://id.example/introspect` cannot be asked: Nobody is there.";
    assert_eq!(check(&introspector, &script, "t"), unknown(down));
    script.at(URL, 401, json!({"active": true, "aud": RESOURCE, "sub": "alice"}));
    let no = "`https://id.example/introspect` answered a question about a token with 401.";
    assert_eq!(check(&introspector, &script, "t"), unknown(no));
}

#[test]
fn an_answer_is_remembered_for_a_minute_and_no_longer_than_the_token() {
    for (exp, remembered) in [(None, 60), (Some(START + 600), 60), (Some(START + 20), 20)] {
        let (script, introspector) = (Script::new(), Introspector::new(asking()));
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
        // What is not valid is asked about each time: it may become so.
        assert!(!is_in("t"));
        assert_eq!(script.asked().len(), 3);
    }
}

#[test]
fn so_many_are_remembered_and_no_more() {
    let (script, introspector) = (Script::new(), Introspector::new(asking()));
    let said = |exp: u64| json!({"active": true, "aud": RESOURCE, "sub": "a", "exp": START + exp});
    script.at(URL, 200, said(50));
    for token in 0..MOST - 1 {
        check(&introspector, &script, &token.to_string()).unwrap();
    }
    script.at(URL, 200, said(40));
    check(&introspector, &script, "ends first").unwrap();
    assert_eq!((introspector.known().len(), MOST), (1024, 1024));
    script.asked();
    // Room is made by the one that would end first.
    script.at(URL, 200, said(600));
    check(&introspector, &script, "one more").unwrap();
    assert_eq!(introspector.known().len(), MOST);
    check(&introspector, &script, "0").unwrap();
    check(&introspector, &script, "one more").unwrap();
    assert_eq!(script.asked().len(), 1);
    check(&introspector, &script, "ends first").unwrap();
    assert_eq!(script.asked().len(), 1);
    // And by all that have ended.
    script.wait(50);
    check(&introspector, &script, "and another").unwrap();
    assert_eq!(introspector.known().len(), 3);
}
