//! Where metadata is, whose it is, and what happens without any.

use super::*;

#[test]
fn the_header_says_where_the_document_is() {
    let transcript = check(&[
        "call\n> MCP -\n",
        r#"< 401 Bearer resource_metadata="https://mcp.example/custom/location.json"
            > GET https://mcp.example/custom/location.json
            < 200 {"resource":"https://mcp.example/mcp","authorization_servers":["https://id.example"]}
            "#,
        &issuer(""),
        r#"> POST https://id.example/register {"application_type":"native","client_name":"trunkline","grant_types":["authorization_code","refresh_token"],"redirect_uris":["http://127.0.0.1:9001/callback"],"response_types":["code"],"token_endpoint_auth_method":"none"}
            < 201 {"client_id":"c-1"}
            > BROWSER https://id.example/authorize response_type=code client_id=c-1 redirect_uri=http://127.0.0.1:9001/callback state=* code_challenge=* code_challenge_method=S256 resource=https://mcp.example/mcp
            < code=k-1&state={state}
            > POST https://id.example/token grant_type=authorization_code code=k-1 redirect_uri=http://127.0.0.1:9001/callback code_verifier=* resource=https://mcp.example/mcp client_id=c-1
            < 200 {"access_token":"t-1","token_type":"Bearer"}
            > MCP Bearer t-1
            < 200
            = 200
            call
            > MCP Bearer t-1
            < 200
            = 200
            process
            call
            > MCP Bearer t-1
            < 200
            = 200
            "#,
    ]);
    let names = [
        "client https://id.example",
        "login person https://mcp.example/mcp",
        "token person https://id.example https://mcp.example/mcp",
    ];
    assert_eq!(transcript.names(), names);
}

