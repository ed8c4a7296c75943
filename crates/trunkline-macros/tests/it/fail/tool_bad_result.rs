/// Books a room.
#[trunkline::tool]
async fn book(city: String) -> usize {
    city.len()
}

fn main() {}
