/// The rooms of a city.
#[trunkline::resource("hotel://{city}/rooms{?kind}")]
async fn rooms(town: String, kind: Option<String>) -> String {
    format!("{town} {kind:?}")
}

fn main() {}
