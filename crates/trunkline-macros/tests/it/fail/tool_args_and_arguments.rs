use trunkline::Args;

#[trunkline::data]
struct Booking {
    city: String,
}

/// Books a room.
#[trunkline::tool]
async fn book(Args(it): Args<Booking>, nights: u32) -> String {
    format!("{} {nights}", it.city)
}

fn main() {}
