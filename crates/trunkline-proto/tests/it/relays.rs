//! Calls on behalf of another client: its questions, capabilities and `_meta`.

use trunkline_wire::revision::Revision::*;

use crate::transcript::client;

const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"q":{"method":"roots/list"}},"requestState":"s"}"#;

#[test]
fn questions_of_a_relayed_call_are_handed_on_as_they_are() {
    for (method, params) in [
        ("tools/call", r#""name":"add""#),
        ("prompts/get", r#""name":"p""#),
        ("resources/read", r#""uri":"file:///a""#),
    ] {
        client().opened(V2026_07_28).check(&format!(
            r#"
            ask 5 relaying {method} {{{params}}}
            < {{"jsonrpc":"2.0","id":2,"method":"{method}","params":{{{params},"_meta":{{$SELF}}}}}}
            > {{"jsonrpc":"2.0","id":2,"result":{ASKS}}}
            settled 5 {ASKS}
            # Nothing is left of it.
            wait 1000s
            close
            "#
        ));
    }
}

#[test]
fn what_cannot_ask_cannot_ask_through_a_relay() {
    client().opened(V2026_07_28).check(&format!(
        r#"
        ask 5 relaying tools/list {{}}
        < {{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{"_meta":{{$SELF}}}}}}
        > {{"jsonrpc":"2.0","id":2,"result":{ASKS}}}
        settled 5 invalid `tools/list` cannot be answered with this `resultType`.
        "#
    ));
}

#[test]
fn the_result_of_relayed_answers_is_not_cacheable() {
    let answers = r#""uri":"file:///a","inputResponses":{"q":{"roots":[]}},"requestState":"s""#;
    client().opened(V2026_07_28).check(&format!(
        r#"
        ask 5 relaying resources/read {{{answers}}}
        < {{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{{{answers},"_meta":{{$SELF}}}}}}
        > {{"jsonrpc":"2.0","id":2,"result":{{"resultType":"complete","contents":[],"ttlMs":5,"cacheScope":"private"}}}}
        settled 5 {{"resultType":"complete","contents":[],"cacheScope":"private"}}
        "#
    ));
}

#[test]
fn a_stateful_server_asks_a_relay_like_any_client() {
    client().opened(V2025_11_25).check(
        r#"
        ask 5 relaying tools/call {"name":"add"}
        < {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add"}}
        > {"jsonrpc":"2.0","id":"q","method":"roots/list"}
        call 1 roots/list {}
        done 1 {"roots":[]}
        < {"jsonrpc":"2.0","id":"q","result":{"roots":[]}}
        > {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        settled 5 {"content":[]}
        "#,
    );
}

const SAMPLES: &str = r#"{"resultType":"input_required","inputRequests":{"q":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}}}"#;
/// The `_meta` members about the original caller.
const THEIRS: &str = r#""io.modelcontextprotocol/clientInfo":{"name":"behind","version":"9"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/logLevel":"debug""#;

#[test]
fn a_call_speaks_for_its_caller_but_not_for_the_connection() {
    client().opened(V2026_07_28).check(&format!(
        r#"
        ask 5 loudly tools/call {{"name":"add","_meta":{{{THEIRS},"progressToken":"theirs","io.modelcontextprotocol/protocolVersion":"2025-11-25","x":1}}}}
        < {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"add","_meta":{{{THEIRS},"progressToken":2,"io.modelcontextprotocol/protocolVersion":"2026-07-28","x":1}}}}}}
        # The next one says nothing of itself, so the connection does.
        ask 6 tools/call {{"name":"add"}}
        < {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"add","_meta":{{$SELF}}}}}}
        # Its questions are answered here, and what it declares decides.
        > {{"jsonrpc":"2.0","id":2,"result":{ASKS}}}
        call 1 roots/list {{}}
        done 1 {{"roots":[]}}
        < {{"jsonrpc":"2.0","id":4,"method":"tools/call","params":"*"}}
        > {{"jsonrpc":"2.0","id":4,"result":{SAMPLES}}}
        settled 5 invalid it asks for `sampling/createMessage`, which we did not offer.
        # For the next one that is what the connection offers.
        > {{"jsonrpc":"2.0","id":3,"result":{SAMPLES}}}
        call 2 sampling/createMessage {{"messages":[],"maxTokens":5}}
        done 2 {{"role":"assistant","content":{{"type":"text","text":"a"}},"model":"m"}}
        < {{"jsonrpc":"2.0","id":5,"method":"tools/call","params":"*"}}
        "#
    ));
}

/// A call of somebody with these capabilities, and a question of the server: what comes of it.
fn asked_for(id: u32, theirs: &str, then: &str) -> String {
    let ticket = id + 3;
    let own = format!(r#""io.modelcontextprotocol/clientCapabilities":{theirs}"#);
    let sent = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"cli","version":"1"}"#;
    format!(
        r#"
        ask {ticket} tools/call {{"name":"add","_meta":{{{own}}}}}
        < {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"add","_meta":{{{own},{sent}}}}}}}
        > {{"jsonrpc":"2.0","id":{id},"result":{ASKS}}}
        {then}
        "#
    )
}

#[test]
fn what_a_call_declares_decides_what_it_can_be_asked() {
    let refused = |id: u32| {
        format!("settled {} invalid it asks for `roots/list`, which we did not offer.", id + 3)
    };
    let asked = |key: u32| format!("call {key} roots/list {{}}");
    // The connection itself offers nothing, or everything: neither counts.
    for offers in [false, true] {
        let script = [
            asked_for(2, "{}", &refused(2)),
            asked_for(3, r#"{"roots":{}}"#, &asked(1)),
            // While the one is asked, the other still cannot be.
            asked_for(4, r#"{"elicitation":{}}"#, &refused(4)),
            asked_for(5, r#"{"roots":{}}"#, &asked(2)),
        ];
        let config = |it: &mut trunkline_proto::client::Config| {
            if !offers {
                it.capabilities = Default::default();
            }
        };
        client().with(config).opened(V2026_07_28).check(&script.concat());
    }
}
