struct Database;

/// Books a room.
#[trunkline::tool]
async fn book(#[extract] _database: Database, city: String) -> String {
    city
}

fn main() {}
