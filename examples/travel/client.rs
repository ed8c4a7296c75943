//! A client that starts a server (or finds it at a URL), shows progress, answers its question and
//! reads what it gets as a Rust type.

use trunkline::client::Client;
use trunkline::serde_json::json;

#[trunkline::data]
#[derive(Debug)]
struct Booking {
    reference: String,
    total: f64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let yes = Client::builder("travel-client", "1.0.0").on_ask(async |it| it.accept_defaults());
    let client = yes.connect_args(std::env::args().skip(1)).await?;
    let call = client.call::<Booking>("book", json!({ "city": "Oslo", "nights": 2 }));
    let call = call.on_progress(|it| println!("{} of {:?}", it.progress, it.total));
    println!("{:?}", call.await?);
    Ok(())
}
