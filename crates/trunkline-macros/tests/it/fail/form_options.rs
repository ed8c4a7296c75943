use trunkline::Form;

#[derive(Form)]
struct Guest {
    #[form(format = "phone")]
    phone: String,
    #[form(min_length = 1)]
    age: u8,
    #[form(max = 3)]
    name: String,
    #[form(rename = "phone")]
    second: String,
    #[form(min_items = 1)]
    vip: bool,
}

fn main() {}
