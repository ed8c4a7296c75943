/// Books a room.
#[trunkline::tool(nam = "book")]
async fn book(city: String) -> String {
    city
}

fn main() {}
