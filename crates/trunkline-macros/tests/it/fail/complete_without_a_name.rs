use trunkline::prompt;
use trunkline::server::Typed;

async fn cities(typed: Typed) -> Vec<String> {
    typed.starts(["Oslo"])
}

/// Plans a week.
#[prompt]
async fn week(#[complete] city: String, #[complete("cities")] other: String) -> String {
    city + &other
}

/// Plans a month.
#[prompt]
async fn month(#[complete(self.cities)] city: String) -> String {
    city
}

fn main() {
    let _ = cities;
}
