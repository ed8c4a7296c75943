use trunkline::tool;

struct Place {
    city: String,
}

/// Looks a place up.
#[tool]
async fn look_up(place: Place) -> String {
    place.city
}

fn main() {
    let _ = trunkline::Server::builder("a", "1").tool(look_up);
}
