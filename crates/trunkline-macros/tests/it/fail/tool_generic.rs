/// Books a room.
#[trunkline::tool]
async fn book<T: ToString>(city: T, note: impl ToString) -> impl Into<String> {
    city.to_string() + &note.to_string()
}

fn main() {}
