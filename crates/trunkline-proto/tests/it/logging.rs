//! Log messages: one level per session in the stateful era, one per request in the stateless era.

use trunkline_wire::model::LogLevel;
use trunkline_wire::revision::Revision;
use trunkline_wire::revision::Revision::*;

use crate::transcript::server;

fn says(key: u32, level: LogLevel, heard: bool) -> String {
    let line = format!(r#"say {key} log {{"level":"{level}","logger":"l","data":{{"n":1}}}}"#);
    let told = format!(
        r#"< {{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","logger":"l","data":{{"n":1}}}}}}"#
    );
    if heard { format!("{line}\n{told}") } else { line }
}

#[test]
fn a_session_chooses_its_level_for_every_call() {
    for revision in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        for chosen in LogLevel::ALL {
            let said: Vec<_> =
                LogLevel::ALL.into_iter().map(|it| says(1, it, it >= chosen)).collect();
            server().opened(revision).check(&format!(
                r#"
                > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add"}}}}
                call 1 tools/call
                > {{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{{"level":"{chosen}"}}}}
                < {{"jsonrpc":"2.0","id":2,"result":{{}}}}
                {}
                "#,
                said.join("\n")
            ));
        }
    }
}

#[test]
fn until_a_session_chooses_the_server_does() {
    let call = r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}
        call 1 tools/call
        "#;
    let with = |level: LogLevel| server().with(|it| it.log_level = level).opened(V2025_11_25);
    with(LogLevel::Info).check(
        &[call, &says(1, LogLevel::Debug, false), "\n", &says(1, LogLevel::Info, true)].concat(),
    );
    with(LogLevel::Error).check(
        &[call, &says(1, LogLevel::Warning, false), "\n", &says(1, LogLevel::Error, true)].concat(),
    );
}

#[test]
fn a_stateless_request_hears_what_it_asked_for_and_nothing_otherwise() {
    for chosen in LogLevel::ALL {
        let loud: Vec<_> = LogLevel::ALL.into_iter().map(|it| says(1, it, it >= chosen)).collect();
        let silent: Vec<_> = LogLevel::ALL.into_iter().map(|it| says(2, it, false)).collect();
        server().check(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add","_meta":{{$ENV,"io.modelcontextprotocol/logLevel":"{chosen}"}}}}}}
            call 1 tools/call
            > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"add","_meta":$META}}}}
            call 2 tools/call
            {}
            {}
            "#,
            loud.join("\n"),
            silent.join("\n"),
        ));
    }
}

#[test]
fn a_level_that_does_not_exist_is_refused_and_changes_nothing() {
    server().opened(V2025_06_18).check(&format!(
        r#"
        > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add"}}}}
        call 1 tools/call
        > {{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{{"level":"loud"}}}}
        < {{"jsonrpc":"2.0","id":2,"error":{{"code":-32602,"message":"`level` is not one of the eight levels."}}}}
        > {{"jsonrpc":"2.0","id":3,"method":"logging/setLevel"}}
        < {{"jsonrpc":"2.0","id":3,"error":{{"code":-32602,"message":"`level` is not one of the eight levels."}}}}
        {}
        "#,
        says(1, LogLevel::Info, true)
    ));
    server().check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","_meta":{$ENV,"io.modelcontextprotocol/logLevel":"loud"}}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"The value of `io.modelcontextprotocol/logLevel` in `_meta` is not valid."}}
        "#,
    );
}

#[test]
fn a_server_that_did_not_declare_logging_sends_no_log() {
    for revision in Revision::ALL {
        let meta = match revision {
            V2026_07_28 => r#"{$ENV,"io.modelcontextprotocol/logLevel":"debug"}"#,
            _ => "{}",
        };
        server().with(|it| it.capabilities.logging = false).opened(revision).check(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add","_meta":{meta}}}}}
            call 1 tools/call
            {}
            "#,
            says(1, LogLevel::Emergency, false)
        ));
    }
}
