/// Books a room.
#[trunkline::tool(title = "Book", title = "Book!")]
async fn book(city: String) -> String {
    city
}

fn main() {}
