//! Every row of the official suite's header scenarios, and what it leaves out.

use serde_json::{Value, json};

use super::*;

/// A schema with these properties.
fn schema(properties: Value) -> Json {
    Json::of(&json!({ "type": "object", "properties": properties }))
}

fn read(properties: Value) -> Result<ParamHeaders, InvalidAnnotation> {
    ParamHeaders::read(&schema(properties))
}

fn why(schema: Value) -> (String, Why) {
    let invalid = ParamHeaders::read(&Json::of(&schema)).expect_err("the annotation is wrong");
    assert!(invalid.to_string().ends_with('.'), "{invalid}");
    (invalid.at, invalid.why)
}

fn annotated(kind: &str, name: &str) -> Value {
    json!({ "type": kind, "x-mcp-header": name })
}

/// The header values of a call, by the last part of their names.
fn values(params: &ParamHeaders, arguments: Value) -> Vec<(String, String)> {
    let headers = params.headers_for(Some(&Json::of(&arguments)));
    let short = |name: &str| name.strip_prefix("mcp-param-").expect("a whole name").to_owned();
    headers.into_iter().map(|(name, value)| (short(&name), value)).collect()
}

/// The server's verdict on a call with these headers.
fn check(arguments: &str, headers: &[(&str, &[u8])]) -> Result<(), Fault> {
    let params = read(json!({
        "region": annotated("string", "Region"),
        "count": annotated("integer", "Count"),
        "dry": annotated("boolean", "Dry"),
        "deep": { "type": "object", "properties": { "er": annotated("string", "Deeper") } },
    }))
    .unwrap();
    let arguments = Json::parse(arguments).unwrap();
    let lookup = |name: &str| {
        let found = headers.iter().filter(|it| it.0.eq_ignore_ascii_case(name)).map(|it| it.1);
        found.collect::<Vec<_>>()
    };
    params.check(Some(&arguments), lookup).map_err(|it| {
        assert_eq!(it.to_error().code, -32020);
        assert!(it.to_string().contains(&it.header), "{it}");
        it.fault
    })
}

fn region(value: &str, header: &str) -> Result<(), Fault> {
    let arguments = Json::of(&json!({ "region": value }));
    check(arguments.get(), &[("Mcp-Param-Region", header.as_bytes())])
}

