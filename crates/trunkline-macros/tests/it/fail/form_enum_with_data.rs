use trunkline::Form;

#[derive(Form)]
enum Payment {
    Cash,
    Card { number: String },
    #[form(titel = "Points")]
    Points,
}

fn main() {}
