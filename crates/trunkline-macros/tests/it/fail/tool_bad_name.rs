/// Books a room.
#[trunkline::tool(name = "book a room")]
async fn book(city: String) -> String {
    city
}

fn main() {}
