//! `call` returns a tool's value whatever its type, in every revision.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use trunkline::{Client, Json, Revision, Server, data, tool};

#[data]
#[derive(Debug, PartialEq)]
enum Colour {
    Red,
    Other(String),
}

#[data]
#[derive(Debug, Default, PartialEq)]
struct Settings {
    #[serde(default)]
    depth: Option<u32>,
}

#[data]
#[derive(Debug, PartialEq)]
struct Wrapper {
    result: u32,
}

fn server() -> Server {
    Server::builder("values", "1")
        .tool(tool("number", async || Json(42)))
        .tool(tool("fraction", async || Json(1.5)))
        .tool(tool("yes", async || Json(true)))
        .tool(tool("text", async || Json("a text".to_owned())))
        .tool(tool("list", async || Json(vec![2, 3, 5])))
        .tool(tool("lists", async || Json(vec![vec!["a".to_owned()], vec![]])))
        .tool(tool("some", async || Json(Some(7))))
        .tool(tool("none", async || Json(None::<u32>)))
        .tool(tool("settings", async || Json(Some(Settings { depth: Some(3) }))))
        .tool(tool("colour", async || Json(Colour::Red)))
        .tool(tool("other", async || Json(Colour::Other("mauve".to_owned()))))
        .tool(tool("map", async || Json(BTreeMap::from([("a".to_owned(), 1)]))))
        .tool(tool("wrapper", async || Json(Wrapper { result: 9 })))
        .tool(tool("pair", async || Json((1, "one".to_owned()))))
        .build()
}

async fn gives<T>(client: &Client, tool: &str, expected: T)
where
    T: DeserializeOwned + Debug + PartialEq + Send + 'static,
{
    let revision = client.revision();
    match client.call::<T>(tool, ()).await {
        Ok(found) => assert_eq!(found, expected, "{tool} in {revision}"),
        Err(error) => panic!("{tool} in {revision}: {error}"),
    }
}

#[tokio::test]
async fn a_value_of_any_type_comes_as_it_was_given() {
    let server = server();
    for revision in Revision::ALL {
        for is_listed in [false, true] {
            let builder = Client::builder("values", "1").protocol(revision);
            let client = builder.connect_memory(&server).await.unwrap();
            if is_listed {
                // From now on results are validated against the schemas.
                client.list_tools().await.unwrap();
            }
            gives(&client, "number", 42).await;
            gives(&client, "fraction", 1.5).await;
            gives(&client, "yes", true).await;
            gives(&client, "text", "a text".to_owned()).await;
            gives(&client, "list", vec![2, 3, 5]).await;
            gives(&client, "lists", vec![vec!["a".to_owned()], vec![]]).await;
            gives(&client, "some", Some(7)).await;
            gives(&client, "none", None::<u32>).await;
            gives(&client, "settings", Some(Settings { depth: Some(3) })).await;
            gives(&client, "colour", Colour::Red).await;
            gives(&client, "other", Colour::Other("mauve".to_owned())).await;
            gives(&client, "map", BTreeMap::from([("a".to_owned(), 1)])).await;
            gives(&client, "wrapper", Wrapper { result: 9 }).await;
            gives(&client, "pair", (1, "one".to_owned())).await;
            gives::<Value>(&client, "list", json!([2, 3, 5])).await;
            gives::<Value>(&client, "number", json!(42)).await;
            gives::<Value>(&client, "map", json!({ "a": 1 })).await;
        }
    }
}

#[tokio::test]
async fn what_is_not_of_the_type_is_an_error_that_says_so() {
    let server = server();
    for revision in Revision::ALL {
        let builder = Client::builder("values", "1").protocol(revision);
        let client = builder.connect_memory(&server).await.unwrap();
        let error = client.call::<Vec<u32>>("text", ()).await.unwrap_err().to_string();
        assert!(error.contains("tools/call"), "{revision}: {error}");
    }
}
