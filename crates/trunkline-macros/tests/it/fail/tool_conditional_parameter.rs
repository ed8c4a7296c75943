/// Books a room.
#[trunkline::tool]
async fn book(city: String, #[cfg(unix)] nights: u8) -> String {
    city
}

fn main() {}
