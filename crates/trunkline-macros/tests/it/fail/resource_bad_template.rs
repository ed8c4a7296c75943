/// The rooms of a city.
#[trunkline::resource("hotel://{city/rooms")]
async fn rooms(city: String) -> String {
    city
}

fn main() {}
