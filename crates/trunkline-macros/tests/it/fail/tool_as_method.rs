struct Hotel;

impl Hotel {
    /// Books a room.
    #[trunkline::tool]
    async fn book(&self, city: String) -> String {
        city
    }
}

fn main() {}
