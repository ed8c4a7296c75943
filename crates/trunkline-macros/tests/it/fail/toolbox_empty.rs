struct Hotel;

#[trunkline::toolbox]
impl Hotel {
    /// Books a room.
    pub async fn book(&self, city: String) -> String {
        city
    }
}

fn main() {
    let _ = trunkline::Server::builder("hotel", "1").toolbox(Hotel);
}
