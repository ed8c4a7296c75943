use trunkline::Form;

#[derive(Form)]
struct Party {
    guests: Vec<String>,
}

fn main() {}
