use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};

use super::super::protect::{Introspection, JwtIssuer};
use super::super::scripted::{START, Script, block_on};
use super::*;
use crate::jose::{Jwks, SigningKey};

mod bound;

const RESOURCE: &str = "https://mcp.example/mcp";
const ISSUER: &str = "https://id.example";
const JWKS: &str = "https://id.example/keys";
const ASK: &str = "https://id.example/introspect";
const SECRET: &str = "pQ7-lVhCgW2kXr9bTz4n";
/// How every challenge ends that is not about a proof.
const METADATA: &str =
    "resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource/mcp\"";

/// A gate, its world, and the key of its issuer.
struct Place {
    gate: Gate,
    script: Arc<Script>,
    key: SigningKey,
}

/// A gate for the JWTs of one issuer.
fn place(more: impl FnOnce(Protect) -> Protect) -> Place {
    let (script, key) = (Script::new(), SigningKey::generate().named("k1"));
    script.at(JWKS, 200, set(&key));
    let protect = Protect::new(RESOURCE).jwt(JwtIssuer::new(ISSUER).jwks_url(JWKS));
    let gate = Gate::new(more(protect), script.clone()).unwrap();
    Place { gate, script, key }
}

fn set(key: &SigningKey) -> Value {
    let mut jwk = key.public().bare();
    jwk["kid"] = key.public().kid.as_deref().into();
    json!({ "keys": [jwk] })
}

/// The claims of a good token.
fn claims() -> Value {
    json!({"iss": ISSUER, "aud": RESOURCE, "sub": "alice", "exp": START + 600, "scope": "mcp"})
}

impl Place {
    /// A good token, but for this.
    fn token(&self, change: Value) -> String {
        let mut claims = claims();
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.key.sign(json!({"typ": "at+jwt", "kid": "k1"}), &claims)
    }

    fn send(&self, query: Option<&str>, headers: &[(&str, &str)]) -> Result<Admission, Denied> {
        let headers = headers.iter().map(|(name, value)| (*name, value.as_bytes()));
        block_on(self.gate.admit(HeadView::new("POST", "/mcp", query, headers)))
    }

    fn bearer(&self, token: &str) -> String {
        shown(self.send(None, &[("authorization", &format!("Bearer {token}"))]))
    }
}

/// The whole answer, as a person would write it down.
fn shown(answer: Result<Admission, Denied>) -> String {
    let denied = match answer {
        Ok(Admission { principal, nonce }) => {
            let nonce = nonce.map(|_| "\nDPoP-Nonce: …").unwrap_or_default();
            return format!("{} may {}{nonce}", principal.subject, principal.scopes.join(" "));
        }
        Err(denied) => denied,
    };
    assert_eq!(denied.to_string(), denied.description);
    let mut out = format!("{} {}", denied.status, denied.error.unwrap_or("-"));
    out += &denied.challenge.map(|it| format!("\nWWW-Authenticate: {it}")).unwrap_or_default();
    out += denied.nonce.map(|_| "\nDPoP-Nonce: …").unwrap_or_default();
    out += &denied.cause.map(|it| format!("\n({it})")).unwrap_or_default();
    out + "\n" + &denied.description
}

/// What is said of a bad token.
fn invalid(why: &str) -> String {
    format!(
        "401 invalid_token\nWWW-Authenticate: Bearer error=\"invalid_token\", {METADATA}, error_description=\"{why}\"\n{why}"
    )
}

#[test]
fn without_a_token_nothing_is_wrong_yet() {
    let expected = format!(
        "401 -\nWWW-Authenticate: Bearer {METADATA}\nA token is needed; send one in the `Authorization` header."
    );
    let place = place(|it| it);
    assert_eq!(shown(place.send(None, &[])), expected);
    for value in ["Basic YTpi", "DPoP abc", "Negotiate"] {
        assert_eq!(shown(place.send(None, &[("authorization", value)])), expected, "{value}");
    }
    assert_eq!(place.script.asked().len(), 0);
}

#[test]
fn the_challenge_names_the_scopes_that_every_request_needs() {
    let place = place(|it| it.scopes_required(["mcp", "files:read"]));
    assert_eq!(
        place.send(None, &[]).unwrap_err().challenge.unwrap(),
        format!("Bearer scope=\"mcp files:read\", {METADATA}")
    );
    assert_eq!(
        place.send(None, &[("authorization", "Bearer x")]).unwrap_err().challenge.unwrap(),
        format!(
            "Bearer error=\"invalid_token\", scope=\"mcp files:read\", {METADATA}, error_description=\"The token is not one of an issuer known here.\""
        )
    );
}

