use std::time::Duration;

use trunkline_wire::model::Content;

use super::super::Search;
use super::super::tests::index;
use super::*;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn ask(query: &str) -> Asked {
    Asked { query: query.to_owned(), limit: 3, again: false }
}

#[test]
fn the_two_tools_are_tools_like_any() {
    let find = find_tools(["git", "time"].into_iter(), 8);
    let description = find.description.as_deref().unwrap();
    assert!(description.contains("There are tools of `git`, `time`."), "{description}");
    for tool in [&find, &call_tool()] {
        assert!(trunkline_wire::text::is_tool_name(&tool.name), "{}", tool.name);
        let schema: serde_json::Value = tool.input_schema.to().unwrap();
        assert_eq!(schema["type"], "object");
        let required = schema["required"].as_array().unwrap();
        assert!(required.iter().all(|it| schema["properties"][it.as_str().unwrap()].is_object()));
    }
    let many: Vec<String> = (0..50).map(|at| format!("s{at}")).collect();
    let many = find_tools(many.iter().map(|it| &**it), 8).description.unwrap();
    assert!(many.contains("`s19`, others."), "{many}");
    assert!(!find_tools(std::iter::empty(), 8).description.unwrap().contains("There are"));
}

#[test]
fn questions_are_read_as_models_write_them() {
    let read = |text: &str| read_find(Some(&json(text)), 8);
    assert_eq!(read(r#"{"query":"x"}"#), Ok(Asked { query: "x".into(), limit: 8, again: false }));
    for (limit, expected) in [("3", 3), ("3.0", 3), ("0", 1), ("-1", 1), ("1e9", 8), ("null", 8)] {
        let asked = read(&format!(r#"{{"query":"x","limit":{limit}}}"#)).unwrap();
        assert_eq!(asked.limit, expected, "{limit}");
    }
    assert!(read(r#"{"query":"x","again":true,"else":1}"#).unwrap().again);
    for bad in ["{}", "[]", r#"["x"]"#, r#"{"query":1}"#, r#"{"query":"x","limit":"y"}"#] {
        let error = read(bad).unwrap_err();
        assert!(error.contains("`trunkline.find_tools`"), "{error}");
    }
    assert!(read_find(None, 8).is_err());
}

#[test]
fn calls_are_read_with_their_arguments_unchanged() {
    let call = read_call(Some(&json(r#"{"name":"git.log","arguments":{"n":1.50}}"#))).unwrap();
    assert_eq!((&*call.name, call.arguments.unwrap().get()), ("git.log", r#"{"n":1.50}"#));
    for none in [r#"{"name":"a"}"#, r#"{"name":"a","arguments":null}"#] {
        assert_eq!(read_call(Some(&json(none))).unwrap().arguments, None);
    }
    for bad in [
        "{}",
        r#"{"name":"a","arguments":[1]}"#,
        r#"{"name":"trunkline.call_tool","arguments":{}}"#,
        r#"{"name":"trunkline.find_tools"}"#,
    ] {
        assert!(read_call(Some(&json(bad))).is_err(), "{bad}");
    }
}

#[test]
fn no_schema_is_sent_twice_in_one_session() {
    let index = index();
    let search = Search::build(&index);
    let (mut seen, start) = (Seen::default(), Instant::now());
    let mut answer = |asked: &Asked, session: &str, minutes: u64| {
        let hits = search.find(&asked.query, asked.limit, &|_| true);
        let now = start + Duration::from_secs(minutes * 60);
        let result = found(&index, &hits, asked, (&mut seen, Some(session), now));
        let text = result.as_text();
        let value: serde_json::Value = result.structured_content.unwrap().to().unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        value["tools"][0].clone()
    };
    let first = answer(&ask("time in Tokyo"), "s", 0);
    assert_eq!(first["name"], "time.get_current_time");
    assert_eq!(first["inputSchema"]["properties"]["timezone"]["type"], "string");
    assert!(first.get("schemaSent").is_none());
    let second = answer(&ask("current time"), "s", 1);
    assert_eq!(second["name"], first["name"]);
    assert_eq!(second["schemaSent"], true);
    assert!(second.get("inputSchema").is_none());
    assert!(answer(&ask("current time"), "t", 1)["inputSchema"].is_object(), "another session");
    let again = Asked { again: true, ..ask("current time") };
    assert!(answer(&again, "s", 2)["inputSchema"].is_object());
    assert!(answer(&ask("current time"), "s", 31)["inputSchema"].is_object(), "it is long ago");
}

#[test]
fn finding_nothing_says_what_to_do() {
    let mut seen = Seen::default();
    let result = found(&index(), &[], &ask("quantum"), (&mut seen, Some("s"), Instant::now()));
    let text = "No tool was found for `quantum`; try other words, or fewer.";
    assert_eq!(result.content, [Content::text(text)]);
    assert_eq!(result.structured_content.unwrap().get(), r#"{"tools":[]}"#);
    assert_eq!(result.is_error, None);
}
