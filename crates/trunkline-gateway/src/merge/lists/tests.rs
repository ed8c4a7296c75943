use super::super::fixture::{draft, lists};
use super::*;

const TOOLS: &str = r#"{"tools":[
    {"name":"log","title":"Log","description":"Shows commits","inputSchema":{ "type" : "object", "properties":{"n":{"type":"integer","maximum":1.50e2}},"x-else":[1, 2] },
     "outputSchema":{"type":"array"},"annotations":{"readOnlyHint":true},"icons":[{"src":"https://example.com/a.png"}],
     "execution":{"taskSupport":"optional"},"_meta":{"com.example/unknown":{"deep":[10000000000000000000000]}}}]}"#;

#[test]
fn lists_survive_storage() {
    let kept = lists(
        Revision::V2025_11_25,
        &[
            (Kind::Tools, TOOLS),
            (Kind::Prompts, r#"{"prompts":[{"name":"review","arguments":[{"name":"code"}]}]}"#),
            (Kind::Resources, r#"{"resources":[{"uri":"file:///a b","name":"a","size":3}]}"#),
            (Kind::Templates, r#"{"resourceTemplates":[{"uriTemplate":"x://{y}","name":"y"}]}"#),
        ],
    );
    assert_eq!(kept.warnings, [""; 0]);
    let text = serde_json::to_string(&kept).unwrap();
    let read: Lists = serde_json::from_str(&text).unwrap();
    assert_eq!(read, kept);
    assert!(read.is_sound());
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    let tool = &read.tools[0];
    assert_eq!(
        tool.input_schema.get(),
        r#"{ "type" : "object", "properties":{"n":{"type":"integer","maximum":1.50e2}},"x-else":[1, 2] }"#
    );
    assert_eq!(
        tool.meta.as_ref().unwrap().get(),
        r#"{"com.example/unknown":{"deep":[10000000000000000000000]}}"#
    );
    assert_eq!(Kind::ALL.map(|kind| read.count(kind)), [1; 4]);
}

#[test]
fn the_etag_is_of_the_content() {
    let page = |description: &str| {
        let page = format!(
            r#"{{"tools":[{{"name":"a","description":"{description}","inputSchema":{{"type":"object"}}}}]}}"#
        );
        lists(Revision::V2025_06_18, &[(Kind::Tools, &page)])
    };
    let (one, same, other) = (page("one"), page("one"), page("other"));
    assert_eq!(one.etag(), same.etag());
    assert_ne!(one.etag(), other.etag());
    assert_ne!(one.etag_of(Kind::Tools), other.etag_of(Kind::Tools));
    assert_eq!(one.etag_of(Kind::Prompts), other.etag_of(Kind::Prompts));
    let mut elsewhere = one.clone();
    elsewhere.warnings.push("Something was left out.".to_owned());
    assert!(elsewhere.is_sound(), "what we say of it is not its content");
}

/// How many items of a page remain, and the warning about the rest.
fn check(kind: Kind, page: &str, left: usize, warning: &str) {
    let lists = lists(Revision::V2026_07_28, &[(kind, page)]);
    assert_eq!(lists.count(kind), left, "{page} {:?}", lists.warnings);
    assert_eq!(lists.warnings.len(), 1, "{page} {:?}", lists.warnings);
    assert!(lists.warnings[0].contains(warning), "{:?}", lists.warnings);
}

#[test]
fn invalid_items_are_left_out_and_the_rest_stays() {
    let good = r#"{"name":"good","inputSchema":{"type":"object"}}"#;
    for (bad, warning) in [
        (r#"{"name":"","inputSchema":{"type":"object"}}"#, "it has no name"),
        (r#"{"name":"a\nb","inputSchema":{"type":"object"}}"#, "control characters"),
        (r#"{"name":"good","inputSchema":{"type":"object"}}"#, "one of that name"),
        (r#"{"name":"a"}"#, "inputSchema"),
        (r#"{"inputSchema":{"type":"object"}}"#, "name"),
        (r#"{"name":"a","inputSchema":{"type":"string"}}"#, "its input is no object"),
        (r#"{"name":"a","inputSchema":true}"#, "its input schema is no object"),
        (r#"["a",null,null,{}]"#, "it is no object"),
        ("7", "it is no object"),
        (
            r#"{"name":"a","inputSchema":{"type":"object","properties":{"n":{"type":"number","x-mcp-header":"N"}}}}"#,
            "x-mcp-header",
        ),
    ] {
        check(Kind::Tools, &format!(r#"{{"tools":[{good},{bad}]}}"#), 1, warning);
    }
    let resource = |uri: &str| format!(r#"{{"resources":[{{"uri":"{uri}","name":"a"}}]}}"#);
    for (uri, warning) in [("no-scheme", "no scheme"), (":x", "no scheme"), ("1:x", "no scheme")] {
        check(Kind::Resources, &resource(uri), 0, warning);
    }
    check(Kind::Resources, &resource(r"a:\u0000"), 0, "control characters");
    check(
        Kind::Templates,
        r#"{"resourceTemplates":[{"uriTemplate":"x://{","name":"a"}]}"#,
        0,
        "cannot be read",
    );
    check(Kind::Prompts, r#"{"prompts":[{"name":""}]}"#, 0, "no name");
}

#[test]
fn small_faults_are_repaired() {
    let page = r#"{"tools":[
        {"name":"a","inputSchema":{}},
        {"name":"b","inputSchema":{ "properties":{"x":{"type":"string"}}}},
        {"name":"c","inputSchema":{"type":"object"},"outputSchema":true}]}"#;
    let lists = lists(Revision::V2025_06_18, &[(Kind::Tools, page)]);
    let schemas: Vec<_> = lists.tools.iter().map(|tool| tool.input_schema.get()).collect();
    assert_eq!(
        schemas,
        [
            r#"{"type":"object"}"#,
            r#"{"type":"object","properties":{"x":{"type":"string"}}}"#,
            r#"{"type":"object"}"#
        ]
    );
    assert_eq!(lists.tools[2].output_schema, None);
    assert_eq!(lists.warnings, ["The output schema of `c` was left out: it is no object."]);
}

#[test]
fn annotations_of_older_servers_are_no_reason_to_leave_a_tool_out() {
    let page = r#"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"n":{"type":"number","x-mcp-header":"N"}}}}]}"#;
    assert_eq!(lists(Revision::V2025_11_25, &[(Kind::Tools, page)]).tools.len(), 1);
}

#[test]
fn an_answer_that_is_no_list_is_an_error() {
    for page in ["{}", "[]", r#"{"tools":{}}"#, r#"{"prompts":[]}"#, "null"] {
        let page = Json::parse(page).unwrap();
        let error = draft(Revision::LATEST).add(Kind::Tools, &page).unwrap_err();
        assert_eq!(error.to_string(), "The answer to `tools/list` was no list.");
    }
}

fn prompts(from: usize, to: usize, cursor: &str) -> Json {
    let items: Vec<_> = (from..to).map(|at| Prompt::new(format!("p{at}"))).collect();
    Json::parse(format!(r#"{{"prompts":{},"nextCursor":{cursor}}}"#, Json::of(&items))).unwrap()
}

#[test]
fn pages_are_followed_until_the_server_ends_or_a_bound_is_reached() {
    let mut whole = draft(Revision::LATEST);
    assert_eq!(whole.add(Kind::Prompts, &prompts(0, 2, r#""""#)), Ok(Some(String::new())));
    assert_eq!(whole.add(Kind::Prompts, &prompts(2, 3, "null")), Ok(None));
    assert_eq!(whole.finish().prompts.len(), 3);

    let mut endless = draft(Revision::LATEST);
    let pages = (0..)
        .take_while(|at| {
            let page = prompts(*at, at + 1, &format!(r#""c{at}""#));
            endless.add(Kind::Prompts, &page).unwrap().is_some()
        })
        .count();
    let lists = endless.finish();
    assert_eq!((pages, lists.prompts.len()), (MAX_PAGES - 1, MAX_PAGES));
    assert!(lists.warnings[0].contains("more than 64 pages"), "{:?}", lists.warnings);

    let mut circle = draft(Revision::LATEST);
    assert!(circle.add(Kind::Prompts, &prompts(0, 1, r#""c""#)).unwrap().is_some());
    assert_eq!(circle.add(Kind::Prompts, &prompts(1, 2, r#""c""#)), Ok(None));
    assert_eq!(
        circle.add(Kind::Resources, &Json::parse(r#"{"resources":[],"nextCursor":"c"}"#).unwrap()),
        Ok(Some("c".to_owned())),
        "each list has cursors of its own"
    );

    let mut large = draft(Revision::LATEST);
    assert_eq!(large.add(Kind::Prompts, &prompts(0, MAX_ITEMS + 1, r#""c""#)), Ok(None));
    let lists = large.finish();
    assert_eq!(lists.prompts.len(), MAX_ITEMS);
    assert!(lists.warnings[0].contains("more than 10000 items"), "{:?}", lists.warnings);
}

#[test]
fn long_lists_end_at_the_byte_bound() {
    let heavy = Json::of(&Prompt::new("x").description("y".repeat(MAX_BYTES / 2)));
    let page = Json::parse(format!(
        r#"{{"prompts":[{heavy},{}]}}"#,
        heavy.get().replace(r#""x""#, r#""z""#)
    ));
    let mut draft = draft(Revision::LATEST);
    assert_eq!(draft.add(Kind::Prompts, &page.unwrap()), Ok(None));
    let lists = draft.finish();
    assert_eq!(lists.prompts.len(), 1);
    assert!(lists.warnings[0].contains("12 MiB"), "{:?}", lists.warnings);
}

#[test]
fn complaints_are_bounded_and_never_hold_a_whole_name() {
    let bad = format!(r#"{{"name":"{}","inputSchema":{{}}}}"#, "x".repeat(5_000));
    let page = format!(r#"{{"tools":[{}]}}"#, vec![bad.as_str(); 300].join(","));
    let lists = lists(Revision::LATEST, &[(Kind::Tools, &page)]);
    assert_eq!(lists.warnings.len(), MAX_WARNINGS);
    assert!(lists.warnings[0].len() < 200, "{}", lists.warnings[0]);
}

#[test]
fn only_what_a_server_says_it_has_is_asked_for() {
    let info = Implementation::new("a", "1");
    let draft = Draft::new(Revision::LATEST, info, ServerCapabilities::new(), None);
    assert!(Kind::ALL.into_iter().all(|kind| !draft.wants(kind)));
    assert!(
        Kind::ALL
            .into_iter()
            .all(|kind| super::super::fixture::draft(Revision::LATEST).wants(kind))
    );
}
