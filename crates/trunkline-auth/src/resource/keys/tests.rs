use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::json;

use super::super::scripted::{Script, block_on};
use super::*;
use crate::jose::SigningKey;

const ISSUER: &str = "https://id.example/one";
const JWKS: &str = "https://id.example/one/keys";
const OAUTH: &str = "https://id.example/.well-known/oauth-authorization-server/one";
const OPENID: &str = "https://id.example/.well-known/openid-configuration/one";
const OPENID_LAST: &str = "https://id.example/one/.well-known/openid-configuration";

/// A set with one key of this name.
fn set(kid: &str) -> String {
    let key = SigningKey::generate().named(kid);
    let mut jwk = key.public().bare();
    jwk["kid"] = kid.into();
    json!({ "keys": [jwk] }).to_string()
}

fn at() -> Keys {
    Keys::new(ISSUER.into(), Source::At(JWKS.into()))
}

/// The names of the keys, or the error.
fn names(found: Result<Arc<Jwks>, String>) -> Result<Vec<String>, String> {
    found.map(|it| it.keys().iter().filter_map(|it| it.kid.clone()).collect())
}

fn current(keys: &Keys, script: &Script) -> Result<Vec<String>, String> {
    names(block_on(keys.current(script)))
}

fn one(kid: &str) -> Result<Vec<String>, String> {
    Ok(vec![kid.to_owned()])
}

/// Keys that were read once: `a`.
fn at_a() -> (Keys, Arc<Script>) {
    let (keys, script) = (at(), Script::new());
    script.at(JWKS, 200, set("a"));
    assert_eq!(current(&keys, &script), one("a"));
    (keys, script)
}

/// The same, which are `b` now.
fn at_a_then_b() -> (Keys, Arc<Script>) {
    let (keys, script) = at_a();
    script.at(JWKS, 200, set("b"));
    (keys, script)
}

#[test]
fn keys_are_read_once_and_again_when_they_are_old() {
    let (keys, script) = at_a_then_b();
    script.wait(599);
    assert_eq!(current(&keys, &script), one("a"));
    assert_eq!(script.asked(), [format!("GET {JWKS}")]);
    script.wait(1);
    assert_eq!(current(&keys, &script), one("b"));
    assert_eq!(script.asked(), [format!("GET {JWKS}")]);
}

#[test]
fn old_keys_are_kept_for_a_day_when_nobody_answers() {
    let (keys, script) = at_a();
    script.down(JWKS);
    script.wait(600);
    assert_eq!(current(&keys, &script), one("a"));
    assert_eq!(script.asked().len(), 2);
    script.wait(29);
    assert_eq!(current(&keys, &script), one("a"));
    assert_eq!(script.asked().len(), 0, "the issuer is left in peace");
    script.wait(1);
    assert_eq!(current(&keys, &script), one("a"));
    assert_eq!(script.asked().len(), 1);
    script.wait(24 * 60 * 60 - 600 - 30 - 1);
    assert_eq!(current(&keys, &script), one("a"));
    script.wait(1);
    let down = Err(format!("`{JWKS}` cannot be read: Nobody is there."));
    assert_eq!(current(&keys, &script), down);
    script.at(JWKS, 200, set("b"));
    assert_eq!(current(&keys, &script), down, "not within two seconds");
    script.wait(2);
    assert_eq!(current(&keys, &script), one("b"));
}

#[test]
fn without_keys_the_issuer_is_asked_every_two_seconds() {
    let (keys, script) = (at(), Script::new());
    for (answer, why) in [
        ((503, String::new()), format!("`{JWKS}` answered with 503.")),
        ((404, set("a")), format!("`{JWKS}` answered with 404.")),
    ] {
        script.at(JWKS, answer.0, answer.1);
        assert_eq!(current(&keys, &script), Err(why.clone()));
        script.wait(1);
        assert_eq!(current(&keys, &script), Err(why));
        assert_eq!(script.asked().len(), 1);
        script.wait(1);
    }
    script.at(JWKS, 200, "<html>");
    let why = current(&keys, &script).unwrap_err();
    assert!(why.starts_with(&format!("`{JWKS}` holds no key set: ")), "{why}");
    script.at(JWKS, 200, set("a"));
    script.wait(2);
    assert_eq!(current(&keys, &script), one("a"));
}