#[test]
fn without_a_header_the_path_is_asked_then_the_root() {
    check(&[
        r#"call
            > MCP -
            < 401 Bearer
            > GET https://mcp.example/.well-known/oauth-protected-resource/mcp
            < 404
            > GET https://mcp.example/.well-known/oauth-protected-resource
            < 200 {"resource":"https://mcp.example","authorization_servers":["https://id.example/tenant1"]}
            > GET https://id.example/.well-known/oauth-authorization-server/tenant1
            < 404
            > GET https://id.example/.well-known/openid-configuration/tenant1
            < 200 <html>
            > GET https://id.example/tenant1/.well-known/openid-configuration
            < 200 {"issuer":"https://id.example/tenant1","authorization_endpoint":"https://id.example/authorize","token_endpoint":"https://id.example/token","registration_endpoint":"https://id.example/register","code_challenge_methods_supported":["S256"]}
            "#,
        REGISTER,
        // Byte for byte what the document says: no slash.
        "> BROWSER https://id.example/authorize *resource=https://mcp.example
            < code=k-1&state={state}
            > POST https://id.example/token *resource=https://mcp.example client_id=c-1
            < 200 {\"access_token\":\"t-1\",\"token_type\":\"Bearer\"}
            > MCP Bearer t-1
            < 200
            = 200",
    ]);
}

#[test]
fn an_openid_document_will_do() {
    let openid = issuer("").replace("oauth-authorization-server", "openid-configuration");
    check(&[
        "login\n",
        &resource(""),
        "> GET https://id.example/.well-known/oauth-authorization-server\n< 404\n",
        &openid,
        &logs_in(),
    ]);
}

#[test]
fn documents_of_others_are_not_used() {
    for says in [
        "https://attacker.example",
        "https://id.example/",
        "https://ID.example",
        "https://id.example:443",
        "",
    ] {
        let theirs =
            format!(r#"< 200 {{"issuer":"{says}","token_endpoint":"https://x.example/t"}}"#);
        let end = format!(
            "> GET https://id.example/.well-known/openid-configuration\n< 404\n\
             ! The metadata at `https://id.example/.well-known/oauth-authorization-server` is that \
             of `{says}`, not of `https://id.example`. It was not used."
        );
        check(&[
            "call\n> MCP -\n< 401 Bearer\n",
            &resource(""),
            "> GET https://id.example/.well-known/oauth-authorization-server\n",
            &theirs,
            "\n",
            &end,
        ]);
    }
}

#[test]
fn a_server_that_wants_tokens_for_another_gets_none() {
    for theirs in
        ["https://evil.example/mcp", "https://mcp.example/other", "https://mcp.example/mcp/x"]
    {
        let script = format!(
            r#"call
            > MCP -
            < 401 Bearer resource_metadata="https://mcp.example/m"
            > GET https://mcp.example/m
            < 200 {{"resource":"{theirs}","authorization_servers":["https://id.example"]}}
            ! `https://mcp.example/mcp` wants tokens for `{theirs}`, which is not itself. Nobody was asked to log in; *"#
        );
        check(&[&script]);
    }
}

#[test]
fn only_https_and_this_machine_are_talked_to() {
    // The document itself.
    check(&[r#"call
        > MCP -
        < 401 Bearer resource_metadata="http://other.example/m"
        ! The document that says who protects the server is at `http://other.example/m`, which is neither https nor on this machine. Nothing was sent there."#]);
    // The issuer.
    let plain = resource("").replace("https://id", "http://id");
    let end = "! The authorization server is at `http://id.example`, which is neither https *";
    check(&["call\n> MCP -\n< 401 Bearer\n", &plain, end]);
    // Each endpoint.
    for (name, words) in [
        ("authorize", "authorization endpoint"),
        ("token", "token endpoint"),
        ("register", "registration endpoint"),
    ] {
        for bad in [
            "http://id.example/x",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://id.example/x#y",
            "https://a b/",
        ] {
            let document = issuer("")
                .replace(&format!("\"https://id.example/{name}\""), &format!("\"{bad}\""));
            let register = if name == "register" { "" } else { REGISTER };
            let end =
                format!("! The {words} of `https://id.example` is at `*`, which is neither *");
            let start = "call\n> MCP -\n< 401 Bearer\n";
            check(&[start, &resource(""), &document, register, &end]);
        }
    }
}

#[test]
fn loopback_may_do_without_https() {
    let local = |text: &str| text.replace("https://id.example", "http://localhost:9100");
    check(&[
        "login\n",
        &local(&resource("")),
        &local(&issuer("")),
        &local(REGISTER),
        &local(VISIT),
        &local(EXCHANGE),
        "= login http://localhost:9100",
    ]);
}

#[test]
fn an_address_that_may_not_be_reached_ends_the_search() {
    check(&[r#"call
        > MCP -
        < 401 Bearer resource_metadata="https://internal.example/m"
        > GET https://internal.example/m
        < forbidden `internal.example` is at a private address.
        ! `internal.example` is at a private address."#]);
}

/// A server that wants a token and has no document of its own.
const NOT_PROTECTED: &str = "call
    > MCP -
    < 401
    > GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    < 404
    > GET https://mcp.example/.well-known/oauth-protected-resource
    < 404";

#[test]
fn servers_of_2025_03_26_have_their_document_at_the_root() {
    for says in ["https://mcp.example", "https://mcp.example/"] {
        let script = format!(
            r#"{NOT_PROTECTED}
            > GET https://mcp.example/.well-known/oauth-authorization-server
            < 200 {{"issuer":"{says}","authorization_endpoint":"https://mcp.example/oauth/authorize","token_endpoint":"https://mcp.example/oauth/token","registration_endpoint":"https://mcp.example/oauth/register","code_challenge_methods_supported":["S256"]}}
            > POST https://mcp.example/oauth/register {{*
            < 201 {{"client_id":"c-1","client_secret":"s-1"}}
            > BROWSER https://mcp.example/oauth/authorize response_type=code client_id=c-1 *
            < code=k-1&state={{state}}
            > POST https://mcp.example/oauth/token grant_type=authorization_code *resource=https://mcp.example/mcp [basic c-1:s-1]
            < 200 {{"access_token":"t-1","token_type":"Bearer"}}
            > MCP Bearer t-1
            < 200
            = 200"#
        );
        check(&[&script]);
    }
}

#[test]
fn servers_of_2025_03_26_without_a_document_have_endpoints_with_names() {
    let script = r#"
        > GET https://mcp.example/.well-known/oauth-authorization-server
        < 404
        > GET https://mcp.example/.well-known/openid-configuration
        < 404
        > POST https://mcp.example/register {*
        < 201 {"client_id":"c-1"}
        > BROWSER https://mcp.example/authorize response_type=code client_id=c-1 *code_challenge_method=S256 *
        < code=k-1&state={state}
        > POST https://mcp.example/token grant_type=authorization_code code=k-1 *
        < 200 {"access_token":"t-1","token_type":"Bearer","expires_in":3600}
        > MCP Bearer t-1
        < 200
        = 200"#;
    check(&[NOT_PROTECTED, script]);
    // Who has none of them offers no login.
    let (start, _) = script.split_once("< 201").unwrap();
    for status in ["401", "404", "405"] {
        let end = format!(
            "< {status}\n! `https://mcp.example/mcp` offers no login: it names no authorization \
             server, and `https://mcp.example` is none."
        );
        check(&[NOT_PROTECTED, start, &end]);
    }
    check(&[NOT_PROTECTED, start, "< 403\n! *refused to register the client with `403`*"]);
    // A document of another's is no reason to guess.
    let other = script.replacen(
        "> GET https://mcp.example/.well-known/oauth-authorization-server\n        < 404",
        "> GET https://mcp.example/.well-known/oauth-authorization-server\n        < 200 {\"issuer\":\"https://evil.example\"}",
        1,
    );
    let (start, _) = other.split_once("> POST").unwrap();
    check(&[NOT_PROTECTED, start, "! The metadata at *"]);
}

#[test]
fn a_server_that_fails_is_not_taken_for_an_old_one() {
    let asked = "call\n> MCP -\n< 401\n\
        > GET https://mcp.example/.well-known/oauth-protected-resource/mcp\n";
    check(&[
        asked,
        "< 503
        > GET https://mcp.example/.well-known/oauth-protected-resource
        < 404
        ! `https://mcp.example/.well-known/oauth-protected-resource/mcp` answers with 503. Try again later."]);
    check(&[
        asked,
        "< 404
        > GET https://mcp.example/.well-known/oauth-protected-resource
        < 200 <html>
        > GET https://mcp.example/.well-known/oauth-authorization-server
        < failed It hung up.
        > GET https://mcp.example/.well-known/openid-configuration
        < 200 <html>
        ! `https://mcp.example/.well-known/oauth-authorization-server` cannot be reached: It hung up."]);
}

#[test]
fn a_place_that_a_server_names_must_have_its_document() {
    let said = "call\n> MCP -\n< 401 Bearer resource_metadata=\"https://mcp.example/m\"\n";
    check(&[
        said,
        "> GET https://mcp.example/m
            < 200 <html>
            > GET https://mcp.example/.well-known/oauth-protected-resource/mcp
            < 404
            > GET https://mcp.example/.well-known/oauth-protected-resource
            < 404
            ! What is at `https://mcp.example/m` does not say who protects the server: *",
    ]);
    // If it is where everybody looks, that will do.
    check(&[
        said,
        "> GET https://mcp.example/m\n< 404\n",
        &resource(""),
        &issuer(""),
        REGISTER,
        VISIT,
        EXCHANGE,
        "> MCP Bearer t-1\n< 200\n= 200",
    ]);
}

#[test]
fn of_several_issuers_the_first_that_answers_is_asked() {
    let two = resource("").replace(r#"["https://id"#, r#"["https://gone.example","https://id"#);
    check(&[
        "login\n",
        &two,
        "> GET https://gone.example/.well-known/oauth-authorization-server\n< 404\n",
        "> GET https://gone.example/.well-known/openid-configuration\n< 404\n",
        &issuer(""),
        &logs_in(),
    ]);
}

#[test]
fn a_token_goes_to_its_server_alone() {
    let transcript = check(&[&first_login()]);
    let oauth = transcript.process();
    for (url, expected) in [
        ("https://mcp.example/mcp", 1),
        ("https://mcp.example/messages?session=1", 1),
        ("https://mcp.example:8443/mcp", 0),
        ("http://mcp.example/mcp", 0),
        ("https://mcp.example.evil.example/mcp", 0),
        ("https://evil.example/https://mcp.example/mcp", 0),
    ] {
        let headers = run(oauth.headers(Target { method: "GET", url })).unwrap();
        assert_eq!(headers.len(), expected, "{url}");
    }
    let elsewhere = Target { method: "GET", url: "https://evil.example/" };
    let none = Vec::new();
    let refusal = Refused { status: 401, challenges: &[], sent: &none, times: 1 };
    let why = run(oauth.refused(elsewhere, refusal, None)).unwrap_err().why;
    assert_eq!(why, "`https://evil.example/` is not the server of this login.");
}

#[test]
fn a_set_up_that_lacks_a_part_says_so() {
    let error = run(OAuth::new(SERVER).login()).unwrap_err();
    assert_eq!(error.to_string(), "The login lacks a `vault`: give it one before it is used.");
    let transcript = Transcript::new("");
    let oauth =
        OAuth::new("stdio:server").fetch(Arc::new(transcript.clone())).vault(Arc::new(transcript));
    let error = run(oauth.login()).unwrap_err();
    assert_eq!(error.to_string(), "`stdio:server` is no http or https URL of a server.");
}
