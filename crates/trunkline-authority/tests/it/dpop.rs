//! Tokens that are bound to a key.

use crate::transcript::{ISSUER, Talk, settings, start};
use trunkline_auth::dpop::prove;
use trunkline_auth::jose::SigningKey;
use trunkline_authority::{Authority, Settings};

const TOKEN_URL: &str = "http://localhost:9000/token";

/// A conversation in which `$p1` … `$p9` are fresh proofs of one key, `$q1` … `$q3` of another.
fn talk(settings: Settings) -> (Talk, SigningKey) {
    let mut talk = Talk::new(Authority::new(ISSUER, settings));
    let (key, other) = (SigningKey::generate(), SigningKey::generate());
    for (letter, key) in [("p", &key), ("q", &other)] {
        for number in 1..10 {
            let proof = prove(key, "POST", TOKEN_URL, None, None, start());
            talk.values.insert(format!("{letter}{number}"), proof);
        }
    }
    (talk, key)
}

/// A token that is bound to the first key.
const LOGIN: &str = "
    authorize
    < 303 code=?
    exchange
    | DPoP: $p1
    < 200 token_type=DPoP access_token=? refresh_token=?
    ";

#[test]
fn a_token_says_which_key_it_is_bound_to() {
    let (mut talk, key) = talk(settings());
    talk.run(LOGIN);
    talk.run(
        "
        > POST /introspect token=$access_token client_id=mcp-server client_secret=s3rver
        < 200 active=true token_type=DPoP
        ",
    );
    let claims = talk.claims("access_token");
    assert_eq!(claims["cnf"]["jkt"], key.public().thumbprint());
    assert_eq!(talk.answer.unwrap().json()["cnf"]["jkt"], key.public().thumbprint());
}

#[test]
fn a_refresh_token_is_bound_too() {
    let (mut talk, _) = talk(settings());
    talk.run(LOGIN);
    talk.run(
        r#"
        refresh
        < 400 error=invalid_grant
        "The refresh token is bound to another key."
        refresh
        | DPoP: $q1
        < 400 error=invalid_grant
        "The refresh token is bound to another key."
        refresh
        | DPoP: $p2
        < 200 token_type=DPoP refresh_token=?
        "#,
    );
}

#[test]
fn a_code_can_be_bound_when_it_is_asked_for() {
    let (mut talk, key) = talk(settings());
    talk.values.insert("jkt".to_owned(), key.public().thumbprint());
    talk.run(
        r#"
        authorize dpop_jkt=$jkt
        < 303 code=?
        exchange
        | DPoP: $q1
        < 400 error=invalid_grant
        "The code was asked for with another key (`dpop_jkt`)."
        authorize dpop_jkt=$jkt
        < 303 code=?
        exchange
        < 400 error=invalid_grant
        authorize dpop_jkt=$jkt
        < 303 code=?
        exchange
        | DPoP: $p1
        < 200 token_type=DPoP
        "#,
    );
}

#[test]
fn a_proof_is_good_once_and_here_and_now() {
    let (mut talk, key) = talk(settings());
    let put = |talk: &mut Talk, name: &str, method: &str, url: &str, ago: u64| {
        let at = start() - std::time::Duration::from_secs(ago);
        talk.values.insert(name.to_owned(), prove(&key, method, url, None, None, at));
    };
    put(&mut talk, "get", "GET", TOKEN_URL, 0);
    put(&mut talk, "elsewhere", "POST", "http://localhost:9001/token", 0);
    put(&mut talk, "old", "POST", TOKEN_URL, 61);
    talk.run(LOGIN);
    talk.run(
        r#"
        refresh
        | DPoP: $p1
        < 400 error=invalid_dpop_proof access_token=-
        "The proof was used before."
        refresh
        | DPoP: $p2
        | DPoP: $p3
        < 400 error=invalid_dpop_proof
        "`DPoP` is there twice; send it once."
        "#,
    );
    for bad in ["$get", "$elsewhere", "$old", "nonsense"] {
        talk.run(&format!("refresh\n| DPoP: {bad}\n< 400 error=invalid_dpop_proof"));
    }
    talk.run("refresh\n| DPoP: $p4\n< 200 refresh_token=?");
    assert_eq!(talk.authority.stats().refreshes, 1, "what was refused spent nothing");
}

#[test]
fn a_proof_can_be_required() {
    let (mut talk, _) = talk(settings().require_dpop());
    talk.run(
        r#"
        authorize
        < 303 code=?
        exchange
        < 400 error=invalid_dpop_proof
        "Tokens are bound to a key here; send a proof in `DPoP`."
        exchange
        | DPoP: $p1
        < 200 token_type=DPoP
        "#,
    );
}

#[test]
fn a_nonce_is_asked_for_and_the_code_is_not_spent_by_it() {
    let (mut talk, key) = talk(settings().dpop_nonces());
    talk.run(
        r#"
        authorize
        < 303 code=?
        exchange
        | DPoP: $p1
        < 400 error=use_dpop_nonce
        "The proof has to hold the value of `DPoP-Nonce`."
        "#,
    );
    let nonce = talk.answer.as_ref().unwrap().first("dpop-nonce").expect("a nonce").to_owned();
    let proof = |nonce: &str, later: u64| {
        let at = start() + std::time::Duration::from_secs(later);
        prove(&key, "POST", TOKEN_URL, None, Some(nonce), at)
    };
    talk.values.insert("fresh".to_owned(), proof(&nonce, 0));
    talk.values.insert("guessed".to_owned(), proof("0123456789abcdef", 0));
    talk.values.insert("later".to_owned(), proof(&nonce, 300));
    talk.values.insert("too_late".to_owned(), proof(&nonce, 600));
    talk.run(
        "
        exchange
        | DPoP: $guessed
        < 400 error=use_dpop_nonce
        exchange
        | DPoP: $fresh
        < 200 token_type=DPoP refresh_token=?
        wait 300
        refresh
        | DPoP: $later
        < 200 refresh_token=?
        ",
    );
    let next = talk.answer.as_ref().unwrap().first("dpop-nonce").expect("the next nonce");
    assert_ne!(next, nonce, "a good answer carries the value of now");
    talk.run("wait 300\nrefresh\n| DPoP: $too_late\n< 400 error=use_dpop_nonce");
}
