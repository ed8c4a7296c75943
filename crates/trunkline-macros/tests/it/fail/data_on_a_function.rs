#[trunkline::data]
fn booking() {}

fn main() {}
