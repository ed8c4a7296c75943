/// Books a room.
#[trunkline::tool]
async fn book((city, nights): (String, u32), _: bool) -> String {
    format!("{city} {nights}")
}

fn main() {}
