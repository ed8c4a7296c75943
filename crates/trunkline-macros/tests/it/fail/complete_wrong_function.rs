use trunkline::prompt;

async fn cities(typed: String) -> Vec<String> {
    vec![typed]
}

/// Plans a day.
#[prompt]
async fn plan(#[complete(cities)] city: String) -> String {
    city
}

fn main() {}
