//! DPoP-bound tokens.

use super::*;

const ALGORITHMS: &str = r#","dpop_signing_alg_values_supported":["ES256"]"#;
const PROOF: &str = "[dpop POST https://id.example/token nonce=-]";

fn visit() -> String {
    VISIT.replace(" *", " *dpop_jkt=*")
}

fn exchange(proof: &str, answer: &str) -> String {
    format!(
        "> POST https://id.example/token grant_type=authorization_code *client_id=c-1 {proof}\n< {answer}\n"
    )
}

const BOUND: &str =
    r#"200 {"access_token":"t-1","token_type":"DPoP","expires_in":3600,"refresh_token":"r-1"}"#;

/// A login with a key.
fn login() -> String {
    [
        "call\n> MCP -\n< 401 DPoP algs=\"ES256\"\n",
        &resource(""),
        &issuer(ALGORITHMS),
        REGISTER,
        &visit(),
        &exchange(PROOF, BOUND),
        "> MCP DPoP t-1 [dpop POST https://mcp.example/mcp nonce=- ath]\n< 200\n= 200\n",
    ]
    .concat()
}

#[test]
fn a_login_has_a_key_of_its_own_and_each_request_a_proof() {
    let again =
        "call\n> MCP DPoP t-1 [dpop POST https://mcp.example/mcp nonce=- ath]\n< 200\n= 200\n";
    let transcript = check(&[
            &login(),
            again,
            // The key is in the vault, and signs for the refresh token too.
            "process\n",
            again,
            "wait 3600\ncall
            > POST https://id.example/token grant_type=refresh_token refresh_token=r-1 *client_id=c-1 [dpop POST https://id.example/token nonce=-]
            < 200 {\"access_token\":\"t-2\",\"token_type\":\"DPoP\",\"expires_in\":3600}
            > MCP DPoP t-2 [dpop POST https://mcp.example/mcp nonce=- ath]
            < 200
            = 200",
        ]);
    let key = transcript.kept("token")["key"].as_str().unwrap().to_owned();
    assert!(run(transcript.process().status()).unwrap().unwrap().is_bound);
    let transcript = check(&[&login()]);
    assert_ne!(transcript.kept("token")["key"].as_str(), Some(&*key));
}

#[test]
fn nonces_are_used_where_they_are_asked_for() {
    let nonce = r#"400 nonce=as-1 {"error":"use_dpop_nonce"}"#;
    let transcript = check(&[
        "call\n> MCP -\n< 401 DPoP\n",
        &resource(""),
        &issuer(ALGORITHMS),
        REGISTER,
        &visit(),
        &exchange(PROOF, nonce),
        &exchange("[dpop POST https://id.example/token nonce=as-1]", BOUND),
        "> MCP DPoP t-1 [dpop POST https://mcp.example/mcp nonce=- ath]
            < 401 nonce=rs-1 DPoP error=\"use_dpop_nonce\"
            > MCP DPoP t-1 [dpop POST https://mcp.example/mcp nonce=rs-1 ath]
            < 200 nonce=rs-2
            = 200
            call
            > MCP DPoP t-1 [dpop POST https://mcp.example/mcp nonce=rs-2 ath]
            < 200
            = 200",
    ]);
    assert!(transcript.0.lock().unwrap().proofs.len() == 5);
    // A server that never stops asking for another nonce is given up.
    let never = exchange("[dpop POST https://id.example/token nonce=as-1]", nonce);
    let end = "! `https://id.example` answers `use_dpop_nonce`.";
    let start =
        ["call\n> MCP -\n< 401 DPoP\n", &resource(""), &issuer(ALGORITHMS), REGISTER].concat();
    let script = [&*start, &visit(), &exchange(PROOF, nonce), &never, &never, end].concat();
    check(&[&script]);
}

#[test]
fn a_bound_token_without_its_key_is_no_login() {
    let transcript = check(&[&login()]);
    for text in transcript.0.lock().unwrap().vault.values_mut() {
        *text = text.replace("\"key\":\"", "\"key\":\"!");
    }
    assert_eq!(run(transcript.process().status()), Ok(None));
}

#[test]
fn a_server_that_always_wants_another_nonce_is_left() {
    let mut script = login() + "call\n";
    for (sent, next) in
        [("-", "n1"), ("n1", "n2"), ("n2", "n3"), ("n3", "n4"), ("n4", "n5"), ("n5", "n6")]
    {
        script += &format!(
            "> MCP DPoP t-1 [dpop POST https://mcp.example/mcp nonce={sent} ath]
            < 401 nonce={next} DPoP error=\"use_dpop_nonce\"\n"
        );
    }
    script += "! `https://mcp.example/mcp` refused the same request too often, each time with a new login.";
    check(&[&script]);
}

#[test]
fn a_key_is_used_when_it_is_wanted_and_possible() {
    let bearer = |challenge: &str, more: &str, algorithms: &str| {
        let start = format!("call\n> MCP -\n< 401 {challenge}\n");
        let end = "> MCP Bearer t-1\n< 200\n= 200";
        [&*start, &resource(more), &issuer(algorithms), REGISTER, VISIT, EXCHANGE, end].concat()
    };
    let bound = |challenge: &str, more: &str, algorithms: &str| {
        let start = format!("call\n> MCP -\n< 401 {challenge}\n");
        let end = "> MCP DPoP t-1 [dpop *]\n< 200\n= 200";
        let exchange = exchange(PROOF, BOUND);
        [&*start, &resource(more), &issuer(algorithms), REGISTER, &visit(), &exchange, end].concat()
    };
    let other = r#","dpop_signing_alg_values_supported":["RS256"]"#;
    let required = r#","dpop_bound_access_tokens_required":true"#;
    check(&[&bearer("Bearer", "", ALGORITHMS)]);
    check(&[&bearer("Bearer, DPoP", "", "")]);
    check(&[&bearer("Bearer, DPoP", "", other)]);
    check_with(|it| it.dpop(false), &bearer("Bearer, DPoP", required, ALGORITHMS));
    check(&[&bound("Bearer, DPoP", "", ALGORITHMS)]);
    check(&[&bound("Bearer", ALGORITHMS, ALGORITHMS)]);
    check(&[&bound("Bearer", required, "")]);
    check(&[&bound("DPoP", "", "")]);
    check_with(|it| it.dpop(true), &bound("Bearer", "", ""));
    let error = "! `https://id.example` binds tokens to keys, but not to keys of ours (ES256). \
        Nobody was asked to log in.";
    let start = ["call\n> MCP -\n< 401 DPoP\n", &resource(""), &issuer(other)].concat();
    check(&[&*start, error]);
}

#[test]
fn a_token_that_was_not_bound_is_thrown_away_if_it_had_to_be() {
    let plain = r#"200 {"access_token":"t-1","token_type":"Bearer"}"#;
    let start = ["login\n", &resource(""), &issuer(""), REGISTER, &visit()].concat();
    let end = "! `https://id.example` does not bind its tokens to a key, which the set-up demands. \
        The token was thrown away.";
    check_with(|it| it.dpop(true), &[&*start, &exchange(PROOF, plain), end].concat());
    // If only the server asked for it, the server must refuse.
    let start = start.replace("login\n", "call\n> MCP -\n< 401 DPoP\n");
    let end = "> MCP Bearer t-1\n< 200\n= 200";
    let transcript = check(&[&*start, &exchange(PROOF, plain), end]);
    assert!(transcript.kept("token")["key"].is_null());
}

#[test]
fn a_proof_that_is_refused_costs_no_login() {
    let sends = "> MCP DPoP t-1 [dpop POST https://mcp.example/mcp nonce=- ath]\n";
    let no = "< 401 DPoP error=\"invalid_dpop_proof\", error_description=\"iat is too old\"\n";
    let why = "! `https://mcp.example/mcp` refuses the proof that the token is ours: “iat is too \
        old”. Check the clock of this machine, or tell the operator of the server.\n";
    let refused = [sends, no].concat();
    let transcript = check(&[
        &*login(),
        "call\n",
        &refused,
        sends,
        "< 200\n= 200\ncall\n",
        &refused.repeat(3),
        why,
    ]);
    assert_eq!(transcript.kept("token")["refresh"], "r-1");
}
