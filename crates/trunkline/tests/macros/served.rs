//! The corners of `#[tool]` and `#[toolbox]`: calls in unit tests, extractors, generics, names.

use std::fmt::Display;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::json;
use trunkline::schemars::JsonSchema;
use trunkline::server::{FromCall, Input, Rejection};
use trunkline::{Args, Cancelled, Client, ClientInfo, Context, Principal, Server, tool, toolbox};

/// Adds.
#[tool]
async fn add(a: i64, b: i64) -> String {
    // A local variable may have the name of the tool.
    let add = a + b;
    add.to_string()
}

/// What a layer of ours knows about a call.
struct Hurry(bool);

impl FromCall for Hurry {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        Ok(Self(input.arguments().is_some()))
    }
}

#[trunkline::data]
struct Place {
    city: String,
    street: Option<String>,
}

/// Takes everything there is.
#[tool]
async fn everything(
    _: Context,
    #[extract] Hurry(hurry): Hurry,
    client: ClientInfo,
    who: Option<Principal>,
    cancelled: Cancelled,
    trunkline::Args(Place { city, street }): Args<Place>,
) -> String {
    let name = client.0.map(|it| it.name).unwrap_or_default();
    format!("{city} {street:?} {hurry} {name} {} {}", who.is_some(), cancelled.is())
}

/// Says what was typed.
#[tool(name = "say-it")]
#[allow(non_snake_case)]
async fn r#type(r#fn: String, mut times: u8) -> String {
    let mut said = String::new();
    while times > 0 {
        said += &r#fn;
        times -= 1;
    }
    said
}

#[doc = include_str!("served.md")]
#[tool]
async fn documented() {}

struct Shelf<T, const N: usize> {
    kept: Arc<[T; N]>,
}

#[toolbox]
impl<T, const N: usize> Shelf<T, N>
where
    T: Display + PartialEq + DeserializeOwned + JsonSchema + Send + Sync + 'static,
{
    /// Finds where something is kept.
    #[tool]
    async fn find(&self, what: T, from: Option<usize>) -> String {
        let at = self.kept.iter().skip(from.unwrap_or_default()).position(|it| *it == what);
        at.map_or_else(|| format!("There is no {what}."), |at| at.to_string())
    }

    /// Counts what is kept.
    #[tool]
    async fn count() -> String {
        N.to_string()
    }
}

async fn connect(server: &Server) -> Client {
    Client::builder("served", "1").connect_memory(server).await.unwrap()
}

async fn text(client: &Client, tool: &str, arguments: serde_json::Value) -> String {
    let result = client.call_tool(tool, arguments).await.unwrap();
    result.content[0].as_text().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_tool_is_still_a_function() {
    assert_eq!(add(1, 2).await, "3");
    assert_eq!(r#type("a".to_owned(), 2).await, "aa");
    let copies = [add, add];
    assert_eq!(copies[1](2, 2).await, "4");
    // The entry can be changed before it is registered.
    let server = Server::builder("test", "1").tool(add::entry().title("Sum")).build();
    let tools = connect(&server).await.list_tools().await.unwrap();
    assert_eq!(tools[0].title.as_deref(), Some("Sum"));
}

#[tokio::test]
async fn a_tool_can_be_written_inside_a_function() {
    /// Says hello.
    #[tool]
    async fn hello(name: String) -> String {
        format!("Hello, {name}!")
    }
    let server = Server::builder("test", "1").tool(hello).build();
    let client = connect(&server).await;
    assert_eq!(text(&client, "hello", json!({ "name": "Ada" })).await, "Hello, Ada!");
}

#[tokio::test]
async fn extractors_come_in_any_order_and_may_be_taken_apart() {
    let server = Server::builder("test", "1").tool(everything).tool(r#type).build();
    let client = connect(&server).await;
    let said = text(&client, "everything", json!({ "city": "Oslo", "street": "Main" })).await;
    assert_eq!(said, r#"Oslo Some("Main") true served false false"#);
    assert_eq!(text(&client, "say-it", json!({ "fn": "ab", "times": 2 })).await, "abab");
}

#[tokio::test]
async fn a_description_may_come_from_a_file() {
    let server = Server::builder("test", "1").tool(documented).build();
    let tools = connect(&server).await.list_tools().await.unwrap();
    let description = tools[0].description.as_deref().unwrap_or_default();
    assert_eq!(description.trim(), include_str!("served.md").trim());
}

#[tokio::test]
async fn a_toolbox_may_be_generic() {
    let names = Shelf { kept: Arc::new(["a".to_owned(), "b".to_owned()]) };
    let server = Server::builder("test", "1").toolbox(names).build();
    let client = connect(&server).await;
    assert_eq!(text(&client, "find", json!({ "what": "b" })).await, "1");
    assert_eq!(text(&client, "find", json!({ "what": "c" })).await, "There is no c.");
    assert_eq!(text(&client, "count", json!({})).await, "2");
    let numbers = Server::builder("test", "1").toolbox(Shelf { kept: Arc::new([7]) }).build();
    let tools = connect(&numbers).await.list_tools().await.unwrap();
    assert!(tools[0].input_schema.get().contains("integer"), "{}", tools[0].input_schema.get());
}
