use trunkline::{Form, Secret};

#[derive(Form)]
struct Login {
    name: String,
    password: Secret<String>,
}

fn main() {}
