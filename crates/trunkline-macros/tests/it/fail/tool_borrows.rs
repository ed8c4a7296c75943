/// Books a room.
#[trunkline::tool]
async fn book(city: &str, guests: &[String], cx: &trunkline::Context) -> String {
    city.to_owned()
}

fn main() {}
