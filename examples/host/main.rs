//! How do I use many servers at once, and let the user decide? Start it with the commands of two
//! servers: one that greets, one that books.

use trunkline::client::{Command, Consent, Hooks, Host, Wish};
use trunkline::serde_json::{Value, json};

/// What is allowed, what is denied, and what the user decides.
fn rule(wish: &Wish) -> Consent {
    match wish {
        Wish::Tool { tool, .. } if tool.starts_with("delete") => {
            Consent::deny("Nothing is ever deleted.")
        }
        Wish::Tool { server, .. } if server == "greeter" => Consent::Allow,
        _ => Consent::Ask,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut commands = std::env::args().skip(1).map(Command::new);
    let mut next = || commands.next().ok_or("Start it with two commands.");
    let host = Host::builder("host", "1.0.0")
        .server("greeter", next()?)
        .server("travel", next()?)
        .consent(rule)
        .on_consent(async |wish| {
            println!("May I {wish}? Yes.");
            true
        })
        .hooks(Hooks::new().on_ask(async |question| {
            println!("{}: {} Yes.", question.server().unwrap_or_default(), question.message());
            question.accept(true)
        }))
        .connect()
        .await?;
    for tool in host.tools().await.items {
        println!("{}", tool.name);
    }
    let hello = host.call_tool("greeter.hello", json!({ "name": "Ada" })).await?;
    println!("{}", hello.content[0].as_text().unwrap_or_default());
    let booking: Value = host.call("travel.book", json!({ "city": "Oslo", "nights": 1 })).await?;
    println!("{}", booking["reference"]);
    let never = host.call_tool("travel.delete", ()).await;
    println!("{}", never.unwrap_err());
    host.close().await;
    Ok(())
}
