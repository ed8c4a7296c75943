//! What differs between two recordings, and what does not count.

use trunkline_recording::compare::{Ignore, compare};

use crate::recording;

/// Compares two scripts; each expected line is `OF PATH A B`, with `-` for what is absent.
#[track_caller]
fn check(a: &str, b: &str, expected: &[(&str, &str, &str, &str)]) {
    check_ignoring(&[], a, b, expected);
}

#[track_caller]
fn check_ignoring(paths: &[&str], a: &str, b: &str, expected: &[(&str, &str, &str, &str)]) {
    let ignore = Ignore::read(paths).unwrap();
    let found = compare(&recording(a), &recording(b), &ignore);
    let text = |it: &Option<trunkline_recording::tree::Tree>| {
        it.as_ref().map_or_else(|| "-".to_owned(), |it| it.to_text())
    };
    let found: Vec<_> = found
        .differences
        .iter()
        .map(|it| (it.of.clone(), it.path.clone(), text(&it.a), text(&it.b)))
        .collect();
    let found: Vec<_> = found.iter().map(|(a, b, c, d)| (&**a, &**b, &**c, &**d)).collect();
    assert_eq!(found, expected);
}

#[test]
fn ids_tokens_states_and_times_do_not_count() {
    check(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1}}}
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        < {"id":1,"result":{"resultType":"input_required","requestState":"x","content":[{"type":"text","text":"at 2026-11-17T12:00:00Z"}]}}
        "#,
        r#"
        > {"id":"k","method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t"}}}
        < {"method":"notifications/progress","params":{"progressToken":"t","progress":1.0}}
        < {"id":"k","result":{"content":[{"text":"at 2027-01-01T00:00:01.5+02:00","type":"text"}],"resultType":"input_required","requestState":"y"}}
        "#,
        &[],
    );
}

