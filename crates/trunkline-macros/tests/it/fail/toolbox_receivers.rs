struct Hotel;

#[trunkline::toolbox]
impl Hotel {
    /// Books a room.
    #[tool]
    async fn book(&mut self, city: String) -> String {
        city
    }

    /// Closes the hotel.
    #[tool]
    async fn close(self) {}
}

fn main() {}
