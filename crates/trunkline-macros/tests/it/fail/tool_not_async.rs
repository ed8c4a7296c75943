/// Books a room.
#[trunkline::tool]
fn book(city: String) -> String {
    city
}

fn main() {}
