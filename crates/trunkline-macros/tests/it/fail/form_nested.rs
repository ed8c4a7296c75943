use trunkline::Form;

#[derive(Form)]
struct Address {
    city: String,
}

#[derive(Form)]
struct Guest {
    name: String,
    /// Where to send the bill.
    address: Address,
}

fn main() {}
