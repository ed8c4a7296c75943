#[trunkline::tool]
async fn book(city: String) -> String {
    city
}

fn main() {
    let _ = trunkline::Server::builder("hotel", "1").tool(book);
}
