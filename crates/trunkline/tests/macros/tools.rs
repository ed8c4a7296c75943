use trunkline::{tool, Context, Server, Client};

/// Books a room.
#[tool(title = "Book", destructive = false, task)]
pub(crate) async fn book(
    _cx: Context,
    /// Where to.
    city: String,
    #[serde(default)] mut nights: u32,
    note: Option<String>,
) -> String {
    nights += 1;
    format!("{city} {nights} {note:?}")
}

#[tokio::test]
async fn works() {
    let server = Server::builder("x", "1").tool(book).build();
    let client = Client::builder("c", "1").connect_memory(&server).await.unwrap();
    let tools = client.list_tools().await.unwrap();
    panic!("{}", trunkline::serde_json::to_string_pretty(&tools[0]).unwrap());
}
