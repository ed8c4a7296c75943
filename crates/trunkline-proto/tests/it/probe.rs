//! How a client finds the era and revision of a server.

use std::time::Duration;

use trunkline_wire::revision::Revision::*;
use trunkline_wire::revision::Revisions;

use crate::transcript::client;

const DISCOVER: &str =
    r#"< {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{$SELF}}}"#;
const CAPABILITIES: &str = r#""capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;

fn initialize(id: u32, revision: &str) -> String {
    format!(
        r#"< {{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{revision}",{CAPABILITIES},"clientInfo":{{"name":"cli","version":"1"}}}}}}"#
    )
}

fn accepted(id: u32, revision: &str) -> String {
    format!(
        r#"
        > {{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{revision}","capabilities":{{}},"serverInfo":{{"name":"srv","version":"1"}}}}}}
        < {{"jsonrpc":"2.0","method":"notifications/initialized"}}
        opened {revision}
        "#
    )
}

fn discovered(id: u32, versions: &str) -> String {
    format!(
        r#"> {{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","supportedVersions":{versions},"capabilities":{{}},"ttlMs":0,"cacheScope":"public"}}}}"#
    )
}

fn refused(id: u32, error: &str) -> String {
    format!(r#"> {{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// The probe, its answer, and the fallback to `initialize`.
#[track_caller]
fn falls_back(answer: &str) {
    client().check(&format!(
        "{DISCOVER}\n{answer}\n{}\n{}",
        initialize(2, "2025-11-25"),
        accepted(2, "2025-11-25")
    ));
}

/// The probe, its answer, and the failure without `initialize`.
#[track_caller]
fn fails(answer: &str, why: &str) {
    client().check(&format!("{DISCOVER}\n{answer}\nfailed {why}\nwait 100s"));
}

#[test]
fn a_discover_result_with_a_common_revision_opens_the_new_era() {
    for versions in
        [r#"["2026-07-28"]"#, r#"["2025-06-18","2026-07-28"]"#, r#"["2027-01-01","2026-07-28"]"#]
    {
        client().check(&format!(
            "{DISCOVER}\n{}\nopened 2026-07-28\nwait 100s",
            discovered(1, versions)
        ));
    }
}

#[test]
fn a_discover_result_without_one_falls_back() {
    for versions in [r#"["2025-11-25","2025-06-18"]"#, "[]"] {
        falls_back(&discovered(1, versions));
    }
}

#[test]
fn a_result_that_is_no_discover_result_falls_back() {
    for result in ["{}", "[]", "null", r#"{"supportedVersions":"2026-07-28"}"#] {
        falls_back(&format!(r#"> {{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
    }
    // So does one that is malformed.
    falls_back(r#"> {"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#);
}

#[test]
fn an_unsupported_revision_is_judged_by_the_list_that_comes_with_it() {
    let unsupported =
        |data: &str| refused(1, &format!(r#"{{"code":-32022,"message":"no","data":{data}}}"#));
    // Only older revisions, or an unreadable list.
    falls_back(&unsupported(r#"{"supported":["2025-06-18"],"requested":"2026-07-28"}"#));
    falls_back(&unsupported(
        r#"{"supported":["2027-01-01","2025-06-18"],"requested":"2026-07-28"}"#,
    ));
    falls_back(&unsupported(r#"{"supported":"all"}"#));
    falls_back(&refused(1, r#"{"code":-32022,"message":"no"}"#));
    // A stateless or newer server that shares no revision with us.
    fails(
        &unsupported(r#"{"supported":["2027-01-01"],"requested":"2026-07-28"}"#),
        "no common revision: it speaks 2027-01-01",
    );
    // A server that refuses a revision it claims to speak.
    fails(
        &unsupported(r#"{"supported":["2026-07-28"],"requested":"2026-07-28"}"#),
        "refused -32022 no",
    );
}

#[test]
fn a_recognised_error_of_the_new_era_never_falls_back() {
    fails(
        &refused(
            1,
            r#"{"code":-32021,"message":"ask more","data":{"requiredCapabilities":{"sampling":{}}}}"#,
        ),
        "refused -32021 ask more",
    );
}

#[test]
fn any_other_error_falls_back() {
    for code in [-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32020, -32021, 0, 1, 404]
    {
        falls_back(&refused(1, &format!(r#"{{"code":{code},"message":"what?"}}"#)));
    }
}

#[test]
fn silence_falls_back_and_a_late_answer_is_swallowed() {
    client().check(&format!(
        "{DISCOVER}\nwait 4s\nwait 1s\n{}\n{}\n{}",
        initialize(2, "2025-11-25"),
        discovered(1, r#"["2026-07-28"]"#),
        accepted(2, "2025-11-25"),
    ));
}

#[test]
fn an_error_without_an_id_is_silence() {
    client().check(&format!(
        r#"
        {DISCOVER}
        > {{"jsonrpc":"2.0","id":null,"error":{{"code":-32700,"message":"what?"}}}}
        > {{"jsonrpc":"2.0","error":{{"code":-32600,"message":"what?"}}}}
        > Usage: server [options]
        wait 5s
        {}
        "#,
        initialize(2, "2025-11-25")
    ));
}

#[test]
fn a_server_that_hangs_up_at_the_probe_is_a_distinct_error() {
    fails("close", "closed while probing");
    client()
        .only(V2025_11_25)
        .check(&format!("{}\nclose\nfailed closed", initialize(1, "2025-11-25")));
}

#[test]
fn a_slow_starter_of_the_new_era_is_probed_once_more() {
    let unsupported = r#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}"#;
    let again = DISCOVER.replace(r#""id":1"#, r#""id":3"#);
    client().check(&format!(
        "{DISCOVER}\nwait 5s\n{}\n{}\n{again}\n{}\nopened 2026-07-28",
        initialize(2, "2025-11-25"),
        refused(2, unsupported),
        discovered(3, r#"["2026-07-28"]"#),
    ));
    // Once: a server that keeps changing its answer is not probed for ever.
    client().check(&format!(
        "{DISCOVER}\nwait 5s\n{}\n{}\n{again}\nwait 5s\n{}\n{}\nfailed no common revision: it speaks 2026-07-28",
        initialize(2, "2025-11-25"),
        refused(2, unsupported),
        initialize(4, "2025-11-25"),
        refused(4, unsupported),
    ));
}

#[test]
fn a_client_that_prefers_the_old_era_speaks_it_where_it_can() {
    let client = || client().prefers_old();
    client().check(&format!("{}\n{}", initialize(1, "2025-11-25"), accepted(1, "2025-06-18")));
    // A server of the new era only is probed on the same connection, whatever error it sends.
    let discover = DISCOVER.replace(r#""id":1"#, r#""id":2"#);
    for refusal in [r#"{"code":-32601,"message":"what?"}"#, r#"{"code":-32022,"message":"no"}"#] {
        client().check(&format!(
            "{}\n{}\n{discover}\n{}\nopened 2026-07-28",
            initialize(1, "2025-11-25"),
            refused(1, refusal),
            discovered(2, r#"["2026-07-28"]"#),
        ));
    }
    // A server with neither is not probed for ever.
    let no = r#"{"code":-32601,"message":"what?"}"#;
    client().check(&format!(
        "{}\n{}\n{discover}\n{}\n{}\n{}\nfailed refused -32601 what?",
        initialize(1, "2025-11-25"),
        refused(1, no),
        refused(2, no),
        initialize(3, "2025-11-25"),
        refused(3, no),
    ));
}

#[test]
fn a_client_of_the_new_era_alone_never_initializes() {
    let only = || client().only(V2026_07_28);
    only().check(&format!("{DISCOVER}\n{}\nopened 2026-07-28", discovered(1, r#"["2026-07-28"]"#)));
    only().check(&format!(
        "{DISCOVER}\n{}\nfailed no common revision",
        refused(1, r#"{"code":-32601,"message":"what?"}"#)
    ));
    only().check(&format!(
        "{DISCOVER}\n{}\nfailed refused -32000 what?",
        refused(1, r#"{"code":-32000,"message":"what?"}"#)
    ));
    only().check(&format!(
        "{DISCOVER}\n{}\nfailed no common revision: it speaks 2025-11-25",
        discovered(1, r#"["2025-11-25"]"#)
    ));
    only().check(&format!("{DISCOVER}\nwait 5s\nfailed timed out"));
}

#[test]
fn a_client_of_the_old_era_initializes_at_once_with_its_newest() {
    for revision in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        let capabilities = match revision {
            V2024_11_05 | V2025_03_26 => r#"{"roots":{"listChanged":true},"sampling":{}}"#,
            V2025_06_18 => r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}"#,
            _ => {
                r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}}"#
            }
        };
        client().only(revision).check(&format!(
            r#"
            < {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"cli","version":"1"}}}}}}
            {}
            "#,
            accepted(1, revision.as_str())
        ));
    }
}

#[test]
fn a_server_may_answer_with_any_revision_the_client_is_willing_to_speak() {
    let some = || client().with(|it| it.revisions = Revisions::range(V2024_11_05, V2025_11_25));
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        some().check(&format!("{}\n{}", initialize(1, "2025-11-25"), accepted(1, revision)));
    }
    for revision in ["2023-01-01", "2026-07-28"] {
        some().check(&format!(
            r#"
            {}
            > {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{revision}","capabilities":{{}},"serverInfo":{{"name":"srv","version":"1"}}}}}}
            failed no common revision: it speaks {revision}
            "#,
            initialize(1, "2025-11-25")
        ));
    }
}

#[test]
fn an_initialize_that_is_refused_or_nonsense_fails() {
    let old = || client().only(V2025_11_25);
    let sent = initialize(1, "2025-11-25");
    old().check(&format!(
        "{sent}\n{}\nfailed refused -32603 broken",
        refused(1, r#"{"code":-32603,"message":"broken"}"#)
    ));
    old().check(&format!(
        "{sent}\n{}\nfailed no common revision: it speaks 2024-11-05",
        refused(1, r#"{"code":-32602,"message":"Unsupported","data":{"supported":["2024-11-05"],"requested":"2025-11-25"}}"#)
    ));
    old().check(&format!(
        r#"
        {sent}
        > {{"jsonrpc":"2.0","id":1,"result":{{}},"result":{{}}}}
        failed refused -32600 A member name stands twice in one object.
        "#
    ));
    let played = old()
        .play(&trunkline_testkit::transcript::parse(r#"> {"jsonrpc":"2.0","id":1,"result":{}}"#));
    assert!(
        played.last().is_some_and(|it| it.to_string().starts_with("failed invalid ")),
        "{played:?}"
    );
}

#[test]
fn an_initialize_without_an_answer_times_out_and_is_not_cancelled() {
    client().only(V2025_11_25).check(&format!(
        "{}\nwait 29s\nwait 1s\nfailed timed out\n{}",
        initialize(1, "2025-11-25"),
        r#"> {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"srv","version":"1"}}}"#
    ));
}

#[test]
fn the_handshake_has_one_deadline_however_many_attempts_it_takes() {
    client()
        .with(|it| it.bounds.open = Duration::from_secs(2))
        .check(&format!("{DISCOVER}\nwait 2s\nfailed timed out"));
    client().check(&format!(
        "{DISCOVER}\nwait 5s\n{}\nwait 24s\nwait 1s\nfailed timed out",
        initialize(2, "2025-11-25")
    ));
}

#[test]
fn calls_wait_for_the_handshake() {
    client().check(&format!(
        "{DISCOVER}\nask 1 tools/list\nsettled 1 refused -32600 The connection is not open.\nnotify notifications/roots/list_changed"
    ));
}

#[test]
fn a_ping_during_the_handshake_is_answered() {
    let ping = |id: u32| {
        format!(
            r#"
            > {{"jsonrpc":"2.0","id":{id},"method":"ping"}}
            < {{"jsonrpc":"2.0","id":{id},"result":{{}}}}
            "#
        )
    };
    client().check(&format!(
        "{DISCOVER}\n{}\nwait 5s\n{}\n{}\n{}",
        ping(1),
        initialize(2, "2025-11-25"),
        ping(2),
        accepted(2, "2025-11-25"),
    ));
}