#[test]
fn a_difference_is_named_by_its_call_and_its_place() {
    let script = |sum: u32| {
        format!(
            r#"
            > {{"id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"x"}}}}}}
            > {{"id":2,"method":"tools/call","params":{{"name":"sum","arguments":{{"a":1}}}}}}
            < {{"id":2,"result":{{"structuredContent":{{"sum":{sum}}}}}}}
            < {{"id":1,"result":{{"content":[]}}}}
            "#
        )
    };
    let different = [("tools/call sum", "/result/structuredContent/sum", "3", "4")];
    check(&script(3), &script(4), &different);
    check_ignoring(&["/result/**/sum"], &script(3), &script(4), &[]);
    check_ignoring(&["tools/call sum:/result"], &script(3), &script(4), &[]);
    check_ignoring(&["tools/call echo:/result"], &script(3), &script(4), &different);
}

#[test]
fn the_order_of_independent_calls_does_not_count_and_missing_ones_do() {
    check(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        > {"id":2,"method":"tools/call","params":{"name":"b"}}
        < {"id":1,"result":{"x":1}}
        < {"id":2,"result":{"x":2}}
        "#,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"b"}}
        < {"id":1,"result":{"x":2}}
        > {"id":2,"method":"tools/call","params":{"name":"c"}}
        "#,
        &[
            ("tools/call a", "", r#"{"name":"a"}"#, "-"),
            ("tools/call c", "", "-", r#"{"name":"c"}"#),
        ],
    );
}

#[test]
fn definitions_are_compared_by_name_over_all_pages() {
    let one_page = r#"
        > {"id":1,"method":"tools/list"}
        < {"id":1,"result":{"tools":[{"name":"a","description":"A."},{"name":"b"},{"name":"c"}],"ttlMs":5}}
    "#;
    let two_pages = r#"
        > {"id":1,"method":"tools/list"}
        < {"id":1,"result":{"tools":[{"name":"c"},{"name":"d"}],"nextCursor":"2","ttlMs":5}}
        > {"id":2,"method":"tools/list","params":{"cursor":"2"}}
        < {"id":2,"result":{"tools":[{"name":"a","description":"B."}],"ttlMs":5}}
    "#;
    check(
        one_page,
        two_pages,
        &[
            ("tool a", "/description", r#""A.""#, r#""B.""#),
            ("tool b", "", r#"{"name":"b"}"#, "-"),
            ("tool d", "", "-", r#"{"name":"d"}"#),
            ("tools/list", "", "-", r#"{"cursor":"2"}"#),
        ],
    );
}

#[test]
fn questions_and_their_answers_are_compared() {
    let script = |name: &str| {
        format!(
            r#"
            > {{"id":1,"method":"tools/call","params":{{"name":"greet"}}}}
            < {{"id":"q","method":"elicitation/create","params":{{"message":"Name?"}}}}
            > {{"id":"q","result":{{"action":"accept","content":{{"name":"{name}"}}}}}}
            < {{"id":1,"result":{{}}}}
            "#
        )
    };
    let place = "/questions/0/answer/result/content/name";
    check(&script("Ada"), &script("Alan"), &[("tools/call greet", place, r#""Ada""#, r#""Alan""#)]);
}

#[test]
fn an_error_in_place_of_a_result_and_silence_are_differences() {
    let ask = r#"> {"id":1,"method":"prompts/get","params":{"name":"p"}}"#;
    let good = format!("{ask}\n{}", r#"< {"id":1,"result":{}}"#);
    let bad = format!("{ask}\n{}", r#"< {"id":1,"error":{"code":-1,"message":"No."}}"#);
    let error = r#"{"error":{"code":-1,"message":"No."}}"#;
    check(&good, &bad, &[("prompts/get p", "/answer", r#"{"result":{}}"#, error)]);
    check(&good, ask, &[("prompts/get p", "/answer", r#"{"result":{}}"#, "-")]);
    let cancelled =
        format!("{ask}\n{}", r#"> {"method":"notifications/cancelled","params":{"requestId":1}}"#);
    check(&good, &cancelled, &[]);
}

#[test]
fn what_a_mask_hides_does_not_differ() {
    let script = |key: &str| {
        format!(
            r#"> {{"id":1,"method":"tools/call","params":{{"name":"a","arguments":{{"key":"{key}"}}}}}}"#
        )
    };
    check(&script("***"), &script("hunter2"), &[]);
    check(
        &script("k1"),
        &script("k2"),
        &[("tools/call a", "/params/arguments/key", r#""k1""#, r#""k2""#)],
    );
}

#[test]
fn a_bad_path_is_refused_with_a_sentence() {
    let why = Ignore::read(["result.text"]).unwrap_err().to_string();
    assert_eq!(
        why,
        "`result.text` is no path: it begins with `/`, as in `/result/content/*/text`."
    );
}

#[test]
fn which_call_something_unasked_came_after_does_not_count_and_whether_it_came_does() {
    let (ask, answer) = (r#"> {"id":1,"method":"ping"}"#, r#"< {"id":1,"result":{}}"#);
    let roots = r#"< {"id":9,"method":"roots/list"}"#;
    let answered = r#"> {"id":9,"result":{"roots":[]}}"#;
    let changed = r#"< {"method":"notifications/tools/list_changed"}"#;
    let during = [ask, roots, changed, answered, answer].join("\n");
    let after = [ask, answer, changed, roots].join("\n");
    check(&during, &after, &[]);
    let without = [ask, answer, changed].join("\n");
    let question = r#"{"method":"roots/list","params":{}}"#;
    check(&during, &without, &[("the server, unasked", "/0", question, "-")]);
}

#[test]
fn a_response_that_the_client_closed_is_a_cancelled_call() {
    let line =
        |rest: &str| format!(r#"{{"v":1,"t":1,"side":"client","dir":"in","stream":1,{rest}}}"#);
    let ask = line(
        r#""message":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep"}}"#,
    );
    let left = [ask.as_str(), &line(r#""note":{"what":"ended"}"#)].join("\n");
    let answered = [
        ask.as_str(),
        &line(r#""message":{"jsonrpc":"2.0","id":1,"result":{}}"#).replace(r#""in""#, r#""out""#),
    ]
    .join("\n");
    let read = |text: &str| trunkline_recording::recording::Recording::read(text).unwrap();
    assert!(compare(&read(&left), &read(&answered), &Ignore::default()).equal);
    assert!(!compare(&read(&ask), &read(&answered), &Ignore::default()).equal);
}

#[test]
fn a_notification_that_a_stream_places_otherwise_than_a_pipe_can_is_the_same() {
    let on_streams = r#"
        >1 {"id":1,"method":"tools/call","params":{"name":"a"}}
        <2 {"method":"notifications/message","params":{"data":"news"}}
        <1 {"id":1,"result":{}}
    "#;
    let on_a_pipe = on_streams.replace(">1", ">").replace("<1", "<").replace("<2", "<");
    check(on_streams, &on_a_pipe, &[]);
    let other = on_a_pipe.replace("news", "other");
    let said = |data: &str| {
        format!(r#"{{"method":"notifications/message","params":{{"data":"{data}"}}}}"#)
    };
    check(
        on_streams,
        &other,
        &[
            ("tools/call a", "/notifications/0", "-", &said("other")),
            ("the server, unasked", "/0", &said("news"), "-"),
        ],
    );
}
