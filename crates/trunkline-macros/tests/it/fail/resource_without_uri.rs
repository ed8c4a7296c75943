/// The rooms.
#[trunkline::resource(name = "rooms")]
async fn rooms() -> String {
    String::new()
}

fn main() {}
