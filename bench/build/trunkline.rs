//! The travel server over stdio, as a user of trunkline writes it.

use trunkline::{Context, Json, Server, ToolError, data, tool};

#[data]
struct Booking {
    reference: String,
    total: u32,
}

/// Books a hotel.
#[tool]
async fn book(cx: Context, city: String, nights: u32) -> Result<Json<Booking>, ToolError> {
    cx.progress(1.0, 2.0).await;
    if !cx.ask::<bool>(format!("{nights} nights in {city}?")).await?.accepted()? {
        return Err(ToolError::new("The user said no."));
    }
    cx.progress(2.0, 2.0).await;
    Ok(Json(Booking { reference: "R-1".to_owned(), total: nights * 99 }))
}

fn main() -> Result<(), trunkline::server::ServeError> {
    Server::builder("travel", "1.0.0").tool(book).build().run_stdio()
}