#[test]
fn a_missing_key_is_looked_for_at_most_every_thirty_seconds() {
    let (keys, script) = (at(), Script::new());
    let newer = |than: &Arc<Jwks>| {
        block_on(keys.newer(&*script, than)).map(|it| names(Ok(it)).unwrap().join(" "))
    };
    script.at(JWKS, 200, set("a"));
    let first = block_on(keys.current(&*script)).unwrap();
    script.at(JWKS, 200, set("b"));
    script.asked();
    assert_eq!(newer(&first).as_deref(), Some("b"), "at once, the first time");
    assert_eq!(newer(&first).as_deref(), Some("b"), "which are there by now");
    assert_eq!(script.asked().len(), 1);
    let second = block_on(keys.current(&*script)).unwrap();
    script.at(JWKS, 200, set("c"));
    script.wait(29);
    assert_eq!(newer(&second), None);
    assert_eq!(script.asked().len(), 0);
    script.wait(1);
    assert_eq!(newer(&second).as_deref(), Some("c"));
    assert_eq!(script.asked().len(), 1);
    // What cannot be read leaves what was there.
    let third = block_on(keys.current(&*script)).unwrap();
    script.down(JWKS);
    script.wait(30);
    assert_eq!(newer(&third), None);
    assert_eq!(script.asked().len(), 1);
    assert_eq!(current(&keys, &script), one("c"));
}

