struct Hotel;

#[trunkline::toolbox]
impl Hotel {
    /// Books a room.
    #[tool]
    async fn book(&self, city: String) -> String {
        city
    }

    /// Books a table.
    #[tool(name = "book")]
    async fn book_table(&self, city: String) -> String {
        city
    }
}

fn main() {}
