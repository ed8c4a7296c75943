use trunkline::server::Typed;
use trunkline::{prompt, tool};

async fn cities(typed: Typed) -> Vec<String> {
    typed.starts(["Oslo"])
}

/// Books a room.
#[tool]
async fn book(#[complete(cities)] city: String) -> String {
    city
}

/// Plans a day.
#[prompt]
async fn plan(#[complete(cities)] cx: trunkline::Context) -> String {
    let _ = cx;
    String::new()
}

fn main() {}
