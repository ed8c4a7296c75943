use trunkline::prompt;
use trunkline::server::Typed;

async fn cities(typed: Typed) -> Vec<String> {
    typed.starts(["Oslo"])
}

/// Plans a day.
#[prompt]
async fn plan(#[complete(citys)] city: String) -> String {
    city
}

fn main() {
    let _ = cities;
}