#[test]
fn what_is_presented_in_a_wrong_way_is_refused() {
    let place = place(|it| it.api_key("robot", SECRET, ["mcp"]));
    let good = ("authorization", &*format!("Bearer {SECRET}"));
    assert_eq!(shown(place.send(Some("page=2"), &[good])), "robot may mcp");
    for (query, headers, why) in [
        (None, vec![good, good], "More than one `Authorization` header is refused; send one."),
        (
            Some("access_token=x"),
            vec![good],
            "A token in the query is refused; send it in the `Authorization` header.",
        ),
        (
            Some("a=b&access_token=x"),
            vec![],
            "A token in the query is refused; send it in the `Authorization` header.",
        ),
        (
            None,
            vec![("authorization", "Bearer a b")],
            "The `Authorization` header is malformed; send the scheme, a space and one token.",
        ),
    ] {
        let expected = format!(
            "401 invalid_request\nWWW-Authenticate: Bearer error=\"invalid_request\", {METADATA}, error_description=\"{why}\"\n{why}"
        );
        assert_eq!(shown(place.send(query, &headers)), expected, "{query:?}");
    }
}

#[test]
fn a_good_token_lets_its_subject_in() {
    let place = place(|it| it);
    let token = place.token(json!({"client_id": "editor", "scope": "a b"}));
    let admission = place.send(None, &[("authorization", &format!("bearer {token}"))]).unwrap();
    let expires = UNIX_EPOCH + Duration::from_secs(START + 600);
    let mut alice = Principal::new("alice").issued_by(ISSUER).scope("a").scope("b");
    alice = alice.acting_by("editor").until(expires);
    assert_eq!(admission, Admission::new(alice));
    assert_eq!(place.script.asked(), [format!("GET {JWKS}")]);
}

