/// Books a room.
#[trunkline::toolbox]
async fn book(city: String) -> String {
    city
}

fn main() {}