#[test]
fn who_leaves_in_the_middle_keeps_nobody_from_a_new_key() {
    let (keys, script) = (at(), Script::new());
    script.at(JWKS, 200, set("a"));
    let first = block_on(keys.current(&*script)).unwrap();
    script.at(JWKS, 200, set("b"));
    script.asked();
    script.hold(true);
    for _ in 0..3 {
        let mut stranger = pin!(keys.newer(&*script, &first));
        assert!(stranger.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    script.hold(false);
    let found = block_on(keys.newer(&*script, &first)).unwrap();
    assert_eq!(names(Ok(Arc::clone(&found))), one("b"));
    assert_eq!(script.asked().len(), 4);
    // Who reads to the end does: from then on the issuer is left in peace.
    script.at(JWKS, 200, set("c"));
    assert!(block_on(keys.newer(&*script, &found)).is_none());
    assert_eq!(script.asked().len(), 0);
}

#[test]
fn a_clock_that_is_turned_back_keeps_nothing_for_ever() {
    let (keys, script) = at_a_then_b();
    script.turn_back(100_000);
    assert_eq!(current(&keys, &script), one("b"));
}

#[test]
fn keys_that_are_known_are_never_read() {
    let script = Script::new();
    let known = Jwks::parse(set("a").as_bytes()).unwrap();
    let keys = Keys::new(ISSUER.into(), Source::Known(Arc::new(known)));
    let found = block_on(keys.current(&*script)).unwrap();
    assert_eq!(names(Ok(Arc::clone(&found))), one("a"));
    assert!(block_on(keys.newer(&*script, &found)).is_none());
    assert_eq!(script.asked().len(), 0);
}

/// Keys that are not read yet, at an issuer that does not answer for now.
fn holding_a() -> (Keys, Arc<Script>) {
    let (keys, script) = (at(), Script::new());
    script.at(JWKS, 200, set("a"));
    script.hold(true);
    (keys, script)
}

#[test]
fn one_reads_and_the_others_wait() {
    let (keys, script) = holding_a();
    let mut context = Context::from_waker(Waker::noop());
    let (mut first, mut second) = (pin!(keys.current(&*script)), pin!(keys.current(&*script)));
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    script.hold(false);
    assert!(second.as_mut().poll(&mut context).is_pending(), "it is the first one's turn");
    let Poll::Ready(found) = first.as_mut().poll(&mut context) else { panic!("the first waits") };
    assert_eq!(names(found), one("a"));
    let Poll::Ready(found) = second.as_mut().poll(&mut context) else { panic!("the second waits") };
    assert_eq!(names(found), one("a"));
    assert_eq!(script.asked().len(), 1);
}

#[test]
fn one_who_leaves_in_the_middle_leaves_the_turn() {
    let (keys, script) = holding_a();
    let mut context = Context::from_waker(Waker::noop());
    let mut second = pin!(keys.current(&*script));
    {
        let mut first = pin!(keys.current(&*script));
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
    }
    script.hold(false);
    assert_eq!(names(block_on(second)), one("a"));
    assert_eq!(script.asked().len(), 2);
}

#[test]
fn nobody_waits_while_old_keys_are_read_again() {
    let (keys, script) = at_a();
    let mut context = Context::from_waker(Waker::noop());
    script.wait(600);
    script.at(JWKS, 200, set("b"));
    script.hold(true);
    let mut first = pin!(keys.current(&*script));
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert_eq!(current(&keys, &script), one("a"), "the second goes on with the old ones");
    script.hold(false);
    assert_eq!(names(block_on(first)), one("b"));
    assert_eq!(script.asked().len(), 2);
}

#[test]
fn keys_are_where_the_issuer_says() {
    let document =
        |issuer: &str, keys: &str| json!({"issuer": issuer, "jwks_uri": keys}).to_string();
    let good = document(ISSUER, JWKS);
    let get = |url: &str| format!("GET {url}");
    for (answers, asked, expected) in [
        (vec![(OAUTH, &*good)], vec![OAUTH, JWKS], one("a")),
        (vec![(OPENID, &*good)], vec![OAUTH, OPENID, JWKS], one("a")),
        (vec![(OPENID_LAST, &*good)], vec![OAUTH, OPENID, OPENID_LAST, JWKS], one("a")),
        // Another issuer's document, by a slash, is passed by.
        (
            vec![(OAUTH, &*document("https://id.example/one/", JWKS)), (OPENID, &*good)],
            vec![OAUTH, OPENID, JWKS],
            one("a"),
        ),
        (vec![(OAUTH, "<html>"), (OPENID, &*good)], vec![OAUTH, OPENID, JWKS], one("a")),
        (
            vec![(OPENID_LAST, &*document("https://evil.example", JWKS))],
            vec![OAUTH, OPENID, OPENID_LAST],
            Err(format!(
                "`{OPENID_LAST}` speaks for the issuer `https://evil.example`, not for `{ISSUER}`."
            )),
        ),
        (
            vec![(OPENID_LAST, &*json!({"issuer": ISSUER}).to_string())],
            vec![OAUTH, OPENID, OPENID_LAST],
            Err(format!("`{OPENID_LAST}` has no `jwks_uri`.")),
        ),
        (
            vec![(OPENID_LAST, &*document(ISSUER, "http://id.example/one/keys"))],
            vec![OAUTH, OPENID, OPENID_LAST],
            Err(format!("The `jwks_uri` in `{OPENID_LAST}` is not an `https://` URL.")),
        ),
        (
            vec![],
            vec![OAUTH, OPENID, OPENID_LAST],
            Err(format!("`{OPENID_LAST}` cannot be read: Nobody is there.")),
        ),
    ] {
        let script = Script::new();
        script.at(JWKS, 200, set("a"));
        for (url, body) in &answers {
            script.at(url, 200, body);
        }
        let keys = Keys::new(ISSUER.into(), Source::Discovered);
        assert_eq!(current(&keys, &script), expected, "{answers:?}");
        assert_eq!(script.asked(), asked.into_iter().map(get).collect::<Vec<_>>(), "{answers:?}");
    }
}

#[test]
fn an_issuer_in_the_clear_may_have_keys_in_the_clear_where_it_is() {
    let issuer = "http://127.0.0.1:9000";
    let at = "http://127.0.0.1:9000/.well-known/oauth-authorization-server";
    let last = "http://127.0.0.1:9000/.well-known/openid-configuration";
    for (jwks, expected) in [
        ("http://127.0.0.1:9000/keys", one("a")),
        ("http://10.0.0.1/keys", one("a")),
        ("https://id.example/keys", one("a")),
        (
            "http://id.example/keys",
            Err(format!("The `jwks_uri` in `{last}` is not an `https://` URL.")),
        ),
    ] {
        let script = Script::new();
        for place in [at, last] {
            script.at(place, 200, json!({"issuer": issuer, "jwks_uri": jwks}));
        }
        script.at(jwks, 200, set("a"));
        let keys = Keys::new(issuer.into(), Source::Discovered);
        assert_eq!(current(&keys, &script), expected, "{jwks}");
    }
}

#[test]
fn what_is_no_issuer_is_not_asked() {
    let script = Script::new();
    let keys = Keys::new("id.example".into(), Source::Discovered);
    let why = "`id.example` is not the URL of an issuer.";
    assert_eq!(current(&keys, &script), Err(why.to_owned()));
    assert_eq!(script.asked().len(), 0);
}

#[test]
fn where_keys_are_is_found_out_once_and_again_when_they_have_moved() {
    let script = Script::new();
    let keys = Keys::new(ISSUER.into(), Source::Discovered);
    script.at(OAUTH, 200, json!({"issuer": ISSUER, "jwks_uri": JWKS}));
    script.at(JWKS, 200, set("a"));
    assert_eq!(current(&keys, &script), one("a"));
    script.wait(600);
    assert_eq!(current(&keys, &script), one("a"));
    assert_eq!(
        script.asked(),
        [format!("GET {OAUTH}"), format!("GET {JWKS}"), format!("GET {JWKS}")]
    );
    script.down(JWKS);
    script.at("https://id.example/two", 200, set("b"));
    script.at(OAUTH, 200, json!({"issuer": ISSUER, "jwks_uri": "https://id.example/two"}));
    script.wait(600);
    assert_eq!(current(&keys, &script), one("a"));
    script.wait(30);
    assert_eq!(current(&keys, &script), one("b"));
}
