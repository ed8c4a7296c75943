fn is_late(_: u8) -> bool {
    true
}

/// Hides.
#[trunkline::tool(visible = is_late)]
async fn hide() -> String {
    String::new()
}

fn main() {}
