/// Books a room.
#[trunkline::tool(title = 3, read_only = "yes", task = "maybe")]
async fn book(city: String) -> String {
    city
}

fn main() {}
