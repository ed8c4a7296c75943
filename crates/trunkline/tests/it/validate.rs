//! Arguments and results that violate their schemas, and secrets in them, from outside.

use serde_json::{Value, json};
use trunkline::schemars::JsonSchema;
use trunkline::serde::{Deserialize, Serialize};
use trunkline::{Args, Json, Revision, SchemaProfile, Secret, Server, ToolError, tool};

use crate::server::{ERAS, builder, open, text};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it is shown")]
struct Trip {
    #[schemars(length(min = 2), regex(pattern = "^[A-Z]"))]
    city: String,
    #[schemars(range(min = 1, max = 30))]
    nights: u32,
    guests: Option<Vec<String>>,
    password: Option<Secret<String>>,
}

async fn book(Args(trip): Args<Trip>) -> String {
    format!("{trip:?}")
}

fn server() -> Server {
    builder().tool(tool("book", book)).build()
}

#[tokio::test]
async fn everything_wrong_with_arguments_is_told_at_once() {
    for revision in ERAS {
        let mut peer = open(&server(), revision).await;
        let arguments = json!({
            "city": "o", "nights": 31, "guests": ["Ada", 2], "password": 1234567, "nihgts": 2,
        });
        let result = peer.tool("book", arguments).await;
        assert_eq!(result["isError"], true, "{revision}");
        let told = text(&result);
        assert!(told.starts_with("The arguments do not fit:\n- `/"), "{told}");
        for sentence in [
            "`/city` must have at least 2 characters, but is the text \"o\".",
            "`/city` must match the pattern `^[A-Z]`",
            "`/nights` must be at most 30, but is the number 31.",
            "`/guests/1` must be a text, but is the number 2.",
            "`/nihgts` is not known",
            "`/password` must be a text.",
        ] {
            assert!(told.contains(sentence), "{sentence}\n{told}");
        }
        assert!(!told.contains("1234567"), "{told}");
    }
    // Earlier revisions cannot tell the model.
    let mut peer = open(&server(), Revision::V2025_03_26).await;
    let error =
        peer.call("tools/call", json!({ "name": "book", "arguments": {} })).await.unwrap_err();
    assert_eq!(error["code"], -32602);
    let told = error["message"].as_str().unwrap();
    assert!(
        told.contains("`/city` is missing.") && told.contains("`/nights` is missing."),
        "{told}"
    );
}

#[tokio::test]
async fn what_fits_is_read_and_secrets_are_not_shown() {
    for revision in ERAS {
        let mut peer = open(&server(), revision).await;
        let arguments =
            json!({ "city": "Oslo", "nights": 2.0, "guests": null, "password": "hunter2" });
        let result = peer.tool("book", arguments).await;
        assert_eq!(
            text(&result),
            r#"Trip { city: "Oslo", nights: 2, guests: None, password: Some([secret]) }"#,
            "{revision}"
        );
    }
}

#[tokio::test]
async fn a_schema_by_hand_is_held_to() {
    let echo = async |Args(it): Args<Value>| it.to_string();
    let schema = json!({
        "type": "object",
        "properties": { "a": { "$ref": "#/$defs/even" } },
        "required": ["a"],
        "$defs": { "even": { "type": "integer", "multipleOf": 2 } },
    });
    // The type accepts anything, so the schema must check even types.
    let plain = json!({ "type": "object", "properties": {}, "required": ["b"] });
    let server = builder()
        .tool(tool("echo", echo).input_schema(schema))
        .tool(tool("plain", echo).input_schema(plain))
        .build();
    for revision in ERAS {
        let mut peer = open(&server, revision).await;
        assert_eq!(text(&peer.tool("echo", json!({ "a": 4 })).await), r#"{"a":4}"#);
        let odd = peer.tool("echo", json!({ "a": 3 })).await;
        let told = "The arguments do not fit: `/a` must be a multiple of 2, but is the number 3.";
        assert_eq!(text(&odd), told, "{revision}");
        let none = peer.tool("plain", json!({})).await;
        assert_eq!(text(&none), "The arguments do not fit: `/b` is missing.", "{revision}");
        let none = peer.tool("echo", json!({})).await;
        assert_eq!(text(&none), "The arguments do not fit: `/a` is missing.", "{revision}");
    }
}

#[derive(Serialize, JsonSchema)]
struct Total {
    #[schemars(range(min = 1))]
    total: i32,
    note: Option<String>,
}

#[tokio::test]
async fn a_result_that_breaks_its_promise_does_not_leave() {
    let good = async || Json(Total { total: 1, note: None });
    let bad = async || Ok::<_, ToolError>(Json(Total { total: -5, note: None }));
    let server = builder().tool(tool("good", good)).tool(tool("bad", bad)).build();
    for revision in ERAS {
        let mut peer = open(&server, revision).await;
        let good = peer.tool("good", json!({})).await;
        assert_eq!(good["structuredContent"], json!({ "total": 1, "note": null }), "{revision}");
        let bad = peer.tool("bad", json!({})).await;
        assert_eq!(bad["isError"], true, "{revision}");
        assert!(!bad.to_string().contains("-5"), "{bad}");
    }
}

#[tokio::test]
async fn schemas_come_in_two_profiles() {
    for (profile, is_plain) in [(SchemaProfile::Plain, true), (SchemaProfile::Full, false)] {
        let server = builder().schemas(profile).tool(tool("book", book)).build();
        for revision in ERAS {
            let mut peer = open(&server, revision).await;
            let list = peer.expect("tools/list", json!({})).await;
            let schema = &list["tools"][0]["inputSchema"];
            assert_eq!(schema["type"], "object");
            assert_eq!(schema["properties"]["nights"].get("format").is_none(), is_plain);
            assert_eq!(schema["properties"]["guests"]["type"].is_string(), is_plain, "{schema}");
            assert_eq!(schema["properties"]["password"]["writeOnly"], true, "{schema}");
        }
    }
}