#[test]
fn arguments_become_headers() {
    let params = read(json!({
        "region": annotated("string", "Region"),
        "priority": annotated("integer", "Priority"),
        "verbose": annotated("boolean", "Verbose"),
        "debug": annotated("boolean", "Debug"),
        "empty_val": annotated("string", "EmptyVal"),
        "method_val": annotated("string", "Method"),
        "float_val": { "type": "number" },
        "non_ascii_val": annotated("string", "NonAscii"),
        "whitespace_val": annotated("string", "Whitespace"),
        "leading_space_val": annotated("string", "LeadingSpace"),
        "trailing_space_val": annotated("string", "TrailingSpace"),
        "internal_space_val": annotated("string", "InternalSpace"),
        "control_char_val": annotated("string", "ControlChar"),
        "crlf_val": annotated("string", "CrLf"),
        "tab_val": annotated("string", "Tab"),
        "query": { "type": "string" },
    }))
    .unwrap();
    assert_eq!(params.len(), 14);
    let mut found = values(
        &params,
        json!({
            "region": "us-west1",
            "priority": 42,
            "verbose": false,
            "debug": true,
            "empty_val": "",
            "method_val": "test-method",
            "float_val": 3.5,
            "non_ascii_val": "日本語",
            "whitespace_val": " padded ",
            "leading_space_val": " x",
            "trailing_space_val": "x ",
            "internal_space_val": "us west 1",
            "control_char_val": "line1\nline2",
            "crlf_val": "line1\r\nline2",
            "tab_val": "\tindented",
            "query": "SELECT 1",
        }),
    );
    found.sort();
    let expected = [
        ("controlchar", "=?base64?bGluZTEKbGluZTI=?="),
        ("crlf", "=?base64?bGluZTENCmxpbmUy?="),
        ("debug", "true"),
        ("emptyval", ""),
        ("internalspace", "us west 1"),
        ("leadingspace", "=?base64?IHg=?="),
        ("method", "test-method"),
        ("nonascii", "=?base64?5pel5pys6Kqe?="),
        ("priority", "42"),
        ("region", "us-west1"),
        ("tab", "=?base64?CWluZGVudGVk?="),
        ("trailingspace", "=?base64?eCA=?="),
        ("verbose", "false"),
        ("whitespace", "=?base64?IHBhZGRlZCA=?="),
    ];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn null_and_absent_arguments_have_no_header() {
    let params = read(json!({ "region": annotated("string", "Region"), "verbose": annotated("boolean", "Verbose") })).unwrap();
    let region = [("region".to_owned(), "us-east1".to_owned())];
    assert_eq!(values(&params, json!({ "region": "us-east1", "verbose": null })), region);
    assert_eq!(values(&params, json!({ "region": "us-east1" })), region);
    assert_eq!(values(&params, json!({})), []);
    assert_eq!(params.headers_for(None), []);
    assert_eq!(params.headers_for(Some(&Json::null())), []);
}

#[test]
fn integers_are_written_in_decimal_however_they_were_spelled() {
    let params = read(json!({ "n": annotated("integer", "N") })).unwrap();
    for (spelled, written) in [
        ("42", "42"),
        ("-7", "-7"),
        ("0", "0"),
        ("-0", "0"),
        ("0.0e5", "0"),
        ("1.0", "1"),
        ("1e3", "1000"),
        ("1.5E1", "15"),
        ("100e-2", "1"),
        ("12300", "12300"),
        ("9007199254740993", "9007199254740993"),
        ("-9223372036854775809", "-9223372036854775809"),
        ("1.5", "1.5"),
        ("1e400", "1e400"),
        ("1e99999999999999999999", "1e99999999999999999999"),
    ] {
        let arguments = Json::parse(format!(r#"{{"n":{spelled}}}"#)).unwrap();
        let headers = params.headers_for(Some(&arguments));
        assert_eq!(headers, [("mcp-param-n".to_owned(), written.to_owned())], "{spelled}");
    }
}

#[test]
fn unrepeatable_arguments_have_no_header() {
    let params = read(json!({ "a": annotated("string", "A") })).unwrap();
    assert_eq!(values(&params, json!({ "a": {} })), []);
    assert_eq!(values(&params, json!({ "a": ["x"] })), []);
}

#[test]
fn nested_properties_count() {
    let params = read(json!({
        "where": { "type": "object", "properties": {
            "region": annotated("string", "Region"),
            "exact": { "type": "object", "properties": { "zone": annotated("integer", "Zone") } },
        } },
    }))
    .unwrap();
    let arguments = json!({ "where": { "exact": { "zone": 3 }, "region": "eu" }, "region": "no" });
    let mut found = values(&params, arguments);
    found.sort();
    assert_eq!(found, [("region", "eu"), ("zone", "3")].map(|(a, b)| (a.to_owned(), b.to_owned())));
    for arguments in
        [json!({ "where": null }), json!({ "where": 7 }), json!({ "where": { "exact": [] } })]
    {
        assert_eq!(values(&params, arguments), []);
    }
}

#[test]
fn a_property_may_be_called_like_the_annotation() {
    let params = read(json!({
        "x-mcp-header": annotated("string", "Itself"),
        "a": { "type": "string", "default": { "x-mcp-header": "data" }, "examples": [{ "x-mcp-header": "" }] },
    }))
    .unwrap();
    assert_eq!(params.names().collect::<Vec<_>>(), ["mcp-param-itself"]);
    assert_eq!(
        values(&params, json!({ "x-mcp-header": "v" })),
        [("itself".to_owned(), "v".to_owned())]
    );
}

#[test]
fn an_escaped_annotation_is_one() {
    let schema =
        r#"{"type":"object","properties":{"a":{"type":"string","x-mcp\u002dheader":"A"}}}"#;
    assert_eq!(ParamHeaders::read(&Json::parse(schema).unwrap()).unwrap().len(), 1);
}

#[test]
fn schemas_without_annotations_have_no_headers() {
    assert!(read(json!({ "a": { "type": "string" } })).unwrap().is_empty());
    for text in ["true", "{}", "null", r#"{"properties":7}"#, r#""x-mcp-header""#] {
        assert!(ParamHeaders::read(&Json::parse(text).unwrap()).unwrap().is_empty(), "{text}");
    }
}

#[test]
fn a_name_must_be_one_that_a_header_can_have() {
    for name in
        ["", "My Region", "Region:Primary", "Région", "Region\t1", "a\r\nb", "(x)", "a,b", "\u{0}"]
    {
        let schema = json!({ "properties": { "a": annotated("string", name) } });
        assert_eq!(why(schema), ("a".to_owned(), Why::Name), "{name:?}");
    }
    for name in [json!(7), json!(null), json!(["Region"]), json!({})] {
        let schema = json!({ "properties": { "a": { "type": "string", "x-mcp-header": name } } });
        assert_eq!(why(schema), ("a".to_owned(), Why::Name));
    }
    assert!(read(json!({ "a": annotated("string", "!#$%&'*+-.^_`|~09azAZ") })).is_ok());
}

#[test]
fn a_name_must_be_the_only_one_of_its_kind() {
    for (one, other) in [("Region", "Region"), ("Region", "REGION")] {
        let schema = json!({ "properties": { "a": annotated("string", one), "b": annotated("string", other) } });
        assert_eq!(why(schema), ("b".to_owned(), Why::Taken));
    }
    let nested = json!({ "type": "object", "properties": { "b": annotated("string", "region") } });
    let schema = json!({ "properties": { "a": nested, "b": annotated("string", "Region") } });
    assert_eq!(why(schema), ("b".to_owned(), Why::Taken));
}

#[test]
fn only_strings_integers_and_booleans_are_repeated() {
    for kind in [
        json!("number"),
        json!("object"),
        json!("array"),
        json!("null"),
        json!(["string", "null"]),
        json!(7),
    ] {
        let schema = json!({ "properties": { "a": { "type": kind, "x-mcp-header": "A" } } });
        assert_eq!(why(schema), ("a".to_owned(), Why::Type));
    }
    for property in
        [json!({ "x-mcp-header": "A" }), json!({ "$ref": "#/$defs/A", "x-mcp-header": "A" })]
    {
        assert_eq!(why(json!({ "properties": { "a": property } })), ("a".to_owned(), Why::Type));
    }
}

#[test]
fn an_annotation_elsewhere_spoils_the_tool() {
    let it = annotated("string", "A");
    let inside = json!({ "properties": { "a": it } });
    let places = [
        json!({ "type": "object", "x-mcp-header": "A" }),
        json!({ "properties": { "a": { "type": "array", "items": it } } }),
        json!({ "properties": { "a": { "type": "array", "items": inside } } }),
        json!({ "properties": { "a": { "prefixItems": [it] } } }),
        json!({ "properties": { "a": { "anyOf": [it, { "type": "null" }] } } }),
        json!({ "oneOf": [inside] }),
        json!({ "allOf": [inside] }),
        json!({ "not": inside }),
        json!({ "if": inside }),
        json!({ "then": inside }),
        json!({ "else": inside }),
        json!({ "$defs": { "A": it } }),
        json!({ "definitions": { "A": inside } }),
        json!({ "patternProperties": { "^a": it } }),
        json!({ "dependentSchemas": { "b": inside } }),
        json!({ "additionalProperties": it }),
        json!({ "unheard-of": { "properties": { "a": it } } }),
    ];
    for schema in places {
        assert_eq!(why(schema.clone()).1, Why::Place, "{schema}");
    }
}

#[test]
fn a_header_that_says_the_same_passes() {
    assert_eq!(region("Hello", "Hello"), Ok(()));
    assert_eq!(region("Hello", " Hello\t"), Ok(()));
    assert_eq!(region("Hello", "=?base64?SGVsbG8=?="), Ok(()));
    assert_eq!(region("SGVsbG8=", "SGVsbG8="), Ok(()));
    assert_eq!(region("=?base64?SGVsbG8=", "=?base64?SGVsbG8="), Ok(()));
    assert_eq!(region("SGVsbG8=?=", "SGVsbG8=?="), Ok(()));
    assert_eq!(region("", ""), Ok(()));
    assert_eq!(region("", "=?base64??="), Ok(()));
    assert_eq!(region("日本", "=?base64?5pel5pys?="), Ok(()));
    assert_eq!(check("{}", &[]), Ok(()));
    assert_eq!(check(r#"{"region":null,"deep":null}"#, &[]), Ok(()));
    assert_eq!(check(r#"{"dry":true}"#, &[("mcp-param-dry", b"true")]), Ok(()));
    assert_eq!(check(r#"{"deep":{"er":"x"}}"#, &[("MCP-PARAM-DEEPER", b"x")]), Ok(()));
    assert_eq!(check("{}", &[("mcp-param-unknown", b"x"), ("mcp-param-unknown", b"\xff")]), Ok(()));
}

#[test]
fn a_header_that_says_otherwise_does_not() {
    use BadValue::{Base64, Characters, Utf8};
    for (value, header, fault) in [
        ("Hello", "hello", Fault::Differs),
        ("Hello", "", Fault::Differs),
        ("Hello", "Hello, World", Fault::Differs),
        ("Hello", "=?base64?SGVsbG8?=", Fault::Malformed(Base64)),
        ("Hello", "=?base64?SGVs!!!bG8=?=", Fault::Malformed(Base64)),
        ("Hello", "=?base64?SGVsbG8=", Fault::Differs),
        ("=?base64?SGVsbG8=?=", "=?base64?SGVsbG8=?=", Fault::Differs),
        ("ÿ", "=?base64?/w==?=", Fault::Malformed(Utf8)),
        ("日本", "日本", Fault::Malformed(Characters)),
        ("true", "True", Fault::Differs),
    ] {
        assert_eq!(region(value, header), Err(fault), "{value} {header}");
    }
    assert_eq!(check(r#"{"region":"x"}"#, &[]), Err(Fault::Missing));
    assert_eq!(check(r#"{"region":""}"#, &[]), Err(Fault::Missing));
    assert_eq!(check(r#"{"dry":false}"#, &[("mcp-param-dry", b"False")]), Err(Fault::Differs));
    assert_eq!(check(r#"{"dry":false}"#, &[("mcp-param-dry", b"0")]), Err(Fault::Differs));
}

#[test]
fn a_header_without_its_argument_does_not_pass() {
    for arguments in ["{}", r#"{"region":null}"#, r#"{"deep":{"region":"x"}}"#] {
        assert_eq!(check(arguments, &[("mcp-param-region", b"x")]), Err(Fault::Uncalled));
        assert_eq!(check(arguments, &[("mcp-param-region", b"")]), Err(Fault::Uncalled));
    }
}

#[test]
fn a_header_may_stand_there_once() {
    let twice: [(&str, &[u8]); 2] = [("mcp-param-region", b"x"), ("Mcp-Param-Region", b"x")];
    assert_eq!(check(r#"{"region":"x"}"#, &twice), Err(Fault::Repeated));
    assert_eq!(check("{}", &twice), Err(Fault::Repeated));
}

#[test]
fn a_duplicate_or_unrepeatable_argument_does_not_pass() {
    for arguments in [
        r#"{"region":"x","region":"x"}"#,
        r#"{"region":"x","\u0072egion":"y"}"#,
        r#"{"region":["x"]}"#,
        r#"{"region":{}}"#,
        r#"{"deep":{"er":"x","er":"y"}}"#,
    ] {
        let headers: [(&str, &[u8]); 2] = [("mcp-param-region", b"x"), ("mcp-param-deeper", b"x")];
        let headers = if arguments.contains("deep") { &headers[1..] } else { &headers[..1] };
        assert_eq!(check(arguments, headers), Err(Fault::Unreadable), "{arguments}");
    }
}

#[test]
fn integers_are_compared_as_numbers() {
    let compare = |body: &str, header: &str| {
        check(&format!(r#"{{"count":{body}}}"#), &[("mcp-param-count", header.as_bytes())])
    };
    for (body, header) in [
        ("42", "42"),
        ("42", "42.0"),
        ("42.0", "42"),
        ("4.2e1", "42"),
        ("0", "-0"),
        ("-7", "-7"),
        ("9007199254740991", "9007199254740991"),
        ("42", "=?base64?NDI=?="),
        ("10", "1e1"),
    ] {
        assert_eq!(compare(body, header), Ok(()), "{body} {header}");
    }
    for (body, header) in [
        ("42", "43"),
        ("42", "-42"),
        ("42", "4 2"),
        ("42", "0x2a"),
        ("42", "+42"),
        ("42", "042"),
        ("42", ""),
        ("42", "42."),
        ("42", ".42e2"),
        ("42", "4.2e"),
        ("42", "42,42"),
        ("1", "true"),
        ("9007199254740992", "9007199254740993"),
        ("1", "1e99999999999999999999"),
        ("1", "1.0000000000000000000000001"),
    ] {
        assert_eq!(compare(body, header), Err(Fault::Differs), "{body} {header}");
    }
    for number in
        ["9007199254740992", "-9007199254740992", "123456789012345678901234567890", "1e400"]
    {
        assert_eq!(compare(number, number), Err(Fault::Unsafe), "{number}");
    }
}