#[test]
fn a_bad_token_lets_nobody_in() {
    let place = place(|it| it);
    let none = |claims: &Value| {
        let part = |it: &str| URL_SAFE_NO_PAD.encode(it);
        format!("{}.{}.", part(r#"{"alg":"none","typ":"at+jwt"}"#), part(&claims.to_string()))
    };
    let shared = |claims: &Value| {
        let part = |it: &str| URL_SAFE_NO_PAD.encode(it);
        let head = part(r#"{"alg":"HS256","typ":"at+jwt","kid":"k1"}"#);
        let signed = format!("{head}.{}", part(&claims.to_string()));
        let public = place.key.public().bare().to_string();
        let key = hmac::Key::new(hmac::HMAC_SHA256, public.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes())))
    };
    let forged = SigningKey::generate().sign(json!({"typ": "at+jwt", "kid": "k1"}), &claims());
    for (token, why) in [
        (
            place.token(json!({"aud": "https://other.example"})),
            "The token is for another audience.",
        ),
        (place.token(json!({"aud": format!("{RESOURCE}/")})), "The token is for another audience."),
        (place.token(json!({"exp": START - 60})), "The token has expired."),
        (place.token(json!({"nbf": START + 61})), "The token is not valid yet."),
        (
            place.token(json!({"iss": "https://id.example/"})),
            "The token is not one of an issuer known here.",
        ),
        (none(&claims()), "The token is signed with an algorithm that is not allowed here."),
        (shared(&claims()), "The token is signed with an algorithm that is not allowed here."),
        (forged, "The signature of the token is wrong."),
        ("opaque".to_owned(), "The token is not one of an issuer known here."),
        (
            place.token(json!({"cnf": {"jkt": "thumb"}})),
            "The token is bound to a key; send it with the `DPoP` scheme and a proof.",
        ),
    ] {
        assert_eq!(place.bearer(&token), invalid(why), "{why}");
    }
    assert_eq!(place.bearer(&place.token(json!({"exp": START - 59}))), "alice may mcp");
}

#[test]
fn what_an_issuer_was_given_counts_for_it() {
    let (script, key) = (Script::new(), SigningKey::generate());
    let one = JwtIssuer::new(ISSUER)
        .jwks(Jwks::new([key.public().clone()]))
        .audience("mcp")
        .audience("other")
        .leeway(Duration::ZERO);
    let two = JwtIssuer::new("https://two.example")
        .jwks(Jwks::new([key.public().clone()]))
        .algorithms([Algorithm::RS256]);
    let gate = Gate::new(Protect::new(RESOURCE).jwt(one).jwt(two), script.clone()).unwrap();
    let place = Place { gate, script, key };
    let token = |change: Value| {
        let mut claims = claims();
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        place.bearer(&place.key.sign(json!({}), &claims))
    };
    assert_eq!(token(json!({"aud": "mcp"})), "alice may mcp");
    assert_eq!(token(json!({"aud": "other"})), "alice may mcp");
    assert_eq!(token(json!({})), invalid("The token is for another audience."));
    assert_eq!(token(json!({"aud": "mcp", "exp": START})), invalid("The token has expired."));
    assert_eq!(
        token(json!({"iss": "https://two.example"})),
        invalid("The token is signed with an algorithm that is not allowed here.")
    );
    assert_eq!(place.script.asked().len(), 0);
}

#[test]
fn an_issuer_may_be_held_to_the_type_of_access_tokens() {
    let (script, key) = (Script::new(), SigningKey::generate());
    let gate = |is_strict: bool| {
        let mut issuer = JwtIssuer::new(ISSUER).jwks(Jwks::new([key.public().clone()]));
        if is_strict {
            issuer = issuer.token_type("at+jwt");
        }
        Gate::new(Protect::new(RESOURCE).jwt(issuer), script.clone()).unwrap()
    };
    let no = invalid("The token is not an access token.");
    for (is_strict, typ, nonce, expected) in [
        (false, "JWT", false, "alice may mcp"),
        (false, "JWT", true, &no),
        (false, "at+jwt", false, "alice may mcp"),
        (true, "JWT", false, &no),
        (true, "JWT", true, &no),
        (true, "at+jwt", false, "alice may mcp"),
    ] {
        let mut claims = claims();
        if nonce {
            claims["nonce"] = json!("n");
        }
        let token = format!("Bearer {}", key.sign(json!({ "typ": typ }), &claims));
        let headers = [("authorization", token.as_bytes())];
        let head = HeadView::new("POST", "/mcp", None, headers);
        let answer = shown(block_on(gate(is_strict).admit(head)));
        assert_eq!(answer, expected, "{is_strict} {typ} {nonce}");
    }
}

#[test]
fn keys_that_the_issuer_changed_are_read_again() {
    let mut place = place(|it| it);
    assert_eq!(place.bearer(&place.token(json!({}))), "alice may mcp");
    // A new key of a new name, and then one of the same name.
    for kid in ["k2", "k2"] {
        place.script.wait(30);
        place.script.asked();
        place.key = SigningKey::generate().named(kid);
        let token = place.key.sign(json!({"typ": "at+jwt", "kid": kid}), &claims());
        place.script.at(JWKS, 200, set(&place.key));
        assert_eq!(place.bearer(&token), "alice may mcp");
        assert_eq!(place.bearer(&token), "alice may mcp");
        assert_eq!(place.script.asked(), [format!("GET {JWKS}")]);
    }
    let stranger = SigningKey::generate().named("k9").sign(json!({"typ": "at+jwt"}), &claims());
    let why = invalid("The token is signed with a key that is not known here.");
    assert_eq!(place.bearer(&stranger), why);
    assert_eq!(place.script.asked().len(), 0, "they were read a moment ago");
    place.script.wait(30);
    assert_eq!(place.bearer(&stranger), why);
    assert_eq!(place.bearer(&stranger), why);
    assert_eq!(place.script.asked().len(), 1);
    // A token that is bad in another way is no reason.
    place.script.wait(30);
    place.bearer(&place.key.sign(json!({"kid": "k2"}), &json!({"iss": ISSUER})));
    assert_eq!(place.script.asked().len(), 0);
}

#[test]
fn when_a_token_cannot_be_checked_it_is_not_called_bad() {
    let place = place(|it| it);
    place.script.down(JWKS);
    assert_eq!(
        place.bearer(&place.token(json!({}))),
        format!(
            "503 -\n(`{JWKS}` cannot be read: Nobody is there.)\nThe token cannot be checked at the moment; try again later."
        )
    );
}

#[test]
fn what_is_nobodys_jwt_is_asked_about() {
    let place = place(|it| {
        it.introspection(Introspection::new(ASK, "mcp", "hush")).api_key("robot", SECRET, ["r"])
    });
    place.script.at(ASK, 200, json!({"active": true, "aud": RESOURCE, "sub": "bob", "scope": "x"}));
    assert_eq!(place.bearer(SECRET), "robot may r");
    assert_eq!(place.bearer(&place.token(json!({}))), "alice may mcp");
    assert_eq!(place.script.asked(), [format!("GET {JWKS}")]);
    assert_eq!(place.bearer("opaque"), "bob may x");
    assert_eq!(place.bearer(&place.token(json!({"iss": "https://two.example"}))), "bob may x");
    assert_eq!(place.script.asked(), [format!("POST {ASK}"), format!("POST {ASK}")]);
    // An issuer that is known has the last word about its tokens.
    assert_eq!(
        place.bearer(&place.token(json!({"aud": "x"}))),
        invalid("The token is for another audience.")
    );
    place.script.at(ASK, 200, json!({"active": true, "aud": "x", "sub": "bob"}));
    assert_eq!(place.bearer("opaque2"), invalid("The token is for another audience."));
    place.script.at(
        ASK,
        200,
        json!({"active": true, "aud": RESOURCE, "sub": "bob", "cnf": {"jkt": "a"}}),
    );
    assert_eq!(
        place.bearer("opaque3"),
        invalid("The token is bound to a key; send it with the `DPoP` scheme and a proof.")
    );
}

#[test]
fn the_audience_of_an_opaque_token_can_be_another() {
    let script = Script::new();
    let ask = Introspection::new(ASK, "mcp", "hush").audience("mcp");
    let gate = Gate::new(Protect::new(RESOURCE).introspection(ask), script.clone()).unwrap();
    let place = Place { gate, script, key: SigningKey::generate() };
    place.script.at(ASK, 200, json!({"active": true, "aud": "mcp", "sub": "bob", "scope": "x"}));
    assert_eq!(place.bearer("a"), "bob may x");
    place.script.at(ASK, 200, json!({"active": true, "aud": RESOURCE, "sub": "bob"}));
    assert_eq!(place.bearer("b"), invalid("The token is for another audience."));
}

#[test]
fn api_keys_are_told_apart() {
    let other = "zzzzzzzzzzzzzzzzzzzz";
    let place = place(|it| it.api_key("one", SECRET, ["a"]).api_key("two", other, ["b", "c"]));
    assert_eq!(place.bearer(SECRET), "one may a");
    assert_eq!(place.bearer(other), "two may b c");
    for token in [&SECRET[1..], &SECRET.to_lowercase(), &format!("{SECRET}n")] {
        assert_eq!(place.bearer(token), invalid("The token is not one of an issuer known here."));
    }
    let robot = place.send(None, &[("authorization", &format!("Bearer {SECRET}"))]).unwrap();
    assert_eq!(robot.principal, Principal::new("one").scope("a"));
}

#[test]
fn one_challenge_names_every_scope_that_is_needed() {
    let place = place(|it| {
        it.scopes_required(["mcp"])
            .hierarchy([("admin", ["files", "mcp"]), ("files", ["read", "write"])])
    });
    let lacks = |scopes: &str, why: &str| {
        format!(
            "403 insufficient_scope\nWWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"{scopes}\", {METADATA}, error_description=\"{why}\"\n{why}"
        )
    };
    assert_eq!(
        place.bearer(&place.token(json!({"scope": "files"}))),
        lacks("mcp", "The token lacks the scope `mcp`.")
    );
    assert_eq!(place.bearer(&place.token(json!({}))), "alice may mcp");
    assert_eq!(
        place.bearer(&place.token(json!({"scope": "admin"}))),
        "alice may admin files mcp read write"
    );
    let needs = |granted: &str, needed: &[&str]| {
        let mut somebody = Principal::new("somebody");
        somebody.scopes = Scopes::parse(granted).as_slice().to_vec();
        let needed: Vec<String> = needed.iter().map(|it| (*it).to_owned()).collect();
        place.gate.needs(&somebody, &needed).map_err(|it| shown(Err(it)))
    };
    assert_eq!(needs("mcp", &[]), Ok(()));
    assert_eq!(needs("mcp files", &["write", "read"]), Ok(()));
    assert_eq!(needs("admin", &["write"]), Ok(()));
    assert_eq!(
        needs("mcp read", &["read", "write"]),
        Err(lacks("mcp read write", "The token lacks the scope `write`."))
    );
    assert_eq!(
        needs("", &["write"]),
        Err(lacks("mcp write", "The token lacks the scopes `mcp write`."))
    );
}

#[test]
fn the_document_is_at_both_places() {
    const ROOT: &str = "/.well-known/oauth-protected-resource";
    for (resource, path) in [
        ("https://mcp.example/mcp", Some("/.well-known/oauth-protected-resource/mcp")),
        ("https://mcp.example/a/b?c=d", Some("/.well-known/oauth-protected-resource/a/b")),
        ("https://mcp.example/", None),
        ("https://mcp.example", None),
    ] {
        let protect = Protect::new(resource).api_key("robot", SECRET, ["r"]);
        let gate = Gate::new(protect, Script::new()).unwrap();
        assert_eq!(gate.resource(), resource);
        let json = gate.document(ROOT).unwrap();
        let read = metadata::ProtectedResource::parse(json.as_bytes()).unwrap();
        assert_eq!(read.resource, resource);
        if let Some(path) = path {
            assert_eq!(gate.document(path), Some(json), "{resource}");
        }
        for path in
            ["/", "/mcp", "/.well-known/oauth-protected-resource/x", "", &format!("{ROOT}/")]
        {
            assert_eq!(gate.document(path), None, "{resource} at {path}");
        }
        assert_eq!(format!("{gate:?}"), format!("Gate {{ resource: {resource:?}, .. }}"));
    }
}

#[test]
fn any_thread_may_wait_at_the_gate() {
    fn can_move<T: Send>(it: T) -> T {
        it
    }
    let place = place(|it| it);
    let head = HeadView::new("POST", "/mcp", None, []);
    assert!(block_on(can_move(place.gate.admit(head))).is_err());
}
