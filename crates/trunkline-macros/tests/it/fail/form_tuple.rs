use trunkline::Form;

#[derive(Form)]
struct Guest(String);

fn main() {}
