/// Books a room.
#[trunkline::tool(read_only, destructive)]
async fn book(city: String) -> String {
    city
}

fn main() {}
