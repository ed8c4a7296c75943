//! The envelope: what is a message, what is not, and what is echoed.

use trunkline_wire::code;
use trunkline_wire::frame::{DEFAULT_LIMIT, Decoder, Framing, encode};
use trunkline_wire::json::glance::Glance;
use trunkline_wire::jsonrpc::{Id, Incoming, Malformed, MalformedKind, Message, Params};

use crate::value;

fn parse(text: &str) -> Incoming {
    Incoming::parse(text.as_bytes())
}

fn one(text: &str) -> Message {
    match parse(text) {
        Incoming::One(message) => message,
        other => panic!("{text} gave {other:?}"),
    }
}

fn bad(text: &str) -> Malformed {
    match parse(text) {
        Incoming::Bad(malformed) => malformed,
        other => panic!("{text} gave {other:?}"),
    }
}

#[test]
fn ids_are_echoed_type_exactly() {
    for id in [
        "1",
        "0",
        "-7",
        "9223372036854775807",
        "9223372036854775808",
        "123456789012345678901234567890",
        "-0",
        r#""1""#,
        r#""""#,
        r#""ü\n""#,
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let Message::Request { id: read, .. } = one(&text) else { panic!("{text} is a request") };
        assert_eq!(read.to_json().get(), id);
        let reply = Message::result(read, trunkline_wire::json::Json::empty_object());
        assert_eq!(reply.to_text(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
    assert_ne!(Id::from_json("1"), Id::from_json(r#""1""#));
}

#[test]
fn ids_that_are_no_ids_are_refused() {
    for id in ["1.5", "1e0", "true", "[]", "{}"] {
        let malformed = bad(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
        assert_eq!((malformed.kind, malformed.id), (MalformedKind::NotJsonRpc, None), "{id}");
    }
}

#[test]
fn a_null_id_is_kept_apart() {
    let text = r#"{"jsonrpc":"2.0","id":null,"method":"mcp/listTools"}"#;
    assert!(matches!(one(text), Message::Request { id: Id::Null, .. }));
    let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#;
    assert!(matches!(one(text), Message::Response { id: None, outcome: Err(_) }));
    let text = r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}"#;
    assert!(matches!(one(text), Message::Response { id: None, outcome: Err(_) }));
}

#[test]
fn a_duplicate_name_is_refused_at_each_level_we_read() {
    let table = [
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":3,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"ping","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","method":"ping","params":{},"params":{},"id":3}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","n\u0061me":"b"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"result":{},"result":{}}"#,
    ];
    for text in table {
        let malformed = bad(text);
        assert_eq!(malformed.kind, MalformedKind::DuplicateKey, "{text}");
        assert_eq!(malformed.id, Some(Id::Number(3)), "{text}");
        assert_eq!(malformed.to_error().code, -32600);
    }
    let wide: Vec<_> = (0..40).map(|it| format!(r#""k{it}":0"#)).collect();
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"x","params":{{{},"k39":1}}}}"#,
        wide.join(",")
    );
    assert_eq!(bad(&text).kind, MalformedKind::DuplicateKey);
}

#[test]
fn a_message_reads_the_same_however_its_beginning_is_spelled() {
    let deep = format!(r#","id":1,"result":{}{}}}"#, "[".repeat(127), "]".repeat(127));
    for rest in [
        r#","id":1,"method":"ping"}"#,
        r#" , "method":"a","params":{}}"#,
        r#","id":1,"result":{}} "#,
        r#","jsonrpc":"2.0","id":1,"method":"ping"}"#,
        "}",
        ",}",
        "",
        r#""id":1,"method":"ping"}"#,
        r#"0,"id":1,"method":"ping"}"#,
        &deep,
        &deep.replacen('[', "[[", 1).replacen(']', "]]", 1),
    ] {
        let usual = format!(r#"{{"jsonrpc":"2.0"{rest}"#);
        for other in [r#" {"jsonrpc":"2.0""#, r#"{"jsonrpc": "2.0""#, r#"{"json\u0072pc":"2.0""#] {
            assert_eq!(parse(&usual), parse(&format!("{other}{rest}")), "{other}{rest}");
        }
    }
}

#[test]
fn two_ids_are_refused() {
    let malformed = bad(r#"{"jsonrpc":"2.0","id":3,"id":4,"method":"ping"}"#);
    assert_eq!(malformed.kind, MalformedKind::DuplicateKey);
}

#[test]
fn parameters_are_absent_an_object_or_an_array() {
    let params = |text: &str| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x"{text}}}"#);
        match one(&text) {
            Message::Request { params, .. } => params,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(params(""), Params::Absent);
    assert_eq!(params(r#","params":null"#), Params::Absent);
    assert_eq!(params(r#","params":{"a":1.50}"#).get("a").unwrap().get(), "1.50");
    assert!(matches!(params(r#","params":[1,{}]"#), Params::Array(items) if items.len() == 2));
    for text in ["1", r#""a""#, "true", "0.5", "-1"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{text}}}"#);
        let malformed = bad(&text);
        assert_eq!(malformed.kind, MalformedKind::NotJsonRpc, "{text}");
        assert_eq!(malformed.id, Some(Id::Number(1)), "{text}");
    }
}

#[test]
fn a_result_has_the_size_it_says() {
    let ids = ["0", "7", "-1", "1234567890", "9223372036854775807", "-9223372036854775808"];
    for id in ids.into_iter().chain(["99999999999999999999999", "\"abc\"", "\"é\""]) {
        let message = one(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":[1,2]}}}}"#));
        let text = message.to_text();
        assert!(text.contains(&format!(r#""id":{id},"#)), "{text}");
        assert_eq!(message.size(), text.len(), "{text}");
    }
}

#[test]
fn messages_are_written_as_they_were_read() {
    for text in [
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":{"b":1.0,"a":[]}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"mcp/tool/execute","params":["t",{"a":null}]}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"x":12345678901234567890}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m","data":[1]}}"#,
    ] {
        assert_eq!(one(text).to_text(), text);
    }
}

#[test]
fn malformed_messages_get_an_error_that_says_why() {
    let table = [
        ("", MalformedKind::NotJson),
        ("{", MalformedKind::NotJson),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x"} x"#, MalformedKind::NotJson),
        ("1", MalformedKind::NotJsonRpc),
        ("{}", MalformedKind::NotJsonRpc),
        (r#"{"id":1,"method":"x"}"#, MalformedKind::NotJsonRpc),
        (r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, MalformedKind::NotJsonRpc),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, MalformedKind::NotJsonRpc),
        (r#"{"jsonrpc":"2.0","id":1}"#, MalformedKind::NotJsonRpc),
        (r#"{"jsonrpc":"2.0","result":{}}"#, MalformedKind::NotJsonRpc),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
            MalformedKind::NotJsonRpc,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#, MalformedKind::NotJsonRpc),
        // Valid by the grammar of JSON, though no parser can represent them.
        (r#"{"jsonrpc":"2.0","id":"\ud800","method":"x"}"#, MalformedKind::NotJsonRpc),
        (r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, MalformedKind::NotJsonRpc),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","\ud800":1}"#, MalformedKind::NotJsonRpc),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"\ud800":1}}"#,
            MalformedKind::NotJsonRpc,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":1e400}"#, MalformedKind::NotJsonRpc),
        (r#"{"jsonrpc":"2.0","id":1,"method":"\ud8"}"#, MalformedKind::NotJson),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","\ud800":1"#, MalformedKind::NotJson),
    ];
    for (text, kind) in table {
        assert_eq!(bad(text).kind, kind, "{text}");
    }
    assert!(bad(r#"{"id":1,"result":{}}"#).is_response);
}

#[test]
fn bytes_that_are_not_utf_8_are_not_json() {
    let Incoming::Bad(malformed) = Incoming::parse(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}")
    else {
        panic!("this is not UTF-8")
    };
    assert_eq!(malformed.kind, MalformedKind::NotJson);
    assert_eq!(malformed.to_error().code, -32700);
}

#[test]
fn depth_is_bounded() {
    let nest = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{open}{close}}}}}"#)
    };
    assert!(matches!(parse(&nest(126)), Incoming::One(_)));
    assert_eq!(bad(&nest(127)).kind, MalformedKind::TooDeep);
    assert_eq!(bad(&nest(100_000)).kind, MalformedKind::TooDeep);
}

#[test]
fn depth_counts_from_the_first_bracket_of_the_text_wherever_it_is_deep() {
    for (around, outside) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","other":_}"#, 1),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":_}"#, 1),
        (r#"{"jsonrpc":"2.0","id":1,"result":_}"#, 1),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"content":_,"isError":true}}"#, 2),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":_}}"#, 2),
        (r#"[{"jsonrpc":"2.0","id":1,"result":{"content":[_]}}]"#, 4),
        (r#"{"jsonrpc":"2.0","id":_"#, 1),
    ] {
        let nest = |depth: usize| {
            let inside = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            parse(&around.replace('_', &inside))
        };
        let is_too_deep = |incoming: &Incoming| matches!(incoming, Incoming::Bad(it) if it.kind == MalformedKind::TooDeep);
        assert!(!is_too_deep(&nest(128 - outside)), "{around}");
        assert!(is_too_deep(&nest(129 - outside)), "{around}");
        assert!(is_too_deep(&nest(300)), "{around}");
    }
}

#[test]
fn each_message_of_a_batch_is_judged_for_itself() {
    let text = r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}, 7,
        {"jsonrpc":"2.0","method":"notifications/initialized"}, {"jsonrpc":"2.0","id":"x"}]"#;
    let Incoming::Batch(items) = parse(text) else { panic!("this is a batch") };
    assert_eq!(items.len(), 4);
    assert!(matches!(&items[0], Ok(Message::Request { id: Id::Number(1), .. })));
    assert!(matches!(&items[1], Err(it) if it.kind == MalformedKind::NotJsonRpc));
    assert!(matches!(&items[2], Ok(Message::Notification { .. })));
    assert!(matches!(&items[3], Err(it) if it.id == Some(Id::Text("x".into()))));
    assert_eq!(parse("[]"), Incoming::Batch(Vec::new()));
    assert_eq!(bad("[1,").kind, MalformedKind::NotJson);
}

#[test]
fn errors_keep_their_data() {
    let text = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m","data":"text"}}"#;
    let Message::Response { outcome: Err(error), .. } = one(text) else { panic!("an error") };
    assert_eq!(value(error.data.unwrap().get()), value(r#""text""#));
}

#[test]
fn a_name_that_a_careless_reader_takes_for_another_is_refused() {
    for disguised in [
        r#""Method":"tools/call""#,
        r#""method\u0000":"tools/call""#,
        r#""PARAMS":{}"#,
        r#""id\n":2"#,
        r#""params":{"name":"a","name\u0000":"b"}"#,
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list",{disguised}}}"#);
        let Incoming::Bad(malformed) = Incoming::parse(text.as_bytes()) else {
            panic!("{text} was taken")
        };
        assert_eq!(malformed.to_error().code, code::INVALID_REQUEST, "{text}");
    }
    let plain = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","extra":{},"Überschrift":1}"#;
    assert!(matches!(Incoming::parse(plain.as_bytes()), Incoming::One(_)));
}

#[test]
fn an_id_has_a_sensible_length() {
    for (length, is_taken) in [(Id::LONGEST - 2, true), (Id::LONGEST - 1, false)] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(length));
        assert_eq!(matches!(parse(&text), Incoming::One(_)), is_taken, "{length}");
    }
    let digits = "9".repeat(Id::LONGEST + 1);
    let malformed = bad(&format!(r#"{{"jsonrpc":"2.0","id":{digits},"method":"ping"}}"#));
    assert_eq!((malformed.kind, malformed.id), (MalformedKind::NotJsonRpc, None));
}

#[test]
fn a_long_text_reads_the_same_whether_it_is_lent_or_taken_over() {
    let long = "ü stitch\\n".repeat(40_000);
    let call =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{params}}}"#);
    let texts = [
        call(&format!(r#"{{"name":"echo","arguments":{{"text":"{long}"}},"_meta":{{"a":1}}}}"#)),
        call(&format!(r#"{{"b":"{long}","a":"{long}"}}"#)),
        call(&format!(r#"{{"a":"{long}","a":1}}"#)),
        call(&format!(r#"["{long}"]"#)),
        call(&format!(r#""{long}""#)),
        format!(r#" {{"jsonrpc":"2.0","method":"a","params":{{"a":"{long}"}}}} "#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":"{long}","isError":true}}}}"#),
        format!(r#"{{"id":1, "result": {{"resultType":"task","b":"{long}"}} ,"jsonrpc":"2.0"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{long}"}}"#),
        // What is most of the text is no part of the message.
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{}},"params":{{"a":"{long}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{}},"other":"{long}"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"{long}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{long}""#),
        format!(r#"[{{"jsonrpc":"2.0","id":1,"result":"{long}"}}]"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":{}}}}}"#, "[".repeat(300_000)),
    ];
    for text in texts {
        let taken = Incoming::take(text.clone().into_bytes());
        assert!(taken == parse(&text), "{} … {}", &text[..80], &text[text.len() - 80..]);
        let seen = |incoming: &Incoming| match incoming {
            Incoming::One(Message::Response { outcome: Ok(result), .. }) => {
                Some(Glance::of(result))
            }
            _ => None,
        };
        assert_eq!(seen(&taken), seen(&parse(&text)));
    }
    let mut no_text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{long}"}}"#).into_bytes();
    no_text[1000] = 0xff;
    assert_eq!(Incoming::take(no_text.clone()), Incoming::parse(&no_text));
}

#[test]
fn a_value_that_takes_over_its_message_stays_where_it_is() {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":"{}"}}}}"#, "x".repeat(1 << 20));
    let place = text.find(r#"{"a""#).expect("it is there");
    let bytes = text.into_boxed_str().into_boxed_bytes().into_vec();
    let start = bytes.as_ptr().addr();
    let Incoming::One(Message::Response { outcome: Ok(result), .. }) = Incoming::take(bytes) else {
        panic!("it is a result");
    };
    assert_eq!(result.get().as_ptr().addr(), start + place);
    assert!(result.get().starts_with(r#"{"a":"xx"#) && result.get().ends_with(r#"xx"}"#));
}

#[test]
fn long_messages_come_out_of_a_stream_as_short_ones_do() {
    let texts: Vec<String> = [400_000, 10, 300_000, 300_000, 20]
        .map(|length| format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "x".repeat(length)))
        .into();
    for framing in [Framing::Newline, Framing::ContentLength] {
        let mut stream = Vec::new();
        for text in &texts {
            encode(framing, |out| out.extend_from_slice(text.as_bytes()), &mut stream);
        }
        for chunk in [1000, 400_050, stream.len()] {
            let mut decoder = Decoder::with_framing(framing, DEFAULT_LIMIT);
            let mut messages = Vec::new();
            for chunk in stream.chunks(chunk) {
                decoder.push(chunk);
                while let Some(message) = decoder.next_message() {
                    messages.push(message.expect("the framing is whole"));
                }
            }
            let expected: Vec<Incoming> = texts.iter().map(|text| parse(text)).collect();
            assert!(messages == expected, "{framing:?} in chunks of {chunk}");
        }
    }
}
