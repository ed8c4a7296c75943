//! Misspelt argument names, where an open schema allows unknown ones.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use trunkline_wire::json::Json;

use crate::schema::{self, SchemaProfile};
use crate::validate::{self, Schema};

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Search {
    query: String,
    #[serde(alias = "userName")]
    user_name: Option<String>,
    limit: Option<u32>,
    to: Option<String>,
    #[serde(default)]
    nested: Value,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Open {
    limit: Option<u32>,
    #[serde(flatten)]
    rest: std::collections::BTreeMap<String, Value>,
}

fn read<T: serde::de::DeserializeOwned + JsonSchema>(arguments: Value) -> Result<T, String> {
    let schema = Schema::compile(&schema::input_in::<T>(SchemaProfile::Plain)).unwrap();
    validate::read(Some(&schema), Some(&Json::of(&arguments)))
}

#[test]
fn a_slip_is_refused_with_everything_else() {
    let why = read::<Search>(json!({ "query": "bread", "limti": 5 })).unwrap_err();
    assert_eq!(why, "The arguments do not fit: `/limti` is not known; did you mean `limit`?");
    let why = read::<Search>(json!({ "limti": 5, "usr_name": "ada" })).unwrap_err();
    for told in ["`/query` is missing", "did you mean `limit`?", "did you mean `user_name`?"] {
        assert!(why.contains(told), "{why}");
    }
}

#[test]
fn what_is_no_slip_passes() {
    for more in [
        json!({ "verbose": true }),
        json!({ "limit": 5, "limits": 6 }),
        json!({ "limti": null }),
        json!({ "do": "it", "t": "x" }),
        // An alias.
        json!({ "userName": "ada" }),
        json!({ "nested": { "limti": 5 } }),
    ] {
        let mut arguments = json!({ "query": "bread" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let read = read::<Search>(arguments);
        assert!(read.is_ok(), "{more}: {read:?}");
    }
    assert!(read::<Open>(json!({ "limti": 5 })).is_ok(), "it takes whatever comes");
}
