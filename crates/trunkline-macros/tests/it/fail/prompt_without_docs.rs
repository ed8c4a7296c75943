#[trunkline::prompt(title = "Plan a day")]
async fn plan(city: String) -> String {
    city
}

fn main() {}
