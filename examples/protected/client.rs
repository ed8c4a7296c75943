//! How do I log in to a protected server? The server says where; the user opens a page; a tool that
//! needs more scopes asks the user once more.

use std::error::Error;
use std::sync::Arc;

use trunkline::Client;
use trunkline::auth::{self, Loopback, MemoryVault};
use trunkline::serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("Say which server, by its URL.")?;
    // `Loopback::new()` by itself opens the browser.
    let browser = Loopback::new().tell(|page| eprintln!("Open {page}")).without_opening();
    let login = auth::oauth(&*url)
        .client_name("The notes client")
        // The login is kept in memory only; without this line it is stored in a folder of yours.
        .vault(Arc::new(MemoryVault::new()))
        .browser(Arc::new(browser));
    let builder = Client::builder("notes-client", "1.0.0").credentials(Arc::new(login));
    let client = builder.connect_http(&*url).await?;
    println!("{}", client.call::<String>("whoami", ()).await?);
    println!("{}", client.call::<String>("write", json!({ "text": "hello" })).await?);
    client.close().await;
    Ok(())
}
