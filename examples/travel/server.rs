//! A server that books hotels: a tool with a structured result, progress and a question. The same
//! lines serve every revision, over stdio and, after `--http ADDRESS`, over HTTP.

use std::process::ExitCode;
use trunkline::{Context, Json, Server, ToolError, data, tool};

#[data]
struct Booking {
    reference: String,
    total: f64,
}

/// Books a hotel, if the user agrees to the price.
#[tool]
async fn book(cx: Context, city: String, nights: u32) -> Result<Json<Booking>, ToolError> {
    cx.progress(1.0, 2.0).await;
    let total = f64::from(nights) * 99.0;
    let question = format!("{nights} nights in {city} for {total} euros?");
    if !cx.ask::<bool>(question).await?.accepted()? {
        return Err(ToolError::new("The user does not want it at that price."));
    }
    cx.progress(2.0, 2.0).await;
    Ok(Json(Booking { reference: format!("{city}-{nights}"), total }))
}

fn main() -> ExitCode {
    Server::builder("travel-server", "1.0.0").tool(book).build().run()
}
